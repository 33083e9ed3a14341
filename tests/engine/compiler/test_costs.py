"""The costs of `explain(costs=True)` against the rows that a change touches in growing tables."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from optimizer.plans.facts import Cost
from reactive import Collect, Count, Database, Max, Relation, Sum, fixpoint
from reactive.engine.compiler.costs import costs_of

FEW, MANY = 4, 64
"""Rows that go with a row, or groups of rows."""


class Order(NamedTuple):
    id: int
    customer: int
    total: int


class Customer(NamedTuple):
    id: int
    town: int


class Shop:
    """Tables of `customers` customers, with `each` orders each."""

    def __init__(self, customers: int, each: int) -> None:
        db = Database()
        self.orders = db.table(Order, name="orders")
        self.customers = db.table(Customer, key=lambda c: c.id, name="customers")
        self.customers.add_all([Customer(n, n % FEW) for n in range(customers)])
        self.orders.add_all([Order(n, n % customers, n % each) for n in range(customers * each)])


Query = Callable[[Shop], Relation[*tuple[Any, ...]]]


def _of_total(key: object, rows: Any) -> list[int]:
    return [sum(order.total for order in rows)]


def _joined(shop: Shop) -> Any:
    return shop.orders.join(shop.customers, on=lambda o, c: o.customer == c.id)


QUERIES: dict[str, tuple[Query, Cost, Cost]] = {
    "where": (lambda s: s.orders.where(lambda o: o.total > 1), Cost.ONE, Cost.ONE),
    "distinct": (lambda s: s.orders.select(lambda o: o.total).distinct(), Cost.ONE, Cost.ONE),
    "sum": (
        lambda s: s.orders.group_by(lambda o: o.customer).aggregate(Sum(lambda o: o.total)),
        *(Cost.ONE, Cost.ONE),
    ),
    "max": (
        lambda s: s.orders.group_by(lambda o: o.customer).aggregate(Max(lambda o: o.total)),
        *(Cost.LOG, Cost.ONE),
    ),
    "order": (lambda s: s.orders.order_by(lambda o: o.id), Cost.LOG, Cost.ONE),
    "top": (
        lambda s: s.orders.group_by(lambda o: o.customer).top(2, by=lambda o: o.total),
        *(Cost.LOG, Cost.ONE),
    ),
    "reduce": (
        lambda s: s.orders.group_by(lambda o: o.customer).reduce(_of_total),
        *(Cost.GROUP, Cost.ONE),
    ),
    "join": (_joined, Cost.ONE, Cost.MATCHES),
    "max of join": (
        lambda s: _joined(s).group_by(lambda o, c: c.town).aggregate(Max(lambda o, c: o.total)),
        *(Cost.LOG, Cost.LOG),
    ),
    "max of both sides of a join": (
        lambda s: (
            _joined(s).group_by(lambda o, c: c.town).aggregate(Max(lambda o, c: o.total + c.town))
        ),
        *(Cost.LOG, Cost.MATCHES),
    ),
    "sums of join": (
        lambda s: _joined(s).group_by(lambda o, c: c.town).aggregate(Count()),
        *(Cost.ONE, Cost.ONE),
    ),
    "sums by both sides": (
        lambda s: _joined(s).group_by(lambda o, c: (o.total, c.town)).aggregate(Count()),
        *(Cost.ONE, Cost.MATCHES),
    ),
    "product": (
        lambda s: s.orders.join(s.customers, on=lambda o, c: (o.total ^ c.town) > 60),
        *(Cost.PAIRS, Cost.PAIRS),
    ),
    "semi join": (
        lambda s: s.customers.semi_join(s.orders, on=lambda c, o: c.id == o.customer),
        *(Cost.ONE, Cost.ONE),
    ),
    "semi join of many": (
        lambda s: s.orders.semi_join(s.customers, on=lambda o, c: o.customer == c.id),
        *(Cost.ONE, Cost.MATCHES),
    ),
    "outer join": (
        lambda s: s.customers.left_join(s.orders, on=lambda c, o: c.id == o.customer),
        *(Cost.ONE, Cost.MATCHES),
    ),
    "union": (
        lambda s: s.orders.select(lambda o: o.customer).union(s.customers.select(lambda c: c.id)),
        *(Cost.ONE, Cost.ONE),
    ),
    "difference": (
        lambda s: s.customers.select(lambda c: c.id).difference(
            s.orders.select(lambda o: o.customer)
        ),
        *(Cost.ONE, Cost.ONE),
    ),
}
"""Queries with the dearest cost of an order that changes, and of a customer."""


def _claimed(shop: Shop, query: Query) -> dict[str, Cost]:
    """The dearest cost on the way of a row of each table."""
    relation = query(shop)
    running = shop.orders._engine.queries.running(relation.plan)
    found: dict[str, Cost] = {"table orders": Cost.ONE, "table customers": Cost.ONE}

    def walk(node: Any, above: Cost) -> None:
        inputs = running.inputs(node)
        if not inputs:
            name = re.sub(r" \(.*", "", node.headline())
            found[name] = max(found[name], above)
        for source, cost in zip(inputs, costs_of(node), strict=True):
            walk(source, max(above, cost))

    walk(running.root, Cost.ONE)
    return found


def _touched(query: Query, customers: int, each: int) -> tuple[int, int]:
    """Return the rows touched by an inserted and deleted order, and by a customer."""
    shop = Shop(customers, each)
    view = query(shop).materialize()
    found = []
    changing: list[tuple[Any, Any]] = [
        (shop.orders, Order(-1, 0, 0)),
        (shop.customers, Customer(0, 0)),
    ]
    for table, row in changing * 2:
        before = view.stats().touched
        table.discard(row)
        table.add(row)
        found.append(view.stats().touched - before)
    view.verify()
    return found[2], found[3]  # indexes may be made at the first change


@pytest.mark.parametrize("name", QUERIES)
def test_a_change_grows_as_it_is_said_to(name: str) -> None:
    query, *expected = QUERIES[name]
    claimed = _claimed(Shop(FEW, FEW), query)
    assert list(claimed.values()) == expected
    small = _touched(query, FEW, FEW)
    more_rows, more_matches = _touched(query, MANY, FEW), _touched(query, FEW, MANY)
    for place, cost in enumerate(expected):
        grows = more_rows[place] > 4 * small[place]
        grows_with_matches = more_matches[place] > 4 * small[place]
        if cost <= Cost.LOG:
            assert not grows
            assert not grows_with_matches
        elif cost in (Cost.MATCHES, Cost.GROUP):
            assert not grows
            assert grows_with_matches
        else:
            assert grows or grows_with_matches


def test_rounds_are_said_of_recursions() -> None:
    edges = Database().table(tuple[int, int], name="edges")
    reach = fixpoint(
        lambda reach: edges.union(
            reach.join(edges, on=lambda a, b: a[1] == b[0]).select(lambda a, b: (a[0], b[1]))
        )
    )
    assert "[rounds]" in reach.explain(costs=True)
    assert "degree: none" in reach.explain(costs=True)


def test_stored_extremes_cost_a_search() -> None:
    query, *_ = QUERIES["max of join"]
    assert "sums and extremes by o.customer  [O(log n)]" in query(Shop(FEW, FEW)).explain(
        costs=True
    )


def test_the_degree_of_joins_is_the_number_of_tables() -> None:
    shop = Shop(FEW, FEW)
    query: Any = _joined(shop)
    for tables in (2, 3, 4):
        assert f"degree: {tables}" in query.explain(costs=True)
        names = ", ".join(f"x{n}" for n in range(tables))
        on = eval(f"lambda {names}, c: x0.customer == c.id", {})
        query = query.join(shop.customers, on=on)


def test_where_a_change_costs_a_group_it_is_said_with_a_remedy() -> None:
    shop = Shop(FEW, FEW)
    by_customer = shop.orders.group_by(lambda o: o.customer)
    told = by_customer.reduce(_of_total).explain(costs=True)
    assert "not efficiently incremental: apply reduce " in told
    assert "`Aggregate`" in told
    assert "not efficiently" not in by_customer.aggregate(Count()).explain(costs=True)


def test_of_a_view_it_is_the_same() -> None:
    shop = Shop(FEW, FEW)
    query = shop.orders.group_by(lambda o: o.customer).aggregate(Collect(lambda o: o.total))
    assert query.materialize().explain(costs=True) == query.explain(costs=True)
