"""Exact sums: numbers are added and removed in any order, without drift.

Exact sum of any numbers:

A float is an integer times a power of two. The sum is stored as one integer over a common power of
two, so that additions and subtractions are exact; it is rounded once, when the result is read. For
floats the result equals `math.fsum` of the present values, whatever was added and removed before.

Special results of a sum of floats, while such values are in the group:

    any NaN, or both infinities    nan     (`math.fsum` raises for both infinities)
    infinity                       inf or -inf
    a sum beyond the largest float inf or -inf     (`math.fsum` raises)

The same holds for `Decimal`, from 1E-1050000 to 1E+1050000 (`decimal.Overflow` beyond).

Integers, `Fraction` and `Decimal` are summed without conversion; a sum of integers and floats is a
float. Other types need `+`, `-` and `*` with an integer (`timedelta`).

State:  an integer of some 60 to 120 bits for floats of similar size, at most about 2,100.
Cost:   O(1) per value.

Running sum of a group: the cheapest form in which the numbers so far add up exactly.

    an integer                  only integers so far
    (number, floats)            number / 2**100, with `floats` floats among the values
    `DecimalSum`                finite decimals, and any integers
    `RingSum`                   values of a ring of the user's
    `ExactSum`                  anything else: fractions, infinities, floats as small as 1e-300

A float times 2**100 is an integer if its last bit is worth 2**-100 or more: every float above
2**-47, some 7e-15, and short smaller ones. Floats above 2**124 are left to `ExactSum`, so that sums
of the others are far from the largest float. A pair and a `DecimalSum` are values: the previous one
stays unchanged. An `ExactSum` is changed in place, and returned.

The sum of integers and floats is a float, of integers and decimals a decimal. Once no float and no
decimal is left, it is an integer again.

State:  an integer, a pair of some 130 bytes, or a `DecimalSum` of some 250.
Cost:   O(1) per value; half of the time of an `ExactSum`.

Decimal sum: the exact sum of finite decimals and any integers, as an immutable value.

    number      the sum of the decimals, exact whatever their exponents
    decimals    the number of decimals, which decides the type of the result
    integers    the sum of the integers, apart from the decimals until the result is read

All operations use a context of this file, not that of the caller. A value times its weight is
added by one operation of `decimal`, which does not round and keeps the exponent that `+` would
give.

State:  some 64 bytes and the digits.
Cost:   O(1) per value; some 0.2 us.

Ring sum: a value of a ring of the user's, as an immutable value. A running sum of these is one of
them, or the integer 0. Operators that keep sums by key multiply the sums of the sides of a join:
products of a ring distribute over its sums.

State:  the value.
Cost:   a call of the ring for each operation.
Source: F-IVM: Nikolic, Olteanu, *Incremental View Maintenance with Triple Lock Factorization
        Benefits*, 2018.
"""

from __future__ import annotations

import math
import sys
from decimal import Context, Decimal, Inexact, Overflow, Subnormal
from fractions import Fraction
from typing import Any, Protocol

from reactive.engine.collections.zset import canonical

BITS = 100
"""Fraction bits of a sum of floats of usual size."""


