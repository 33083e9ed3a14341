"""Order by the rules of the guide: keys with their directions, then rows by themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tests.random_queries.nodes import Key
from tests.random_queries.rows import D, E

Keyed = tuple[Callable[[Any], Any], Key]


def in_order(rows: Sequence[Any], keys: Sequence[Keyed], *, are_ordered: bool = False) -> list[Any]:
    """Sorted by the last key first, as sorting is stable; peers by themselves, or as they are."""
    found = list(rows) if are_ordered else sorted(rows, key=tie)
    for of, key in reversed(keys):
        ranks = [rank(of(row), key) for row in found]
        places = sorted(range(len(found)), key=ranks.__getitem__, reverse=key.descending)
        found = [found[place] for place in places]
    return found


def rank(value: Any, key: Key) -> tuple[Any, ...]:
    """None first or last in either direction; NaN is greater than numbers."""
    if value is None:
        return (-1 if (key.nulls == "first") != key.descending else 1,)
    return (0, value != value, 0 if value != value else value)


def tie(value: Any) -> tuple[Any, ...]:
    """None before numbers before texts before tuples before exact ones; the rest is all alike."""
    match value:
        case None:
            return (0,)
        case int() | float():
            return (1, value) if value == value else (2,)
        case str():
            return (3, value)
        case tuple():
            return (5, tuple(map(tie, value)))
        case D():
            return (6, "D", (tie(value.k), tie(value.v), tie(value.i)))
        case datetime():
            return (7, "datetime", value)
        case E():
            return (6, "E", tuple(map(tie, (value.id, value.k, value.v, value.at, value.due))))
        case Decimal() | Fraction():
            return (7, type(value).__name__, value)
    return (9,)
