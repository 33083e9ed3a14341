"""Running sums equal the exact sum of the remaining values to the bit, in each of their forms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import (
    Context,
    Decimal,
    DecimalException,
    Inexact,
    InvalidOperation,
    Rounded,
    localcontext,
)
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Avg, Count, Database, Sum
from reactive.engine.collections.exact import (
    DecimalSum,
    ExactSum,
    add_sums,
    add_value,
    copy_sum,
    scale_sum,
    scale_value,
    state_bytes,
    sum_result,
)
from reactive.engine.reference.groups import add_up_values
from tests.thresholds import WAYS, thresholds


class Measure(float):
    """A float subclass, as the floats of numpy are."""


EDGES: list[Any] = [
    *(
        0.0,
        -0.0,
        0.1,
        -0.1,
        12.34,
        2.0**-100,
        2.0**-101,
        1e-14,
        2.0**123,
        5e-324,
        1e-300,
        2.0**53,
        1e16,
    ),
    *(2.0**124, 1e290, 1e300, 1.7e308, -1.7e308, 2.0**963, math.inf, -math.inf, math.nan),
    *(0, 1, -3, 2**70, -(2**70), 10**400, True, Measure(0.3)),
]
DECIMALS = [
    *(Decimal("0.1"), Decimal("1e30"), Decimal("-0"), Decimal("0.00"), Decimal("-12.340")),
    *(Decimal("1E+1900"), Decimal("1E-1900"), Decimal("9" * 60), Decimal("0E+7")),
]
SPECIAL = [Decimal("NaN"), Decimal("Infinity"), Decimal("-Infinity")]
FRACTIONS = [Fraction(1, 3), Fraction(1, 2)]
SOME_DECIMALS = st.decimals(
    allow_nan=False, allow_infinity=False, min_value=-(10**60), max_value=10**60
) | st.sampled_from([*DECIMALS, 1, -3, 2**70, True])
NUMBERS = st.sampled_from(EDGES) | st.floats() | st.integers(-(2**70), 2**70)
KINDS = [NUMBERS, NUMBERS | st.sampled_from(FRACTIONS), SOME_DECIMALS]
KINDS += [SOME_DECIMALS | st.sampled_from(SPECIAL)]
VALUES = st.sampled_from(KINDS).flatmap(lambda kind: st.lists(kind, max_size=12))


def exact(values: list[Any]) -> ExactSum:
    found = ExactSum()
    for value in values:
        found.add(value, 1)
    return found


def running(values: list[Any], weight: int = 1, start: Any = 0) -> Any:
    for value in values:
        start = add_value(copy_sum(start), value, weight)
    return start


def text(value: Any) -> str:
    """The value to the bit, except that decimals may have zeros at the end."""
    is_decimal = isinstance(value, Decimal) and value.is_finite()
    return repr((type(value), Fraction(value) if is_decimal else value))


def expected(values: list[Any]) -> str:
    return text(add_up_values([(value, 1) for value in values]))


@given(kept=VALUES, order=st.randoms(use_true_random=False))
def test_it_shows_what_the_exact_sum_shows(kept: list[Any], order: Any) -> None:
    found = text(sum_result(running(kept)))
    assert found == expected(kept)
    assert found == text(sum_result(exact(kept)))
    order.shuffle(kept)
    assert text(sum_result(running(kept))) == found


@given(kept=VALUES, gone=st.lists(NUMBERS, max_size=12), order=st.randoms(use_true_random=False))
def test_what_came_and_went_leaves_no_trace(kept: list[Any], gone: list[Any], order: Any) -> None:
    state = running([*gone, *kept])
    order.shuffle(gone)
    state = running(gone, -1, state)
    assert text(sum_result(state)) == expected(kept)
    order.shuffle(kept)
    assert text(sum_result(running(kept, -1, state))) == text(0)
    assert not running(kept, -1, state)


def exponent(value: Any) -> str:
    """The value to the bit, zeros at its end among it."""
    return repr((type(value), value))


@given(
    kept=st.lists(SOME_DECIMALS, max_size=12),
    gone=st.lists(SOME_DECIMALS | st.sampled_from(SPECIAL), max_size=6),
    weight=st.integers(1, 50),
)
def test_decimals_show_the_digits_that_the_exact_sum_shows(
    kept: list[Any], gone: list[Any], weight: int
) -> None:
    state, wanted = running([*gone, *kept]), exact([*gone, *kept])
    assert exponent(sum_result(state)) == exponent(sum_result(wanted))
    for value in gone:
        state = add_value(copy_sum(state), value, -1)
        wanted.add(value, -1)
    assert exponent(sum_result(state)) == exponent(sum_result(wanted))
    for value in kept:
        state = add_value(copy_sum(state), value, weight)
        wanted.add(value, weight)
    assert exponent(sum_result(state)) == exponent(sum_result(wanted))
    assert type(copy_sum(state)) in {int, DecimalSum}


@given(
    first=st.lists(SOME_DECIMALS, max_size=8),
    other=st.lists(SOME_DECIMALS, max_size=8),
    odd=st.lists(NUMBERS | st.sampled_from(SPECIAL), max_size=1),
)
def test_sums_of_decimals_in_parts_make_the_sum_of_all(
    first: list[Any], other: list[Any], odd: list[Any]
) -> None:
    one, two = running(first), running(other)
    both = add_sums(copy_sum(one), two)
    assert text(sum_result(both)) == expected(first + other)
    assert text(sum_result(one)) == expected(first)
    assert text(sum_result(add_sums(copy_sum(both), two, -1))) == expected(first)
    assert text(sum_result(scale_sum(two, 3))) == expected(other * 3)
    assert not add_sums(copy_sum(both), scale_sum(both, -1))
    beside = add_sums(copy_sum(both), running(odd))
    assert text(sum_result(copy_sum(add_sums(beside, running(odd), -1)))) == expected(first + other)


@pytest.mark.parametrize("odd", [0.5, 1e-300, math.inf, Fraction(1, 3)])
def test_decimals_and_other_fractions_have_no_sum_until_one_kind_has_gone(odd: Any) -> None:
    state = add_value(running([Decimal("1.50"), 2]), odd, 1)
    with pytest.raises(TypeError):
        sum_result(state)
    assert exponent(sum_result(copy_sum(add_value(state, odd, -1)))) == exponent(Decimal("3.50"))
    state = add_value(running([odd, 2]), Decimal("1.50"), 1)
    with pytest.raises(TypeError):
        sum_result(state)
    assert sum_result(copy_sum(add_value(state, Decimal("1.50"), -1))) == 2 + odd


def test_the_context_of_the_caller_plays_no_part_in_a_sum_of_decimals() -> None:
    values = [Decimal("1e30"), Decimal("0.1"), 7, 10**30, Decimal("-0.25"), Decimal("9e90")]
    narrow = Context(prec=2, Emax=9, Emin=-9, traps=[Inexact, Rounded, InvalidOperation])
    wanted = sum_result(running(values))
    with localcontext(narrow) as context:
        state = running(values)
        assert exponent(sum_result(state)) == exponent(wanted)
        assert exponent(sum_result(add_sums(running(values[:3]), running(values[3:])))) == exponent(
            wanted
        )
        assert running(values, -1, state) == 0
        assert not any(context.flags.values())


def test_a_sum_of_decimals_is_exact_however_far_apart_they_are() -> None:
    state = running([Decimal(1), 3])
    for value in (Decimal("1E+999999"), Decimal("1E-999999"), Decimal("9E+999999")):
        state = add_value(state, value, 2)
        assert exponent(sum_result(add_value(0, value, 2))) == exponent(
            sum_result(exact([value, value]))
        )
    for value in (Decimal("1E+999999"), Decimal("1E-999999"), Decimal("9E+999999")):
        state = add_value(state, value, -2)
    assert sum_result(state) == 4


def test_a_decimal_beyond_all_sums_is_refused_by_itself_and_changes_nothing() -> None:
    state = running([Decimal(1), 3])
    for value in (Decimal("1E+10000000"), Decimal("1E-10000000")):
        with pytest.raises(DecimalException):
            add_value(0, value, 1)
        with pytest.raises(DecimalException):
            add_value(state, value, 1)
    assert exponent(sum_result(state)) == exponent(Decimal(4))


def test_finite_decimals_need_no_exact_sum() -> None:
    values = [*DECIMALS, 5, True, 2**70]
    state = running(values)
    before = exponent(sum_result(state))
    assert type(state) is DecimalSum
    assert running(values, -1, state) == 0
    assert exponent(sum_result(state)) == before
    assert type(add_value(0, Decimal("NaN"), 1)) is ExactSum
    assert state_bytes(state) > 1500 > state_bytes(running([Decimal(1)])) > 100


def test_debts_of_decimals_are_paid() -> None:
    state = add_value(add_value(0, Decimal("2.0"), 1), Decimal("0.5"), -1)
    assert sum_result(state) == Decimal("1.5")
    assert add_value(add_value(state, Decimal("0.5"), 1), Decimal("2.0"), -1) == 0


def test_an_infinity_that_goes_last_leaves_integers() -> None:
    state = running([0.0, 1, math.inf])
    assert text(sum_result(running([0.0, 1, math.inf], -1, state))) == text(0)


@given(first=st.lists(NUMBERS, max_size=8), other=st.lists(NUMBERS, max_size=8))
def test_sums_of_parts_make_the_sum_of_all(first: list[Any], other: list[Any]) -> None:
    one, two = running(first), running(other)
    both = add_sums(copy_sum(one), two)
    assert text(sum_result(both)) == expected(first + other)
    assert text(sum_result(add_sums(copy_sum(both), two, -1))) == expected(first)
    assert text(sum_result(scale_sum(two, 3))) == expected(other * 3)
    assert not add_sums(copy_sum(both), scale_sum(both, -1))


@given(value=NUMBERS, weight=st.integers(1, 1000))
def test_a_weight_counts_as_so_many_copies(value: Any, weight: int) -> None:
    wanted = text(add_up_values([(value, weight)]))
    assert text(sum_result(scale_value(value, weight))) == wanted
    assert text(sum_result(add_value(0, value, weight))) == wanted


def test_floats_of_usual_size_need_no_exact_sum() -> None:
    values = [0.01, 999.99, -3.5, 1e15, 0.0, 5, True, Measure(0.25), 1e16, 1e37, 1e-14]
    assert type(running(values)) is tuple
    assert running(values, -1, running(values)) == 0
    assert type(add_value(0, 1e38, 1)) is type(add_value(0, 1e-15, 1)) is ExactSum


def test_it_is_simple_again_once_what_was_odd_has_gone() -> None:
    for odd in (math.inf, math.nan, 1e-300, Decimal(1), Fraction(1, 3)):
        state = add_value(running([1.5, 2]), odd, 1)
        assert type(state) is ExactSum
        assert type(copy_sum(add_value(state, odd, -1))) in {tuple, ExactSum}
        assert sum_result(copy_sum(state)) == 3.5
    assert type(copy_sum(running([math.inf, 1.5, math.nan]))) is ExactSum
    state = running([math.inf, math.nan], -1, running([math.inf, 1.5, math.nan]))
    assert copy_sum(state) == running([1.5])


def test_debts_of_floats_are_paid() -> None:
    state = add_value(add_value(0, 2.0, 1), 0.5, -1)
    assert sum_result(state) == 1.5
    assert add_value(add_value(state, 0.5, 1), 2.0, -1) == 0


@pytest.mark.parametrize("value", ["a", None, [1], {1}, b"x", (1, 2)])
@pytest.mark.parametrize("before", [[], [1], [1.5], [1e-300], [Decimal("1.5"), 2]])
def test_what_has_no_difference_has_no_sum(before: list[Any], value: Any) -> None:
    state = running(before)
    with pytest.raises(TypeError):
        add_value(state, value, 1)
    assert text(sum_result(state)) == expected(before)


@dataclass(frozen=True, slots=True)
class Sale:
    id: int
    key: int
    value: Any


@dataclass(frozen=True, slots=True)
class Group:
    key: int
    region: int


def queries(sales: Any, groups: Any) -> list[Any]:
    """Sums in every way that they are kept: in loops, of one row, by key below a join."""
    all_of: Any = (Sum(lambda s: s.value), Avg(lambda s: s.value), Count())
    pairs = sales.join(groups, on=lambda s, g: s.key == g.key)
    return [
        sales.group_by(lambda s: s.key).aggregate(*all_of),
        sales.aggregate(*all_of),
        sales.where(lambda s: s.id % 3 > 0)
        .select(lambda s: (s.key, s.value))
        .group_by(lambda a: a[0])
        .aggregate(Sum(lambda a: a[1])),
        pairs.group_by(lambda s, g: g.region).aggregate(
            Sum(lambda s, g: s.value), Avg(lambda s, g: s.value), Count()
        ),
        pairs.aggregate(Sum(lambda s, g: s.value)),
        sales.aggregate(Sum(lambda s: s.value, skip_none=True), Avg("value", skip_none=True)),
    ]


POOLS = {
    "hundredths": [round(number * 7.13 - 50, 2) for number in range(40)],
    "edges": [value for value in EDGES if value != 10**400],  # which has no mean
    "fractions": [*FRACTIONS, 0.25, 1e-300, 3],  # no two equal: rows of them would be one
    "decimals": [*(Decimal(number * 37 - 90).scaleb(-2) for number in range(30)), 1, -3, 2**70],
    "special": [*DECIMALS[:3], *SPECIAL, Decimal("-7.5"), 12],
}


@pytest.mark.long
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_views_show_it_after_every_commit(pool: str, optimize: bool, way: str) -> None:
    with thresholds(WAYS[way]), Database(optimize=optimize) as db:
        random = Random(f"{pool} {way}")
        sales, groups = db.table(Sale, name="sales"), db.table(Group, name="groups")
        views = [query.materialize() for query in queries(sales, groups)]
        groups.add_all(Group(key, key % 2) for key in range(5))
        held: list[Sale] = []
        for number in range(30):
            fresh = [
                Sale(number * 10 + n, random.randrange(6), random.choice(POOLS[pool]))
                for n in range(random.choice([1, 1, 8]))
            ]
            sales.add_all(fresh)
            held += fresh
            for _ in range(min(len(held), random.choice([0, 1, 4, 12]))):
                sales.remove(held.pop(random.randrange(len(held))))
            if number % 7 == 3:
                group = Group(number % 5, number % 2)
                (groups.remove if group in groups else groups.add)(group)
            for view in views:
                view.verify()
        sales.remove_all(held)
        assert views[1].value == (0, None, 0)
        assert not len(views[0])


def test_nulls_are_left_out_of_sums_of_floats() -> None:
    table = Database().table(tuple)
    groups = table.group_by(lambda r: r[0]).aggregate(
        Sum(lambda r: r[1], skip_none=True), Avg(lambda r: r[1], skip_none=True)
    )
    view = groups.materialize()
    for row in [(0, None), (0, 0.1), (0, None), (0, 0.2)]:
        table.add(row)
        view.verify()
    assert dict(view) == {0: (math.fsum([0.1, 0.2]), math.fsum([0.1, 0.2]) / 2)}
    table.remove_all([(0, 0.1), (0, 0.2)])
    assert dict(view) == {0: (0, None)}
