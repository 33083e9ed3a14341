"""Rows that are taken away before they come, and rows that are None."""

from __future__ import annotations

from typing import Any

import pytest

from reactive import Database, Min, Table, fixpoint

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
