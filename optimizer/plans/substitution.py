"""Copy a tree of frozen records with other values in some places, without reading the rest.

    look up 8...1 where o.customer == 8...1     of marks
    look up "ann" where o.customer == "ann"     of values

The places are found once, by identity, and become a function that builds the records above them.
The rest is shared.

A `Recipe` copies a query as written: a text that is read again with other constants gets a copy of
its first plan, in which slots stand for the constants, and so do the plans derived from that plan.

Sound: as in templates of physical plans (`reactive/engine/compiler/templates.py`). A recipe is used
       if no slot was read, and its values differ from one another and from all other constants.
       Its first copy must equal the plan that is read without slots.
Cost:  O(records above a place).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date
from enum import Enum
from functools import lru_cache
from itertools import count
from numbers import Number
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

from optimizer import plan
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
CHECKED = "checked"
"""The fact that a node reads only what its rows have, which holds for copies of a query."""
TRANSLATED = ("asked form", "planned by")
"""Facts of the results of translations, which no recipe copies."""
RECIPE = "recipe"
"""The fact that a recipe made a query, with the values of the query."""
LITERAL = (str, bytes, Number, date)
"""Classes of constants that a value of a slot may equal."""
T = TypeVar("T")


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


class Recipe:
    """Makes copies of a query for other values of its slots.

    Parameters
    ----------
    query: the plan of the query, with slots for values.
    beside: what was read with the plan, such as its columns; copied like the plan.
    held: the values of the slots, none of which was read.
    objects: parts of the plan that each copy has its own of, such as the function that was read.

    Raises
    ------
    UnknownPlace: the plan cannot be copied, or has none of the slots.
    """

    __slots__ = ("_copier", "_derived", "_held", "_objects", "_query")

    def __init__(
        self,
        query: Tree,
        beside: Any,
        held: Sequence[SlotValue],
        objects: Sequence[object] = (),
    ) -> None:
        self._query = query
        self._held = tuple(held)
        self._objects = tuple(objects)
        self._copier = self._copier_of((query, beside))
        self._derived: dict[Hashable, _Copier | None] = {}

    def copy(self, values: Sequence[Any], objects: Sequence[object] = ()) -> tuple[Any, Any] | None:
        """Return the query for some values and objects, and what was read with it.

        Return None if a value equals another one, or another constant of the query.
        """
        given = (*values, *objects)
        found = self._copier.copy(given, len(self._held))
        if found is None:
            return None
        query, beside = found
        query.known[RECIPE] = self, given
        return query, beside

    def derive(self, key: Hashable, given: Values, make: Callable[[Any], T]) -> T | None:
        """Return the result of `make` for the query of given values, without calling it again.

        Return None if the result depends on the values. Results of different functions have
        different keys.
        """
        if key not in self._derived:
            self._derived[key] = self._derived_copier(make)
        copier = self._derived[key]
        return None if copier is None else copier.copy(given, len(self._held))

    def _derived_copier(self, make: Callable[[Any], Any]) -> _Copier | None:
        """Return the copier of the result for the query with slots; None if it reads a slot."""
        try:
            result = make(self._query)
            if any(each.is_asked or each.computed for each in self._held):
                return None
            return self._copier_of(result)
        except (UnknownPlace, RecursionError):
            return None
        finally:
            for each in self._held:
                each.is_asked = False
                each.computed.clear()

    def _copier_of(self, result: Any) -> _Copier:
        if result.__class__ in PLAIN:
            return _Copier(_always(result), frozenset())
        parts = (*self._held, *self._objects)
        finder = _PlaceFinder({id(each): n for n, each in enumerate(parts)}, is_query=True)
        make = finder.find_maker(result)
        if make is None or finder.used != set(range(len(parts))):
            raise UnknownPlace("a result without one of the slots")
        return _Copier(make, frozenset(finder.literals))


@record
class _Copier:
    """Makes copies, unless a value equals one of the `literals`."""

    make: Make
    literals: frozenset[Any]

    def copy(self, given: Values, count: int) -> Any:
        """Return the copy for given values and objects; None if a constant equals a value.

        The first `count` are values.
        """
        found = set(given[:count])
        if len(found) < count or not self.literals.isdisjoint(found):
            return None
        return self.make((*given, {}))


def derive(query: Tree, key: Hashable, make: Callable[[Any], T]) -> T:
    """Return `make(query)`; copied, if a recipe made the query and has the result already."""
    recipe = query.known.get(RECIPE)
    found = None if recipe is None else recipe[0].derive(key, recipe[1], make)
    return make(query) if found is None else found


class _PlaceFinder:
    """Makes the functions that copy values; values without a place are shared, not copied.

    Copies of a query as written (`is_query`) are planned anew: their constants have no slot.
    """

    def __init__(self, places: Mapping[int, int], *, is_query: bool = False) -> None:
        self._places = places
        self._is_query = is_query
        self._known: dict[int, Make | None] = {}
        self._numbers = count()
        self.literals: set[Any] = set()
        """The constants that are no slots."""
        self.used: set[int] = set()
        """The places that were found."""

    def find_maker(self, value: Any) -> Make | None:
        """Return the function that copies a value; None if it contains no place."""
        place = self._places.get(id(value))
        if place is not None:
            self.used.add(place)
            return lambda values: values[place]
        if isinstance(value, plan.Table):
            return None
        if isinstance(value, INERT):
            is_code = isinstance(value, Opaque | FunctionType)
            if is_code and self._is_query and not _is_free_of_slots(value):
                raise UnknownPlace("a callable that may read a slot")
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
            self._note_constant(value.value)
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

    def _note_constant(self, value: Any) -> None:
        """Note a constant; raise `UnknownPlace` for an object that may contain a slot."""
        if isinstance(value, LITERAL):
            self.literals.add(value)
        elif self._is_query and not _is_free_of_slots(value):
            raise UnknownPlace(type(value).__name__)

    def _all(self, values: Iterable[Any]) -> list[Make | None]:
        """Return a maker for each value; None for values without a place."""
        return [None if each.__class__ in PLAIN else self.find_maker(each) for each in values]

    def _slot(self, value: Slot) -> Make:
        """Return the function that replaces a slot by a constant."""
        place, name = self._places.get(id(value.held)), value.name
        if place is None:
            return _always(constant(value.held.value, name))
        if self._is_query:
            self.used.add(place)
            return lambda values: constant(values[place], name)
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
        if self._is_query and isinstance(value, Tree) and any(f in value.known for f in TRANSLATED):
            raise UnknownPlace("the result of a translation")
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
        if self._is_query:
            return _making_written_node(_making(kind, fixed, made, number), value.known)
        is_same = all(nodes_in(each) for each, part in zip(own, parts, strict=True) if part)
        stays = (*FACTS, *OWN) if is_same else FACTS
        derived = [
            (name, self.find_maker(value.known[name]) or _always(value.known[name]))
            for name in (() if is_same else DERIVED)
            if name in value.known
        ]
        return _making_node(_making(kind, fixed, made, number), value.known, stays, derived)


def _is_free_of_slots(value: Any) -> bool:
    """Return True for code and plain values that certainly hold no slot."""
    if value.__class__ in PLAIN or isinstance(value, type | Enum | BuiltinFunctionType):
        return True
    if isinstance(value, Opaque):
        return _is_free_of_slots(value.function)
    if isinstance(value, FunctionType):
        module = sys.modules.get(value.__module__ or "")
        is_own = module is not None and value.__globals__ is vars(module)
        return is_own and all(map(_is_free_cell, value.__closure__ or ()))
    if isinstance(value, tuple | frozenset):
        return all(map(_is_free_of_slots, value))
    kind: Any = type(value)
    if not is_dataclass(kind):
        return False
    names: tuple[str, ...] = _find_init_fields(kind)  # type: ignore[arg-type]
    return all(_is_free_of_slots(getattr(value, name)) for name in names)


def _is_free_cell(cell: CellType) -> bool:
    try:
        return _is_free_of_slots(cell.cell_contents)
    except ValueError:  # it has no value yet
        return False


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


def _making_written_node(make: Make, facts: Mapping[str, Any]) -> Make:
    """Return the function that builds a node of a query as written."""
    own = {name: facts[name] for name in (*FACTS, CHECKED) if name in facts}

    def made(values: Values) -> Any:
        found = make(values)
        found.known.update(own)
        return found

    return made


def _always(value: Any) -> Make:
    return lambda values: value
