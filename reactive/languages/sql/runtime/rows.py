"""Rows as values, compared field by field, in which NULL is the last and equal to NULL."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from optimizer.record import record
from reactive.languages.sql.postgres import patterns
from reactive.languages.sql.runtime import texts


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


def value_of_rank(place: Any) -> Any:
    """Return the value of which `rank` is given."""
    return place.value if place.__class__ is Ranked else place


def greatest(*values: Any) -> Any:
    """Return the greatest row, or array, of those that are not None.

    >>> greatest((1, None), None, (1, 2)), least((1, None), (1, 2))
    ((1, None), (1, 2))
    """
    return max((value for value in values if value is not None), key=rank, default=None)


def least(*values: Any) -> Any:
    """Return the least row, or array, of those that are not None."""
    return min((value for value in values if value is not None), key=rank, default=None)


def less(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether a row is before another."""
    return bool(rank(one) < rank(other))


def less_or_equal(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether a row is not behind another."""
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
    """Whether a value is an element of an array."""
    return value in array


@record
class AnyFits:
    """Whether a comparison with an element is true; None if that depends on one that is NULL.

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
    """Whether a comparison with every element is true; None if that depends on one that is NULL."""

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