class ExactSum:
    """A running sum without rounding.

    >>> total = ExactSum()
    >>> for value, weight in [(1e100, 1), (0.1, 1), (1e100, -1)]:
    ...     total.add(value, weight)
    >>> total.value()
    0.1
    """

    __slots__ = ("_floats", "_integers", "_numerator", "_others", "_shift", "_specials")

    def __init__(self) -> None:
        self._integers = 0
        self._floats = 0  # the number of floats in the sum; decides the result's type
        self._numerator = 0  # the sum of finite floats is numerator / 2**shift
        self._shift = 0
        self._specials: dict[str, int] | None = None  # "inf", "-inf", "nan" -> count
        self._others: dict[Any, tuple[int, Any]] | None = None  # type -> count, sum

    def add(self, value: Any, weight: int) -> None:
        """Add `value` times `weight`; raise, changing nothing, for a value that cannot be
        summed."""
        kind = type(value)
        if kind is int or kind is bool:
            self._integers += value * weight
        elif kind is float:
            self._add_float(value, weight)
        else:
            self._add_other(kind, value, weight)

    @classmethod
    def from_integers(cls, integers: int) -> ExactSum:
        """Create a sum of integers."""
        found = cls()
        found._integers = integers
        return found

    @classmethod
    def of_scaled(cls, number: int, floats: int) -> ExactSum:
        """Create the sum `number / 2**BITS`, of `floats` floats and any integers."""
        found = cls()
        found._numerator, found._shift, found._floats = number, BITS, floats
        return found

    def to_scaled(self) -> tuple[int, int] | None:
        """Return `number` of `number / 2**BITS` and the number of floats; None if it has no
        such form."""
        if self._specials or self._others or self._shift > BITS:
            return None
        number = (self._numerator << (BITS - self._shift)) + (self._integers << BITS)
        return number, self._floats

    @classmethod
    def of_decimals(cls, total: DecimalSum) -> ExactSum:
        """Create a sum from a `DecimalSum`."""
        found = cls.from_integers(total.integers)
        found._others = {Decimal: (total.decimals, total.number)}
        return found

    def with_decimals(self) -> DecimalSum | None:
        """Return a `DecimalSum`; None if other values than finite decimals and integers are in
        it."""
        others = self._others
        if not others or self._specials or self._floats or self._numerator:
            return None
        if others.keys() != {Decimal}:
            return None
        decimals, number = others[Decimal]
        return DecimalSum(number, decimals, self._integers)

    def copy(self) -> ExactSum:
        """Return a copy."""
        other = ExactSum()
        other._integers, other._floats = self._integers, self._floats
        other._numerator, other._shift = self._numerator, self._shift
        other._specials = None if self._specials is None else dict(self._specials)
        other._others = None if self._others is None else dict(self._others)
        return other

    def __bool__(self) -> bool:
        """Return True if there are values in the sum."""
        counted = self._integers or self._floats or self._numerator
        return bool(counted or self._specials or self._others)

    def merge(self, other: ExactSum, times: int) -> None:
        """Add another sum, multiplied by `times`."""
        self._integers += other._integers * times
        self._floats += other._floats * times
        if other._shift > self._shift:
            self._numerator <<= other._shift - self._shift
            self._shift = other._shift
        self._numerator += (other._numerator << (self._shift - other._shift)) * times
        for name, count in (other._specials or {}).items():
            self._add_special(name, count * times)
        for name, (count, total) in (other._others or {}).items():
            self._add_total(name, count * times, total, times)
        if not self._floats:
            self._settle()

    def value(self) -> Any:
        """Return the sum, in the type of Python's `sum`, rounded once."""
        if self._others:
            return self._sum_mixed_classes(self._others)
        return self._float() if self._floats or self._numerator else self._integers

    def _add_float(self, value: float, weight: int) -> None:
        """Add a float `weight` times; NaN and infinities are counted apart."""
        self._floats += weight
        if math.isfinite(value):
            numerator, denominator = value.as_integer_ratio()
            shift = denominator.bit_length() - 1
            if shift > self._shift:
                self._numerator <<= shift - self._shift
                self._shift = shift
            self._numerator += (numerator << (self._shift - shift)) * weight
        else:
            self._add_special(str(value), weight)
        if not self._floats:
            self._settle()

    def _settle(self) -> None:
        """Convert a whole sum to integers, when no floats are left."""
        whole = self._numerator >> self._shift
        if whole << self._shift == self._numerator:
            self._integers += whole
            self._numerator = self._shift = 0

    def _add_special(self, name: str, weight: int) -> None:
        """Count NaN or an infinity by its name; a count of zero is deleted."""
        specials = self._specials = self._specials or {}
        specials[name] = specials.get(name, 0) + weight
        if not specials[name]:
            del specials[name]
            self._specials = specials or None

    def _add_other(self, kind: type, value: Any, weight: int) -> None:
        """Add a value of another class; subclasses of `int` and `float` are added as these."""
        if isinstance(value, int | float):
            self.add(float(value) if isinstance(value, float) else int(value), weight)
            return
        self._add_total(str(value) if _is_special(value) else kind, weight, value, weight)

    def _add_total(self, name: Any, count: int, value: Any, times: int) -> None:
        """Add `times` times the total of `count` values of a type, or of a special value."""
        others = self._others or {}
        before, total = others.get(name, (0, None))
        total = value if isinstance(name, str) else _add_multiple(total, value, times)
        self._others = others
        others[name] = (before + count, total)
        if before + count == 0 and (isinstance(name, str) or _is_nothing(total)):
            del others[name]
            self._others = others or None

    def _float(self) -> float:
        """Return the sum of floats and integers, rounded once."""
        specials = self._specials
        if specials is not None:
            return float(next(iter(specials))) if len(specials) == 1 else math.nan
        exact = self._numerator + (self._integers << self._shift)
        try:
            return exact / (1 << self._shift)
        except OverflowError:
            return nearest_float(Fraction(exact, 1 << self._shift))

    def _sum_mixed_classes(self, others: dict[Any, tuple[int, Any]]) -> Any:
        """Return the sum if it has values of other classes; special decimals decide it alone."""
        specials = [value for name, (_, value) in others.items() if isinstance(name, str)]
        if specials:
            return specials[0] if len(specials) == 1 else Decimal("NaN")
        if self._floats and others.keys() == {Fraction}:
            if self._specials is not None:
                return self._float()
            floats = Fraction(self._numerator, 1 << self._shift)
            return nearest_float(floats + self._integers + others[Fraction][1])
        parts = [total for _, total in others.values()]
        parts += [self._float()] if self._floats else [self._integers] if self._integers else []
        result = parts[0]
        for part in parts[1:]:
            is_exact = isinstance(result, Decimal) and isinstance(part, int | Decimal)
            result = EXACTLY.add(result, part) if is_exact else result + part
        return result


