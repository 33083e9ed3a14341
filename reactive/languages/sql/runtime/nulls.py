"""Functions that know NULL, which is None."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Unrepresentable(ValueError):
    """A value that SQL has and Python has not, as a date after 9999: never NULL, an error."""


def strict_call(function: Callable[..., Any], *values: Any) -> Any:
    """The function of the values, or None if one is None.

    >>> strict_call(max, 1, 2), strict_call(max, 1, None)
    (2, None)
    """
    for value in values:
        if value is None:
            return None
    return function(*values)


def attempt(function: Callable[..., Any], *values: Any) -> Any:
    """The same, and None where the function raises."""
    try:
        return strict_call(function, *values)
    except Unrepresentable:
        raise
    except (ArithmeticError, ValueError, LookupError, TypeError):
        return None


def coalesce(*values: Any) -> Any:
    """The first that is not None."""
    return next((value for value in values if value is not None), None)


def null_if(value: Any, other: Any) -> Any:
    """The value, or None if it is equal to the other."""
    return None if value == other else value


def greatest(*values: Any) -> Any:
    """The greatest of those that are not None.

    >>> greatest(1, None, 3), greatest(None)
    (3, None)
    """
    return max((value for value in values if value is not None), default=None)


def least(*values: Any) -> Any:
    """The least of those that are not None."""
    return min((value for value in values if value is not None), default=None)


def is_among(value: Any, items: Any) -> bool | None:
    """Whether a value that is not None equals one of the items; None if it may be one that is None.

    >>> is_among(1, (1, None)), is_among(2, (1, None)), is_among(2, (1,))
    (True, None, False)
    """
    if value in items:
        return True
    return None if None in items else False


def first_match(value: Any, *branches: Any) -> Any:
    """CASE value WHEN a THEN b ...: the `b` of the first `a` that is equal, or the last.

    >>> first_match(2, 1, "one", 2, "two", "many")
    'two'
    """
    for place in range(0, len(branches) - 1, 2):
        if value is not None and value == branches[place]:
            return branches[place + 1]
    return branches[-1]
