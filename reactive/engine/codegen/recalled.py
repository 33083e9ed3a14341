"""Code that was generated for a node of a plan, with other constants for that of another query.

    def step(delta): ... row.customer == c      c = "ann", for the plan that a template came from
    def step(delta): ... row.customer == c      c = "bob", for one that the template made

Sound:  the nodes differ in constants of slots alone, which code has by name whatever their values
        are (`functions.Values`), and in callables and tables that it does not refer to.
State:  with each node of a template the functions made for it, which stay as long as it does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType
from typing import Any

Made = tuple[Callable[..., Any], str]
"""A function, and its text."""
Recall = Callable[[str, Callable[[], Made]], Made]
"""Gives what was made for that role, or makes it."""


def anew(role: str, make: Callable[[], Made]) -> Made:
    """Make it, whatever there is."""
    return make()


def recall_of(known: dict[str, Any]) -> Recall:
    """How code is made for a physical node, of which this is `known`."""
    instance = known.get("instance")
    if instance is None:
        return anew
    codes, values = instance
    return partial(_recalled, codes, values)


def _recalled(
    codes: dict[str, Made], values: Sequence[Any], role: str, make: Callable[[], Made]
) -> Made:
    found = codes.get(role)
    if found is None:
        found = codes[role] = make()
        return found
    function, text = found
    slots = vars(function).get("slots")
    return (_with_values(function, slots, values) if slots else function), text


def _with_values(function: Any, slots: dict[str, int], values: Sequence[Any]) -> FunctionType:
    """The function with the values of another query; of code of its own, as the interpreter learns
    of code what its variables are."""
    own = {name: values[slot] for name, slot in slots.items()}
    made = FunctionType(function.__code__.replace(), function.__globals__ | own, function.__name__)
    vars(made)["written"] = function  # which keeps its text in `linecache`
    return made