def nearest_float(exact: Fraction | int) -> float:
    """Return the nearest float; infinity beyond the largest one."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _is_special(value: Any) -> bool:
    return isinstance(value, Decimal) and not value.is_finite()


def _is_nothing(total: Any) -> bool:
    """Return True if a sum without values left is zero."""
    return not total if isinstance(total, Decimal) else bool(total == total - total)


def _add_multiple(total: Any, value: Any, weight: int) -> Any:
    """Return `total + weight * value`. Raises `TypeError` for values without a difference."""
    if isinstance(value, Decimal):
        return TIMES(value, weight) if total is None else PLUS_TIMES(value, weight, total)
    try:
        nothing = value - value
    except TypeError:
        kind = type(value).__name__
        remedy = "\n  skip_none=True leaves None out" if value is None else ""
        raise TypeError(f"cannot sum {value!r}: {kind} values have no difference{remedy}") from None
    change = value * weight
    return change + nothing if total is None else total + change


EXACTLY = Context(
    prec=4_000_000, Emax=1_050_000, Emin=-1_050_000, traps=[Inexact, Overflow, Subnormal]
)
"""Context for decimals from 1E-1050000 to 1E+1050000, whose sums are always exact.

A larger decimal is refused alone; otherwise it would make all later additions fail.
"""
PLUS_TIMES = EXACTLY.fma
"""Adds a decimal times an integer to another decimal, exactly."""
TIMES = EXACTLY.multiply
"""Multiplies a decimal by an integer, exactly."""


class DecimalSum:
    """Immutable sum of finite decimals and any integers.

    >>> of_decimal(Decimal("0.10"), 3, 1).plus(Decimal("0.10"), -1).to_decimal()
    Decimal('1.20')
    """

    __slots__ = ("decimals", "integers", "number")

    def __init__(self, number: Decimal, decimals: int, integers: int) -> None:
        self.number = number
        self.decimals = decimals
        self.integers = integers

    def __repr__(self) -> str:
        return f"DecimalSum({self.number!r}, {self.decimals}, {self.integers})"

    def __sizeof__(self) -> int:
        parts = (self.number, self.decimals, self.integers)
        return object.__sizeof__(self) + sum(map(sys.getsizeof, parts))

    def plus(self, value: Decimal, weight: int) -> int | DecimalSum:
        """Return this sum plus `weight` times a finite decimal; an integer if none is left."""
        number = PLUS_TIMES(value, weight, self.number)
        decimals = self.decimals + weight
        if decimals:  # nearly always true; saves a call
            return DecimalSum(number, decimals, self.integers)
        return _decimal_or_integers(number, 0, self.integers)

    def plus_integers(self, integers: int) -> DecimalSum:
        """Return this sum plus integers."""
        return DecimalSum(self.number, self.decimals, self.integers + integers)

    def plus_sum(self, more: int | DecimalSum, times: int) -> int | DecimalSum:
        """Return this sum plus `times` times another; an integer if no decimal is left."""
        if isinstance(more, int):
            return self.plus_integers(more * times)
        number = PLUS_TIMES(more.number, times, self.number)
        decimals = self.decimals + more.decimals * times
        return _decimal_or_integers(number, decimals, self.integers + more.integers * times)

    def times(self, times: int, integers: int) -> int | DecimalSum:
        """Return this sum multiplied by `times`, plus integers."""
        number = TIMES(self.number, times)
        return _decimal_or_integers(number, self.decimals * times, self.integers * times + integers)

    def to_decimal(self) -> Decimal:
        """Return the sum as a decimal; raise `decimal.Inexact` if it has too many digits."""
        integers = self.integers
        return EXACTLY.add(self.number, integers) if integers else self.number


def of_decimal(value: Decimal, weight: int, integers: int = 0) -> int | DecimalSum:
    """Return the sum of a finite decimal, `weight` times, and integers."""
    return _decimal_or_integers(TIMES(value, weight), weight, integers)


def _decimal_or_integers(number: Decimal, decimals: int, integers: int) -> int | DecimalSum:
    """Return a sum, or its integers if no decimal is left.

    With negative weights, the number of decimals may be zero although their sum is not.
    """
    return DecimalSum(number, decimals, integers) if decimals or number else integers


class RingOperations(Protocol):
    """The operations of a ring, on the values of the user."""

    @property
    def zero(self) -> Any: ...
    @property
    def add(self) -> Any: ...
    @property
    def multiply(self) -> Any: ...
    def times(self, value: Any, count: int) -> Any: ...
    def is_zero(self, value: Any) -> bool: ...


class RingSum:
    """A value of a ring, or the sum of several.

    >>> from reactive.rings import INTEGERS
    >>> RingSum(INTEGERS, 3).plus(RingSum(INTEGERS, 4), -2).value
    -5
    """

    __slots__ = ("ring", "value")

    def __init__(self, ring: RingOperations, value: Any) -> None:
        self.ring = ring
        self.value = value

    def __repr__(self) -> str:
        return f"RingSum({self.value!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RingSum) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __bool__(self) -> bool:
        """Return True if the value is not the zero of its ring."""
        return not self.ring.is_zero(self.value)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + sys.getsizeof(self.value)

    def __mul__(self, other: RingSum) -> RingSum:
        ring = self.ring
        return RingSum(ring, ring.multiply(self.value, other.value))

    def plus(self, more: RingSum, count: int) -> RingSum:
        """Return this value plus `count` times another."""
        ring, value = self.ring, more.value
        return RingSum(
            ring, ring.add(self.value, value if count == 1 else ring.times(value, count))
        )

    def times(self, count: int) -> RingSum:
        """Return this value multiplied by an integer."""
        return self if count == 1 else RingSum(self.ring, self.ring.times(self.value, count))


RunningSum = Any
"""An integer, a pair, a `DecimalSum`, or an `ExactSum`."""
_SCALED: frozenset[Any] = frozenset([int, tuple])
_WITH_DECIMALS: frozenset[Any] = frozenset([int, DecimalSum])
NUMBERS: frozenset[Any] = frozenset([int, float, bool, Decimal, Fraction])
UP = 2.0**899
"""Scale that turns values above 2**124 into infinity, which is not an integer."""
DOWN = 2.0**BITS / UP
UNIT = 2.0**-BITS
FRACTION = (1 << BITS) - 1


def add_value(total: RunningSum, value: Any, weight: int) -> RunningSum:
    """Return a sum plus `weight` times a value; raise, changing nothing, if it cannot be summed.

    If `total` is an `ExactSum`, it is changed and returned; other sums are immutable.

    >>> add_value(1, 0.5, 1), add_value(add_value(1, 0.5, 1), 0.5, -1)
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
    elif kind is RingSum:
        return total.plus(value, weight) if total.__class__ is RingSum else value.times(weight)
    exact = _as_exact(total)
    exact.add(value, weight)
    return exact


