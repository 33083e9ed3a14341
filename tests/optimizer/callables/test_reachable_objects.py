"""Objects that a callable reaches through other objects and collections."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial, wraps
from typing import Any

import pytest

from optimizer.callables.reachable_objects import find_reachable_objects


class Thing:
    """Class of the sought objects."""

    rows = ()

    def count(self, row: Any) -> int:
        return sum(row is self for _ in self.rows)


THING = Thing()


@dataclass
class Holder:
    thing: Any = THING
    number: int = 1

    def __call__(self, row: Any) -> bool:
        return row in self.thing.rows

    def by_thing(self, row: Any) -> bool:
        return any(row == other for _ in range(2) for other in self.thing)

    def by_number(self, row: Any) -> bool:
        return bool(row == self.number)

    def by_its_method(self, row: Any) -> bool:
        return bool(self.thing.count(row))

    def by_another(self, row: Any) -> bool:
        return self.by_thing(row)


def names_it(row: Any) -> bool:
    return row is THING


def found(function: Callable[..., Any]) -> list[str]:
    return [
        name for name, _ in find_reachable_objects(function, lambda value: isinstance(value, Thing))
    ]


HOLDER, MIXED = Holder(), [THING, 3]
LIST: Any = [THING]
DICT: Any = {"a": THING}
FUNCTIONS, CACHED = [names_it], lru_cache(names_it)


@wraps(names_it)
def wrapped(row: Any) -> bool:
    return names_it(row)


REACHED: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "the object that is called": (HOLDER, []),
    "its attribute, of a method": (HOLDER.by_thing, ["self.thing"]),
    "by its own method": (HOLDER.by_its_method, ["self.thing.count"]),
    "by another method": (HOLDER.by_another, ["self.by_thing -> self.thing"]),
    "an object that is named": (
        lambda row: HOLDER.by_thing(row),
        ["HOLDER.by_thing -> self.thing"],
    ),
    "an item": (lambda row: row in LIST[0], ["LIST[0]"]),
    "an item by a text": (lambda row: row in DICT["a"], ["DICT['a']"]),
    "all items": (lambda row: any(row is each for each in LIST), ["each of LIST"]),
    "some item": (lambda row: DICT[row], ["each of DICT"]),
    "a function in a list": (lambda row: FUNCTIONS[0](row), ["FUNCTIONS[0] -> THING"]),
    "a function that is cached": (lambda row: CACHED(row), ["CACHED -> THING"]),
    "in a partial": (partial(HOLDER.by_thing), ["self.thing"]),
}
LEFT: dict[str, Callable[..., Any]] = {
    "another attribute of the object": HOLDER.by_number,
    "a name": lambda row: row is THING,
    "an attribute of a name": lambda row: row is HOLDER.thing,
    "a method of a name": lambda row: THING.count(row),
    "a function that names it": lambda row: names_it(row),
    "another item": lambda row: row == MIXED[1],
    "how many there are": lambda row: len(LIST),
    "an item that is not there": lambda row: LIST[9],
}


@pytest.mark.parametrize("case", REACHED)
def test_what_is_on_the_way_of_an_object_or_a_collection_is_found(case: str) -> None:
    function, expected = REACHED[case]
    assert found(function) == expected


@pytest.mark.parametrize("case", LEFT)
def test_what_is_named_or_not_read_is_left_out(case: str) -> None:
    assert found(LEFT[case]) == []


def test_functions_that_call_each_other_are_looked_at_once() -> None:
    def even(n: int) -> bool:
        return not n or odd(n - 1)

    def odd(n: int) -> bool:
        return bool(n) and even(n - 1)

    assert found(lambda n: even(n)) == []
