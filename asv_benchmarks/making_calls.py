"""Calls of functions that making a view takes, on empty tables.

    python -m asv_benchmarks.making_calls

Each query is made once to warm the process up, then over the tables of another database: facts of
callables are then cached, facts of tables are not. The calls of the first time are counted, too, in
one process for all: the first query has the most. The number of calls is the same in each run,
while seconds depend on the load of the machine.

Families are queries that differ in one value: calls of one more query and of its view.
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


def filtered_by(tables: Tables, value: int) -> Any:
    return tables[1].where(lambda o: o.id == value)


def grouped_by(tables: Tables, value: int) -> Any:
    one = tables[1].where(lambda o: o.id == value).group_by(lambda o: o.customer)
    return one.aggregate(Sum(lambda o: o.price))


def joined_by(tables: Tables, value: int) -> Any:
    _, orders, edges = tables
    joined = orders.join(edges, on=lambda o, e: o.id == e.source)
    return joined.where(lambda o, e: e.target == value)


def comprehension_by(tables: Tables, value: int) -> Any:
    db, orders, edges = tables
    return db.query(
        lambda: [
            (o.id, e.target) for o in orders if o.id == value for e in edges if e.source == o.id
        ]
    )


def statement_by(tables: Tables, value: int) -> Any:
    return tables[0].sql("select id, price from orders where id = :value", value=value)


def sums_by(tables: Tables, value: int) -> Any:
    return tables[0].sql(
        "select customer, sum(price) as total from orders where id > :value group by customer",
        value=value,
    )


FAMILIES: dict[str, Callable[[Tables, int], Any]] = {
    "where o.id == value": filtered_by,
    "where, group_by, aggregate": grouped_by,
    "join, where e.target == value": joined_by,
    "comprehension of two tables": comprehension_by,
    "SQL": statement_by,
    "SQL with groups": sums_by,
}


def further_calls(query: Callable[[Tables, int], Any]) -> tuple[int, int]:
    """Return the calls of functions that one more query of a family takes, and those of its view.

    They are counted beside 30 views over 400 orders.
    """
    tables = opened()
    tables[1].add_all([Order(n, "a", 1.0) for n in range(400)])
    tables[2].add_all([Edge(n, n + 1) for n in range(40)])
    kept = [query(tables, value).materialize() for value in range(30)]
    made: list[Any] = []
    asked = calls_of(lambda: made.append(query(tables, 31)))
    return asked, calls_of(lambda: kept.append(made[0].materialize()))


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
    print("calls of one more query of a family, and of its view")
    for name, further in FAMILIES.items():
        print(f"{name:30}", *[f"{count:7,}" for count in further_calls(further)])


if __name__ == "__main__":
    main()
