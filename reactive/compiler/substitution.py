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

from optimizer.expr import Constant, constant

Values = tuple[Any, ...]
Make = Callable[[Values], Any]
INERT = (
    *(int, str, float, bytes, bool, complex, type(None), type, Enum),
    *(CodeType, FunctionType, BuiltinFunctionType, ModuleType),
)
"""What no place is in."""


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
    return (lambda given: root) if found is None else lambda given: found((*given, {}))


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
        if id(value) not in self._known:
            found = self._made(value)
            self._known[id(value)] = found
        return self._known[id(value)]

    def _made(self, value: Any) -> Make | None:
        kind = type(value)
        if kind is Constant:
            return self._constant(value)
        if kind is tuple:
            return self._tuple(value)
        if is_dataclass(value):
            return self._record(value)
        if kind in (list, set, frozenset, dict):
            inner = [*value.keys(), *value.values()] if kind is dict else list(value)
            if not any(self.of(each) for each in inner):
                return None
        raise Unknown(kind.__name__)

    def _constant(self, value: Constant) -> Make | None:
        place, name = self._places.get(id(value.value)), value.name
        return None if place is None else lambda values: constant(values[place], name)

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
        return _making(kind, list(zip(names, own, parts, strict=True)), len(self._known))


def _making(kind: Any, parts: list[tuple[str, Any, Make | None]], number: int) -> Make:
    """What makes a record, once for each set of values."""
    fixed = {name: value for name, value, make in parts if make is None}
    made = [(name, make) for name, _, make in parts if make is not None]

    def make(values: Values) -> Any:
        known = values[-1]  # what several read is one
        found = known.get(number)
        if found is None:
            given = {name: part(values) for name, part in made}
            found = known[number] = kind(**fixed, **given)
        return found

    return make


def _always(value: Any) -> Make:
    return lambda values: value
