"""What waits for a flush: entries, with about how many bytes they take.

State:  the entries.
Cost:   that of a list, and a look at one entry of sixteen.
"""

from __future__ import annotations

from collections.abc import Iterable

from reactive.engine.collections.sampled_size import SampledSize
from reactive.engine.remote.remote import Entry

BESIDE = 24
"""Bytes that a list and the garbage collector take for an entry."""


class Waiting(list[Entry]):
    """Entries that wait; more of them are added by `take` only.

    Examples
    --------
    >>> waiting = Waiting([(0, 0, "a" * 1000, 1)])
    >>> waiting.bytes > 1000
    True
    """

    __slots__ = ("_size",)

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        super().__init__(entries)
        self._size = SampledSize(each=BESIDE)
        self._size.add(self)

    def take(self, entries: list[Entry]) -> None:
        """Let more of them wait."""
        self += entries
        self._size.add(entries)

    @property
    def bytes(self) -> int:
        """About how many bytes they take."""
        return self._size.bytes
