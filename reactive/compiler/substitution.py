"""Make a tree of frozen records again with other values in some places, without a look at the rest.

    look up 8...1 where o.customer == 8...1     of marks
    look up "ann" where o.customer == "ann"     of values

The places are found once, by identity, and become a function that makes the records on the way to
them. The rest is shared.

Cost:  O(records on the way to a place).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from optimizer.callables.captures import meaning
from optimizer.callables.opaque import Opaque
from optimizer.expr import Constant, Held, Slot, constant
from optimizer.plans.tree import Tree

Values = tuple[Any, ...]
Make = Callable[[Values], Any]
INERT = (
    *(int, str, float, bytes, bool, complex, type(None), type, Enum, Opaque),
    *(CodeType, FunctionType, BuiltinFunctionType, ModuleType),
)
"""What no place is in."""


FACTS = ("shapes", "is_set", "keeps_identity")
"""What is known of nodes, and depends neither on constants nor on which tables they read."""


class Unknown(Exception):
    """There may be a place in what cannot be looked into."""


def substitution(root: Any, places: Mapping[int, int]) -> Make:
    """What makes the tree with the values given to it.

    Parameters
    ----------
    places: objects by their `id`, with the number of the value that takes their place.

    Raises
    ------
    Unknown: it has something that is neither a record nor plain.
    """
    found = _Finder(places).of(root)
    if found is None:
        return lambda given: root
    if not places:
        made = found(({},))
        return lambda given: made
    return lambda given: found((*given, {}))


class _Finder:
    def __init__(self, places: Mapping[int, int]) -> None:
        self._places = places
        self._known: dict[int, Make | None] = {}

    def of(self, value: Any) -> Make | None:
        """What makes a value; None if there is no place in it."""
        place = self._places.get(id(value))
        if place is not None:
            return lambda values: values[place]
        if isinstance(value, INERT):
            return None
        if isinstance(value, Held):
            return _always(value.value)
        if id(value) not in self._known:
            found = self._made(value)
            self._known[id(value)] = found
        return self._known[id(value)]

    def _made(self, value: Any) -> Make | None:
        kind = type(value)
        if kind is Constant:
            return None
        if kind is Slot:
            return self._slot(value)
        if kind is tuple:
            return self._tuple(value)
        if is_dataclass(value):
            return self._record(value)
        if kind in (list, set, frozenset, dict):
            inner = [*value.keys(), *value.values()] if kind is dict else list(value)
            if not any(self.of(each) for each in inner):
                return None
        raise Unknown(kind.__name__)

    def _slot(self, value: Slot) -> Make:
        """A constant in the place of a slot, or the one that it has in all queries."""
        place, name = self._places.get(id(value.held)), value.name
        if place is None:
            return _always(constant(value.held.value, name))
        return lambda values: Constant(values[place], meaning(values[place]), name, place)

    def _tuple(self, value: tuple[Any, ...]) -> Make | None:
        parts = [self.of(each) for each in value]
        if not any(parts):
            return None
        made = [part or _always(each) for part, each in zip(parts, value, strict=True)]
        if len(made) == 1:
            (only,) = made
            return lambda values: (only(values),)
        return lambda values: tuple([make(values) for make in made])

    def _record(self, value: Any) -> Make | None:
        kind = type(value)
        names = [each.name for each in fields(value) if each.init]
        own = [getattr(value, name) for name in names]
        parts = [self.of(each) for each in own]
        if not any(parts):
            return None
        known = value.known if isinstance(value, Tree) else {}
        return _making(kind, list(zip(names, own, parts, strict=True)), len(self._known), known)


def _making(
    kind: Any, parts: list[tuple[str, Any, Make | None]], number: int, facts: Mapping[str, Any]
) -> Make:
    """What makes a record, once for each set of values. What is known of the rows of one is so of
    all."""
    fixed = {name: value for name, value, make in parts if make is None}
    codes: dict[str, Any] = {}
    is_tree = issubclass(kind, Tree)
    made = [(name, make) for name, _, make in parts if make is not None]

    def make(values: Values) -> Any:
        known = values[-1]  # what several read is one
        found = known.get(number)
        if found is None:
            given = {name: part(values) for name, part in made}
            found = known[number] = kind(**fixed, **given)
            if is_tree:
                found.known.update((name, facts[name]) for name in FACTS if name in facts)
                found.known["instance"] = codes, values
        return found

    return make


def _always(value: Any) -> Make:
    return lambda values: value