def add_sums(total: RunningSum, more: RunningSum, times: int = 1) -> RunningSum:
    """Return a sum plus `times` times another sum, which is not changed.

    If `total` is an `ExactSum`, it is changed and returned; other sums are immutable.
    """
    if total.__class__ is int and more.__class__ is int:
        return total + more * times
    if total.__class__ is DecimalSum and more.__class__ in _WITH_DECIMALS:
        return total.plus_sum(more, times)
    if more.__class__ is DecimalSum and total.__class__ is int:
        return more.times(times, total)
    if more.__class__ is RingSum:
        return total.plus(more, times) if total.__class__ is RingSum else more.times(times)
    if total.__class__ is RingSum:
        return total  # a sum without values is 0
    if total.__class__ not in _SCALED or more.__class__ not in _SCALED:
        exact = _as_exact(total)
        exact.merge(_as_exact(more), times)
        return exact
    number, floats = total if total.__class__ is tuple else (total << BITS, 0)
    more_number, more_floats = more if more.__class__ is tuple else (more << BITS, 0)
    return scaled_sum(number + more_number * times, floats + more_floats * times)


def scaled_sum(number: int, floats: int) -> RunningSum:
    """Return the sum `number / 2**100`, of `floats` floats and any integers.

    With negative weights, the number of floats may be zero although the sum is not an integer.
    """
    return (number, floats) if floats or number & FRACTION else number >> BITS


