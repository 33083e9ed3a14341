"""Copy a tree of frozen records with other values in some places, without reading the rest.

    look up 8...1 where o.customer == 8...1     of marks
    look up "ann" where o.customer == "ann"     of values

The places are found once, by identity, and become a function that builds the records above them.
The rest is shared.

Cost:  O(records above a place).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from itertools import count
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from optimizer.callables.captures import meaning
from optimizer.callables.opaque import Opaque
from optimizer.expr import Constant, Slot, SlotValue, constant
from optimizer.plans.facts import Tree, nodes_in
from optimizer.record import record

Values = tuple[Any, ...]
Make = Callable[[Values], Any]
INERT = (
    *(int, str, float, bytes, bool, complex, type(None), type, Enum, Opaque),
    *(CodeType, FunctionType, BuiltinFunctionType, ModuleType),
)
"""Classes whose objects contain no place."""
PLAIN = frozenset({int, str, float, bytes, bool, complex, type(None), type})
"""Classes whose objects neither contain nor are a place."""


FACTS = ("shapes", "is_set", "keeps_identity", "may_be_negative")
"""Facts of nodes that depend neither on constants nor on the choice of tables."""
OWN = ("side_conditions", "functions", "signature")
"""Facts of nodes that depend on their own fields and the shapes of their inputs.

They stay valid if only inputs are replaced.
"""
DERIVED = ("side_conditions",)
"""Facts that are copied by the same substitution, if more is replaced."""


@record
class Later:
    """Stands for an object that is built lazily, by a function."""

    value: Any


class UnknownPlace(Exception):
    """An object that cannot be read may contain a place."""


def substitution(root: Any, places: Mapping[int, int]) -> Make:
    """Return the function that copies the tree with given values.

    Parameters
    ----------
    places: the `id`s of objects, with the number of the value that replaces each.

    Raises
    ------
    UnknownPlace: the tree contains an object that is neither a record nor plain.
    """
    found = _PlaceFinder(places).find_maker(root)
    if found is None:
        return lambda given: root
    if not places:
        made = found(({},))
        return lambda given: made
    return lambda given: found((*given, {}))


class _PlaceFinder:
    """Makes the functions that copy values; values without a place are shared, not copied."""

    def __init__(self, places: Mapping[int, int]) -> None:
        self._places = places
        self._known: dict[int, Make | None] = {}
        self._numbers = count()

    def find_maker(self, value: Any) -> Make | None:
        """Return the function that copies a value; None if it contains no place."""
        place = self._places.get(id(value))
        if place is not None:
            return lambda values: values[place]
        if isinstance(value, INERT):
            return None
        if isinstance(value, SlotValue):
            return _always(value.value)
        if id(value) not in self._known:
            found = self._make_copier(value)
            self._known[id(value)] = found
        return self._known[id(value)]

    def _make_copier(self, value: Any) -> Make | None:
        """Return the function that builds a value from new values; None if it has no place.

        Raises `UnknownPlace` if the place is in an object that cannot be rebuilt.
        """
        kind = type(value)
        if kind is Constant:
            return None
        if kind is Slot:
            return self._slot(value)
        if kind is tuple:
            return self._tuple(value)
        if kind is Later:
            part = self.find_maker(value.value) or _always(value.value)
            return lambda values: lambda: part(values)
        if is_dataclass(value):
            return self._record(value)
        if kind in (list, set, frozenset, dict):
            inner = [*value.keys(), *value.values()] if kind is dict else list(value)
            if not any(self.find_maker(each) for each in inner):
                return None
        raise UnknownPlace(kind.__name__)

    def _all(self, values: Iterable[Any]) -> list[Make | None]:
        """Return a maker for each value; None for values without a place."""
        return [None if each.__class__ in PLAIN else self.find_maker(each) for each in values]

    def _slot(self, value: Slot) -> Make:
        """Return the function that replaces a slot by a constant."""
        place, name = self._places.get(id(value.held)), value.name
        if place is None:
            return _always(constant(value.held.value, name))
        return lambda values: Constant(values[place], meaning(values[place]), name, place)

    def _tuple(self, value: tuple[Any, ...]) -> Make | None:
        """Return the function that builds a tuple from new values; None if it has no place."""
        parts = self._all(value)
        if not any(parts):
            return None
        made = [part or _always(each) for part, each in zip(parts, value, strict=True)]
        if len(made) == 1:
            (only,) = made
            return lambda values: (only(values),)
        return lambda values: tuple([make(values) for make in made])

    def _record(self, value: Any) -> Make | None:
        """Return the function that builds a record from new values; None if it has no place."""
        kind: Any = type(value)
        names = _find_init_fields(kind)
        own = [getattr(value, name) for name in names]
        parts = self._all(own)
        if not any(parts):
            return None
        number = next(self._numbers)
        fixed = {name: each for name, each, part in zip(names, own, parts, strict=True) if not part}
        made = [(name, part) for name, part in zip(names, parts, strict=True) if part]
        if not isinstance(value, Tree):
            return _making(kind, fixed, made, number)
        is_same = all(nodes_in(each) for each, part in zip(own, parts, strict=True) if part)
        stays = (*FACTS, *OWN) if is_same else FACTS
        derived = [
            (name, self.find_maker(value.known[name]) or _always(value.known[name]))
            for name in (() if is_same else DERIVED)
            if name in value.known
        ]
        return _making_node(_making(kind, fixed, made, number), value.known, stays, derived)


@lru_cache(maxsize=256)
def _find_init_fields(kind: Any) -> tuple[str, ...]:
    """Return the names of the fields that a record is made of."""
    return tuple([each.name for each in fields(kind) if each.init])


Parts = list[tuple[str, Make]]


def _making(kind: Any, fixed: Mapping[str, Any], made: Parts, number: int) -> Make:
    """Return the function that builds a record, once for each list of values."""

    def make(values: Values) -> Any:
        known = values[-1]  # shared records are built once
        found = known.get(number)
        if found is None:
            given = {name: part(values) for name, part in made}
            found = known[number] = kind(**fixed, **given)
        return found

    return make


def _making_node(
    make: Make, facts: Mapping[str, Any], stays: Sequence[str], derived: Parts
) -> Make:
    """Return the function that builds a node, with the facts that hold for all copies."""
    codes: dict[str, Any] = {}

    def made(values: Values) -> Any:
        found = make(values)
        known = found.known
        if "instance" not in known:
            known["instance"] = codes, values
            known.update([(name, facts[name]) for name in stays if name in facts])
            known.update([(name, part(values)) for name, part in derived])
        return found

    return made


def _always(value: Any) -> Make:
    return lambda values: value
