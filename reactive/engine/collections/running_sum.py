"""Running sums as groups hold them: the cheapest form in which the numbers so far add up exactly.

    an integer                  nothing but integers so far
    (number, floats)            number / 2**100, with `floats` floats among what was added
    `DecimalSum`                finite decimals, and any integers
    `ExactSum`                  anything else: fractions, infinities, floats as small as 1e-300

Times 2**100 a float is an integer if its last bit is worth 2**-100 or more: that of every one
above 2**-47, some 7e-15, and of smaller ones that are short. Those above 2**124 are left to
`ExactSum`, so that sums of the rest are far from the largest float. A pair and a `DecimalSum` are
values: the one of before stays as it was. An `ExactSum` is changed in place, and given back.

The sum of integers and floats is a float, that of integers and decimals a decimal. Once no float
and no decimal is left, it is an integer again.

State:  an integer, a pair of some 130 bytes, or a `DecimalSum` of some 250.
Cost:   O(1) per value; half of what an `ExactSum` takes.
"""

from __future__ import annotations

import sys
from decimal import Decimal
from fractions import Fraction
from typing import Any

from reactive.engine.collections.decimal_sum import DecimalSum, of_decimal
from reactive.engine.collections.exact import BITS, ExactSum, rounded
from reactive.engine.collections.zset import canonical

RunningSum = Any
"""An integer, a pair, a `DecimalSum`, or an `ExactSum`."""
_SCALED: frozenset[Any] = frozenset([int, tuple])
_WITH_DECIMALS: frozenset[Any] = frozenset([int, DecimalSum])
NUMBERS: frozenset[Any] = frozenset([int, float, bool, Decimal, Fraction])
UP = 2.0**899
"""What is above 2**124 becomes infinity, which is no integer."""
DOWN = 2.0**BITS / UP
UNIT = 2.0**-BITS
FRACTION = (1 << BITS) - 1


def plus_value(total: RunningSum, value: Any, weight: int) -> RunningSum:
    """A sum and `weight` times a value; raises, changing nothing, for a value that has no sum.

    >>> plus_value(1, 0.5, 1), plus_value(plus_value(1, 0.5, 1), 0.5, -1)
    ((1901475900342344102245054808064, 1), 1)
    """
    kind = value.__class__
    if kind is int or kind is bool:
        if total.__class__ is int:
            return total + value * weight
        if total.__class__ is tuple:
            number, floats = total
            return (number + (value * weight << BITS), floats)
        if total.__class__ is DecimalSum:
            return total.plus_integers(value * weight)
    elif kind is Decimal:
        if total.__class__ in _WITH_DECIMALS and value.is_finite():
            is_first = total.__class__ is int
            return of_decimal(value, weight, total) if is_first else total.plus(value, weight)
    elif isinstance(value, float):
        scaled = (value if kind is float else float(value)) * UP * DOWN
        if scaled.is_integer() and total.__class__ in _SCALED:
            number, floats = total if total.__class__ is tuple else (total << BITS, 0)
            return scaled_sum(number + int(scaled) * weight, floats + weight)
    exact = _exact(total)
    exact.add(value, weight)
    return exact


def plus(total: RunningSum, more: RunningSum, times: int = 1) -> RunningSum:
    """A sum and `times` times another one."""
    if total.__class__ is int and more.__class__ is int:
        return total + more * times
    if total.__class__ is DecimalSum and more.__class__ in _WITH_DECIMALS:
        return total.plus_sum(more, times)
    if more.__class__ is DecimalSum and total.__class__ is int:
        return more.times(times, total)
    if total.__class__ not in _SCALED or more.__class__ not in _SCALED:
        exact = _exact(total)
        exact.merge(_exact(more), times)
        return exact
    number, floats = total if total.__class__ is tuple else (total << BITS, 0)
    more_number, more_floats = more if more.__class__ is tuple else (more << BITS, 0)
    return scaled_sum(number + more_number * times, floats + more_floats * times)


def scaled_sum(number: int, floats: int) -> RunningSum:
    """The sum `number / 2**100`, of some floats and any integers.

    Where weights are negative there may be no floats in all, and yet a fraction of one.
    """
    return (number, floats) if floats or number & FRACTION else number >> BITS


def summable(value: Any) -> None:
    """Raise for a value that has no sum, not even alone.

    >>> summable(1.5), summable(Fraction(1, 3))
    (None, None)
    """
    if value.__class__ not in NUMBERS:
        plus_value(0, value, 1)


def summable_or_none(value: Any) -> None:
    """The same where None is left out."""
    if value is not None:
        summable(value)


def times_value(value: Any, weight: int) -> RunningSum:
    """A value `weight` times."""
    return value * weight if value.__class__ is int else plus_value(0, value, weight)


def times(total: RunningSum, weight: int) -> RunningSum:
    """A sum `weight` times."""
    return plus(0, total, weight)


def copied(total: RunningSum) -> RunningSum:
    """A sum that may be changed: in a simple form again, if what asked for another has gone."""
    if total.__class__ is not ExactSum:
        return total
    simple = total.scaled()
    if simple is not None:
        return scaled_sum(*simple)
    return total.with_decimals() or total.copy()


def shown(total: RunningSum) -> Any:
    """The sum in the type that Python's `sum` would give, rounded once.

    >>> shown((3 << 99, 1)), shown(2)
    (1.5, 2)
    """
    if total.__class__ is int:
        return total
    if total.__class__ is DecimalSum:
        return total.shown()
    if total.__class__ is ExactSum:
        return canonical(total.value())
    try:
        return total[0] * UNIT  # the integer is rounded as a float; the product is exact
    except OverflowError:
        return rounded(Fraction(total[0], 1 << BITS))


def bytes_of(state: Any) -> int:
    """The bytes of a sum, or of another state of a group; those of a pair with its parts."""
    parts = sum(map(bytes_of, state)) if state.__class__ is tuple else 0
    return sys.getsizeof(state) + parts


def _exact(total: RunningSum) -> ExactSum:
    """The same sum in the form that takes anything; itself if it has that form."""
    if total.__class__ is ExactSum:
        return total
    if total.__class__ is DecimalSum:
        return ExactSum.of_decimals(total)
    return ExactSum.of(total) if total.__class__ is int else ExactSum.of_scaled(*total)
