"""What the rows of an order are sorted by: its keys as one, for a list that is read from one end.

    order_by(f)                     f(row)
    order_by(f, nulls="last")       (0, f(row)), and (1,) for None
    order_by(f, desc(g))            (f(row), Reversed(g(row)))

The list is sorted as the first key wants it, and read backwards if that is descending; keys of the
other direction are reversed. A key alone, without a place for None, is the user's callable itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from optimizer import plan
from reactive.collections.order import sort_key
from reactive.collections.zset import Row

Key = Callable[[Row], Any]
LOW, HIGH = (-1,), (1,)
"""In the place of None: before and after `(0, value)`, without a comparison of the value."""


class Reversed:
    """A key that comes before those that are less.

    >>> sorted([Reversed(1), Reversed(2)])[0].key
    2
    """

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: Reversed) -> bool:
        return bool(other.key < self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reversed) and bool(self.key == other.key)

    __hash__ = None  # type: ignore[assignment]


def sorted_by(keys: Sequence[plan.SortKey], calls: Sequence[Key]) -> Key:
    """What a row is sorted by; `calls` are the callables of the keys, of one row."""
    first = keys[0].descending
    parts = [_part(key, call, first) for key, call in zip(keys, calls, strict=True)]
    if len(parts) == 1:
        return parts[0]
    return lambda row: tuple([part(row) for part in parts])


def _part(key: plan.SortKey, call: Key, first: bool) -> Key:
    """One key, in a list that is sorted as the first key wants it."""
    if key.nulls is not None:
        call = _with_nulls(call, LOW if (key.nulls == "first") != key.descending else HIGH)
    return call if key.descending == first else lambda row: Reversed(sort_key(call(row)))


def _with_nulls(call: Key, null: tuple[int]) -> Key:
    return lambda row: _placed(call(row), null)


def _placed(value: Any, null: tuple[int]) -> tuple[Any, ...]:
    """A value that compares with what stands for None, in tuples too."""
    if value is None:
        return null
    if isinstance(value, tuple):
        return (0, tuple([_placed(part, null) for part in value]))
    return (0, value)
