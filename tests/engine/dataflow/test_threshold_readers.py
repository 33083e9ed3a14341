"""Views that compare a group with limits get the groups that reach their limit, and are right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Count, Database, Max, Sum, Table, View
from reactive.engine.dataflow import discrimination
from tests.budget import examples
from tests.counted_calls import calls_of


class Order(NamedTuple):
    customer: int
    amount: Any


Query = Callable[["Table[Order]", Any], Any]
QUERIES: dict[str, Query] = {
    "above": lambda o, k: o.group_by("customer").aggregate(Sum("amount")).where(lambda c, s: s > k),
    "from": lambda o, k: o.group_by("customer").aggregate(Sum("amount")).where(lambda c, s: k <= s),
    "below, then a test that may raise": lambda o, k: (
        o.group_by("customer")
        .aggregate(Sum("amount"), Count())
        .where(lambda c, s, n: s < k and 6 // s < n)
    ),
    "between": lambda o, k: (
        o.group_by("customer").aggregate(Sum("amount")).where(lambda c, s: k - 1 < s < k + 1)
    ),
    "greatest": lambda o, k: (
        o.group_by("customer").aggregate(Max("amount")).where(lambda c, s: s >= k)
    ),
    "a total": lambda o, k: o.aggregate(Sum("amount")).where(lambda s: s > k),
    "count": lambda o, k: (
        o.group_by("customer").aggregate(Sum("amount")).where(lambda c, s: s > k).aggregate(Count())
    ),
}
NUMBERS = st.sampled_from([0, 1, -1, 2, True, 0.5, float("inf"), float("nan"), 2**70])
OTHERS = st.sampled_from([0, 1, 2, None, "a"])
COMMIT = st.lists(st.tuples(st.booleans(), st.integers(0, 2), NUMBERS), min_size=1, max_size=4)


def run(query: Query, history: list[Any], drops: bool) -> None:
    """Run a history of commits, and compare each view with its query after each."""
    db, on_error = Database(), "drop" if drops else "raise"
    orders = db.table(Order, name="orders")
    views: list[View[Any]] = [
        query(orders, k).materialize(on_error=on_error) for k in (0, 1, 1.5, -1, 2)
    ]
    for number, changes in enumerate(history):
        try:
            with db.transaction():
                for adds, customer, amount in changes:
                    (orders.add if adds else orders.discard)(Order(customer, amount))
        except (TypeError, ZeroDivisionError, OverflowError):
            pass
        for view in views:
            view.verify()
        if number % 3 == 2:
            views.pop(0).close()
            views.append(query(orders, number).materialize(on_error=on_error))


@pytest.mark.parametrize("name", QUERIES)
@examples(208)
@given(st.lists(COMMIT, max_size=8), st.booleans())
def test_they_are_right_after_every_commit(name: str, history: list[Any], drops: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discrimination, "WORTHWHILE", 2)
        run(QUERIES[name], history, drops)


@examples(208)
@given(st.lists(st.lists(st.tuples(st.booleans(), st.integers(0, 2), OTHERS), max_size=3)))
def test_other_values_than_numbers_are_compared_by_each_view(history: list[Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discrimination, "WORTHWHILE", 2)
        run(QUERIES["greatest"], history, drops=True)


@pytest.mark.parametrize("name", QUERIES)
def test_a_change_calls_as_much_with_many_limits(name: str) -> None:
    def calls(views: int) -> int:
        orders = Database().table(Order, name="orders")
        orders.add_all(Order(n, n) for n in range(50))
        made = QUERIES[name]
        sign = -1 if name.startswith("below") else 1
        live = [made(orders, sign * (10**6 + 5 * k)).materialize() for k in range(views)]
        for n in range(100):
            orders.add(Order(n % 50, n))
        count = calls_of(lambda: orders.add(Order(7, 1000)))
        assert len(live) == views
        return count

    assert calls(120) <= calls(30) + 3


def test_alerts_in_sql_are_found_too() -> None:
    db = Database()
    orders = db.table(Order, name="orders")
    text = "select customer from orders group by customer having sum(amount) > {}"
    views = [db.sql(text.format(k)).materialize() for k in range(20)]
    for n in range(10):
        orders.add(Order(n % 3, n))
    for k, view in enumerate(views):
        view.verify()
        assert len(view) == sum(total > k for total in (18, 12, 15))
