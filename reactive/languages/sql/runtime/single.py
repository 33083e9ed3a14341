"""The value of a query in an expression, from the values of its rows."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Any, Literal


class CardinalityError(ValueError):
    """A query in the place of a value has more than one row."""


def only_of(values: Iterable[Any]) -> Any:
    """Return the only value, None of none; raise `CardinalityError` for several.

    >>> from reactive.languages.sql.runtime.single import only_of
    >>> only_of([7]), only_of([])
    (7, None)
    """
    rest = iter(values)
    found = next(rest, None)
    for _ in rest:
        raise CardinalityError("a query in the place of a value has more than one row")
    return found


# The fingerprints of plans contain this name.
def any_of(values: Iterable[Any]) -> Any:
    """Return one of the values, the same for the same values; None of none."""
    return min(values, key=_by_type, default=None)


def _by_type(value: Any) -> Any:
    """Return a key that sorts values of any types: by type, then by value."""
    return (str(type(value)), value if not isinstance(value, tuple) else str(value))


Direction = tuple[bool, Literal["first", "last"] | None]
"""The direction, True for greatest first, and the place of None."""


def in_order(directions: tuple[Direction, ...], entries: Iterable[tuple[Any, ...]]) -> Any:
    """Return the last items of entries, in the order of those before; without any, in their own.

    >>> in_order(((True, "last"),), [(1, "a"), (None, "b"), (2, "c")])
    ('c', 'a', 'b')
    """
    if not directions:
        return tuple(sorted((entry[-1] for entry in entries), key=_by_type))
    found = list(entries)
    for place, (descending, nulls) in reversed(list(enumerate(directions))):
        none = [entry for entry in found if entry[place] is None]
        some = [entry for entry in found if entry[place] is not None]
        some.sort(key=itemgetter(place), reverse=descending)
        found = none + some if nulls == "first" else some + none
    return tuple(entry[-1] for entry in found)
