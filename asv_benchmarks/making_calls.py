"""Calls of functions that making a view takes, on empty tables.

    python -m asv_benchmarks.making_calls

Each query is made once to warm the process up, then over the tables of another database: facts of
callables are then cached, facts of tables are not. The calls of the first time are counted, too, in
one process for all: the first query has the most. The number of calls is the same in each run,
while seconds depend on the load of the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from reactive import Count, Database, Sum, fixpoint
from tests.counted_calls import OwnCalls, calls_of, own_calls_of


class Order(NamedTuple):
    id: int
    customer: str
    price: float


class Edge(NamedTuple):
    source: int
    target: int


Tables = tuple[Database, Any, Any]


def group(tables: Tables) -> Any:
    _, orders, _ = tables
    expensive = orders.where(lambda o: o.price > 10).group_by(lambda o: o.customer)
    return expensive.aggregate(Sum(lambda o: o.price), Count())


def join(tables: Tables) -> Any:
    _, orders, edges = tables
    return orders.join(edges, on=lambda o, e: o.id == e.source).select(
        lambda o, e: (o.customer, e.target)
    )


def closure(tables: Tables) -> Any:
    _, _, edges = tables
    return fixpoint(
        lambda reach: edges.union(
            reach.join(edges, on=lambda r, e: r.target == e.source).select(
                lambda r, e: Edge(r.source, e.target)
            )
        )
    )


def statement(tables: Tables) -> Any:
    return tables[0].sql(
        "select customer, sum(price) as total from orders where price > 10 group by customer"
    )


QUERIES: dict[str, Callable[[Tables], Any]] = {
    "where, group_by, aggregate": group,
    "join, select": join,
    "closure": closure,
    "SQL": statement,
}


def opened() -> Tables:
    db = Database()
    return db, db.table(Order, name="orders"), db.table(Edge, name="edges")


def calls(query: Callable[[Tables], Any]) -> int:
    """Return the calls of functions of Python and C that a view of a query takes to be made."""
    query(opened()).materialize()
    return calls_of(_making(query))


def own_calls(query: Callable[[Tables], Any], *, is_first: bool = False) -> OwnCalls:
    """Count the project's own calls, and their files, for one more view of a query.

    If `is_first`, count those for the first view of the process.
    """
    if not is_first:
        query(opened()).materialize()
    return own_calls_of(_making(query))


def _making(query: Callable[[Tables], Any]) -> Callable[[], None]:
    tables = opened()
    views: list[Any] = []
    return lambda: views.append(query(tables).materialize())


def main() -> None:
    print("calls of all functions, of the project's own and files of these; own and files at first")
    for name, query in QUERIES.items():
        first, more = own_calls(query, is_first=True), own_calls(query)
        counts = (calls(query), *more, *first)
        print(f"{name:30}", *[f"{count:7,}" for count in counts])


if __name__ == "__main__":
    main()
