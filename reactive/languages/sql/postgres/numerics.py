"""Numerics of Postgres: decimals with the scale that Postgres gives a result (`to_numeric.c`).

    numeric_quotient(1, 3)      0.33333333333333333333, at least 16 significant digits

A text shows the scale, so that it counts as the value does.

Sums, means and variances of Postgres, by the type of their argument.

    sum(smallint | integer)     bigint         avg, stddev, variance of these     numeric
    sum(bigint)                 numeric        of numerics                        numeric
    sum(numeric)                numeric        of floats                          double

A sum of Python's own `int` has no bounds, and stays one.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal, DivisionByZero
from fractions import Fraction
from typing import Any

from optimizer.expressions.knowledge import numeric
from reactive.languages.sql.postgres import numbers
from reactive.languages.sql.terms.types import DECIMAL, SqlType

EXACT = Context(
    prec=200_000, rounding=ROUND_HALF_UP, Emax=999_999, Emin=-999_999, traps=[DivisionByZero]
)
"""For sums and products, which have as many digits as they need."""
DIGITS, WORD, MOST = 16, 4, 1000
"""Digits that a quotient has at least; digits of a word of a numeric; the greatest scale."""


def to_numeric(value: Any) -> Decimal:
    """Return a number as a numeric; a float by its first 15 digits."""
    if not isinstance(value, float):
        return Decimal(value)
    if not math.isfinite(value):
        return Decimal(str(value))
    return _plain_zero(_positional(Decimal(f"{value:.15g}")))


def scale_of(value: Decimal) -> int:
    """Count the digits behind the point that a numeric shows."""
    exponent = value.as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def round_to_scale(value: Decimal, scale: int) -> Decimal:
    """Round to a scale, halves away from zero; NaN and infinities stay."""
    if not value.is_finite():
        return value
    made = value.quantize(Decimal(1).scaleb(-scale), context=EXACT)
    return made if made else made.copy_abs()


def _positional(value: Decimal) -> Decimal:
    """Return the value without a positive exponent."""
    is_large = value.is_finite() and value.as_tuple().exponent > 0  # type: ignore[operator]
    return round_to_scale(value, 0) if is_large else value


@numeric(1, 1)
def numeric_sum(a: Any, b: Any) -> Decimal:
    """Add exactly."""
    return EXACT.add(Decimal(a), Decimal(b))


@numeric(1, -1)
def numeric_difference(a: Any, b: Any) -> Decimal:
    """Subtract exactly."""
    return EXACT.subtract(Decimal(a), Decimal(b))


def numeric_product(a: Any, b: Any) -> Decimal:
    """Multiply exactly."""
    a, b = Decimal(a), Decimal(b)
    return _plain_zero(round_to_scale(EXACT.multiply(a, b), scale_of(a) + scale_of(b)))


def numeric_quotient(a: Any, b: Any) -> Decimal:
    """Divide, with the scale that Postgres chooses; a zero divisor raises.

    >>> numeric_quotient(1, 3), numeric_quotient(Decimal("10.00"), 4)
    (Decimal('0.33333333333333333333'), Decimal('2.5000000000000000'))
    """
    a, b = Decimal(a), Decimal(b)
    if a.is_nan() or b.is_nan():
        return Decimal("NaN")
    if not b:
        raise ZeroDivisionError("division by zero")
    if not a.is_finite() or not b.is_finite():
        return EXACT.divide(a, b) if b.is_finite() else Decimal("NaN" if a.is_infinite() else 0)
    return _divide_to_scale(a, b, _scale_of_quotient(a, b))


def _divide_to_scale(a: Decimal, b: Decimal, scale: int) -> Decimal:
    digits = max(0, a.adjusted() - b.adjusted()) + scale + 8
    rough = Context(prec=digits + 20, Emax=999_999, Emin=-999_999).divide(a, b)
    return _plain_zero(round_to_scale(rough, scale))


def _leading_word(value: Decimal) -> tuple[int, int]:
    """Return the weight of the first word of four digits that is not zero, and that word."""
    if not value:
        return 0, 0
    weight = value.adjusted() // WORD
    first = int(abs(value).scaleb(-weight * WORD, context=EXACT))
    return weight, first


def _scale_of_quotient(a: Decimal, b: Decimal) -> int:
    """Return the digits behind the point that Postgres gives a quotient."""
    (weight, first), (weight_of_b, first_of_b) = _leading_word(a), _leading_word(b)
    weight -= weight_of_b + (first <= first_of_b)
    scale = max(DIGITS - weight * WORD, scale_of(a), scale_of(b), 0)
    return min(scale, MOST)


def numeric_remainder(a: Any, b: Any) -> Decimal:
    """Return the rest of a division, with the sign of the dividend; a zero divisor raises."""
    a, b = Decimal(a), Decimal(b)
    if a.is_nan() or b.is_nan():
        return Decimal("NaN")
    if not b:
        raise ZeroDivisionError("division by zero")
    if a.is_infinite():
        return Decimal("NaN")
    if b.is_infinite():
        return a  # type: ignore[no-any-return]
    scale = max(scale_of(a), scale_of(b))
    one, other = (int(round_to_scale(x, scale).scaleb(scale, context=EXACT)) for x in (a, b))
    return Decimal(numbers.whole_remainder(one, other)).scaleb(-scale, context=EXACT)


def numeric_floor_quotient(a: Any, b: Any) -> Decimal:
    """Divide numerics, without the fraction of the quotient (DIV); a zero divisor raises."""
    a, b = Decimal(a), Decimal(b)
    if a.is_nan() or b.is_nan():
        return Decimal("NaN")
    if not b:
        raise ZeroDivisionError("division by zero")
    if not a.is_finite() or not b.is_finite():
        return EXACT.divide(a, b) if b.is_finite() else Decimal("NaN" if a.is_infinite() else 0)
    scale = max(scale_of(a), scale_of(b))
    one, other = (int(round_to_scale(x, scale).scaleb(scale, context=EXACT)) for x in (a, b))
    return Decimal(numbers.whole_quotient(one, other))


def numeric_rounded(value: Any, places: int = 0) -> Decimal:
    """Round a numeric (ROUND), halves away from zero; places before the point leave the scale 0."""
    value = Decimal(value)
    if not value.is_finite():
        return value  # type: ignore[no-any-return]
    places = max(-MOST * 2, min(places, MOST * 2))
    made = value.quantize(Decimal(1).scaleb(-places), context=EXACT)
    return _plain_zero(_positional(made) if places < 0 else made)


def numeric_cut(value: Any, places: int = 0) -> Decimal:
    """Cut off a numeric after `places` (TRUNC); NaN and infinities stay."""
    value = Decimal(value)
    if not value.is_finite():
        return value  # type: ignore[no-any-return]
    places = max(-MOST * 2, min(places, MOST * 2))
    unit = Decimal(1).scaleb(-places)
    made = value.quantize(unit, rounding="ROUND_DOWN", context=EXACT)
    return _plain_zero(_positional(made) if places < 0 else made)


def _plain_zero(value: Decimal) -> Decimal:
    """Return a decimal, without the sign of a zero."""
    return value if value else value.copy_abs()


def numeric_ceiling(value: Decimal) -> Decimal:
    """Round up to a whole number; NaN and infinities stay."""
    if not value.is_finite():
        return value
    return _plain_zero(value.quantize(Decimal(1), rounding="ROUND_CEILING", context=EXACT))


def numeric_floor(value: Decimal) -> Decimal:
    """Round down to a whole number; NaN and infinities stay."""
    if not value.is_finite():
        return value
    return _plain_zero(value.quantize(Decimal(1), rounding="ROUND_FLOOR", context=EXACT))


def numeric_negative(value: Decimal) -> Decimal:
    """Negate; a zero has no sign."""
    return value.copy_negate() if value else value.copy_abs()


def numeric_absolute(value: Decimal) -> Decimal:
    """Return the value without its sign."""
    return value.copy_abs()


def numeric_sign(value: Decimal) -> Decimal:
    """Return the sign of a numeric: -1, 0 or 1."""
    return value if value.is_nan() else Decimal((value > 0) - (value < 0))


def minimal_scale(value: Decimal) -> int | None:
    """Return the digits needed behind the point (MIN_SCALE); None of infinity and NaN."""
    return scale_of(value.normalize(EXACT)) if value.is_finite() else None


def scale_or_none(value: Decimal) -> int | None:
    """Return the number of digits behind the point (SCALE); None of infinity and NaN."""
    return scale_of(value) if value.is_finite() else None


def trimmed_scale(value: Decimal) -> Decimal:
    """Return the value without zeros at the end (TRIM_SCALE)."""
    return round_to_scale(value, scale_of(value.normalize(EXACT))) if value.is_finite() else value


def _limit_scale(scale: int, *least: int) -> int:
    """Return a scale that is at least `least` and 0, and at most `MOST`."""
    return min(max(scale, 0, *least), MOST)


def numeric_root(value: Any) -> Decimal:
    """Return the square root of a numeric (SQRT); raise for a negative one."""
    value = Decimal(value)
    if value.is_nan() or value == Decimal("Infinity"):
        return value  # type: ignore[no-any-return]
    if value < 0:
        raise ValueError("cannot take square root of a negative number")
    digits = (_leading_word(value)[0] + 1) * WORD // 2 - 1
    scale = _limit_scale(DIGITS - digits, scale_of(value))
    return root_of_scale(value, scale)


def root_of_scale(value: Decimal, scale: int) -> Decimal:
    """Return the square root with digits behind the point."""
    return round_to_scale(_context(value, scale).sqrt(value), scale)


def _context(value: Decimal, scale: int) -> Context:
    return Context(prec=max(0, value.adjusted()) + scale + 30, Emax=999_999, Emin=-999_999)


def numeric_exp(value: Any) -> Decimal:
    """Return a power of e (EXP of a numeric); raise if it overflows."""
    value = Decimal(value)
    if not value.is_finite():
        return Decimal(0) if value == Decimal("-Infinity") else value
    size = max(-2000.0, min(float(value) * 0.434294481903252, 200_000.0))
    if size > 131_072:
        raise numbers.OutOfRangeError("value overflows numeric format")
    scale = _limit_scale(DIGITS - int(size), scale_of(value))
    made = Context(prec=max(1, int(size)) + scale + 20, Emax=999_999, Emin=-999_999).exp(value)
    return round_to_scale(made, scale)


def numeric_logarithm(value: Any) -> Decimal:
    """Return the natural logarithm of a numeric (LN); raise for zero and negative ones."""
    value = _positive(Decimal(value))
    if not value.is_finite():
        return value  # type: ignore[no-any-return]
    scale = _limit_scale(DIGITS - _weight_of_logarithm(value), scale_of(value))
    return _plain_zero(round_to_scale(Context(prec=scale + 30).ln(value), scale))


def numeric_logarithm_of(base: Any, value: Any) -> Decimal:
    """Return the logarithm of a numeric to a base (LOG).

    A base of 1 raises, as do zero and negative values and bases.
    """
    base, value = Decimal(base), Decimal(value)
    if base.is_nan() or value.is_nan():
        return Decimal("NaN")
    base, value = _positive(base), _positive(value)
    if not value.is_finite() or not base.is_finite():
        return value  # type: ignore[no-any-return]
    weight = _weight_of_logarithm(value) - _weight_of_logarithm(base)
    scale = _limit_scale(DIGITS - weight, scale_of(base), scale_of(value))
    context = Context(prec=scale + 40)
    of_base = context.ln(base)
    if not of_base:
        raise ZeroDivisionError("division by zero")
    return _plain_zero(round_to_scale(context.divide(context.ln(value), of_base), scale))


def numeric_logarithm_10(value: Any) -> Decimal:
    """Return the common logarithm of a numeric (LOG)."""
    return numeric_logarithm_of(Decimal(10), value)


def _positive(value: Decimal) -> Decimal:
    """Return a value that is above 0 or NaN; raise for others, which have no logarithm."""
    if value.is_nan() or value > 0:
        return value
    raise ValueError(f"cannot take logarithm of {'zero' if not value else 'a negative number'}")


def _weight_of_logarithm(value: Decimal) -> int:
    """Return about the decimal exponent of the natural logarithm of a value; 0 for that of 1."""
    if Decimal("0.9") <= value <= Decimal("1.1"):
        weight, first = _leading_word(value - 1)
        return weight * WORD + int(math.log10(first)) if first else 0
    found = abs(math.log(float(value)))
    return int(math.log10(found)) if found else 0


def numeric_power(base: Any, exponent: Any) -> Decimal:
    """Return a power of numerics; raise if it is undefined, complex or out of range."""
    base, exponent = Decimal(base), Decimal(exponent)
    if not base.is_finite() or not exponent.is_finite():
        return _special_power(base, exponent)
    if not base and exponent < 0:
        raise ValueError("zero raised to a negative power is undefined")
    is_whole = exponent == exponent.to_integral_value(context=EXACT)
    if base < 0 and not is_whole:
        raise ValueError("a negative number raised to a non-integer power yields a complex result")
    if not exponent or base == 1 or not base:
        return round_to_scale(
            Decimal(0 if exponent and not base else 1), _limit_scale(DIGITS, scale_of(base))
        )
    size = float(exponent) * math.log10(abs(float(base)))
    if size > 131_072:
        raise numbers.OutOfRangeError("value overflows numeric format")
    scale = _limit_scale(DIGITS, scale_of(base))
    if not is_whole:
        scale = _limit_scale(DIGITS - int(max(size, -2000)), scale_of(base), scale_of(exponent))
    context = Context(prec=max(1, int(size)) + scale + 40, Emax=999_999, Emin=-999_999)
    made = context.power(base, exponent if not is_whole else exponent.to_integral_value())
    return round_to_scale(made, scale)


def _special_power(base: Decimal, exponent: Decimal) -> Decimal:
    """Return a power with infinity or NaN; a base of 1 and an exponent of 0 give 1."""
    if base == 1 or not exponent:
        return Decimal(1)
    if base.is_nan() or exponent.is_nan():
        return Decimal("NaN")
    return Decimal(str(numbers.power(float(base), float(exponent))))


def factorial(value: int) -> Decimal:
    """Return the product of all numbers up to `value`; raise if it overflows."""
    if value > 32177:
        raise numbers.OutOfRangeError("value overflows numeric format")
    return Decimal(math.factorial(value))


def bucket(value: Any, low: Any, high: Any, count: int) -> int:
    """Return which of `count` equal parts of a range a value is in; raise for no such range."""
    if count <= 0:
        raise ValueError("count must be greater than zero")
    if value != value or low != low or high != high:
        raise ValueError("operand, lower bound, and upper bound cannot be NaN")
    if math.isinf(low) or math.isinf(high):
        raise ValueError("lower and upper bounds must be finite")
    if low == high:
        raise ValueError("lower bound cannot equal upper bound")
    up = low < high
    if (value < low) if up else (value > low):
        return 0
    if (value >= high) if up else (value <= high):
        return numbers.int4(count + 1)
    if isinstance(value, float):
        return int((value - low) / (high - low) * count) + 1
    return int(numeric_floor_quotient((Decimal(value) - low) * count, Decimal(high) - low)) + 1


EXACT_KINDS = frozenset({"int", "decimal"})
"""Kinds whose means are numerics."""


def type_of_numeric_sum(kind: SqlType) -> SqlType:
    """Return the type of a sum.

    >>> big, small = (SqlType("int", size=size) for size in (8, 2))
    >>> type_of_numeric_sum(big).kind, type_of_numeric_sum(small).size
    ('decimal', 8)
    """
    if kind.kind == "decimal" or (kind.kind == "int" and kind.size == 8):
        return DECIMAL
    return SqlType("int", size=8) if kind.kind == "int" and kind.size is not None else kind


def mean(total: Any, count: int) -> Decimal:
    """Divide a sum of integers or numerics by a count, with the scale that Postgres chooses.

    A count of zero raises.

    >>> mean(3, 2), mean(Decimal("2.50"), 1)
    (Decimal('1.5000000000000000'), Decimal('2.5000000000000000'))
    """
    return numeric_quotient(total, count)


def mean_of_different(values: Any) -> Decimal | None:
    """Return the mean of the different values; None of nothing."""
    found = set(values)
    return mean(sum(found), len(found)) if found else None


def variance(count: int, total: Any, squares: Any, less: int) -> Decimal | None:
    """Return the mean square deviation, of the sum and the sum of squares.

    >>> variance(3, 6, 14, 1), variance(2, 4, 8, 0), variance(1, 2, 4, 1)
    (Decimal('1.00000000000000000000'), Decimal('0'), None)
    """
    if count <= less:
        return None
    above = _numeric(count * squares - total * total)
    return numeric_quotient(above, count * (count - less)) if above > 0 else Decimal(0)


def deviation(count: int, total: Any, squares: Any, less: int) -> Decimal | None:
    """Return the root of the variance, with the digits of that; None if there is no variance.

    >>> deviation(3, 6, 14, 1)
    Decimal('1.00000000000000000000')
    """
    found = variance(count, total, squares, less)
    return root_of_scale(found, scale_of(found)) if found else found


def _numeric(value: Any) -> Decimal:
    """Return an integer, or a fraction that is a sum of numerics, as a numeric."""
    if not isinstance(value, Fraction):
        return Decimal(value)
    scale = 0
    while (value * 10**scale).denominator != 1:
        scale += 1
    return Decimal((value * 10**scale).numerator).scaleb(-scale)
