"""Order of values of any kind: tuples field by field, where None is last and equal to None.

    rank((1, None))     compares as a tuple would, None being the greatest
    item_key(nan)       NaN is the greatest
    rank_of(value)      orders values of different classes, too

Cost: O(fields).
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from reactive.engine.collections.order import sort_key
from reactive.engine.collections.zset import canonical, is_nan

Directions = tuple[tuple[bool, bool | None], ...]
"""For each key whether it is descending, and whether None is first (None: it is any value)."""


class Ranked(tuple[Any, ...]):
    """The sort key of a row or an array, beside the value itself."""

    value: Any


def rank(value: Any) -> Any:
    """Return what a row, or an array, is compared by; another value is compared by itself.

    >>> rank((1, 2)) < rank((1, None)), rank((1, None)) == rank((1, None))
    (True, True)
    >>> rank(((2, 3), "a")) < rank(((2, None), "a")), rank(None)
    (True, None)
    """
    if not isinstance(value, tuple):
        return value
    made = Ranked([_LAST if item is None else (0, rank(item)) for item in value])
    made.value = value
    return made


_LAST = (1,)


def item_key(value: Any) -> Any:
    """Return a comparable value of a value that is not NULL.

    NaN is the greatest, and so is NULL inside rows and arrays.

    >>> sorted([(1, None), (1, 2), (0,)], key=item_key)
    [(0,), (1, 2), (1, None)]
    """
    return sort_key(rank(value))


def rank_of(value: Any) -> Any:
    """Return a comparable value of any value, also across types."""
    if isinstance(value, tuple):
        return ("tuple", tuple(map(rank_of, value)))
    if isinstance(value, int | float | Decimal):
        return ("no number",) if is_nan(canonical(value)) else ("a number", value)
    return (type(value).__name__, str(value))
