"""Joins whose compared values move: results as from scratch, and only the rows that are crossed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Avg, Count, Database, Max, Sum
from tests.budget import examples
from tests.thresholds import thresholds

MANY = "reactive.engine.collections.key_orders.MANY"
FEW = "reactive.engine.collections.index.FEW"


@dataclass(frozen=True)
class Order:
    id: int
    customer: int
    region: str
    amount: Any


@dataclass(frozen=True)
class Limit:
    id: int
    customer: int
    name: str
    least: Any
    most: Any


Make = Callable[[Any, Any], Any]
BY_LEAST: Make = lambda o, lim: o.join(lim, on=lambda a, b: a.amount > b.least)  # noqa: E731
WITHIN: Make = lambda o, lim: o.join(lim, on=lambda a, b: b.least <= a.amount < b.most)  # noqa: E731
LIMITS_FIRST: Make = lambda o, lim: lim.join(o, on=lambda b, a: a.amount >= b.least)  # noqa: E731
BY_CUSTOMER: Make = lambda o, lim: o.join(  # noqa: E731
    lim, on=lambda a, b: a.customer == b.customer and a.amount > b.least
)
WITHIN_CUSTOMER: Make = lambda o, lim: lim.join(  # noqa: E731
    o, on=lambda b, a: a.customer == b.customer and b.least < a.amount <= b.most
)
QUERIES: dict[str, Make] = {
    "ids": lambda o, lim: BY_LEAST(o, lim).select(lambda a, b: a.id),
    "both rows": lambda o, lim: BY_LEAST(o, lim).select(lambda a, b: (a, b)),
    "with a name": lambda o, lim: BY_LEAST(o, lim).select(lambda a, b: (a.id, b.name.upper())),
    "with a bound": lambda o, lim: BY_LEAST(o, lim).select(lambda a, b: (a.id, b.least)),
    "count by region": lambda o, lim: (
        BY_LEAST(o, lim).group_by(lambda a, b: a.region).aggregate(Count(), Max(lambda a, b: a.id))
    ),
    "within": lambda o, lim: WITHIN(o, lim).select(lambda a, b: (a.id, b.name)),
    "sum within": lambda o, lim: (
        WITHIN(o, lim).group_by(lambda a, b: b.name).aggregate(Sum(lambda a, b: a.id))
    ),
    "limits first": lambda o, lim: LIMITS_FIRST(o, lim).select(lambda b, a: (a.region, b.name)),
    "grouped, limits first": lambda o, lim: (
        LIMITS_FIRST(o, lim).group_by(lambda b, a: a.region).aggregate(Count())
    ),
    "one more condition": lambda o, lim: o.join(
        lim, on=lambda a, b: a.amount > b.least and a.id % 7 != b.id % 7
    ).select(lambda a, b: a.id),
    "a condition of the bound": lambda o, lim: o.join(
        lim, on=lambda a, b: a.amount > b.least and a.region != str(b.least)
    ).select(lambda a, b: a.id),
    "by customer": lambda o, lim: BY_CUSTOMER(o, lim).select(lambda a, b: a.id),
    "by customer, counted": lambda o, lim: (
        BY_CUSTOMER(o, lim).group_by(lambda a, b: b.name).aggregate(Count(), Sum(lambda a, b: a.id))
    ),
    "within customer": lambda o, lim: WITHIN_CUSTOMER(o, lim).select(lambda b, a: (b.name, a.id)),
    "several": lambda o, lim: WITHIN_CUSTOMER(o, lim).select_many(lambda b, a: (b.name, a.region)),
    "or": lambda o, lim: o.join(lim, on=lambda a, b: a.amount > b.least or a.id % 5 == 0).select(
        lambda a, b: a.id
    ),
    "conditional": lambda o, lim: o.join(lim, on=lambda a, b: a.customer == b.customer).select(
        lambda a, b: (a.id, "high" if a.amount >= b.least else "low")
    ),
    "sum of conditionals": lambda o, lim: (
        o.join(lim, on=lambda a, b: a.customer == b.customer)
        .group_by(lambda a, b: (a.region, b.most is None))
        .aggregate(Sum(lambda a, b: a.id if b.least < a.amount else 0), Count())
    ),
    "either end": lambda o, lim: o.join(
        lim, on=lambda a, b: a.customer == b.customer and (a.amount < b.least or b.most < a.amount)
    ).select(lambda a, b: a.id),
    "two limits": lambda o, lim: (
        BY_LEAST(o, lim)
        .join(lim, on=lambda a, b, c: a.amount < c.most)
        .select(lambda a, b, c: (a.id, c.name))
    ),
    "by customer, both rows": lambda o, lim: BY_CUSTOMER(o, lim).where(
        lambda a, b: a.id % 9 == b.id
    ),
    "within customer, both rows": WITHIN_CUSTOMER,
    "orders with a limit or none": lambda o, lim: o.where(lambda a: a.id % 40 == 1).left_join(
        lim, on=lambda a, b: a.customer == b.customer and b.least < a.amount <= b.most
    ),
    "limits with orders or none": lambda o, lim: lim.left_join(
        o, on=lambda b, a: a.customer == b.customer and b.least < a.amount <= b.most
    ),
    "all with or without": lambda o, lim: lim.full_join(
        o.where(lambda a: a.id % 40 == 1),
        on=lambda b, a: a.customer == b.customer and a.amount < b.most and a.amount > b.least,
    ),
    "limits with orders": lambda o, lim: lim.semi_join(
        o, on=lambda b, a: a.customer == b.customer and b.least < a.amount <= b.most
    ),
    "limits without orders": lambda o, lim: lim.anti_join(
        o, on=lambda b, a: a.customer == b.customer and b.least < a.amount <= b.most
    ),
    "above the average": lambda o, lim: o.join(
        o.where(lambda a: a.amount == a.amount and a.amount is not None).aggregate(
            Avg(lambda a: float(a.amount))
        ),
        on=lambda a, mean: a.amount > mean,
    ).select(lambda a, mean: a.id),
}
NUMBERS: list[Any] = [0, 1, 1.0, True, 2, 2.5, Decimal("1.5"), 3, 3, -1]
TEXTS: list[Any] = ["", "a", "ab", "b"]
TIMES: list[Any] = [datetime(2024, 1, 1) + timedelta(hours=n) for n in range(6)]


def edits(values: list[Any]) -> st.SearchStrategy[list[list[Any]]]:
    amounts = st.sampled_from(values)
    orders = st.builds(Order, st.integers(0, 9), st.integers(0, 1), st.sampled_from("uv"), amounts)
    limits = st.builds(
        Limit, st.integers(0, 2), st.integers(0, 1), st.sampled_from("xy"), amounts, amounts
    )
    return st.lists(st.lists(orders | limits | limits, max_size=5), min_size=2, max_size=8)


def check_history(
    make: Make, commits: list[list[Any]], *, many: int, on_error: Any = "raise"
) -> None:
    """Upsert rows by their ids, or delete a row that is there; verify after each commit."""
    with thresholds({MANY: many, FEW: many}):
        db = Database()
        orders = db.table(Order, name="orders", key="id")
        limits = db.table(Limit, name="limits", key="id")
        view = make(orders, limits).materialize(on_error=on_error)
        for commit in commits:
            with db.transaction():
                for row in commit:
                    table: Any = orders if isinstance(row, Order) else limits
                    table.discard(row) if row in table else table.upsert(row)
            view.verify()


ODD = [*NUMBERS, None, "a", float("nan"), Decimal("nan"), (1, 2)]


@pytest.mark.parametrize("name", QUERIES)
@examples(40)
@given(st.data())
def test_a_view_is_as_from_scratch(name: str, data: st.DataObject) -> None:
    values = data.draw(st.sampled_from([NUMBERS, TEXTS, TIMES]))
    if name == "above the average":
        values = NUMBERS
    check_history(QUERIES[name], data.draw(edits(values)), many=data.draw(st.sampled_from((1, 2))))


@pytest.mark.parametrize("name", QUERIES)
@examples(25)
@given(st.data())
def test_values_without_a_common_order_are_asked(name: str, data: st.DataObject) -> None:
    check_history(QUERIES[name], data.draw(edits(ODD)), many=1, on_error="drop")


def filled(make: Make, count: int) -> tuple[Database, Any, Any, Any]:
    db = Database()
    orders, limits = db.table(Order, key="id"), db.table(Limit, key="id")
    orders.add_all(Order(n, n % 3, "uv"[n % 2], n) for n in range(count))
    limits.add_all(Limit(n, n, "xyz"[n], count // 2, count // 2 + 10) for n in range(3))
    return db, orders, limits, make(orders, limits).materialize()


def touched_by(view: Any, do: Callable[[], Any]) -> int:
    before = int(view.stats().touched)
    do()
    return int(view.stats().touched) - before


COSTLY = {"both rows", "with a bound", "a condition of the bound", "by customer, both rows"}
"""Queries that read the bound elsewhere: all their pairs change."""


@pytest.mark.parametrize("name", sorted(QUERIES.keys() - COSTLY))
def test_a_bound_that_moves_touches_the_rows_between(name: str) -> None:
    """A limit moves by 3, back by 2, with a new order, and while an order is deleted."""
    touched = []
    for count in (600, 6_000):
        db, orders, limits, view = filled(QUERIES[name], count)
        first = next(iter(limits))
        moved = replace(first, least=first.least + 3, most=first.most + 3)
        limits.update(first, moved)  # rows of a customer get an order
        again = replace(first, least=first.least + 1)
        new = Order(count, 0, "u", count // 2)

        def together() -> None:
            with db.transaction():
                limits.update(again, moved)
                orders.remove(new)
                orders.add(replace(new, id=count + 1))

        steps = (lambda: limits.update(moved, again), lambda: orders.add(new), together)
        touched.append([touched_by(view, step) for step in steps])
        view.verify()
    assert max(*touched[0], *touched[1]) < 120, touched
