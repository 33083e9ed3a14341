"""Aggregates by the rules of the guide: a fold of a list of values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import reduce
from typing import Any

from reactive import Multiset
from tests.random_queries.rows import frozen
from tests.random_queries.values import NAN


def folded(name: str, values: Sequence[Any], count: int) -> Any:
    """Return the result of an aggregate over values, or over `count` rows."""
    match name:
        case "Count":
            return count
        case "Sum":
            return total(values) if values else 0
        case "Avg":
            return total(values) / len(values) if values else None
        case "Min":
            known = [value for value in values if value == value]
            return min(known) if known else (values[0] if values else None)
        case "Max":
            is_nan = any(value != value for value in values)
            return NAN if is_nan else max(values, default=None)
        case "CountDistinct":
            return len(set(map(frozen, values)))
        case "Collect":
            return collected(values)
        case "Own":
            return sum(values), len(values)
        case "Monoid":
            return reduce(math.gcd, values, 0)
    raise ValueError(name)


def total(values: Sequence[Any]) -> Any:
    """The exact sum, rounded once."""
    if any(isinstance(value, Decimal) for value in values):
        with localcontext(Context(prec=1_000)):
            return sum(values)
    if not any(isinstance(value, float) for value in values):
        return sum(values)
    endless = {value for value in values if isinstance(value, float) and math.isinf(value)}
    if any(value != value for value in values) or len(endless) == 2:
        return NAN
    if endless:
        return endless.pop()
    exact = sum(map(Fraction, values), Fraction())
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def collected(values: Sequence[Any]) -> Multiset[Any]:
    first: dict[Any, Any] = {}
    for value in values:
        first.setdefault(frozen(value), value)
    counts = Counter(map(frozen, values))
    return Multiset({first[known]: count for known, count in counts.items()})
