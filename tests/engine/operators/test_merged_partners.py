"""Rows of a hot key move between groups by their different values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import (
    ApproxCountDistinct,
    Avg,
    BoolOr,
    Collect,
    Count,
    CountDistinct,
    Database,
    Max,
    Median,
    Min,
    MostCommon,
    Quantile,
    Sum,
    Variance,
)
from reactive.engine.collections.index import Index
from reactive.engine.collections.merged_rows import MergedRows
from tests.budget import examples, sampled
from tests.thresholds import thresholds


class Order(NamedTuple):
    id: int
    customer: int
    amount: Any


class Customer(NamedTuple):
    id: int
    region: Any
    least: int = 0


class Sale(NamedTuple):
    id: int
    customer: int
    amount: int


AMOUNTS = [
    0,
    1,
    2,
    1.0,
    True,
    0.0,
    -0.0,
    0.1,
    None,
    float("nan"),
    "a",
    (1, 2),
    (1.0, 2),
    Decimal(1),
]
NUMBERS = [0, 1, 2, 1.0, 0.1, 0.7, -0.0, 1e300, Decimal("1.0"), Decimal("1.00")]
AGGREGATES: dict[str, tuple[list[Any], Callable[[Any], list[Any]]]] = {
    "distinct": (AMOUNTS, lambda amount: [CountDistinct(amount)]),
    "bag": (AMOUNTS, lambda amount: [Collect(amount)]),
    "several": (AMOUNTS, lambda amount: [Count(), Collect(amount), CountDistinct(amount)]),
    "numbers": (
        [n for n in NUMBERS if not isinstance(n, Decimal)],
        lambda amount: [Sum(amount), Avg(amount), Collect(amount), Min(amount), Max(amount)],
    ),
    "statistics": (
        [0, 1, 2, 1.0, 0.1, 0.7, -0.0, float("nan"), None, float("inf")],
        lambda amount: [
            Median(amount, skip_none=True),
            Quantile(amount, 0.3, skip_none=True),
            Variance(amount, skip_none=True),
            MostCommon(amount),
            ApproxCountDistinct(amount),
            BoolOr(amount, skip_none=True),
        ],
    ),
    "medians": (AMOUNTS, lambda amount: [Count(), Median(amount)]),
    "extremes": (NUMBERS, lambda amount: [CountDistinct(amount), Min(amount), Max(amount)]),
}
JOINS: dict[str, Callable[..., Any]] = {
    "join": lambda o, c, a: (
        o.join(c, on=lambda o, c: o.customer == c.id)
        .group_by(lambda o, c: c.region)
        .aggregate(*a(lambda o, c: o.amount))
    ),
    "other side": lambda o, c, a: (
        c.join(o, on=lambda c, o: o.customer == c.id)
        .group_by(lambda c, o: c.region)
        .aggregate(*a(lambda c, o: o.amount))
    ),
    "predicate": lambda o, c, a: (
        o.join(c, on=lambda o, c: o.customer == c.id and o.id % 2 >= c.least)
        .group_by(lambda o, c: c.region)
        .aggregate(*a(lambda o, c: o.amount))
    ),
    "outer": lambda o, c, a: (
        c.left_join(o, on=lambda c, o: o.customer == c.id)
        .group_by(lambda c, o: c.region)
        .aggregate(*a(lambda c, o: 0 if o is None else o.amount))
    ),
    "chain": lambda o, c, a: (
        o.join(c, on=lambda o, c: o.customer == c.id)
        .where(lambda o, c: c.region != "none")
        .select(lambda o, c: (c.region, o.amount))
        .group_by(lambda row: row[0])
        .aggregate(*a(lambda row: row[1]))
    ),
    "whole rows": lambda o, c, a: (
        o.join(c, on=lambda o, c: o.customer == c.id)
        .group_by(lambda o, c: c.region)
        .aggregate(*a(lambda o, c: o[2]))
    ),
}
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("region"), st.integers(0, 2), st.sampled_from(["x", "y", "none", [1]])),
        st.tuples(st.just("least"), st.integers(0, 2), st.integers(0, 2)),
        st.tuples(st.just("amount"), st.integers(0, 15), st.integers(0, 99)),
        st.tuples(st.just("customer"), st.integers(0, 15), st.integers(0, 2)),
        st.tuples(st.just("remove"), st.integers(0, 15), st.just(0)),
        st.tuples(st.just("both"), st.integers(0, 15), st.integers(0, 2)),
    ),
    max_size=14,
)


@pytest.fixture(autouse=True)
def _merge_few_rows() -> Iterator[None]:
    with thresholds({"reactive.engine.collections.merged_rows.MANY": 1}):
        yield


@sampled
@pytest.mark.parametrize("join", list(JOINS))
@pytest.mark.parametrize("named", list(AGGREGATES))
@given(amounts=st.lists(st.integers(0, 99), min_size=14, max_size=40), steps=STEPS)
@examples(12)
def test_groups_are_right_after_every_commit(
    named: str, join: str, amounts: list[int], steps: list[tuple[str, int, Any]]
) -> None:
    values, aggregates = AGGREGATES[named]
    db = Database()
    orders = db.table(Order, name="orders", key="id")
    customers = db.table(Customer, name="customers", key="id")
    customers.add_all([Customer(n, "x") for n in range(3)])
    # one hot customer; values repeat
    orders.add_all([Order(n, n // 20, values[a % 3]) for n, a in enumerate(amounts)])
    view = JOINS[join](orders, customers, aggregates).materialize()
    for what, at, value in [("region", 0, "y"), *steps, ("region", 0, "x")]:
        try:
            with db.transaction():
                if what in ("region", "least"):
                    customers.update(at, **{what: value})
                elif what == "both":
                    customers.update(value, region="y")
                    orders.update(at, amount=values[value])
                elif what == "remove":
                    orders.remove(orders[at])
                else:
                    new = values[value % len(values)] if what == "amount" else value
                    orders.update(at, **{what: new})
        except (KeyError, TypeError, LookupError, ValueError):
            pass  # no such order, or a value that is refused
        view.verify()
    db.close()


@sampled
@pytest.mark.parametrize("named", ["distinct", "bag", "several", "statistics", "medians"])
@pytest.mark.parametrize("join", ["join", "other side", "outer", "chain"])
def test_a_hot_key_moves_by_its_different_values(join: str, named: str) -> None:
    touched = []
    for size in (1_000, 4_000):
        db = Database()
        orders = db.table(Order, name="orders", key="id")
        customers = db.table(Customer, name="customers", key="id")
        customers.add_all([Customer(n, "x") for n in range(3)])
        orders.add_all([Order(n, 1, n % 7) for n in range(size)])
        view = JOINS[join](orders, customers, AGGREGATES[named][1]).materialize()
        for region in "yx":  # merges the rows
            customers.update(1, region=region)
        before = view.stats().touched
        customers.update(1, region="y")
        touched.append(view.stats().touched - before)
        for n in range(20):
            orders.update(n, amount=n)
        customers.update(1, region="x")
        view.verify()
    assert touched[0] == touched[1] < 40


PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    "fields": lambda o, c: o.join(c, on=lambda o, c: o.customer == c.id).select(
        lambda o, c: (o.id, c.region)
    ),
    "rows of one side": lambda o, c: o.join(c, on=lambda o, c: o.customer == c.id).select(
        lambda o, c: o
    ),
    "whole pairs": lambda o, c: o.join(c, on=lambda o, c: o.customer == c.id),
    "predicate": lambda o, c: o.join(
        c, on=lambda o, c: o.customer == c.id and o.id % 2 >= c.least
    ).select(lambda o, c: (o.amount, c.region)),
    "left": lambda o, c: o.left_join(
        c, on=lambda o, c: o.customer == c.id and c.region != "none"
    ).select(lambda o, c: (o.id, c.region if c is not None else None)),
    "full": lambda o, c: c.full_join(o, on=lambda c, o: o.customer == c.id).select(
        lambda c, o: (c and c.id, o and o.id)
    ),
    "first ones": lambda o, c: (
        c.join(o, on=lambda c, o: o.customer == c.id)
        .select(lambda c, o: (o.id, c.region != "x"))
        .order_by(lambda pair: (pair[1], -pair[0]))
        .limit(3)
    ),
    "sums": lambda o, c: (
        o.join(c, on=lambda o, c: o.customer == c.id and o.id > c.least)
        .group_by(lambda o, c: c.region)
        .aggregate(Sum(lambda o, c: o.id), Count())
    ),
}


@pytest.mark.parametrize("named", list(PAIRS))
@given(steps=STEPS, more=st.lists(STEPS, max_size=3))
@examples(25)
def test_pairs_are_right_when_rows_are_replaced(
    named: str, steps: list[tuple[str, int, Any]], more: list[list[tuple[str, int, Any]]]
) -> None:
    db = Database()
    orders = db.table(Order, name="orders", key="id")
    customers = db.table(Customer, name="customers", key="id")
    customers.add_all([Customer(n, "x") for n in range(3)])
    orders.add_all([Order(n, n // 20, n % 3) for n in range(45)])
    view = PAIRS[named](orders, customers).materialize()
    subscription = view.subscribe(lambda delta: None)
    for transaction in [[step] for step in steps] + more:
        try:
            with db.transaction():
                for what, at, value in transaction:
                    if what in ("region", "least"):
                        customers.update(at, **{what: value})
                    elif what == "remove":
                        orders.remove(orders[at])
                    elif what != "both":
                        orders.update(at, **{what: value})
                    elif value == 2:
                        raise LookupError  # the commit is refused
        except (KeyError, TypeError, LookupError, ValueError):
            pass
        view.verify()
    subscription.close()
    db.close()


@pytest.mark.parametrize("named", ["fields", "rows of one side", "left", "first ones"])
def test_a_value_that_is_not_read_changes_no_pair(named: str) -> None:
    db = Database()
    orders = db.table(Order, name="orders", key="id")
    customers = db.table(Customer, name="customers", key="id")
    customers.add_all([Customer(n, "x") for n in range(3)])
    orders.add_all([Order(n, 1, n % 7) for n in range(1_000)])
    view = PAIRS[named](orders, customers).materialize()
    customers.update(1, least=5)
    before = view.stats().touched
    customers.update(1, least=6)
    assert view.stats().touched - before < 8
    customers.update(1, region="y")
    view.verify()


def test_sql_counts_different_values_of_a_hot_key() -> None:
    db = Database()
    orders = db.table(Sale, name="orders", key="id")
    customers = db.table(Customer, name="customers", key="id")
    customers.add_all([Customer(n, "x") for n in range(3)])
    orders.add_all([Sale(n, 1, n % 7) for n in range(1_000)])
    view = db.sql(
        "select c.region, count(distinct o.amount) as n, sum(o.amount) as total "
        "from orders o join customers c on o.customer = c.id group by c.region"
    ).materialize()
    for region in "yxy":
        before = view.stats().touched
        customers.update(1, region=region)
    assert view.stats().touched - before < 40
    view.verify()


def test_values_that_are_equal_but_not_the_same_stay_apart() -> None:
    index, merged = Index(), MergedRows(lambda row: (row[1],))
    for n, value in enumerate([1, 1.0, True, 0.0, -0.0, Decimal("1.0"), Decimal("1.00")] * 4):
        index.add("k", (n, value), 1)
    found = merged.bucket("k", index.find("k"))
    assert sorted(str(row[1]) for row, _ in found.values()) == sorted(
        ["1", "1.0", "True", "0.0", "-0.0", "1.0", "1.00"]
    )
    merged.follow([("k", ((90, float("nan")), 1))])
    index.add("k", (90, float("nan")), 1)
    assert merged.bucket("k", index.find("k")) is index.find("k")
