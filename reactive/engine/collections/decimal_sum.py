"""The exact sum of finite decimals and any integers, as a value: adding to it gives another.

    number      the sum of the decimals, exact however far apart they are
    decimals    how many there are: they decide the result's type
    integers    the sum of the integers, apart from the decimals until the sum is shown

All is computed in a context of this file; that of the caller plays no part. A value times its
weight is added in one operation of `decimal`, which rounds nothing and keeps the exponent that
`+` would give.

State:  some 64 bytes and the digits.
Cost:   O(1) per value; some 0.2 us.
"""

from __future__ import annotations

import sys
from decimal import Context, Decimal, Inexact, Overflow, Subnormal

EXACTLY = Context(
    prec=4_000_000, Emax=1_050_000, Emin=-1_050_000, traps=[Inexact, Overflow, Subnormal]
)
"""For decimals from 1E-1050000 to 1E+1050000, of any of which there is an exact sum.

One beyond that is refused by itself, lest it be in a sum and every other one be refused.
"""
PLUS_TIMES = EXACTLY.fma
"""A decimal times an integer, and another decimal: exact."""
TIMES = EXACTLY.multiply
"""A decimal times an integer: exact."""


class DecimalSum:
    """A sum of finite decimals and any integers; it never changes.

    >>> of_decimal(Decimal("0.10"), 3, 1).plus(Decimal("0.10"), -1).shown()
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
        """This sum and `weight` times a finite decimal."""
        number = PLUS_TIMES(value, weight, self.number)
        decimals = self.decimals + weight
        if decimals:  # nearly always: a call less
            return DecimalSum(number, decimals, self.integers)
        return _settled(number, 0, self.integers)

    def plus_integers(self, integers: int) -> DecimalSum:
        """This sum and some integers."""
        return DecimalSum(self.number, self.decimals, self.integers + integers)

    def plus_sum(self, more: int | DecimalSum, times: int) -> int | DecimalSum:
        """This sum and `times` times another one."""
        if isinstance(more, int):
            return self.plus_integers(more * times)
        number = PLUS_TIMES(more.number, times, self.number)
        decimals = self.decimals + more.decimals * times
        return _settled(number, decimals, self.integers + more.integers * times)

    def times(self, times: int, integers: int) -> int | DecimalSum:
        """This sum `times` times, and some integers."""
        number = TIMES(self.number, times)
        return _settled(number, self.decimals * times, self.integers * times + integers)

    def shown(self) -> Decimal:
        """The sum as a decimal; `decimal.Inexact` where it has too many digits."""
        integers = self.integers
        return EXACTLY.add(self.number, integers) if integers else self.number


def of_decimal(value: Decimal, weight: int, integers: int = 0) -> int | DecimalSum:
    """The sum of a finite decimal `weight` times, and some integers."""
    return _settled(TIMES(value, weight), weight, integers)


def _settled(number: Decimal, decimals: int, integers: int) -> int | DecimalSum:
    """A sum; of integers alone, once no decimal is left.

    Where weights are negative there may be no decimals in all, and yet a sum of them.
    """
    return DecimalSum(number, decimals, integers) if decimals or number else integers
