"""Integers of Postgres, which have a size, and floats, which may not overflow.

int4(2147483647 + 1)            raises: integer out of range
product(1e300, 1e300)           raises: a float overflows
"""

from __future__ import annotations

import math


class OutOfRangeError(ArithmeticError):
    """A number does not fit its type."""


class NotSupportedError(ValueError):
    """Postgres has a value, which is not made here."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not supported in postgres")


def int2(value: int) -> int:
    """Return the value, or raise if it is not in the range of a smallint."""
    if -32768 <= value <= 32767:
        return value
    raise OutOfRangeError(f"smallint out of range: {value}")


def int4(value: int) -> int:
    """Return the value, or raise if it is not in the range of an integer."""
    if -2147483648 <= value <= 2147483647:
        return value
    raise OutOfRangeError(f"integer out of range: {value}")


def int8(value: int) -> int:
    """Return the value, or raise if it is not in the range of a bigint."""
    if -9223372036854775808 <= value <= 9223372036854775807:
        return value
    raise OutOfRangeError(f"bigint out of range: {value}")


RANGES = {2: int2, 4: int4, 8: int8}
"""The check of an integer by its size in bytes."""


def whole_quotient(a: int, b: int) -> int:
    """Divide towards zero."""
    return a // b if (a >= 0) == (b > 0) or not a % b else a // b + 1


def whole_remainder(a: int, b: int) -> int:
    """Return the rest of a division, with the sign of the dividend."""
    return a - b * whole_quotient(a, b)


# Floats.


def finite(made: float, *of: float) -> float:
    """Return a result; raise if it is infinite and no operand is."""
    if math.isinf(made) and not any(map(math.isinf, of)):
        raise OutOfRangeError("value out of range: overflow")
    return made


def sum_(a: float, b: float) -> float:
    """Add floats."""
    made = float(a) + float(b)
    return finite(made, a, b) if made in (math.inf, -math.inf) else made


def difference(a: float, b: float) -> float:
    """Subtract floats."""
    made = float(a) - float(b)
    return finite(made, a, b) if made in (math.inf, -math.inf) else made


def product(a: float, b: float) -> float:
    """Multiply floats; raise if the product overflows or underflows."""
    a, b = float(a), float(b)
    made = a * b
    if made == 0.0 and a and b:
        raise OutOfRangeError("value out of range: underflow")
    return finite(made, a, b)


def quotient(a: float, b: float) -> float:
    """Divide floats; zero raises."""
    a, b = float(a), float(b)
    if not b and a == a:
        raise ZeroDivisionError("division by zero")
    if not b:
        return math.nan
    made = a / b
    if made == 0.0 and a and not math.isinf(b):
        raise OutOfRangeError("value out of range: underflow")
    return finite(made, a, b)


def power(base: float, exponent: float) -> float:
    """Return a power of floats; raise if it is undefined, complex or out of range."""
    if base == 0 and exponent < 0:
        raise ValueError("zero raised to a negative power is undefined")
    if base < 0 and math.isfinite(exponent) and exponent != math.floor(exponent):
        raise ValueError("a negative number raised to a non-integer power yields a complex result")
    try:
        made = math.pow(base, exponent)
    except OverflowError:
        raise OutOfRangeError("value out of range: overflow") from None
    if made == 0.0 and base and math.isfinite(base) and math.isfinite(exponent):
        raise OutOfRangeError("value out of range: underflow")
    return finite(made, base, exponent)


def root(value: float) -> float:
    """Return the square root of a float (SQRT); raise for a negative one."""
    if value < 0:
        raise ValueError("cannot take square root of a negative number")
    return math.sqrt(value)


def cube_root(value: float) -> float:
    """Return the cube root of a float (CBRT)."""
    return math.cbrt(value)


def exponential(value: float) -> float:
    """Return a power of e (EXP of a float); raise if it overflows or underflows."""
    try:
        made = math.exp(value)
    except OverflowError:
        raise OutOfRangeError("value out of range: overflow") from None
    if made == 0.0 and not math.isinf(value):
        raise OutOfRangeError("value out of range: underflow")
    return made


def logarithm(value: float) -> float:
    """Return the natural logarithm of a float (LN); raise for 0 and less."""
    if value <= 0:
        raise ValueError("cannot take logarithm of zero or a negative number")
    return math.log(value)


def logarithm_10(value: float) -> float:
    """Return the common logarithm of a float (LOG); raise for 0 and less."""
    if value <= 0:
        raise ValueError("cannot take logarithm of zero or a negative number")
    return math.log10(value)


def hyperbolic_sine(value: float) -> float:
    """Return the hyperbolic sine (SINH), which may be infinite."""
    try:
        return math.sinh(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def hyperbolic_cosine(value: float) -> float:
    """Return the hyperbolic cosine (COSH), which may be infinite."""
    try:
        return math.cosh(value)
    except OverflowError:
        return math.inf


def hyperbolic_area_tangent(value: float) -> float:
    """Return the inverse hyperbolic tangent (ATANH), which is infinite at 1."""
    return math.copysign(math.inf, value) if abs(value) == 1 else math.atanh(value)


def cotangent(value: float) -> float:
    """Return the cotangent of a float (COT)."""
    tangent = math.tan(value)
    return 1.0 / tangent if tangent else math.copysign(math.inf, tangent)


def degrees(value: float) -> float:
    """Convert radians to degrees (DEGREES), divided as Postgres does."""
    return quotient(value, 0.0174532925199432957692)


def radians(value: float) -> float:
    """Convert degrees to radians (RADIANS), multiplied as Postgres does."""
    return product(value, 0.0174532925199432957692) if value else value


def float_rounded(value: float) -> float:
    """Round a float (ROUND), halves to the even number."""
    return float(_rint(value))


def _rint(value: float) -> float:
    """Return a float rounded to a whole one, halves to even, with its sign also for 0."""
    if not math.isfinite(value) or abs(value) >= 2**52:
        return value
    return math.copysign(float(round(value)), value)


def float_ceiling(value: float) -> float:
    """Round a float up (CEIL)."""
    return math.copysign(float(math.ceil(value)), value) if math.isfinite(value) else value


def float_floor(value: float) -> float:
    """Round a float down (FLOOR)."""
    return math.copysign(float(math.floor(value)), value) if math.isfinite(value) else value


def float_cut(value: float) -> float:
    """Round a float towards zero (TRUNC)."""
    return math.copysign(float(math.trunc(value)), value) if math.isfinite(value) else value


def float_sign(value: float) -> float:
    """Return the sign of a float: -1, 0 or 1."""
    return 1.0 if value > 0 else -1.0 if value < 0 else 0.0


def float_absolute(value: float) -> float:
    """Return the value without its sign."""
    return math.fabs(value)


def float_negative(value: float) -> float:
    """Negate."""
    return -value


# Bits, and others of integers.


def shifted_left(value: int, places: int, size: int = 4) -> int:
    """Shift within the bits of a size; the places of a small integer count to 32, as in C."""
    bits = size * 8
    return _wrap_integer(value << (places % max(bits, 32)), bits)


def shifted_right(value: int, places: int, size: int = 4) -> int:
    """Shift within the bits of a size; the sign stays."""
    return value >> (places % max(size * 8, 32))


def _wrap_integer(value: int, bits: int) -> int:
    """Return the lowest `bits` bits of a number as a signed integer."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def hexadecimal(value: int, size: int = 4) -> str:
    """Write a number in hexadecimal digits (TO_HEX)."""
    return f"{value & (1 << size * 8) - 1:x}"
