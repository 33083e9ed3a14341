"""Joined rows of one weight make a batch, which equals the pairs one by one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database, TableError
from reactive.engine.collections.zset import UniformDelta
from tests.budget import examples
from tests.thresholds import LOWEST, SHIPPED, Settings, thresholds

NAN = float("nan")
KEYS = st.sampled_from([0, 1, 1.0, True, "a", None, NAN, (1, NAN)])
ROWS = st.lists(st.tuples(st.integers(0, 30), KEYS), max_size=60)
QUERIES: dict[str, Any] = {
    "pairs": lambda a, b: a.join(b, on=lambda x, y: x[1] == y[1]),
    "rest": lambda a, b: a.join(b, on=lambda x, y: x[1] == y[1] and x[0] < y[0]),
    "raising": lambda a, b: a.join(b, on=lambda x, y: x[1] == y[1] and 1 / x[0] < y[0] + 1),
    "few": lambda a, b: a.join(b, on=lambda x, y: x[1] == y[1]).select(lambda x, y: x[0] % 3),
    "made": lambda a, b: a.join(b, on=lambda x, y: x[1] == y[1]).select(lambda x, y: (x[0], NAN)),
    "below": lambda a, b: a.where(lambda x: x[0] > 3).join(b, on=lambda x, y: x[1] == y[1]),
    "itself": lambda a, b: a.join(a, on=lambda x, y: x[1] == y[1]),
    "unnest": lambda a, b: a.join(b, on=lambda x, y: x[1] == y[1]).unnest(
        lambda x, y: range(x[0] % 3)
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("settings", [SHIPPED, LOWEST])
@given(left=ROWS, right=ROWS, more=ROWS)
@examples(15)
def test_a_view_is_its_query_after_each_batch(
    query: str, settings: Settings, left: list[Any], right: list[Any], more: list[Any]
) -> None:
    with thresholds(settings):
        db = Database()
        a, b = db.table(tuple, name="a"), db.table(tuple, name="b")
        early = QUERIES[query](a, b).materialize()
        late: list[Any] = []

        def check() -> None:
            late.append(QUERIES[query](a, b).materialize())
            for view in (early, *late):
                view.verify()

        changes: list[Callable[[], None]] = [
            lambda: a.add_all(left),
            lambda: b.add_all(right),
            lambda: a.add_all(more),
            lambda: b.add((5, 1), 2),
            lambda: b.remove((5, 1), 2),
            lambda: a.remove_all(left),
            lambda: b.remove_all(right),
        ]
        for change in changes:
            with suppress(ZeroDivisionError, TableError):  # which leaves less to remove
                change()
            check()
        db.close()


def _joined() -> tuple[Any, Any, Any]:
    db = Database()
    a, b = db.table(tuple, name="a"), db.table(tuple, name="b")
    return a, b, a.join(b, on=lambda x, y: x[1] == y[1]).materialize()


def test_many_rows_and_many_partners_of_one_row_make_no_pair_of_row_and_weight() -> None:
    a, b, view = _joined()
    told: list[Any] = []
    b.add((7, 7))
    with view.subscribe(lambda delta: told.append(delta._pairs)):
        a.add_all([(n, 7) for n in range(100)])
        b.add((8, 7))
        b.remove((8, 7))
    assert [(type(pairs), len(pairs)) for pairs in told] == [(UniformDelta, 100)] * 3
    assert [pairs.weight for pairs in told] == [1, 1, -1]
    view.verify()


def test_a_row_that_is_there_twice_is_joined_twice() -> None:
    a, b, view = _joined()
    rows = [(n, 7) for n in range(100)]
    a.add_all([*rows, rows[3]])
    b.add_all([(n, 7) for n in range(20)])
    assert view.count(((3, 7), (5, 7))) == 2
    assert len(view) == 101 * 20
    late = view.relation.materialize()
    assert late.count(((3, 7), (5, 7))) == 2
    b.remove((5, 7))
    assert ((3, 7), (5, 7)) not in view and len(late) == 101 * 19
    view.verify()


@pytest.mark.parametrize("kept", [1.0, 0.1])
def test_a_view_made_late_has_its_rows_as_the_left_table_has_them(kept: float) -> None:
    db = Database()
    a, b = db.table(tuple, name="a"), db.table(tuple, name="b")
    rows = [(n * 37 % 1_000, n * 7 % 10) for n in range(1_000)]
    a.add_all(rows)
    b.add_all([(n, n) for n in range(10)])
    most = 1_000 * kept
    query = a.where(lambda x: x[0] < most).join(b, on=lambda x, y: x[1] == y[1])
    view = query.materialize()
    if kept == 1:
        assert [pair[0] for pair in view] == rows
    assert sorted(pair[0] for pair in view) == sorted(row for row in rows if row[0] < most)


def test_work_of_a_late_view_is_not_that_of_rows_that_its_index_leaves_out() -> None:
    touched = []
    for size in (1_000, 100_000):
        db = Database()
        a, b = db.table(tuple, name="a"), db.table(tuple, name="b")
        a.add_all([(n, n % 7) for n in range(size)])
        b.add_all([(n, n) for n in range(7)])
        query = a.where(lambda x: x[0] < 100).join(b, on=lambda x, y: x[1] == y[1])
        first = query.materialize()
        before = sum(node.operator.touched for node in db._engine.graph.nodes())
        second = query.select(lambda x, y: (x[0], y[0])).materialize()
        after = sum(node.operator.touched for node in db._engine.graph.nodes())
        touched.append(after - before)
        assert len(first) == len(second) == 100
    assert touched[0] == touched[1]
