"""Negation: weights cancel as in Z-sets, and a view shows the rows that remain."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import given

from reactive import (
    Avg,
    Collect,
    Count,
    CountDistinct,
    Database,
    Max,
    Min,
    OffloadError,
    PlanError,
    StratificationError,
    Sum,
    ZSet,
    fixpoint,
)
from tests.borders.offload.elsewhere import Elsewhere
from tests.budget import examples
from tests.random_queries.drawn import SEEDS

POOL = (0, 1, 2, None, float("nan"), "x")
Relation = Any
Step = Callable[[Relation, Relation], Relation]
LINEAR: tuple[Step, ...] = (
    lambda a, b: a.negate(),
    lambda a, b: a.union_all(b.negate()),
    lambda a, b: a.union_all(b),
    lambda a, b: a.where(lambda r: r[0] == 1 or r[1] is None),
    lambda a, b: a.select(lambda r: (r[1], 1)),
    lambda a, b: a.select(lambda r: (r[0], len(str(r[1])))),
    lambda a, b: a.select_many(lambda r: [r, (r[1], r[0])]),
    lambda a, b: a.join(b, on=lambda r, s: r[0] == s[1]).select(lambda r, s: (r[1], s[0])),
    lambda a, b: a.semi_join(b, on=lambda r, s: r[0] == s[1]),
    lambda a, b: a.anti_join(b, on=lambda r, s: r[0] == s[0]),
    lambda a, b: a.semi_join(b, on=lambda r, s: r[0] == s[1] and str(r) <= str(s)),
    lambda a, b: a.left_join(b, on=lambda r, s: r[0] == s[0]).select(lambda r, s: (r[1], s)),
    lambda a, b: a.full_join(b, on=lambda r, s: r[0] == s[0]).select(lambda r, s: (r, s)),
)
"""Queries that emit rows of negative weight for inputs of negative weight."""
OTHERS: tuple[Step, ...] = (
    lambda a, b: a.distinct(),
    lambda a, b: a.union(b),
    lambda a, b: a - b,
    lambda a, b: a & b,
    lambda a, b: a.difference_all(b),
    lambda a, b: a.intersection_all(b),
    lambda a, b: a.group_by(lambda r: r[0]).aggregate(Count()).select(lambda k, n: (k, n)),
    lambda a, b: (
        a.group_by(lambda r: r[0]).aggregate(Collect(lambda r: r[1])).select(lambda k, n: (k, n))
    ),
    lambda a, b: a.aggregate(Count(), CountDistinct(lambda r: r[1])).select(lambda n, m: (n, m)),
    lambda a, b: (
        a.group_by(lambda r: r[0])
        .aggregate(
            Sum(lambda r: len(str(r))), Avg(lambda r: len(str(r[1]))), Min(lambda r: str(r[1]))
        )
        .select(lambda key, total, mean, least: (key, (total, mean, least)))
    ),
    lambda a, b: (
        a.join(b, on=lambda r, s: r[0] == s[0])
        .group_by(lambda r, s: r[1])
        .aggregate(Sum(lambda r, s: len(str(s))), Max(lambda r, s: str(s)))
        .select(lambda key, total, most: (key, (total, most)))
    ),
    lambda a, b: a.order_by(lambda r: str(r)).limit(2),
    lambda a, b: a.group_by(lambda r: r[0]).top(1, by=lambda r: str(r)),
    lambda a, b: (
        a.group_by(lambda r: r[0]).reduce(lambda key, rows: [len(rows)]).select(lambda k, n: (k, n))
    ),
)
"""Queries that emit only rows with positive weight."""


def query(random: Random, tables: tuple[Relation, Relation], depth: int) -> Relation:
    """Draw a query that feeds rows of negative weight to all kinds of operators."""
    if not depth:
        return random.choice(tables)
    left = query(random, tables, depth - 1)
    left = left.negate() if random.random() < 0.2 else left
    right = query(random, tables, random.choice((0, depth - 1)))
    right = left.union_all(right.negate()) if random.random() < 0.2 else right
    return random.choice(LINEAR if random.random() < 0.6 else OTHERS)(left, right)


def change(random: Random, table: Any) -> None:
    row = (random.choice(POOL), random.choice(POOL))
    chance = random.random()
    if chance < 0.5 or not len(table):
        table.add(row, random.randrange(1, 3))
    elif chance < 0.8:
        table.remove(random.choice(list(table)))
    else:
        table.update(random.choice(list(table)), row)


def play(seed: int, *, optimize: bool) -> list[ZSet[Any]]:
    """Return the contents of a view after each commit; they must equal its query from scratch."""
    random = Random(seed)
    db = Database(optimize=optimize)
    tables = db.table(tuple, name="a"), db.table(tuple, name="b")
    relation = query(random, tables, random.choice((1, 2, 2, 3)))
    view = relation.materialize()
    found, told = [view.zset()], [view.zset()]
    with view.subscribe(lambda delta: told.append(delta.zset)):
        for _ in range(6):
            with db.transaction():
                for table in tables:
                    for _ in range(random.randrange(3)):
                        change(random, table)
            view.verify()
            found.append(view.zset())
            assert sum(told, ZSet[Any]()) == found[-1]
    assert view_of(relation) == found[-1]
    return found


def view_of(relation: Relation) -> ZSet[Any]:
    """Return the contents of a late view of the same rows, which another operator computes."""
    found: ZSet[Any] = relation.negate().negate().materialize().zset()
    return found


@examples(400)
@given(seed=SEEDS)
def test_weights_are_those_of_the_query_from_scratch(seed: int) -> None:
    assert play(seed, optimize=True) == play(seed, optimize=False)


CASES: dict[str, Step] = {
    "each row once, less another": lambda a, b: a.distinct().union_all(b.negate()).distinct(),
    "nothing taken away": lambda a, b: a.union_all(b.negate()).difference_all(
        a.where(lambda r: False)
    ),
    "twice in a union": lambda a, b: a.negate().union(a.negate().union(b)),
    "with itself": lambda a, b: a.union_all(b.negate()).intersection_all(a.union_all(b.negate())),
    "found by several": lambda a, b: (
        a.join(b.negate(), on=lambda r, s: r[0] == s[0]).select(lambda r, s: r).distinct()
    ),
    "by a product": lambda a, b: a.negate().join(b.negate()).select(lambda r, s: (r[0], s[0])),
}


@pytest.mark.parametrize("name", CASES)
def test_what_rules_would_change_for_rows_of_positive_weight(name: str) -> None:
    found = []
    for optimize in (True, False):
        db = Database(optimize=optimize)
        a, b = db.table(tuple, name="a"), db.table(tuple, name="b")
        view, weights = CASES[name](a, b).materialize(), []
        for act in (
            partial(a.add_all, [(1, 1), (1, 1), (2, 1)]),
            partial(b.add_all, [(1, 1), (1, 1), (2, 2)]),
            partial(a.remove, (1, 1)),
            a.clear,
        ):
            act()
            view.verify()
            weights.append(view.zset())
        found.append(weights)
    assert found[0] == found[1]


def test_what_is_shown_is_what_weighs_more_than_nothing() -> None:
    db = Database()
    a, b = db.table(str, name="a"), db.table(str, name="b")
    taken = b.negate().materialize()
    rest = a.union_all(b.negate()).materialize()
    told: list[ZSet[str]] = []
    with rest.subscribe(lambda delta: told.append(delta.zset)):
        b.add_all(["x", "x", "y"])
        a.add_all(["x", "z"])
    assert (len(taken), list(taken), taken.zset()) == (0, [], ZSet({"x": -2, "y": -1}))
    assert (list(rest), rest.zset()) == (["z"], ZSet({"x": -1, "y": -1, "z": 1}))
    assert told == [ZSet({"x": -2, "y": -1}), ZSet({"x": 1, "z": 1})]
    assert rest.relation.aggregate(Count()).materialize().value == -1
    assert sorted(taken.relation.negate().materialize()) == ["x", "x", "y"]


def test_a_recursion_has_no_rows_of_negative_weight() -> None:
    db = Database()
    edges, closed = db.table(tuple, name="edges"), db.table(tuple, name="closed")
    with pytest.raises(StratificationError, match="own negation\n  r -> negate -> r"):
        fixpoint(lambda r: edges.union_all(r.negate()))
    with pytest.raises(PlanError, match=r"'r' reads rows of negate.*\n  distinct"):
        fixpoint(lambda r: edges.union_all(closed.negate()).union(r))
    open_ = edges.union_all(closed.negate()).distinct()
    view = fixpoint(
        lambda r: open_.union(
            r.join(open_, on=lambda p, e: p[1] == e[0]).select(lambda p, e: (p[0], e[1]))
        )
    ).materialize()
    edges.add_all([(1, 2), (2, 3), (3, 4)])
    closed.add_all([(3, 4), (4, 5)])
    assert sorted(view) == [(1, 2), (1, 3), (2, 3)]
    view.verify()


def test_what_reads_negative_weights_stays_in_the_process() -> None:
    db = Database(offload=Elsewhere())
    a, b = db.table(str, name="a"), db.table(str, name="b")
    view = a.union_all(b.negate()).distinct().materialize()
    with pytest.raises(OffloadError, match=r"reads rows of negate.*difference_all"):
        view.offload()
