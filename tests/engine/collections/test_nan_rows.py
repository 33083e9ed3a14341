"""A NaN in a row is one value, whatever class the row is of, and whenever it was computed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import attrs
import msgspec
import pydantic
import pytest

from reactive import Collect, Count, CountDistinct, Database
from reactive import Max as Largest


@dataclass(frozen=True, slots=True)
class Plain:
    x: Any
    y: int


class Named(NamedTuple):
    x: Any
    y: int


class Struct(msgspec.Struct, frozen=True):
    x: Any
    y: int


class Hashed(msgspec.Struct, frozen=True, cache_hash=True):
    x: float
    y: int


@attrs.frozen
class Slotted:
    x: float
    y: int


@attrs.frozen(slots=False, cache_hash=True)
class Loose:
    x: float
    y: int


class Model(pydantic.BaseModel, frozen=True):
    x: Any
    y: int

    def __init__(self, x: Any, y: int) -> None:
        super().__init__(x=x, y=y)


KINDS: list[Any] = [Plain, Named, Struct, Hashed, Slotted, Loose, Model]
NANS: list[Callable[[], Any]] = [
    lambda: float("nan"),
    lambda: math.inf - math.inf,
    lambda: math.nan,
    lambda: math.nan,
]


def mark(row: Any) -> Any:
    """A row or value as one that a dictionary can count."""
    if isinstance(row, float | Decimal):
        return "nan" if row != row else float(row)
    if isinstance(row, tuple):
        return tuple(map(mark, row))
    return (mark(row.x), row.y) if hasattr(row, "y") else row


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_rows_with_a_nan_are_equal_rows(kind: Any, optimize: bool) -> None:
    db = Database(optimize=optimize)
    table, other = db.table(kind, name="table"), db.table(kind, name="other")
    views = {
        "bag": table.materialize(),
        "distinct": table.distinct().materialize(),
        "field": table.select(lambda r: r.x).distinct().materialize(),
        "pair": table.select(lambda r: (r.x, 1)).materialize(),
        "group": table.group_by(lambda r: r.x).aggregate(Count()).materialize(),
        "whole": table.group_by(lambda r: r).aggregate(Count()).materialize(),
        "union": table.union(other).materialize(),
        "minus": table.difference(other).materialize(),
        "both": table.intersection_all(other).materialize(),
    }
    for make in NANS:
        table.add(kind(make(), 1))
        other.add_all([kind(make(), 1), kind(2.0, 2)])
    table.add_all([kind(2.0, 2), kind(1.0, 1)])
    nan, two, one = ("nan", 1), (2.0, 2), (1.0, 1)
    expected: dict[str, Counter[Any]] = {
        "bag": Counter({nan: 4, two: 1, one: 1}),
        "distinct": Counter([nan, two, one]),
        "field": Counter(["nan", 2.0, 1.0]),
        "pair": Counter({("nan", 1): 4, (2.0, 1): 1, (1.0, 1): 1}),
        "group": Counter([("nan", 4), (2.0, 1), (1.0, 1)]),
        "whole": Counter([(nan, 4), (two, 1), (one, 1)]),
        "union": Counter([nan, two, one]),
        "minus": Counter([one]),
        "both": Counter({nan: 4, two: 1}),
    }
    for name, view in views.items():
        assert Counter(map(mark, view)) == expected[name], name
        view.verify()
    for make in NANS:
        table.remove(kind(make(), 1))
    assert [Counter(map(mark, views[name])) for name in ("bag", "group")] == [
        Counter([two, one]),
        Counter([(2.0, 1), (1.0, 1)]),
    ]


@pytest.mark.parametrize("optimize", [True, False])
def test_a_nan_deep_in_rows_is_found(optimize: bool) -> None:
    db = Database(optimize=optimize)
    table = db.table(object, name="table")
    groups = table.group_by(lambda r: r).aggregate(Count()).materialize()
    values = table.aggregate(CountDistinct(lambda r: r), Collect(lambda r: r)).materialize()
    for _ in range(2):
        table.add(Struct((Slotted(float("nan"), 1), 1), 2))
        table.add((Model(Plain(Decimal("NaN"), 1), 2), 3))
    assert sorted(groups.get(row, 0) for row in groups.keys()) == [2, 2]  # noqa: SIM118
    assert values.value[0] == 2 and sorted(n for _, n in values.value[1].items()) == [2, 2]
    for view in (groups, values):
        view.verify()


@pytest.mark.parametrize("optimize", [True, False])
def test_a_nan_field_of_a_struct_is_the_greatest(optimize: bool) -> None:
    db = Database(optimize=optimize)
    table = db.table(Struct)
    largest = table.group_by(lambda r: r.y).aggregate(Largest(lambda r: r.x)).materialize()
    table.add_all([Struct(float("nan"), 1), Struct(3.0, 1), Struct(-(math.inf - math.inf), 1)])
    assert math.isnan(largest[1])
    table.remove(Struct(float("nan"), 1))
    assert math.isnan(largest[1])
    table.remove(Struct(float("nan"), 1))
    assert largest[1] == 3.0
