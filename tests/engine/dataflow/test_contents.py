"""The row of an aggregate without groups: there, or dropped by a condition above."""

from __future__ import annotations

import math
from random import Random
from typing import Any, ClassVar

import pytest

from reactive import Avg, Count, Database, Delta, Max, Min, Sum
from reactive.engine.dataflow.leaves import SingleRow, ViewRows
from tests.moody import Moods
from tests.thresholds import WAYS, thresholds

QUERIES: list[Any] = [
    lambda t: t.aggregate(Count()).where(lambda n: n % 2 == 0),
    lambda t: t.aggregate(Sum(lambda v: v)).where(lambda s: s > 3 or s != s),
    lambda t: t.aggregate(Max(lambda v: v)),
    lambda t: t.aggregate(Min(lambda v: v)).where(lambda m: m is None or m > 1),
    lambda t: t.aggregate(Count(), Avg(lambda v: v)).where(lambda n, mean: n != 3),
    lambda t: t.aggregate(Count()).where(lambda n: n > 2).where(lambda n: n < 5),
]


@pytest.mark.long
@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("query", QUERIES)
def test_it_is_what_subscribers_have_heard_and_what_there_is(query: Any, optimize: bool) -> None:
    random, db = Random(3), Database(optimize=optimize)
    table: Any = db.table(object, name="values")
    view = query(table).materialize()
    assert type(view._contents) is SingleRow
    heard = ViewRows()
    heard.step([(row, 1) for row in view])

    def hear(delta: Delta[Any]) -> None:
        assert heard.step(list(delta.items()))

    subscription = view.subscribe(hear)
    failing = table.select(lambda v: 1 // (v != 7)).materialize()
    for _ in range(120):
        values = [random.choice((0, 1, 2, 2.0, True, math.nan, 7)) for _ in range(2)]
        try:
            with db.transaction():
                table.add_all(values[: random.randrange(1, 3)])
                if len(table) and random.random() < 0.5:
                    table.remove(random.choice(list(table)))
        except ZeroDivisionError:
            pass
        view.verify()
        assert list(heard.items()) == list(view.items())
        assert len(view) == len(list(view)) == view.count(view.value if len(view) else None) <= 1
        assert list(query(table).materialize()) == list(view)
    assert len(failing) == len(table)
    subscription.close()


def test_what_changes_to_an_equal_row_is_not_told() -> None:
    only = SingleRow()
    assert only.step([(1, 1)]) == [(1, 1)]
    only.commit()
    assert not only.step([(1, -1), (1.0, 1)])
    assert only.rows() == [1]
    assert only.step([(1, -1), (2, 1), (2, -1), (3, 1)]) == [(1, -1), (3, 1)]
    only.undo()
    assert only.rows() == [1]
    assert only.step([(1, -1)]) == [(1, -1)]
    only.commit()
    assert (len(only), only.rows(), only.count(None), only.footprint()) == (0, [], 0, (0, 0))
    assert only.step([(None, 1)]) == [(None, 1)]
    assert only.count(None) == 1


class Moody(Moods):
    calls: ClassVar[int] = 0
    at: ClassVar[int] = 0

    __eq__ = Moods.__eq__

    def __hash__(self) -> int:
        self.mood()
        return self.value % 2


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "delta",
    [
        [(5, 1), (6, 1), (7, 1)],
        [(5, 2), (6, 1), (1, -1)],
        [(5, 1), (1, 1), (6, 1)],
        [(5, 1), (6, 1), (5, -1)],
        [(5, 1)],
        [(1, -1), (5, 1)],
        [(1, -1), (3, -1), (2, -1)],
        [(3, -1), (2, -2), (5, 1)],
    ],
)
def test_a_bag_whose_rows_raise_is_as_it_was(way: str, delta: list[tuple[int, int]]) -> None:
    held = {number: Moody(number) for number in range(8)}
    raised = 0
    with thresholds(WAYS[way]):
        for moment in range(1, 60):
            bag = ViewRows()
            bag.step([(held[1], 1), (held[2], 2), (held[3], 1)])
            bag.commit()
            before, size = [(row.value, weight) for row, weight in bag.items()], len(bag)
            Moody.calls, Moody.at = 0, moment
            try:
                bag.step([(held[number], weight) for number, weight in delta])
                Moody.at = 0
                bag.undo()
            except ValueError:
                raised += 1
                Moody.at = 0
            assert sorted((row.value, w) for row, w in bag.items()) == before
            assert len(bag) == size
    assert raised