def summable(value: Any) -> None:
    """Raise for a value that cannot be summed.

    >>> summable(1.5), summable(Fraction(1, 3))
    (None, None)
    """
    if value.__class__ not in NUMBERS:
        add_value(0, value, 1)


def summable_or_none(value: Any) -> None:
    """Raise for a value other than None that cannot be summed."""
    if value is not None:
        summable(value)


def scale_value(value: Any, weight: int) -> RunningSum:
    """Return a value multiplied by `weight`."""
    return value * weight if value.__class__ is int else add_value(0, value, weight)


def scale_sum(total: RunningSum, weight: int) -> RunningSum:
    """Return a sum multiplied by `weight`."""
    return add_sums(0, total, weight)


def copy_sum(total: RunningSum) -> RunningSum:
    """Return an equal sum, whose changes do not affect `total`; in a simpler form than `ExactSum`
    if no value needs that one."""
    if total.__class__ is not ExactSum:
        return total
    simple = total.to_scaled()
    if simple is not None:
        return scaled_sum(*simple)
    return total.with_decimals() or total.copy()


def sum_result(total: RunningSum) -> Any:
    """Return the sum in the type of Python's `sum`, rounded once.

    >>> sum_result((3 << 99, 1)), sum_result(2)
    (1.5, 2)
    """
    if total.__class__ is int:
        return total
    if total.__class__ is DecimalSum:
        return total.to_decimal()
    if total.__class__ is ExactSum:
        return canonical(total.value())
    try:
        return total[0] * UNIT  # the integer is rounded as a float; the product is exact
    except OverflowError:
        return nearest_float(Fraction(total[0], 1 << BITS))


def state_bytes(state: Any) -> int:
    """Return the bytes of a sum, or of another state of a group; of a pair with its parts."""
    parts = sum(map(state_bytes, state)) if state.__class__ is tuple else 0
    return sys.getsizeof(state) + parts


def _as_exact(total: RunningSum) -> ExactSum:
    """Return a sum as `ExactSum`; itself if it is one."""
    if total.__class__ is ExactSum:
        return total
    if total.__class__ is DecimalSum:
        return ExactSum.of_decimals(total)
    return ExactSum.from_integers(total) if total.__class__ is int else ExactSum.of_scaled(*total)
