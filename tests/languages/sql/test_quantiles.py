"""Quantiles of groups keep their values in order, also beside NaN, NULL and a moving join."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database
from reactive.engine.collections.sorted_copies import OrderedCopies
from reactive.languages.sql.runtime import folds
from tests.budget import examples
from tests.counted_calls import calls_of


class Sale(NamedTuple):
    id: int
    customer: int
    whole: int | None
    price: float
    exact: Decimal
    day: date
    note: str


class Customer(NamedTuple):
    id: int
    region: str


QUANTILES = (
    "median(s.whole)",
    "median(s.price)",
    "median(s.exact)",
    "median(s.day)",
    "percentile_cont(0.3) within group (order by s.price desc)",
    "percentile_cont(0.3) within group (order by s.exact)",
    "percentile_disc(0.3) within group (order by s.note)",
    "percentile_disc(0.3) within group (order by s.whole desc)",
    "quantile_cont(s.whole, 0.9)",
    "median(s.whole) filter (where s.note <> 'a')",
    "quantile_cont(s.whole, [0.1, 0.5])",
    "median(distinct s.whole)",
)
SALES = st.builds(
    Sale,
    st.integers(0, 20),
    st.integers(0, 2),
    st.sampled_from([None, *range(6)]),
    st.sampled_from([0.0, -0.0, 0.1, 0.2, 0.3, 1e300, math.inf]),
    st.sampled_from([Decimal("0.10"), Decimal("0.2"), Decimal(3)]),
    st.dates(date(2024, 1, 1), date(2024, 1, 9)),
    st.sampled_from("abc"),
)


@pytest.mark.parametrize("quantile", QUANTILES)
@pytest.mark.parametrize(
    "text",
    [
        "select customer, {} as x from sales s group by customer",
        "select c.region, {} as x from customers c join sales s on s.customer = c.id"
        " group by c.region",
        "select c.region, {} as x from customers c left join sales s on s.customer = c.id"
        " group by c.region",
        "select c.id, (select {} from sales s where s.customer = c.id) as x from customers c",
        "select {} as x from sales s",
    ],
)
@given(steps=st.lists(st.one_of(SALES, st.integers(0, 20), st.sampled_from("xy")), max_size=20))
@examples(6)
def test_quantiles_are_right_after_every_commit(
    text: str, quantile: str, steps: list[Sale | int | str]
) -> None:
    db = Database()
    sales = db.table(Sale, name="sales", key="id")
    customers = db.table(Customer, name="customers", key="id")
    customers.add_all([Customer(n, "xy"[n % 2]) for n in range(3)])
    view = db.sql(text.format(quantile)).materialize(on_error="raise")
    for step in steps:
        held = {sale.id for sale in sales}
        if isinstance(step, Sale):
            if step.id in held:
                sales.remove(sales[step.id])
            sales.add(step)
        elif isinstance(step, int):
            if step in held:
                sales.remove(sales[step])
        else:
            customers.update(1, region=step)
        view.verify()
    db.close()


@given(
    st.lists(st.one_of(st.integers(-3, 9), st.floats(allow_nan=False, width=16))),
    st.sampled_from([0, 0.25, 0.3, 0.5, 1, (0.1, 0.5)]),
)
@examples(60)
def test_values_in_order_and_sorted_values_have_the_same_quantiles(
    values: list[Any], at: Any
) -> None:
    kept = OrderedCopies()
    for value in values:
        kept.add(value, 1)
    for function in (folds.quantile_between, folds.quantile_of, folds.quantile_from_last):
        expected: Any = function(values, at)
        found: Any = function(kept, at)
        assert found == expected or str(found) == str(expected)  # of infinities NaN


@pytest.mark.parametrize("quantile", ["median(whole)", "quantile_disc(whole, 0.3)"])
def test_a_change_costs_the_same_in_a_large_group(quantile: str) -> None:
    counts = []
    for size in (100, 3_000):
        db = Database()
        sales = db.table(Sale, name="sales", key="id")
        one = Sale(-1, 1, 5, 1.0, Decimal(1), date(2024, 1, 1), "a")
        sales.add_all([one._replace(id=n, whole=n) for n in range(size)])
        view = db.sql(
            f"select customer, {quantile} as x from sales group by customer"
        ).materialize()
        for _ in range(100):  # code is generated
            sales.add(one)
            sales.remove(one)
        counts.append(calls_of(lambda: sales.add(one)))
        view.verify()
    assert counts[1] < counts[0] + 40


def test_nan_is_the_greatest_value() -> None:
    db = Database()
    sales = db.table(Sale, name="sales", key="id")
    view = db.sql("select median(price) as x, max(price) as y from sales").materialize()
    one = Sale(0, 1, 5, 1.0, Decimal(1), date(2024, 1, 1), "a")
    sales.add_all([one._replace(id=n, price=p) for n, p in enumerate([2.0, math.nan, 1.0])])
    (row,) = view
    assert row[0] == 2.0 and math.isnan(row[1])
