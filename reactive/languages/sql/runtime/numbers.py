"""Arithmetic of SQL where it is not that of Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from typing import Any

from optimizer.expressions.knowledge import pure
from optimizer.record import record

EXACT = Context(prec=80, rounding=ROUND_HALF_UP)
"""For results whose digits a type then limits."""


@pure
def quotient(a: float, b: float) -> float:
    """Divide floats, where a zero divides into an infinity or NaN.

    >>> quotient(1.0, 0.0), quotient(3, 2)
    (inf, 1.5)
    """
    a, b = float(a), float(b)
    if b:
        return a / b
    return math.nan if not a or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)


@pure
def checked_quotient(a: float, b: float) -> float:
    """Return the quotient as a float; a zero divisor raises."""
    return float(a) / float(b)


@pure
def whole_quotient(a: int, b: int) -> int:
    """Divide integers towards zero; a zero raises."""
    return a // b if (a >= 0) == (b > 0) or not a % b else a // b + 1


@pure
def decimal_quotient(a: Decimal, b: Decimal) -> Decimal:
    """Divide decimals."""
    return EXACT.divide(a, b).quantize(Decimal(1).scaleb(-20), context=EXACT).normalize()


@record
class Exact:
    """An exact sum, difference or product of decimals, checked against the digits of its type."""

    symbol: str
    precision: int
    scale: int

    def __call__(self, a: Any, b: Any) -> Decimal:
        function = {"+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply}[self.symbol]
        made = function(Decimal(a), Decimal(b))
        if made and made.adjusted() >= self.precision - self.scale:
            raise ValueError(
                f"{made} is out of the range of DECIMAL({self.precision},{self.scale})"
            )
        return made or abs(made)


@pure
def remainder(a: Any, b: Any) -> Any:
    """Return the remainder with the sign of the dividend; a zero divisor raises.

    >>> remainder(-7, 3), remainder(7, -3), remainder(-7.5, 2)
    (-1, 1, -1.5)
    """
    if isinstance(a, float) or isinstance(b, float):
        return math.fmod(a, b) if b and not math.isinf(a) else math.nan
    if isinstance(a, int) and isinstance(b, int):
        return a - b * whole_quotient(a, b)
    made = EXACT.remainder(Decimal(a), Decimal(b))
    return made or abs(made)


@pure
def rounded(value: Any, digits: int = 0) -> Any:
    """Return a number rounded to a place, halves away from zero.

    >>> rounded(2.5), rounded(Decimal("-0.125"), 2), rounded(1250, -2)
    (3.0, Decimal('-0.13'), 1300)
    """
    if isinstance(value, int):
        return value if digits >= 0 else int(rounded(Decimal(value), digits))
    if isinstance(value, float):
        if not math.isfinite(value):
            return value
        return float(_quantize(Decimal(repr(value)), digits))
    return _quantize(value, digits)


@pure
def rounded_by_power(value: float, digits: int = 0) -> float:
    """Round a float as DuckDB does: times a power of ten, rounded, and divided by it.

    >>> rounded_by_power(1.005, 2), rounded(1.005, 2)
    (1.0, 1.01)
    """
    power = 10.0 ** abs(digits)
    scaled = value * power if digits >= 0 else value / power
    if not math.isfinite(scaled):
        return value
    below = math.floor(abs(scaled))
    whole = math.copysign(below + (abs(scaled) - below >= 0.5), scaled)
    return whole / power if digits >= 0 else whole * power


def _quantize(value: Decimal, digits: int) -> Decimal:
    made = value.quantize(_unit_of_place(digits), rounding=ROUND_HALF_UP, context=EXACT)
    made = made if digits >= 0 else made.quantize(Decimal(1))
    return made or abs(made)


@lru_cache(256)
def _unit_of_place(digits: int) -> Decimal:
    return Decimal(1).scaleb(-digits)


@pure
def truncated(value: Any, digits: int = 0) -> Any:
    """Return a number cut off at a place towards zero, of its own type.

    >>> truncated(-2.77), truncated(Decimal("-2.77"), 1), truncated(277, -1)
    (-2.0, Decimal('-2.7'), 270)
    """
    if not math.isfinite(value) or (digits >= 0 and isinstance(value, int)):
        return value
    if not digits:
        made = type(value)(int(value))
        return math.copysign(made, value) if isinstance(made, float) else made
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    return type(value)(exact.quantize(Decimal(1).scaleb(-digits), ROUND_DOWN))


@pure
def truncated_by_power(value: float, digits: int) -> float:
    """Cut a float off as DuckDB does: times a power of ten, and divided by it.

    >>> truncated_by_power(1.15, 2), truncated_by_power(2.5, 400)
    (1.14, 2.5)
    """
    try:
        power = 10.0 ** abs(digits)
    except OverflowError:
        return value if digits > 0 else 0.0
    scaled = value * power if digits >= 0 else value / power
    if not math.isfinite(scaled):
        return value
    whole = float(math.trunc(scaled))
    return math.copysign(whole / power if digits >= 0 else whole * power, value)


@pure
def ceiling(value: Any) -> Any:
    """Return the least whole number that is not below, of the number's own type."""
    return _round_by(math.ceil, value)


