"""Batches through joins of three inputs: equal to the query, at the cost of the matches."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database, TableError
from reactive.engine.collections.zset import UniformDelta
from tests.budget import examples


class Row(NamedTuple):
    id: int
    to: Any


NAN = float("nan")
TO = st.sampled_from([0, 1, 2, 1.0, None, NAN])
ROWS = st.lists(st.builds(Row, st.integers(0, 6), TO), max_size=40)


def _chain(a: Any, b: Any, c: Any) -> Any:
    return a.join(b, on=lambda x, y: x.to == y.id).join(c, on=lambda x, y, z: y.to == z.id)


QUERIES: dict[str, Any] = {
    "rows": _chain,
    "made": lambda a, b, c: _chain(a, b, c).select(lambda x, y, z: (x.id, z.to)),
    "few": lambda a, b, c: _chain(a, b, c).select(lambda x, y, z: z.id),
    "tested": lambda a, b, c: _chain(a.where(lambda x: x.id > 1), b, c),
    "itself": lambda a, b, c: _chain(a, a, b),
    "raising": lambda a, b, c: _chain(a, b, c).select(lambda x, y, z: 6 // x.id),
    "nest": lambda a, b, c: c.nest(
        of=lambda z: (
            a.join(b, on=lambda x, y: x.to == y.id)
            .where(lambda x, y: y.to == z.id)
            .select(lambda x, y: x.id)
        )
    ),
    "nest of three": lambda a, b, c: a.nest(
        of=lambda r: _chain(a, b, c).where(lambda x, y, z: x.id == r.id).select(lambda x, y, z: z)
    ),
}


@pytest.mark.parametrize("query", QUERIES)
@given(st.lists(st.tuples(ROWS, ROWS, ROWS), min_size=1, max_size=4), st.booleans())
@examples(25)
def test_a_view_is_its_query_after_each_batch(
    query: str, batches: list[tuple[list[Row], list[Row], list[Row]]], read: bool
) -> None:
    db = Database()
    tables = [db.table(Row, name=name) for name in "abc"]
    view = QUERIES[query](*tables).materialize()
    told: list[Any] = []
    told_by = view.subscribe(lambda delta: told.append(list(delta))) if read else None

    def commit(change: Callable[[Any, list[Row]], object], batch: Any) -> None:
        with suppress(ZeroDivisionError, TableError), db.transaction():
            for table, rows in zip(tables, batch, strict=True):
                change(table, rows)
        view.verify()

    for batch in batches:
        commit(lambda table, rows: table.add_all(rows), batch)
    for batch in batches[::2]:
        commit(lambda table, rows: table.remove_all(rows), batch)
    for table, rows in zip(tables, batches[-1], strict=True):
        with suppress(ZeroDivisionError, TableError):
            table.add_all(rows)
        view.verify()
    assert told_by is None or not told_by.closed
    db.close()


def _joined() -> tuple[Any, Any, Any, Any, Any]:
    db = Database()
    a, b, c = (db.table(Row, name=name, key="id") for name in "abc")
    return db, a, b, c, _chain(a, b, c).select(lambda x, y, z: (x.id, z.to)).materialize()


def test_a_batch_makes_no_pair_of_each_row_and_its_weight() -> None:
    _, a, b, c, view = _joined()
    told: list[Any] = []
    c.add_all([Row(n, n) for n in range(3)])
    b.add_all([Row(n, n % 3) for n in range(10)])
    with view.subscribe(lambda delta: told.append(delta._pairs)):
        a.add_all([Row(n, n % 10) for n in range(100)])
        c.remove_all([Row(0, 0), Row(1, 1)])
        c.add_all([Row(0, 5), Row(1, 5)])
    assert [type(pairs) for pairs in told] == [UniformDelta] * 3
    assert [(len(pairs), pairs.weight) for pairs in told] == [(100, 1), (70, -1), (70, 1)]
    view.verify()


def test_single_rows_beside_a_batch_are_part_of_it() -> None:
    db, a, b, c, view = _joined()
    told: list[Any] = []
    with view.subscribe(lambda delta: told.append(delta._pairs)), db.transaction():
        c.add(Row(0, 0))
        b.add(Row(7, 0))
        a.add_all([Row(n, 7) for n in range(100)])
    assert [(type(pairs), len(pairs)) for pairs in told] == [(UniformDelta, 100)]
    view.verify()
    with db.transaction():  # weights differ
        c.remove(Row(0, 0))
        a.add_all([Row(n, 7) for n in range(100, 200)])
    assert len(view) == 0
    view.verify()


def test_the_rows_of_a_nest_over_a_chain_of_joins_are_stored_once() -> None:
    db = Database()
    items, orders, customers = (db.table(Row, name=name, key="id") for name in "abc")
    view = customers.nest(
        of=lambda r: (
            _chain(items, orders, customers)
            .where(lambda x, y, z: z.id == r.id)
            .select(lambda x, y, z: x.id)
        )
    ).materialize()
    customers.add_all([Row(n, n) for n in range(10)])
    orders.add_all([Row(n, n % 10) for n in range(100)])
    items.add_all([Row(n, n % 100) for n in range(1_000)])
    text = view.explain()
    assert "multiway join" in text and "probe join" not in text
    view.verify()
