"""What rows are sorted by: keys, least or greatest first, with NULL first or last; then the row.

    order by a, b desc nulls first      (0, a, 0, -b, Tied(row))        a row
                                        (1, 0, -1, 0, Tied(row))        one with NULL in both
                                        (0, a)                          before all rows with this a

Keys compare as tuples do, so that a part of one stands before all that begin with it. NaN is the
greatest. Rows with equal keys are in an order of their own, so that equal groups are equal lists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from reactive.engine.collections.order import LAST, sort_key
from reactive.engine.collections.sorting import reversed_key
from reactive.engine.collections.zset import canonical, is_nan
from reactive.languages.sql.runtime.rows import rank

Directions = tuple[tuple[bool, bool], ...]
"""Of each key whether it is descending, and whether NULL is first."""
SortKey = tuple[Any, ...]


class Tied:
    """A row among others with equal keys; nothing is compared until there are such rows.

    >>> Tied((1, "a")) < Tied((1, "b")), Tied((None,)) == Tied((None,))
    (True, True)
    """

    __slots__ = ("_rank", "row")

    def __init__(self, row: Any) -> None:
        self.row = row
        self._rank: Any = None

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Tied):
            return NotImplemented
        return bool(self.rank() < other.rank())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tied):
            return NotImplemented
        return self.row is other.row or self.row == other.row or self.rank() == other.rank()

    __hash__ = None  # type: ignore[assignment]

    def rank(self) -> Any:
        """What the row is compared by, made when it is first asked for."""
        if self._rank is None:
            self._rank = rank_of(self.row)
        return self._rank


def rank_of(value: Any) -> Any:
    """What any values are compared by, also of several types."""
    if isinstance(value, tuple):
        return ("tuple", tuple(map(rank_of, value)))
    if isinstance(value, int | float | Decimal):
        return ("no number",) if is_nan(canonical(value)) else ("a number", value)
    return (type(value).__name__, str(value))


def key_of(directions: Directions) -> Callable[[Sequence[Any], Any], SortKey]:
    """What a row is sorted by, of its keys and itself.

    >>> key = key_of(((True, False),))
    >>> sorted([2, None, 3], key=lambda n: key((n,), n))
    [3, 2, None]
    """

    ranks = [(descending, -1 if nulls_first else 1) for descending, nulls_first in directions]

    def made(values: Sequence[Any], row: Any) -> SortKey:
        parts: list[Any] = []
        for (descending, null), value in zip(ranks, values, strict=False):
            kind = value.__class__
            if kind is int:
                parts += (0, -value if descending else value)
            elif value is None:
                parts += (null, 0)
            elif descending:
                parts += (0, reversed_key(rank(value)))
            else:
                parts += (0, value if kind is str else sort_key(rank(value)))
        parts.append(Tied(row))
        return tuple(parts)

    return made


def prefix(value: Any, *, descending: bool) -> SortKey:
    """What stands before all rows whose first key is a value that is not NULL."""
    return (0, reversed_key(rank(value)) if descending else item_key(value))


def item_key(value: Any) -> Any:
    """Return what a value that is not NULL is compared by: NaN is the greatest, and so is NULL
    inside of rows and arrays.

    >>> sorted([(1, None), (1, 2), (0,)], key=item_key)
    [(0,), (1, 2), (1, None)]
    """
    return sort_key(rank(value))


def behind(key: SortKey) -> SortKey:
    """What stands behind all rows that begin with a part of a key."""
    return (*key, LAST)
