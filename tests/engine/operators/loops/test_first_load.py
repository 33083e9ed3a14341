"""A first load builds the groups of the loop: equal values of equal classes, in one order.

Later changes and undos of these groups are equal, too.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import partial
from operator import attrgetter
from random import Random
from typing import Any, NamedTuple

import pytest

from reactive import Avg, Collect, Count, CountDistinct, Database, Max, Min, Sum
from reactive.engine.operators.accumulators import SumAccumulator
from reactive.engine.operators.loops.first_load import FirstLoad, GroupColumn
from tests.budget import seeds
from tests.thresholds import NEVER, thresholds

LARGE = "reactive.engine.operators.loops.grouped"
NAN = float("nan")


class Real(float):
    """A float of another class."""


class Row(NamedTuple):
    id: int
    key: Any
    value: Any
    other: int


OF: Any = attrgetter("value")
POOLS: list[list[Any]] = [
    [1, 2, 3, 2**70],
    [True, False, 3],
    [0.5, 0.1, -0.1, 1e9],
    [0.0, -0.0, 0, False],
    [1e16, 1.0, -1e16, 2**60 + 1],
    [1e-300, 5e-324, 1.0],
    [1e300, -1e300, 1.7e308],
    [float("inf"), float("-inf"), 1.0],
    [NAN, float("nan"), 1.5],
    [Decimal("0.1"), Decimal(3), 2],
    [Decimal("nan"), Decimal(1)],
    [Fraction(1, 3), 2, 0.5],
    [Real(1.5), 1.5, Real("nan")],
    [None, 1, 2.5],
    [None, NAN],
    [None],
    ["b", "a", ""],
    ["b", 1],
    [date(2026, 1, 2), date(2025, 1, 1)],
    [(1, 2), (1, 3), (0,)],
]
KEYS: list[list[Any]] = [
    [1, 2, 3],
    ["Bonn", "Rome"],
    [NAN, float("nan"), 0.0, -0.0],
    [None, 1, True],
]
OTHER: Any = attrgetter("other")
INVERSE: Any = lambda r: 6 // (r.other - 8)  # noqa: E731
SHOWN: list[Any] = [
    [Count()],
    [Sum(OF)],
    [Sum(OF, skip_none=True), Count()],
    [Avg(OF), Sum(OTHER)],
    [Avg(OF, skip_none=True)],
    [Min(OF), Max(OF)],
    [Max(OF, skip_none=True), Min(OF)],
    [CountDistinct(OF), Max(OF)],
    [Collect(OF), CountDistinct(OF, skip_none=True)],
    [Sum(INVERSE), Count()],
]


def rows_of(random: Random) -> list[Row]:
    keys, values = random.choice(KEYS), random.choice(POOLS)
    count = random.choice([1, 2, 40])
    return [
        Row(n, random.choice(keys), random.choice(values), random.randrange(8 + (n == 3)))
        for n in range(count)
    ]


def played(random: Random) -> list[Any]:
    """Return the rows of views, as text, after creation or load, and after changes."""
    rows, aggregates = rows_of(random), random.choice(SHOWN)
    db = Database()
    table: Any = db.table(Row, key=random.choice([None, "id"]))
    query = table.where(lambda r: r.other != 5) if random.random() < 0.3 else table
    query = query.group_by(lambda r: r.key) if random.random() < 0.7 else query
    query = query.aggregate(*aggregates)
    seen: list[Any] = []

    def act(change: Callable[[], Any]) -> None:
        try:
            change()
        except Exception as error:
            seen.append((type(error), str(error)))

    def undone() -> None:
        with db.transaction():
            table.add_all(rows)
            raise ArithmeticError

    views: list[Any] = []
    steps: list[Any] = [lambda: table.add_all(rows), lambda: views.append(query.materialize())]
    if random.random() < 0.5:
        steps = [steps[1], undone, steps[0]]
    for step in steps:
        act(step)
        seen += [repr(list(view)) for view in views]
    extra = [row._replace(id=row.id + 1000) for row in random.sample(rows, min(5, len(rows)))]
    gone = random.sample(rows, len(rows)) + extra
    steps = [partial(table.add, row) for row in extra]
    for step in [*steps, *(partial(table.remove, row) for row in gone)]:
        act(step)
        seen += [repr(list(view)) for view in views]
        for view in views[:1]:
            view.verify()
    return seen


def test_a_first_load_gives_what_the_loop_gives() -> None:
    for seed in seeds(150):
        found = []
        for many in (1, NEVER):
            with thresholds(
                {f"{LARGE}.MANY": many, "reactive.engine.transactions.row_gate.BATCHED_FROM": 1}
            ):
                found.append(played(Random(seed)))
        assert found[0] == found[1], seed


@pytest.mark.parametrize("is_before", [True, False])
def test_first_loads_are_taken_and_later_ones_are_not(
    is_before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[bool] = []
    step = FirstLoad.step

    def noted(self: FirstLoad, *given: Any) -> Any:
        found = step(self, *given)
        taken.append(found is not None)
        return found

    monkeypatch.setattr(FirstLoad, "step", noted)
    monkeypatch.setattr("reactive.engine.operators.loops.columns.find_numpy", lambda rows: None)
    rows = [Row(n, n % 7, n / 3, n) for n in range(400)]
    with thresholds(
        {f"{LARGE}.MANY": 100, "reactive.engine.transactions.row_gate.BATCHED_FROM": 100}
    ):
        table: Any = Database().table(Row)
        queries = [table.aggregate(Max(OF)), table.group_by("key").aggregate(Sum(OF))]
        if not is_before:
            table.add_all(rows)
        views = [query.materialize() for query in queries]
        if is_before:
            table.add_all(rows)
        assert taken == [True, True]
        table.add_all([row._replace(id=row.id + 400) for row in rows])
    assert taken == [True, True, False, False]
    for view in views:
        view.verify()


def test_sums_of_floats_are_exact() -> None:
    for seed in seeds(30):
        random = Random(seed)
        values = [random.choice([1.0, -1.0]) * 2.0 ** random.randrange(-50, 99) for _ in range(50)]
        values += [value + 2.0**-40 for value in values]
        ((number, count),) = GroupColumn([values]).states(SumAccumulator())
        assert Fraction(number, 2**100) == sum(map(Fraction, values)) and count == 100
