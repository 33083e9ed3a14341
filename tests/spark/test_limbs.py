"""Sums as limbs: whatever is added and taken away, the total is that of `ExactSum`."""

from __future__ import annotations

import math
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive.engine.collections.exact import ExactSum
from spark_backend.codec.limbs import (
    NOTHING,
    Amount,
    add_amounts,
    amount,
    amount_total,
    from_columns,
    subtract_amounts,
    to_columns,
)

Weighted = list[tuple[Any, int]]
EDGES = [
    *(0.0, -0.0, 0.1, 1e-13, -(2.0**-43), 2.0**-44, 2.0**-96, 2.0**-97, 5e-324, 2.0**-1022),
    *(1.7976931348623157e308, 2.0**63, -(2.0**63), 2.0**62, math.nextafter(2.0**63, 0), 1e16),
    *(math.nan, math.inf, -math.inf),
]
LARGE = [2**63, 2**63 - 1, -(2**63), -(2**63) - 1, 2**64, 2**53 + 1, 10**40, 0, True, False]
integers = st.integers() | st.sampled_from(LARGE) | st.integers(-(2**66), 2**66)
floats = st.floats() | st.sampled_from(EDGES) | st.floats(-1e6, 1e6)
decimals = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**25), max_value=10**25)
cents = st.integers(-(10**9), 10**9).map(lambda n: Decimal(n).scaleb(-2))
weights = st.integers(-3, 3) | st.sampled_from([2**31, -(2**40), 10**30])


def together(values: Weighted) -> tuple[Amount, Weighted]:
    """Return the sum of the columns of values, and the values that do not fit."""
    found, odd = [0] * len(to_columns(NOTHING)), []
    for value, weight in values:
        fitting = amount(value, weight)
        if fitting is None:
            odd.append((value, weight))
            continue
        parts = to_columns(fitting)
        least = min(found[-1], parts[-1])
        found = [a + b for a, b in zip(found, parts, strict=True)]
        found[-1] = least
    return from_columns(found), odd


def exact(values: Weighted) -> Any:
    found = ExactSum()
    for value, weight in values:
        found.add(value, weight)
    return found.value()


def same(left: Any, right: Any) -> bool:
    """Equal, of one type, and to the last bit."""
    if left != left and right != right:
        return type(left) is type(right)
    return type(left) is type(right) and bool(left == right)


def one_float(values: Weighted) -> Weighted:
    """Return zeros that leave a count of one float, so that a sum with them is a float."""
    return [(0.0, 1 - sum(weight for value, weight in values if type(value) is float))]


def is_short(value: Decimal) -> bool:
    """Return True if a value has at most 12 digits behind the point, and no positive exponent."""
    places = value.as_tuple().exponent
    return isinstance(places, int) and -12 <= places <= 0


def check(values: Weighted) -> None:
    assert same(amount_total(*together(values)), exact(values)), values


@pytest.mark.quick
@given(st.lists(st.tuples(integers | floats, weights)))
def test_numbers_of_any_size_add_up_to_what_exact_sum_says(values: Weighted) -> None:
    check([*values, *one_float(values)])


@given(st.lists(st.tuples(integers, weights)))
def test_integers_add_up_to_an_integer(values: Weighted) -> None:
    check(values)


@given(st.lists(st.tuples(floats, st.integers(1, 3)), min_size=1))
def test_floats_that_are_there_add_up_like_fsum(values: Weighted) -> None:
    plain = [value for value, weight in values for _ in range(weight)]
    check(values)
    if (
        all(map(math.isfinite, plain))
        and abs(sum(map(Fraction, plain), Fraction(0))) < Fraction(10) ** 308
    ):
        assert amount_total(*together(values)) == math.fsum(plain)


@given(st.lists(st.tuples(decimals | cents | integers, st.integers(1, 3)), min_size=1))
def test_decimals_add_up_exactly_and_keep_their_places(values: Weighted) -> None:
    check(values)
    if all(type(value) is Decimal and is_short(value) for value, _ in values):
        assert str(amount_total(*together(values))) == str(exact(values))


@given(st.lists(st.tuples(floats | integers, weights)), st.data())
def test_what_is_taken_away_leaves_nothing_behind(values: Weighted, data: st.DataObject) -> None:
    taken = data.draw(st.permutations([(value, -weight) for value, weight in values]))
    found, odd = together([*values, *taken, (0.25, 1)])
    assert found == amount(0.25)
    assert same(amount_total(found, odd), 0.25)


@given(st.lists(st.tuples(floats | integers | cents, st.integers(-3, 3))))
def test_what_was_before_is_what_is_now_less_the_change(values: Weighted) -> None:
    before, _ = together(values[::2])
    change, _ = together(values[1::2])
    now = add_amounts(before, change)
    assert subtract_amounts(now, change)[:-1] == before[:-1]
    assert now[-1] == min(before[-1], change[-1])


@pytest.mark.parametrize(
    "values",
    [
        [Fraction(1, 3), 0.5, 2],
        [timedelta(days=1), timedelta(microseconds=-1)],
        [Decimal("NaN"), Decimal(1)],
        [Decimal("Infinity"), Decimal("1E+1000")],
        [Decimal("1E-1000"), Decimal(1), 3],
        [Decimal("1e5"), Decimal("0.10")],
        [2**63, -(2**63) - 1, 10**40],
    ],
)
def test_values_that_fit_no_column_are_added_as_they_are(values: list[Any]) -> None:
    check([(value, 2) for value in values])


def test_equal_odd_values_that_are_written_differently_come_to_nothing() -> None:
    odd = [(Decimal("10E-21"), -1), (Decimal("1E-20"), 1)]
    assert all(amount(value) is None for value, _ in odd)
    assert amount_total((0, 0, *amount_of("0.30")[2:]), odd) == Decimal("0.3")


def amount_of(text: str) -> Amount:
    found = amount(Decimal(text))
    assert found is not None
    return found


def test_numbers_beyond_64_bits_do_not_fit() -> None:
    beyond = [2**63, -(2**63) - 1, 2.0**63, 2.0**-97, Decimal(10) ** 17, Decimal("1E-13")]
    assert [amount(value) for value in beyond] == [None] * len(beyond)


def test_decimals_and_floats_have_no_sum_here_either() -> None:
    found, odd = together([(Decimal(0), 1), (0.0, 1)])
    with pytest.raises(TypeError):
        amount_total(found, odd)


def test_ordinary_numbers_fit_columns() -> None:
    ordinary = [0, 1, -7, 10**18, 0.1, 1e-12, -1e15, 1 / 3, True, Decimal("19.99"), Decimal(10**12)]
    assert all(amount(value, 1000) is not None for value in ordinary)
