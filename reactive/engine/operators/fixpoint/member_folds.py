"""Joins of the many members of a key, kept while members come and go.

    present   the join of all members
    founded   the join of those with a well-founded derivation

State:  two nodes per member, in each of the two trees.
Cost:   O(log members) joins per change; none before the join is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reactive.engine.collections.bag import MonoidTree

Counts = tuple[int, int, int]
"""Numbers of derivations of a member: all, those of a finite round, and those among them that are
not well-founded."""
NONE: Any = object()
"""The join of no members."""
NO_COUNTS: Counts = (0, 0, 0)
Join = Callable[[Any, Any], Any]


def is_founded(counts: Counts) -> bool:
    """Return True if a member has a well-founded derivation."""
    return counts[0] > 0 and counts[1] > counts[2]


class MemberFolds:
    """Joins of the members of a key.

    >>> folds = MemberFolds(max, {3: (1, 1, 0), 5: (1, 0, 0)})
    >>> folds.join(founded=True), folds.join(founded=False)
    (3, 5)
    >>> folds.change(5, (1, 0, 0), (0, 0, 0))
    >>> folds.join(founded=False)
    3
    """

    __slots__ = ("_founded", "_present")

    def __init__(self, join: Join, members: Mapping[Any, Counts]) -> None:
        def combine(a: Any, b: Any) -> Any:
            return b if a is NONE else a if b is NONE else join(a, b)

        self._present, self._founded = MonoidTree(NONE, combine), MonoidTree(NONE, combine)
        for value, counts in members.items():
            self.change(value, NO_COUNTS, counts)

    def change(self, value: Any, before: Counts, now: Counts) -> None:
        """Note new numbers of a member."""
        if (before[0] > 0) != (now[0] > 0):
            self._present.add(value, 1 if now[0] > 0 else -1)
        if is_founded(before) != is_founded(now):
            self._founded.add(value, 1 if is_founded(now) else -1)

    def join(self, *, founded: bool) -> Any:
        """Return the join of all members, or of those with a well-founded derivation; `NONE` if
        there are none."""
        return (self._founded if founded else self._present).total()
