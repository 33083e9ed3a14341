"""The parameters of the function of a family, and the values that are given for them."""

from __future__ import annotations

import inspect
from typing import Any

from optimizer.errors import PlanError


def count_parameters(function: Any) -> tuple[int, int]:
    """Return the least and the largest number of parameters of a function.

    Refuses a function without parameters, or with any number of them.
    """
    if not callable(function):
        raise PlanError(
            f"family takes a callable, parameter -> relation, not {function!r:.100}\n"
            "  lambda customer: orders.where(lambda o: o.customer == customer)"
        )
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    every = list(inspect.signature(function).parameters.values())
    given = [parameter for parameter in every if parameter.kind in kinds]
    if not given or any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in every):
        raise PlanError(
            f"family takes a function of one or more named parameters, not {function!r:.100}\n"
            "  without a parameter there is one view: materialize() makes it"
        )
    least = [parameter for parameter in given if parameter.default is inspect.Parameter.empty]
    return len(least), len(given)


def exactly(value: Any) -> tuple[Any, Any]:
    """Return a value with its type, which tells equal values apart: `1`, `1.0` and `True`."""
    return value, _parameter_kind(value)


def _parameter_kind(value: Any) -> Any:
    """Return the type of a value, of its items if it is a tuple; a float counts with its text."""
    if type(value) is tuple:
        return tuple(map(_parameter_kind, value))
    return (float, repr(value)) if type(value) is float else type(value)
