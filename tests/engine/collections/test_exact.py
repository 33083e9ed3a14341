"""Exact sums: equal to `math.fsum` of the present values, after any history."""

from __future__ import annotations

import math
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Avg, Database, Sum
from reactive.engine.collections.exact import ExactSum

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)
ANY = st.floats() | st.integers(-(2**70), 2**70)


def summed(values: list[Any]) -> ExactSum:
    total = ExactSum()
    for value in values:
        total.add(value, 1)
    return total


def fsum(values: list[float]) -> float:
    """`math.fsum`, which raises where a partial sum overflows although the sum does not."""
    try:
        return math.fsum(values)
    except OverflowError:
        exact = sum(map(Fraction, values))
        try:
            return float(exact)
        except OverflowError:
            return math.inf if exact > 0 else -math.inf


@given(kept=st.lists(FINITE), removed=st.lists(FINITE))
def test_a_float_sum_equals_fsum_whatever_came_and_went(
    kept: list[float], removed: list[float]
) -> None:
    total = ExactSum()
    for value in removed + kept:
        total.add(value, 1)
    for value in removed:
        total.add(value, -1)
    assert total.value() == (fsum(kept) if kept else 0)


@given(values=st.lists(ANY), order=st.randoms(use_true_random=False))
def test_adding_and_removing_all_in_any_order_leaves_nothing(values: list[Any], order: Any) -> None:
    total = summed(values)
    order.shuffle(values)
    for value in values:
        total.add(value, -1)
    assert total.value() == 0
    assert type(total.value()) is int


@given(value=FINITE, weight=st.integers(1, 1000))
def test_a_weight_counts_as_so_many_copies(value: float, weight: int) -> None:
    total = ExactSum()
    total.add(value, weight)
    assert total.value() == fsum([value] * weight)


def test_infinities_and_nan_show_while_they_are_there() -> None:
    total = summed([1.0])
    total.add(math.inf, 1)
    assert total.value() == math.inf
    total.add(-math.inf, 1)
    assert math.isnan(total.value())
    total.add(math.inf, -1)
    assert total.value() == -math.inf
    total.add(math.nan, 1)
    assert math.isnan(total.value())
    total.add(math.nan, -1)
    total.add(-math.inf, -1)
    assert total.value() == 1.0


def test_a_sum_beyond_the_largest_float_is_infinite_and_comes_back() -> None:
    total = summed([1e308, 1e308])
    assert total.value() == math.inf
    total.add(1e308, -1)
    assert total.value() == 1e308


def test_the_type_is_that_of_pythons_sum() -> None:
    assert type(summed([1, 2]).value()) is int
    assert type(summed([1, 2.0]).value()) is float
    assert type(summed([True, True]).value()) is int
    assert summed([Fraction(1, 3), 1]).value() == Fraction(4, 3)
    assert summed([Fraction(1, 3), 0.5]).value() == float(Fraction(5, 6))
    assert summed([timedelta(1), timedelta(2)]).value() == timedelta(3)


def test_decimals_stay_decimals_and_are_exact_beyond_the_context() -> None:
    values = [Decimal("1e30"), Decimal("0.1"), Decimal("0.2")]
    total = summed(values)
    total.add(Decimal("1e30"), -1)
    assert total.value() == Decimal("0.3")
    total.add(Decimal("Infinity"), 1)
    assert total.value() == Decimal("Infinity")
    total.add(Decimal("-Infinity"), 1)
    assert total.value().is_nan()
    total.add(Decimal("-Infinity"), -1)
    total.add(Decimal("Infinity"), -1)
    assert total.value() == Decimal("0.3")


@pytest.mark.parametrize("value", ["a", None, [1], {1}, b"x"])
def test_what_has_no_difference_has_no_sum(value: Any) -> None:
    total = summed([1.5])
    with pytest.raises(TypeError):
        total.add(value, 1)
    assert total.value() == 1.5


@given(values=st.lists(FINITE, min_size=1, max_size=20))
def test_sum_and_avg_of_a_view_equal_fsum(values: list[float]) -> None:
    table = Database().table(float, name="t")
    view = table.aggregate(Sum(lambda x: x), Avg(lambda x: x)).materialize()
    table.add_all(values)
    table.add_all([1e300, 1e-300])
    table.remove(1e300)
    table.remove(1e-300)
    assert view.value == (fsum(values), fsum(values) / len(values))
    table.clear()
    total, mean = view.value
    assert total == 0 and mean is None


FRACTIONS = [Fraction(1, 3), Fraction(-7, 11), Fraction(10) ** 400, Fraction(1, 10**30)]
MIXED = st.sampled_from([*FRACTIONS, 0.1, 1e300, -1e300, 1e16, 1, -3, 2**70, math.inf, -math.inf])


@given(commits=st.lists(st.lists(MIXED, min_size=1, max_size=4), max_size=6))
def test_fractions_beside_floats_are_rounded_once(commits: list[list[Any]]) -> None:
    db = Database()
    table = db.table(tuple, name="numbers")
    view = table.aggregate(Sum(lambda row: row[1]), Avg(lambda row: row[1])).materialize()
    for number, values in enumerate(commits):
        table.add_all([(number, value) for value in values])
        view.verify()
        if number % 2:
            table.remove((number, values[0]))
            view.verify()


@pytest.mark.parametrize("optimize", [True, False])
def test_a_sum_of_decimals_and_integers_is_exact(optimize: bool) -> None:
    table: Any = Database(optimize=optimize).table(tuple)
    view = table.group_by(lambda x: x[0]).aggregate(Sum(lambda x: x[1])).materialize()
    table.add_all([(0, Decimal("1E+30")), (0, 1), (1, Decimal("0.1")), (1, 10**30)])
    assert dict(view) == {0: Decimal(10**30 + 1), 1: Decimal(f"1{'0' * 30}.1")}
    view.verify()
    table.remove((0, Decimal("1E+30")))
    assert view[0] == 1
