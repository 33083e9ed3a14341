"""Cost of a change: the same rows are touched as by a query written with joins.

The cost does not depend on the size of the tables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from optimizer import plan
from optimizer.expr import (
    And,
    Attribute,
    Conditional,
    Expr,
    Lifted,
    Operation,
    Or,
    Outer,
    Parameter,
    Subquery,
    constant,
    tuple_of,
)
from reactive import Count, Database, Relation, Sum, Table
from tests.optimizer.subqueries.plain import free

Rel = Relation[Any]
ROW, OUTER = Parameter(0), Outer(0)


@dataclass(frozen=True, slots=True)
class Customer:
    id: int
    name: str
    limit: float


@dataclass(frozen=True, slots=True)
class Order:
    number: int
    customer: int
    total: float
    paid: bool


def function(body: Expr, count: int = 1) -> Lifted:
    return Lifted(body, ("row", "other")[:count], (), count)


def where(node: plan.Node, test: Expr) -> plan.Node:
    return free(plan.Where(node, function(test)))


def select(node: plan.Node, *items: Expr) -> plan.Node:
    return free(plan.Select(node, function(tuple_of(*items))))


def of_orders(orders: Table[Any], name: str, test: Expr | None = None) -> plan.Node:
    """Their number or sum."""
    total = Lifted(Attribute(ROW, "total"), ("order",), (), 1)
    template = orders.aggregate(Count(), Sum("total")).plan
    assert isinstance(template, plan.Aggregate)
    count, total_of = template.aggregates
    folded = count if name == "Count" else replace(total_of, value=total)
    node = orders.plan if test is None else plan.Where(orders.plan, function(test))
    return plan.Aggregate(node, None, (folded,))


MINE = Operation("==", (Attribute(ROW, "customer"), Attribute(OUTER, "id")))
UNPAID = Operation("not", (Attribute(ROW, "paid"),))
NAME, LIMIT = Attribute(ROW, "name"), Attribute(ROW, "limit")


def exists(orders: Table[Any], test: Expr = MINE) -> Subquery:
    return Subquery("exists", plan.Where(orders.plan, function(test)), (ROW,))


def value(orders: Table[Any], name: str, test: Expr | None = MINE) -> Subquery:
    return Subquery("value", of_orders(orders, name, test), (ROW,))


def anybody(customers: Rel, orders: Table[Any]) -> plan.Node:
    return where(customers.plan, exists(orders))


def nobody(customers: Rel, orders: Table[Any]) -> plan.Node:
    return where(customers.plan, Operation("not", (exists(orders, And((MINE, UNPAID))),)))


def sums(customers: Rel, orders: Table[Any]) -> plan.Node:
    return select(customers.plan, NAME, value(orders, "Sum"), value(orders, "Count"))


def large(customers: Rel, orders: Table[Any]) -> plan.Node:
    return where(customers.plan, Operation(">", (value(orders, "Sum"), LIMIT)))


def either(customers: Rel, orders: Table[Any]) -> plan.Node:
    return where(customers.plan, Or((Operation("==", (NAME, constant("x"))), exists(orders))))


def kept(customers: Rel, orders: Table[Any]) -> plan.Node:
    """The number, of those alone that have a limit."""
    test = Operation("!=", (LIMIT, constant(0.0)))
    return select(customers.plan, Conditional(test, value(orders, "Count"), constant(0)))


def by_hand_anybody(customers: Rel, orders: Table[Any]) -> Any:
    return customers.semi_join(orders, on=lambda c, o: o.customer == c.id)


def by_hand_nobody(customers: Rel, orders: Table[Any]) -> Any:
    return customers.anti_join(orders, on=lambda c, o: o.customer == c.id and not o.paid)


def by_hand_sums(customers: Rel, orders: Table[Any]) -> Any:
    sums: Any = orders.group_by(lambda o: o.customer).aggregate(Sum(lambda o: o.total), Count())
    return customers.left_join(sums, left_key=lambda c: c.id, right_key=lambda g: g[0]).select(
        lambda c, g: (c.name, 0 if g is None else g[1], 0 if g is None else g[2])
    )


def by_hand_large(customers: Rel, orders: Table[Any]) -> Any:
    sums: Any = orders.group_by(lambda o: o.customer).aggregate(Sum(lambda o: o.total))
    pairs = customers.left_join(sums, left_key=lambda c: c.id, right_key=lambda g: g[0])
    return pairs.where(lambda c, g: (0 if g is None else g[1]) > c.limit).select(lambda c, g: c)


PAIRS: dict[str, tuple[Callable[..., plan.Node], Callable[..., Any]]] = {
    "exists": (anybody, by_hand_anybody),
    "not exists": (nobody, by_hand_nobody),
    "values": (sums, by_hand_sums),
    "value in where": (large, by_hand_large),
}
QUERIES: dict[str, Callable[..., plan.Node]] = {
    **{name: query for name, (query, _) in PAIRS.items()},
    "exists in or": either,
    "value under a condition": kept,
}


def touched(query: Callable[..., Any], size: int) -> list[int]:
    """Return the rows touched by an inserted, updated and deleted order and customer."""
    db = Database()
    customers, orders = db.table(Customer, name="customers"), db.table(Order, name="orders")
    customers.add_all([Customer(i, f"c{i}", 10.0) for i in range(size)])
    orders.add_all([Order(i, i // 2, 7.0, i % 3 > 0) for i in range(size)])
    made = query(customers, orders)
    view = customers._new(made if isinstance(made, plan.Node) else made.plan).materialize()
    mine = Customer(3, "c3", 10.0)
    order = Order(size, 3, 7.0, False)
    steps: list[Callable[[], object]] = [
        lambda: orders.add(order),
        lambda: orders.update(order, replace(order, total=8.0)),
        lambda: customers.update(mine, replace(mine, limit=1.0)),
        lambda: customers.remove(replace(mine, limit=1.0)),
        lambda: customers.add(mine),
        lambda: orders.remove(replace(order, total=8.0)),
    ]
    found = []
    for step in steps:
        before = view.stats().touched
        step()
        found.append(view.stats().touched - before)
    view.verify()
    return found


@pytest.mark.parametrize("name", QUERIES)
def test_the_work_of_a_change_does_not_grow_with_the_tables(name: str) -> None:
    small, large = (touched(QUERIES[name], size) for size in (20, 2_000))
    assert small == large and max(large) <= 20


@pytest.mark.parametrize("name", PAIRS)
def test_a_sub_query_costs_what_a_join_by_hand_does(name: str) -> None:
    query, by_hand = PAIRS[name]
    assert touched(query, 100) == touched(by_hand, 100)


def above_all(customers: Rel, orders: Table[Any]) -> plan.Node:
    """The customers of some name with a limit above the number of all orders."""
    above = Operation(">", (LIMIT, value(orders, "Count", None)))
    return where(customers.plan, And((Operation("==", (NAME, constant("x"))), above)))


def test_a_scalar_that_all_rows_share_touches_those_that_depend_on_it() -> None:
    db = Database()
    customers, orders = db.table(Customer, name="customers"), db.table(Order, name="orders")
    customers.add_all([Customer(i, "" if i % 100 else "x", float(i)) for i in range(1_000)])
    view = customers._new(above_all(customers, orders)).materialize()
    before = view.stats().touched
    orders.add(Order(1, 1, 2.0, True))
    assert len(view) == 9 and view.stats().touched - before < 100
    view.verify()


def test_whether_there_are_any_rows_is_asked_once() -> None:
    db = Database()
    customers, orders = db.table(Customer, name="customers"), db.table(Order, name="orders")
    customers.add_all([Customer(i, "", 0.0) for i in range(1_000)])
    view = customers._new(where(customers.plan, exists(orders, UNPAID))).materialize()
    orders.add(Order(1, 1, 2.0, False))
    assert len(view) == 1_000
    before = view.stats().touched
    orders.add(Order(2, 1, 2.0, False))
    customers.add(Customer(2_000, "", 0.0))
    orders.remove(Order(1, 1, 2.0, False))
    assert view.stats().touched - before < 20
    view.verify()


def test_queries_of_one_source_share_their_groups() -> None:
    db = Database()
    customers, orders = db.table(Customer, name="customers"), db.table(Order, name="orders")
    text = str(customers._new(sums(customers, orders)).explain())
    assert text.partition("runs as")[0].count("aggregate") == 1
    assert "distinct" not in text


def test_a_correlation_without_an_equation_is_asked_once_for_each_value() -> None:
    db = Database()
    customers, orders = db.table(Customer, name="customers"), db.table(Order, name="orders")
    less = Operation("<", (Attribute(ROW, "total"), Attribute(OUTER, "limit")))
    node = select(customers.plan, NAME, Subquery("value", of_orders(orders, "Count", less), (ROW,)))
    view = customers._new(node).materialize()
    customers.add_all([Customer(i, f"c{i}", float(i % 2)) for i in range(100)])
    orders.add_all([Order(i, 0, float(i % 3), False) for i in range(30)])
    before = view.stats().touched
    customers.add(Customer(100, "c100", 1.0))
    assert view.stats().touched - before < 20
    assert view.count(("c100", 10)) == 1
    view.verify()


@pytest.mark.parametrize("raises", [False, True])
def test_what_is_computed_for_each_key_of_rows_is_a_group(raises: bool) -> None:
    db = Database()
    orders = db.table(Order, name="orders")
    keys = plan.Distinct(plan.Select(orders.plan, function(Attribute(ROW, "customer"))))
    mine = Operation("==", (Attribute(ROW, "customer"), OUTER))
    node = of_orders(orders, "Sum", mine)
    if raises:
        assert isinstance(node, plan.Aggregate)
        inverse = function(Operation("/", (constant(1.0), Attribute(ROW, "total"))))
        node = replace(node, aggregates=(replace(node.aggregates[0], value=inverse),))
    view = orders._new(select(keys, ROW, Subquery("value", node, (ROW,)))).materialize()
    assert "join" not in str(view.explain()).partition("runs as")[2].partition("rules:")[0]
    orders.add_all([Order(i, i % 3, 2.0, True) for i in range(6)])
    assert sorted(view) == [(i, 1.0 if raises else 4.0) for i in range(3)]
    orders.remove(Order(0, 0, 2.0, True))
    assert view.count((0, 0.5 if raises else 2.0)) == 1
    view.verify()


@pytest.mark.parametrize(
    ("join", "asked"),
    [
        (lambda cs, os: cs.where(lambda c: any(o.customer == c.id for o in os)), "semi_join"),
        (
            lambda cs, os: cs.where(lambda c: any(o.customer == c.id and o.paid for o in os)),
            "semi_join",
        ),
        (lambda cs, os: cs.where(lambda c: not any(o.customer == c.id for o in os)), "anti_join"),
        (
            lambda cs, os: cs.where(lambda c: all(o.total < c.limit for o in os if o.paid)),
            "anti_join",
        ),
    ],
)
def test_a_test_of_any_and_all_is_asked_once(join: Any, asked: str) -> None:
    """It is the condition of a join, and is not evaluated again for its errors."""
    db = Database()
    found = join(db.table(Customer, name="customers"), db.table(Order, name="orders"))
    shown = str(found.explain())
    assert asked in shown
    assert "evaluated" not in shown and "every pair" not in shown
