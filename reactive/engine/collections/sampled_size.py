"""Approximate size of values in bytes, by measuring one in sixteen.

A measured value stands for itself and fifteen neighbours, so that over many values the sum is right
on average, whatever their sizes. Objects shared by several values count for each of them.

State:  three numbers.
Cost:   measuring one of `EVERY` values, about a microsecond each.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

EVERY = 16
"""One in `EVERY` values is measured."""
DEEPEST = 4
"""Levels of nested values that are measured."""


class SampledSize:
    """Number and approximate bytes of added values.

    Parameters
    ----------
    each: additional bytes of each value, such as of a tuple around it.

    Examples
    --------
    >>> size = SampledSize(each=8)
    >>> size.add(["word"] * 160)
    >>> size.bytes == 160 * (8 + deep_size("word"))
    True
    """

    __slots__ = ("_each", "_until", "bytes", "count")

    def __init__(self, each: int = 0) -> None:
        self.bytes = self.count = 0
        self._each = each
        self._until = 0
        """Number of values before the next measured one."""

    def add(self, values: Sequence[Any]) -> None:
        """Add values."""
        count, at = len(values), self._until
        self.count += count
        self.bytes += self._each * count
        while at < count:
            self.bytes += EVERY * deep_size(values[at])
            at += EVERY
        self._until = at - count


def deep_size(value: Any, depth: int = DEEPEST) -> int:
    """Return the bytes of a value with its parts.

    Examples
    --------
    >>> deep_size(("a" * 1000, 1)) > 1000
    True
    """
    size = sys.getsizeof(value)
    return size + sum(deep_size(part, depth - 1) for part in _value_parts(value)) if depth else size


def _value_parts(value: Any) -> Iterator[Any]:
    """Yield the parts of a tuple, or of an object with fields."""
    if isinstance(value, (str, bytes, int, float, type)):
        return
    if isinstance(value, (tuple, frozenset)):
        yield from value
    for name in _slots(type(value)):
        yield getattr(value, name, None)
    if hasattr(value, "__dict__"):
        yield from vars(value).values()


def _slots(kind: type) -> Iterator[str]:
    for each in kind.__mro__:
        slots = each.__dict__.get("__slots__", ())
        yield from (name for name in slots if not name.startswith("__"))
