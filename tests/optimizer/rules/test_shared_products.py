"""The same FROM list in two sub-queries: partners are looked up in each."""

from __future__ import annotations

from typing import Any

import pytest

from reactive import Database
from tests.budget import drawing

PAIRS = "from a, b where a.k = b.k and"
TWO_COUNTS = (
    f"select n, m from (select count(*) as n {PAIRS} a.x < 3) p,"
    f" (select count(*) as m {PAIRS} b.y > 2) q"
)
TWO_KEYS = (
    "select x, y from a, b where a.k = b.k and a.x < 3 union all"
    " select x, y from a, b where a.k = b.y and b.y > 2"
)
ALL_OF_ONE = "select x, y from a, b union all select x, y from a, b where a.k = b.y and b.y > 2"
QUERIES = (TWO_COUNTS, TWO_KEYS, ALL_OF_ONE)


def tables_of(db: Database) -> tuple[Any, Any]:
    db.execute("create table a (k int, x int)")
    db.execute("create table b (k int, y int)")
    tables: dict[str, Any] = {table.name: table for table in db.tables()}
    return tables["a"], tables["b"]


@pytest.mark.parametrize("query", QUERIES)
def test_rows_are_those_of_the_query_as_written(query: str) -> None:
    random, db = drawing(), Database()
    tables = tables_of(db)
    view = db.sql(query).materialize()
    rows: tuple[list[Any], list[Any]] = ([], [])
    for _ in range(40):
        with db.transaction():
            for side in random.choice(((0,), (1,), (0, 1), (1, 1, 0))):
                if rows[side] and random.random() < 0.4:
                    tables[side].remove(rows[side].pop(random.randrange(len(rows[side]))))
                else:
                    row = tables[side].row_type(random.randrange(5), random.choice((None, 1, 2, 3)))
                    rows[side].append(row)
                    tables[side].add(row)
        view.verify()


def test_two_readers_of_pairs_touch_partners_only() -> None:
    touched = []
    for count in (100, 1000):
        db = Database()
        a, b = tables_of(db)
        view = db.sql(TWO_COUNTS).materialize()
        with db.transaction():
            a.add_all(a.row_type(n, n % 7) for n in range(count))
            b.add_all(b.row_type(n, n % 5) for n in range(count))
        assert view.stats().touched < 40 * count
        before = view.stats().touched
        a.add(a.row_type(1, 1))
        b.remove(b.row_type(3, 3))
        touched.append(view.stats().touched - before)
    assert touched[0] == touched[1]
