"""Rows as values, compared field by field, where NULL is last and equal to NULL.

Sort keys: the keys of a row, least or greatest first, with NULL first or last; then the row.

    order by a, b desc nulls first      (0, a, 0, -b, Tied(row))        a row
                                        (1, 0, -1, 0, Tied(row))        one with NULL in both
                                        (0, a)                          before all rows with this a

Keys compare as tuples do, so that a prefix is before all keys that begin with it. NaN is the
greatest. Rows with equal keys are ordered by themselves, so that equal groups are equal lists.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from optimizer.record import record
from reactive.engine.collections.order import sort_key
from reactive.engine.collections.sorting import reversed_key
from reactive.engine.collections.value_order import Directions, Ranked, rank, rank_of
from reactive.languages.sql.postgres import patterns
from reactive.languages.sql.runtime import texts


def value_of_rank(place: Any) -> Any:
    """Return the value whose `rank` is given."""
    return place.value if place.__class__ is Ranked else place


def greatest(*values: Any) -> Any:
    """Return the greatest row, or array, that is not None.

    >>> greatest((1, None), None, (1, 2)), least((1, None), (1, 2))
    ((1, None), (1, 2))
    """
    return max((value for value in values if value is not None), key=rank, default=None)


def least(*values: Any) -> Any:
    """Return the least row, or array, that is not None."""
    return min((value for value in values if value is not None), key=rank, default=None)


def less(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Return True if a row is before another."""
    return bool(rank(one) < rank(other))


def less_or_equal(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Return True if a row is before another or equal."""
    return bool(rank(one) <= rank(other))


def _is_unlike(like: Callable[[str, str], bool], text: str, pattern: str) -> bool:
    return not like(text, pattern)


SYMBOLS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": lambda one, other: rank(one) < rank(other),
    "<=": lambda one, other: rank(one) <= rank(other),
    ">": lambda one, other: rank(one) > rank(other),
    ">=": lambda one, other: rank(one) >= rank(other),
}


LIKE: dict[Callable[..., bool], str] = {
    patterns.like: "like of postgres",
    patterns.like_folded: "like of postgres, folded",
    patterns.like_bytes: "like of postgres, bytes",
    texts.like: "like",
    texts.like_escaped: "like escaped",
    texts.like_folded: "like folded",
}
NOT_LIKE = {function: f"not {symbol}" for function, symbol in LIKE.items()}
SYMBOLS |= {symbol: function for function, symbol in LIKE.items()}
SYMBOLS |= {symbol: partial(_is_unlike, function) for function, symbol in NOT_LIKE.items()}


def among(value: Any, array: tuple[Any, ...]) -> bool:
    """Return True if a value is an element of an array."""
    return value in array


@record
class AnyFits:
    """Test if a comparison with some element is true; None if that depends on a NULL element.

    >>> AnyFits("==")(2, (1, 2)), AnyFits("==")(3, (1, None))
    (True, None)
    """

    symbol: str

    def __call__(self, value: Any, array: tuple[Any, ...]) -> bool | None:
        compare = SYMBOLS[self.symbol]
        if any(item is not None and compare(value, item) for item in array):
            return True
        return None if None in array else False


@record
class AllFit:
    """Test if a comparison with every element is true; None if that depends on a NULL element."""

    symbol: str

    def __call__(self, value: Any, array: tuple[Any, ...]) -> bool | None:
        compare = SYMBOLS[self.symbol]
        if not all(item is None or compare(value, item) for item in array):
            return False
        return None if None in array else True


@record
class OfElements:
    """A comparison with elements, of a value that may be None: of no elements it is not asked."""

    function: AnyFits | AllFit
    null_is_empty: bool = False
    """If an array that is NULL is one of no elements, as in DuckDB."""

    def __call__(self, value: Any, array: tuple[Any, ...] | None) -> bool | None:
        if array is None and self.null_is_empty:
            array = ()
        if array is None or (value is None and array):
            return None
        return self.function(value, array)


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
        """Return the comparable value of the row, computed at the first access."""
        if self._rank is None:
            self._rank = rank_of(self.row)
        return self._rank


def sort_key_function(directions: Directions) -> Callable[[Sequence[Any], Any], SortKey]:
    """Return the function from the keys of a row, and the row, to its sort key.

    Its last part orders rows with equal keys by themselves, so that the order depends on the rows
    only.

    >>> key = sort_key_function(((True, False),))
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
