"""Joins by conditions of both sides that are monotone: results as from scratch, and only the rows
that a bound crosses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Avg, Count, Database
from tests.budget import examples
from tests.engine.operators.test_moved_bounds import MANY, touched_by
from tests.thresholds import thresholds


@dataclass(frozen=True)
class Sale:
    id: int
    customer: int
    price: float | None
    at: datetime | None
    other: Any


@dataclass(frozen=True)
class Bound:
    id: int
    customer: int
    price: float | None
    at: datetime | None
    other: Any


Make = Callable[[Any, Any], Any]
On = Callable[[Any, Any], object]
MONOTONE: dict[str, On] = {
    "difference": lambda a, b: a.price - b.price > 0.1,
    "difference, bound first": lambda a, b: b.price - a.price >= 0.1,
    "factor": lambda a, b: a.price * 3 - b.price * 0.1 < 0.3,
    "negative factor": lambda a, b: -2 * a.price + b.price > 0.1,
    "near": lambda a, b: abs(a.price - b.price) < 0.2,
    "negated": lambda a, b: not a.price - b.price <= 0.1,
    "product": lambda a, b: a.price * b.price > 0.2,
    "quotient": lambda a, b: a.price / b.price > 1.5,
    "divided bound": lambda a, b: b.price / a.price > 1.5,
    "rounded": lambda a, b: int(a.price - b.price) >= 1,
    "floor": lambda a, b: math.floor(a.price - b.price) + 1 > 0.5,
    "undeclared": lambda a, b: a.other - b.other > 0.1,
    "one undeclared": lambda a, b: a.price - b.other > 1,
    "one more condition": lambda a, b: a.price - b.price > 0.1 and a.id % 3 != b.id,
    "of a key": lambda a, b: a.customer == b.customer and a.price - b.price > 0.1,
    "product of a key": lambda a, b: a.customer == b.customer and a.price * b.price > 0.2,
    "two ends": lambda a, b: a.price - b.price > 0.1 and a.price - b.price < 0.5,
    "two values": lambda a, b: a.price - b.price > 0.1 and a.id - b.price < 4.5,
    "a plain end": lambda a, b: a.price > b.price and a.price - b.price < 0.5,
}
TIMES: dict[str, On] = {
    "age": lambda a, b: b.at - a.at < timedelta(hours=2),
    "age, other way": lambda a, b: a.at - b.at > timedelta(hours=-2),
    "seconds": lambda a, b: (b.at - a.at).total_seconds() < 7200.5,
    "days": lambda a, b: (b.at - a.at).days >= 1,
    "undeclared times": lambda a, b: b.other - a.other < timedelta(hours=2),
}
FLOATS = [0.1, 0.2, 0.3, 0.1 + 0.2, 0.4, 0.7, 1e-17, 1e16, 2**60 + 1, 2**53 - 1, 1, 0, True, -0.1]
ODD = [*FLOATS, None, "a", math.nan, math.inf, -math.inf, 1e308, Decimal("0.3"), Decimal("nan")]
START = datetime(2024, 1, 1)
MOMENTS = [START + timedelta(hours=n) for n in (0, 1, 2, 2.5, 24, 26, 48)]
ODD_TIMES = [
    *MOMENTS,
    *[each.replace(tzinfo=UTC) for each in MOMENTS[:3]],
    START.replace(tzinfo=timezone(timedelta(hours=1))),
    date(2024, 1, 1),
    date(2024, 1, 3),
    timedelta(hours=5),
    None,
    3,
]


def edits(floats: list[Any], times: list[Any]) -> st.SearchStrategy[list[list[Any]]]:
    given_values = (
        st.integers(0, 1),
        st.sampled_from(floats),
        st.sampled_from(times),
        st.sampled_from(floats if times is MOMENTS else times),
    )
    sales = st.builds(Sale, st.integers(0, 9), *given_values)
    bounds = st.builds(Bound, st.integers(0, 2), *given_values)
    return st.lists(st.lists(sales | bounds | bounds, max_size=5), min_size=2, max_size=8)


def check_history(on: On, commits: list[list[Any]], on_error: Any) -> None:
    """Upsert rows by their ids, or delete a row that is there; verify after each commit."""
    with thresholds({MANY: 1}):
        db = Database()
        sales, bounds = db.table(Sale, key="id"), db.table(Bound, key="id")
        one_way = sales.join(bounds, on=on).select(lambda a, b: a.id)
        other_way = bounds.join(sales, on=lambda b, a: on(a, b)).select(lambda b, a: (a.id, b.id))
        views = [each.materialize(on_error=on_error) for each in (one_way, other_way)]
        for commit in commits:
            with db.transaction():
                for row in commit:
                    table: Any = sales if isinstance(row, Sale) else bounds
                    table.discard(row) if row in table else table.upsert(row)
            for view in views:
                view.verify()


@pytest.mark.parametrize(
    "name", [name for name in MONOTONE if name not in ("quotient", "divided bound")]
)
@examples(25)
@given(st.data())
def test_a_view_of_numbers_is_as_from_scratch(name: str, data: st.DataObject) -> None:
    check_history(MONOTONE[name], data.draw(edits(FLOATS, MOMENTS)), "raise")


@pytest.mark.parametrize("name", MONOTONE)
@examples(25)
@given(st.data())
def test_a_view_of_odd_values_is_as_from_scratch(name: str, data: st.DataObject) -> None:
    check_history(MONOTONE[name], data.draw(edits(ODD, MOMENTS)), "drop")


@pytest.mark.parametrize("name", TIMES)
@examples(25)
@given(st.data())
def test_a_view_of_moments_is_as_from_scratch(name: str, data: st.DataObject) -> None:
    check_history(TIMES[name], data.draw(edits(FLOATS, ODD_TIMES)), "drop")


def filled(make: Make, count: int) -> tuple[Any, Any, Any]:
    db = Database()
    sales, bounds = db.table(Sale, key="id", name="sales"), db.table(Bound, key="id", name="bounds")
    sales.add_all(Sale(n, 0, n + 0.5, START + timedelta(minutes=n), n + 0.25) for n in range(count))
    bounds.add(Bound(0, 0, 200.5, START + timedelta(minutes=200), 200.25))
    return sales, bounds, make(sales, bounds).materialize()


TOUCHING: dict[str, Make] = {
    **{
        name: lambda a, b, on=on: a.join(b, on=on).select(lambda x, y: x.id)  # type: ignore[misc]
        for name, on in {**MONOTONE, **TIMES}.items()
        if name not in ("undeclared times", "two values")
    },
    "count": lambda a, b: (
        a.join(b, on=lambda x, y: x.price - y.price > 0.1)
        .group_by(lambda x, y: x.customer)
        .aggregate(Count())
    ),
    "above the average": lambda a, b: a.join(
        a.aggregate(Avg("price")), on=lambda x, mean: x.price - mean > 10
    ).select(lambda x, mean: x.id),
}


@pytest.mark.parametrize("name", TOUCHING)
def test_a_bound_that_moves_touches_the_rows_between(name: str) -> None:
    """The bound moves by 3, one row moves far, and a row is deleted together with both."""
    touched = []
    for count in (600, 6_000):
        sales, bounds, view = filled(TOUCHING[name], count)
        first = next(iter(bounds))
        moved = replace(
            first, price=203.5, at=first.at + timedelta(minutes=3), other=first.other + 3
        )
        bounds.update(first, moved)  # rows of a key get an order
        row = sales[7]
        steps = (
            lambda: bounds.update(moved, first),
            lambda: sales.update(row, replace(row, price=9.0)),
            lambda: bounds.update(first, moved),
        )
        touched.append([touched_by(view, step) for step in steps])
        view.verify()
    assert max(*touched[0], *touched[1]) < 120, touched
