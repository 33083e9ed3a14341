"""Exact sums: numbers added and taken away in any order, without drift.

A float is an integer times a power of two. Keep the sum as one integer over a common power of
two, and adding and subtracting are exact; round once, when the result is read. Over floats the
result equals `math.fsum` of the values present, whatever was added and removed before.

What a sum of floats shows that is no ordinary number, while such values are in the group:

    any NaN, or both infinities    nan     (`math.fsum` raises for both infinities)
    infinity                       inf or -inf
    a sum beyond the largest float inf or -inf     (`math.fsum` raises)

The same holds of `Decimal`, from 1E-1050000 to 1E+1050000 (`decimal.Overflow` beyond).

Integers, `Fraction` and `Decimal` are summed as what they are, without conversion; a sum of
integers and floats is a float. Other types need `+`, `-` and `*` with an integer (`timedelta`).

State:  an integer of some 60 to 120 bits for floats of similar size, at most about 2,100.
Cost:   O(1) per value.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

from reactive.engine.collections.decimal_sum import EXACTLY, PLUS_TIMES, TIMES, DecimalSum

BITS = 100
"""Of the fraction in a sum of floats of usual size (`running_sum.py`)."""


class ExactSum:
    """A running sum that forgets nothing.

    >>> total = ExactSum()
    >>> for value, weight in [(1e100, 1), (0.1, 1), (1e100, -1)]:
    ...     total.add(value, weight)
    >>> total.value()
    0.1
    """

    __slots__ = ("_floats", "_integers", "_numerator", "_others", "_shift", "_specials")

    def __init__(self) -> None:
        self._integers = 0
        self._floats = 0  # how many floats are in the sum: they decide the result's type
        self._numerator = 0  # the sum of finite floats is numerator / 2**shift
        self._shift = 0
        self._specials: dict[str, int] | None = None  # "inf", "-inf", "nan" -> count
        self._others: dict[Any, tuple[int, Any]] | None = None  # type -> count, sum

    def add(self, value: Any, weight: int) -> None:
        """Add `value` times `weight`; raises, changing nothing, for a value that has no sum."""
        kind = type(value)
        if kind is int or kind is bool:
            self._integers += value * weight
        elif kind is float:
            self._add_float(value, weight)
        else:
            self._add_other(kind, value, weight)

    @classmethod
    def of(cls, integers: int) -> ExactSum:
        """A sum of integers."""
        found = cls()
        found._integers = integers
        return found

    @classmethod
    def of_scaled(cls, number: int, floats: int) -> ExactSum:
        """The sum `number / 2**BITS`, of some floats and any integers."""
        found = cls()
        found._numerator, found._shift, found._floats = number, BITS, floats
        return found

    def scaled(self) -> tuple[int, int] | None:
        """`number / 2**BITS` and how many floats are in it; None of a sum that has no such form."""
        if self._specials or self._others or self._shift > BITS:
            return None
        number = (self._numerator << (BITS - self._shift)) + (self._integers << BITS)
        return number, self._floats

    @classmethod
    def of_decimals(cls, total: DecimalSum) -> ExactSum:
        """The same sum of decimals and integers."""
        found = cls.of(total.integers)
        found._others = {Decimal: (total.decimals, total.number)}
        return found

    def with_decimals(self) -> DecimalSum | None:
        """The same sum of finite decimals and integers; None where anything else is in it."""
        others = self._others
        if not others or self._specials or self._floats or self._numerator:
            return None
        if others.keys() != {Decimal}:
            return None
        decimals, number = others[Decimal]
        return DecimalSum(number, decimals, self._integers)

    def copy(self) -> ExactSum:
        """Another sum of the same values."""
        other = ExactSum()
        other._integers, other._floats = self._integers, self._floats
        other._numerator, other._shift = self._numerator, self._shift
        other._specials = None if self._specials is None else dict(self._specials)
        other._others = None if self._others is None else dict(self._others)
        return other

    def __bool__(self) -> bool:
        """Whether anything is in it."""
        counted = self._integers or self._floats or self._numerator
        return bool(counted or self._specials or self._others)

    def merge(self, other: ExactSum, times: int) -> None:
        """Add another sum, `times` times."""
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
        """The sum, in the type that Python's `sum` would give, rounded once."""
        if self._others:
            return self._mixed(self._others)
        return self._float() if self._floats or self._numerator else self._integers

    def _add_float(self, value: float, weight: int) -> None:
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
        """Where no floats are left, what is whole is a sum of integers."""
        whole = self._numerator >> self._shift
        if whole << self._shift == self._numerator:
            self._integers += whole
            self._numerator = self._shift = 0

    def _add_special(self, name: str, weight: int) -> None:
        specials = self._specials = self._specials or {}
        specials[name] = specials.get(name, 0) + weight
        if not specials[name]:
            del specials[name]
            self._specials = specials or None

    def _add_other(self, kind: type, value: Any, weight: int) -> None:
        if isinstance(value, int | float):
            self.add(float(value) if isinstance(value, float) else int(value), weight)
            return
        self._add_total(str(value) if _is_special(value) else kind, weight, value, weight)

    def _add_total(self, name: Any, count: int, value: Any, times: int) -> None:
        """Add, `times` times, the total of `count` values of a type, or of a special value."""
        others = self._others or {}
        before, total = others.get(name, (0, None))
        total = value if isinstance(name, str) else _plus(total, value, times)
        self._others = others
        others[name] = (before + count, total)
        if before + count == 0 and (isinstance(name, str) or _is_nothing(total)):
            del others[name]
            self._others = others or None

    def _float(self) -> float:
        specials = self._specials
        if specials is not None:
            return float(next(iter(specials))) if len(specials) == 1 else math.nan
        exact = self._numerator + (self._integers << self._shift)
        try:
            return exact / (1 << self._shift)
        except OverflowError:
            return rounded(Fraction(exact, 1 << self._shift))

    def _mixed(self, others: dict[Any, tuple[int, Any]]) -> Any:
        specials = [value for name, (_, value) in others.items() if isinstance(name, str)]
        if specials:
            return specials[0] if len(specials) == 1 else Decimal("NaN")
        if self._floats and others.keys() == {Fraction}:
            if self._specials is not None:
                return self._float()
            floats = Fraction(self._numerator, 1 << self._shift)
            return rounded(floats + self._integers + others[Fraction][1])
        parts = [total for _, total in others.values()]
        parts += [self._float()] if self._floats else [self._integers] if self._integers else []
        result = parts[0]
        for part in parts[1:]:
            is_exact = isinstance(result, Decimal) and isinstance(part, int | Decimal)
            result = EXACTLY.add(result, part) if is_exact else result + part
        return result


def rounded(exact: Fraction | int) -> float:
    """The nearest float; infinity for what is beyond the largest one."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _is_special(value: Any) -> bool:
    return isinstance(value, Decimal) and not value.is_finite()


def _is_nothing(total: Any) -> bool:
    """Whether a sum of as many values as were taken away is that of none."""
    return not total if isinstance(total, Decimal) else bool(total == total - total)


def _plus(total: Any, value: Any, weight: int) -> Any:
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
