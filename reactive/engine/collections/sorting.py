"""What the rows of an order are sorted by: its keys as one, for a list that is read from one end.

    order_by(f)                     f(row)
    order_by(f, nulls="last")       (0, f(row)), and (1,) for None
    order_by(f, desc(g))            (f(row), -g(row)), or Reversed(g(row)) of what is no number

The list is sorted as the first key wants it, and read backwards if that is descending; keys of the
other direction are reversed. A key alone, without a place for None, is the user's callable itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

from optimizer import plan
from reactive.engine.collections.order import FIRST, sort_key
from reactive.engine.collections.zset import Row, canonical, is_nan

Key = Callable[[Row], Any]
LOW, HIGH = (-1,), (1,)
"""In the place of None: before and after `(0, value)`, without a comparison of the value."""


class Reversed:
    """A key that comes before those that are less; for what is no number (`reversed_key`).

    >>> sorted([Reversed("a"), Reversed("b")])[0].key
    'b'
    """

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: Any) -> bool:
        if other.__class__ is not Reversed:
            return other is not FIRST and bool(-other < self.key)
        return bool(other.key < self.key)

    def __gt__(self, other: Any) -> bool:
        return other is FIRST or bool(self.key < -other)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reversed) and bool(self.key == other.key)

    __hash__ = None  # type: ignore[assignment]


def reversed_key(value: Any) -> Any:
    """What is less where a value is greater: of numbers the negative, which compares faster.

    >>> sorted([2, 7, 3.5], key=reversed_key), sorted("ab", key=reversed_key)
    ([7, 3.5, 2], ['b', 'a'])
    """
    kind = value.__class__
    if kind is int:
        return -value
    if is_nan(canonical(value)):
        return FIRST
    if kind is float or kind is Fraction:
        return -value
    if kind is Decimal:
        return value.copy_negate()
    if isinstance(value, Integral):
        return -int(value)
    return -value if isinstance(value, Real) else Reversed(sort_key(value))


def sorted_by(keys: Sequence[plan.SortKey], calls: Sequence[Key]) -> Key:
    """What a row is sorted by; `calls` are the callables of the keys, of one row."""
    first = keys[0].descending
    parts = [_part(key, call, first) for key, call in zip(keys, calls, strict=True)]
    if len(parts) == 1:
        return parts[0]
    return lambda row: tuple([part(row) for part in parts])


def _part(key: plan.SortKey, call: Key, first: bool) -> Key:
    """One key, in a list that is sorted as the first key wants it."""
    is_reversed = key.descending != first
    if key.nulls is not None:
        null = LOW if (key.nulls == "first") != key.descending else HIGH
        return (_reversed_with_nulls if is_reversed else _with_nulls)(call, null)
    return (lambda row: reversed_key(call(row))) if is_reversed else call


def _with_nulls(call: Key, null: tuple[int]) -> Key:
    return lambda row: _placed(call(row), null)


def _reversed_with_nulls(call: Key, null: tuple[int]) -> Key:
    other = HIGH if null is LOW else LOW

    def part(row: Row) -> Any:
        value = call(row)
        return other if value is None else (0, reversed_key(_placed(value, null)[1]))

    return part


def _placed(value: Any, null: tuple[int]) -> tuple[Any, ...]:
    """A value that compares with what stands for None, in tuples too."""
    if value is None:
        return null
    if isinstance(value, tuple):
        return (0, tuple([_placed(part, null) for part in value]))
    return (0, value)
