"""The loop for a single row and the loop for many have equal groups, for any changes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from reactive import Avg, Count, Database, Max, Min, Relation, Sum, Table, TableError, View

VALUES: list[Any] = [0, 1, -3, 2**70, 0.1, 1e300, -1e300, True, math.inf]


@dataclass(frozen=True, slots=True)
class Row:
    key: Any
    value: Any


def views_of(rows: Table[Row]) -> list[View[*tuple[Any, ...]]]:
    """Groups with and without a key, over plain rows and over computed rows."""
    few = rows.where(lambda r: r.key != 2).select(lambda r: (r.key, r.value * 2))
    queries: list[Relation[*tuple[Any, ...]]] = [
        rows.group_by(lambda r: r.key).aggregate(
            Count(), Sum(lambda r: r.value), Avg(lambda r: r.value)
        ),
        few.group_by(lambda f: f[0]).aggregate(Sum(lambda f: f[1])),
        few.aggregate(Count()),
        few.aggregate(Avg(lambda f: f[1]), Count()),
        rows.group_by(lambda r: r.key).aggregate(Min(lambda r: r.value), Count()),
        rows.unnest(lambda r: (r.key, r.key)).group_by(lambda r, k: k).aggregate(Count()),
    ]
    return [query.materialize() for query in queries]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12))
def test_it_makes_what_the_loop_over_many_makes(seed: int) -> None:
    random = Random(seed)
    one, many = Database(), Database()
    alone, together = one.table(Row), many.table(Row)
    mine, theirs = views_of(alone), views_of(together)
    held: list[Row] = []
    for _ in range(30):
        added = [
            Row(random.choice([0, 1, 2, None, math.nan]), random.choice(VALUES)) for _ in range(4)
        ]
        random.shuffle(held)
        removed = [held.pop() for _ in range(min(len(held), random.randrange(5)))]
        held += added
        for row in added:
            alone.add(row)
        for row in removed:
            alone.remove(row)
        with many.transaction():
            together.add_all(added)
            together.remove_all(removed)
        for a, b in zip(mine, theirs, strict=True):
            assert list(map(repr, sorted(a.zset().items(), key=repr))) == list(
                map(repr, sorted(b.zset().items(), key=repr))
            )
            a.verify()


def test_a_row_that_raises_leaves_its_group_as_it_was() -> None:
    rows = Database().table(Row)
    views = views_of(rows)
    rows.add_all([Row(1, 2), Row(1, 0.5)])
    before = [view.snapshot() for view in views]
    for row in (Row(1, None), Row([], 1), Row(3, "x")):
        with pytest.raises((TypeError, TableError)):
            rows.add(row)
        assert [view.snapshot() for view in views] == before
    rows.remove(Row(1, 0.5))
    rows.add(Row(1, 0.5))
    assert [view.snapshot() for view in views] == before


def test_a_group_is_put_back_when_another_view_raises() -> None:
    rows = Database().table(Row)
    totals = rows.group_by(lambda r: r.key).aggregate(Sum(lambda r: r.value)).materialize()
    told: list[Any] = []
    subscription = totals.subscribe(lambda delta: told.append(dict(delta.items())))
    inverse = rows.select(lambda r: 1 / r.value).materialize()
    rows.add(Row("a", 1))
    for row in (Row("a", 0), Row("b", 0)):
        with pytest.raises(ZeroDivisionError):
            rows.add(row)
    rows.add(Row("a", 2))
    rows.remove(Row("a", 1))
    rows.remove(Row("a", 2))
    assert (len(totals), len(inverse)) == (0, 0)
    assert told == [
        {("a", 1): 1},
        {("a", 1): -1, ("a", 3): 1},
        {("a", 3): -1, ("a", 2): 1},
        {("a", 2): -1},
    ]
    subscription.close()


@pytest.mark.parametrize("optimize", [False, True])
def test_a_value_that_comes_need_not_compare_with_one_that_goes(optimize: bool) -> None:
    db = Database(optimize=optimize)
    rows, others = db.table(Row, name="rows"), db.table(Row, name="others")
    greatest = rows.aggregate(Max(lambda r: r.value)).materialize()
    joined = rows.join(others, on=lambda r, o: r.key == o.key)
    of_joined = joined.aggregate(Max(lambda r, o: o.value)).materialize()
    rows.add_all([Row(0, 1), Row(1, 2)])
    others.add_all([Row(0, True), Row(1, 7)])
    assert (greatest.value, of_joined.value) == (2, 7)
    with db.transaction():
        for key, value in ((0, "x"), (1, "y")):
            rows.add(Row(key, value))
            others.add(Row(key, value))
        rows.remove_all([Row(0, 1), Row(1, 2)])
        others.remove_all([Row(0, True), Row(1, 7)])
    assert (greatest.value, of_joined.value) == ("y", "y")
    with pytest.raises(TypeError):
        rows.add(Row(0, 3))
    assert (greatest.value, of_joined.value) == ("y", "y")
    greatest.verify()
    of_joined.verify()
