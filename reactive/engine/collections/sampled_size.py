"""About how many bytes values take, by a look at one of sixteen.

A value that is looked at stands for itself and the fifteen that come before or after it, so that
over many values the sum is right on average, whatever their sizes. What several values have in
common counts with each of them.

State:  three numbers.
Cost:   a look at one of `EVERY` values, about a microsecond each.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

EVERY = 16
"""One of so many values is looked at."""
DEEPEST = 4
"""Levels of values inside of values that are looked at."""


class SampledSize:
    """How many values have been added, and about how many bytes they take.

    Parameters
    ----------
    each: bytes that each of them takes beside its own, such as of a tuple that it is in.

    Examples
    --------
    >>> size = SampledSize(each=8)
    >>> size.add(["word"] * 160)
    >>> size.bytes == 160 * (8 + size_of("word"))
    True
    """

    __slots__ = ("_each", "_until", "bytes", "count")

    def __init__(self, each: int = 0) -> None:
        self.bytes = self.count = 0
        self._each = each
        self._until = 0
        """How many values come before the next one that is looked at."""

    def add(self, values: Sequence[Any]) -> None:
        """Count some values."""
        count, at = len(values), self._until
        self.count += count
        self.bytes += self._each * count
        while at < count:
            self.bytes += EVERY * size_of(values[at])
            at += EVERY
        self._until = at - count


def size_of(value: Any, depth: int = DEEPEST) -> int:
    """The bytes of a value with its parts.

    Examples
    --------
    >>> size_of(("a" * 1000, 1)) > 1000
    True
    """
    size = sys.getsizeof(value)
    return size + sum(size_of(part, depth - 1) for part in _parts(value)) if depth else size


def _parts(value: Any) -> Iterator[Any]:
    """What a row is made of: of a tuple, or an object with fields."""
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
