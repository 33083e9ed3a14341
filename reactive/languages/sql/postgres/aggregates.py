"""Sums, means and variances of Postgres, by the type of their argument.

    sum(smallint | integer)     bigint         avg, stddev, variance of these     numeric
    sum(bigint)                 numeric        of numerics                        numeric
    sum(numeric)                numeric        of floats                          double

A sum of Python's own `int` has no bounds, and stays one.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

from reactive.languages.sql.postgres.numerics import numeric_quotient, root_of_scale, scale_of
from reactive.languages.sql.terms.types import DECIMAL, SqlType

EXACT = frozenset({"int", "decimal"})
"""Kinds whose means are numerics."""


def sum_type(kind: SqlType) -> SqlType:
    """Return the type of a sum.

    >>> sum_type(SqlType("int", size=8)).kind, sum_type(SqlType("int", size=2)).size
    ('decimal', 8)
    """
    if kind.kind == "decimal" or (kind.kind == "int" and kind.size == 8):
        return DECIMAL
    return SqlType("int", size=8) if kind.kind == "int" and kind.size is not None else kind


def mean(total: Any, count: int) -> Decimal:
    """Divide a sum of integers or numerics by their number.

    >>> mean(3, 2), mean(Decimal("2.50"), 1)
    (Decimal('1.5000000000000000'), Decimal('2.5000000000000000'))
    """
    return numeric_quotient(total, count)


def mean_of_different(values: Any) -> Decimal | None:
    """Return the mean of values, each of which counts once."""
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
    """Return the root of the variance, with the digits of that.

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
