"""One more view of a family of joins costs as much over a large table as over a small one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

import pytest

from reactive import Database


class Order(NamedTuple):
    id: int
    customer: str


class Edge(NamedTuple):
    source: int
    target: int


Tables = tuple[Database, Any, Any]


def comprehension(tables: Tables, k: int) -> Any:
    db, orders, edges = tables
    return db.query(
        lambda: [(o, e) for o in orders if o.id == k for e in edges if e.source == o.id]
    )


FAMILIES: dict[str, Callable[[Tables, int], Any]] = {
    "where, then join": lambda t, k: (
        t[1].where(lambda o: o.id == k).join(t[2], on=lambda o, e: o.id == e.source)
    ),
    "join, then where": lambda t, k: (
        t[1].join(t[2], on=lambda o, e: o.id == e.source).where(lambda o, e: e.target == k)
    ),
    "comprehension": comprehension,
    "SQL": lambda t, k: t[0].sql(
        "select o.customer from orders o join edges e on o.id = e.source where e.target = :k", k=k
    ),
}


def lines_of(run: Callable[[], object]) -> int:
    """Return the number of lines that a call executes, those of generated loops included."""
    count = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("name", FAMILIES)
def test_it_reads_the_rows_of_its_value(name: str) -> None:
    def lines(rows: int) -> int:
        db = Database()
        tables = db, db.table(Order, name="orders"), db.table(Edge, name="edges")
        tables[1].add_all(Order(n, str(n)) for n in range(rows))
        tables[2].add_all(Edge(n, n) for n in range(rows))
        live = [FAMILIES[name](tables, k).materialize() for k in range(30)]
        count = lines_of(lambda: live.append(FAMILIES[name](tables, 50).materialize()))
        assert len(live[-1]) == 1
        live[-1].verify()
        return count

    assert lines(2000) <= lines(200) + 20