@pure
def floor(value: Any) -> Any:
    """Return the greatest whole number that is not above, of the number's own type."""
    return _round_by(math.floor, value)


def _round_by(function: Any, value: Any) -> Any:
    """Return a number rounded by `function`, in its type; -0.0, infinity and NaN are kept."""
    if not math.isfinite(value):
        return value
    made = type(value)(function(value))
    return math.copysign(made, value) if made == 0 and isinstance(made, float) else made


@pure
def absolute(value: Any) -> Any:
    """Return a number without its sign; a decimal keeps all its digits."""
    return value.copy_abs() if isinstance(value, Decimal) else abs(value)


@pure
def negative(value: Decimal) -> Decimal:
    """Return a decimal with the other sign, and all its digits."""
    return value.copy_negate() if value else value


@pure
def sign(value: Any) -> int:
    """Return the sign of a number: -1, 0 or 1."""
    return 1 if value > 0 else -1 if value < 0 else 0


def power(base: float, exponent: float) -> float:
    """Return a power of floats.

    >>> power(2, -1), power(-8.0, 0.5), power(-0.0, -3)
    (0.5, nan, -inf)
    """
    if base == 0 and exponent < 0:
        return math.copysign(math.inf, base) if exponent % 2 == 1 else math.inf
    try:
        return math.pow(base, exponent)
    except ValueError:
        return math.nan
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 == 1 else math.inf


def exponential(value: float) -> float:
    """Return a power of e; infinite where a float is too small for it."""
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def square_root(value: float) -> float:
    """Return the square root; NaN below zero."""
    return math.sqrt(value) if value >= 0 else math.nan


def cube_root(value: float) -> float:
    """Return the cube root, also of negative numbers."""
    return math.cbrt(value)


def logarithm(value: float) -> float:
    """Return the natural logarithm."""
    return _logarithm_or_limit(math.log, value)


def logarithm_10(value: float) -> float:
    """Return the common logarithm."""
    return _logarithm_or_limit(math.log10, value)


def logarithm_2(value: float) -> float:
    """Return the binary logarithm."""
    return _logarithm_or_limit(math.log2, value)


def logarithm_of(base: float, value: float) -> float:
    """Return the logarithm to a base, of two common ones."""
    return quotient(logarithm_10(value), logarithm_10(base))


def _logarithm_or_limit(function: Any, value: float) -> float:
    """Return a logarithm; -infinity of 0, NaN below."""
    if value > 0:
        return float(function(value))
    return -math.inf if value == 0 else math.nan


MOST_PLACES = 1_000
"""A shift by more bits than any number of a type has."""


def shifted_left(value: int, places: int, most: int | None = None) -> int:
    """Move the bits of a number up, which leaves it below `most`, as DuckDB does.

    Raises
    ------
    ValueError: it does not, or one of the numbers is negative.
    """
    if value < 0 or places < 0:
        raise ValueError(f"cannot move the bits of {value} by {places}: one of them is negative")
    if not value:
        return 0
    made = value << places if places <= MOST_PLACES else None
    if made is None or (most is not None and made > most):
        raise ValueError(f"{value} is out of range moved by {places:,} bits")
    return made


def shifted_right(value: int, places: int, most: int | None = None) -> int:
    """Move the bits of a number down; nothing is left of it by more bits than there are."""
    width = MOST_PLACES if most is None else -(-most.bit_length() // 8) * 8
    return value >> places if 0 <= places < width else 0


def bits(value: int, width: int) -> int:
    """Return the number of set bits in the lowest `width` bits."""
    return (value & (1 << width) - 1).bit_count()


MOST_FACTORS = 33
"""The greatest number whose factorial is a HUGEINT."""


def factorial(value: int) -> int:
    """Return the product of all numbers up to `value`; raise beyond HUGEINT."""
    if value > MOST_FACTORS:
        raise ValueError(f"the factorial of {value} is out of the range of HUGEINT")
    return math.factorial(value)


@record
class Total:
    """Make a function of floats give NaN where it has no value, and an infinity for too large."""

    function: Callable[[float], float]

    def __call__(self, value: float) -> float:
        try:
            return self.function(value)
        except ValueError:
            return math.nan
        except OverflowError:
            is_odd = self.function is math.sinh
            return -math.inf if is_odd and value < 0 else math.inf
