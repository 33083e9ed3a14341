"""Rows that are deleted before they are inserted, and rows that are None."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from reactive import Database, Min, Table, fixpoint
from tests.budget import seeds

MODES = pytest.mark.parametrize("optimize", [True, False])


def follows(start: Any, edges: Any) -> Any:
    return fixpoint(
        lambda r: start.union(
            r.join(edges, on=lambda a, b: a[1] == b[0]).select(lambda a, b: (a[0], b[1]))
        )
    )


@MODES
def test_a_row_removed_from_a_table_that_is_not_stored_is_a_debt(optimize: bool) -> None:
    db = Database(optimize=optimize)
    starts: Table[Any] = db.table(tuple, name="starts", stored=False)
    edges: Table[Any] = db.table(tuple, name="edges")
    view = follows(starts, edges).materialize()
    edges.add((2, 3))
    starts.remove((1, 2))
    assert list(view) == []
    starts.add((1, 2))
    assert list(view) == []
    starts.add((1, 2))
    assert sorted(view) == [(1, 2), (1, 3)]
    starts.remove((1, 2))
    starts.remove((1, 2))
    starts.add((1, 2), 3)
    assert sorted(view) == [(1, 2), (1, 3)]
    starts.remove((1, 2), 2)
    assert (list(view), view.stats().rows) == ([], 1)


@MODES
def test_a_debt_of_an_edge_is_paid_first(optimize: bool) -> None:
    db = Database(optimize=optimize)
    starts: Table[Any] = db.table(tuple, name="starts")
    edges: Table[Any] = db.table(tuple, name="edges", stored=False)
    view = follows(starts, edges).materialize()
    starts.add((1, 2))
    edges.remove((2, 3))
    edges.add((2, 3))
    assert list(view) == [(1, 2)]
    edges.add((2, 3), 2)
    edges.remove((2, 3))
    assert sorted(view) == [(1, 2), (1, 3)]
    edges.remove((2, 3))
    assert list(view) == [(1, 2)]


@MODES
def test_an_edge_that_is_there_twice_counts_once(optimize: bool) -> None:
    db = Database(optimize=optimize)
    starts: Table[Any] = db.table(tuple, name="starts")
    edges: Table[Any] = db.table(tuple, name="edges")
    view = follows(starts, edges).materialize()
    heard: list[Any] = []
    held = view.subscribe(heard.append)
    starts.add((1, 2))
    edges.add((2, 3), 2)
    edges.remove((2, 3))
    edges.add((2, 3))
    assert sorted(view) == [(1, 2), (1, 3)]
    edges.remove((2, 3), 2)
    assert list(view) == [(1, 2)]
    assert [len(list(delta.items())) for delta in heard] == [1, 1, 1]
    held.close()


@MODES
def test_a_row_that_is_none_can_be_the_best(optimize: bool) -> None:
    rows: Table[Any] = Database(optimize=optimize).table(object, name="rows")
    best = fixpoint(
        lambda r: rows.union(r),
        keep=Min(lambda row: row or 0),
        by=lambda row: row is None or row < 10,
    ).materialize()
    for row in (3, 2, 12):
        rows.add(row)
    assert sorted(best) == [2, 12]
    rows.add(None)
    assert sorted(best, key=str) == [12, None]
    rows.remove(None)
    assert sorted(best) == [2, 12]
    best.verify()


@MODES
def test_one_commit_may_take_away_more_than_there_is(optimize: bool) -> None:
    db = Database(optimize=optimize)
    starts: Table[Any] = db.table(tuple, name="starts", stored=False)
    edges: Table[Any] = db.table(tuple, name="edges")
    view = follows(starts, edges).materialize()
    edges.add((2, 3))
    starts.add((1, 2))
    with db.transaction():
        starts.remove((1, 2))
        starts.remove((1, 2))
    assert list(view) == []
    starts.add((1, 2))
    assert list(view) == []
    starts.add((1, 2))
    assert sorted(view) == [(1, 2), (1, 3)]


def shortest(start: Any, edges: Any) -> Any:
    return fixpoint(
        lambda r: start.union(
            r.join(edges, on=lambda a, b: a[0] == b[0]).select(
                lambda a, b: (b[1], min(a[1] + b[0], 9))
            )
        ),
        keep=Min(lambda r: r[1]),
        by=lambda r: r[0],
    )


@MODES
@pytest.mark.parametrize("recursion", [follows, shortest])
@pytest.mark.parametrize("seed", seeds(60))
def test_debts_of_commits_that_fail_are_forgotten(
    optimize: bool, recursion: Callable[[Any, Any], Any], seed: int
) -> None:
    """The rows in the end are right, whatever was deferred and undone meanwhile."""
    random = Random(seed)
    db = Database(optimize=optimize)
    starts: Table[Any] = db.table(tuple, name="starts", stored=False)
    edges: Table[Any] = db.table(tuple, name="edges")
    view = recursion(starts.select(lambda r: (r[0] % 2, r[1])), edges).materialize()
    fuse = edges.where(lambda e: 1 // e[0] >= 0).materialize()
    edges.add_all([(1, 2), (2, 1), (2, 3)])
    net: Counter[Any] = Counter()
    for _ in range(40):
        changes = [(random.randrange(4), random.randrange(1, 4)) for _ in range(3)]
        weights = [random.choice((1, -1)) for _ in changes]
        fails = random.random() < 0.4
        with suppress(ZeroDivisionError), db.transaction():
            for row, weight in zip(changes, weights, strict=True):
                (starts.add if weight > 0 else starts.remove)(row)
            if fails:
                edges.add((0, 0))
        if not fails:
            for row, weight in zip(changes, weights, strict=True):
                net[row] += weight
    for row, weight in net.items():
        if weight < 0:
            starts.add(row, -weight)
    stored = Database()
    other, same = stored.table(tuple, name="starts"), stored.table(tuple, name="edges")
    same.add_all(edges)
    other.add_all([(row[0] % 2, row[1]) for row, weight in net.items() if weight > 0])
    assert sorted(view) == sorted(recursion(other, same).materialize())
    assert len(fuse) == 3
