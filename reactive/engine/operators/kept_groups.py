"""Groups that keep rows of their own; and reduce by a function that keeps its groups so.

Each group is told of its rows that come and go, and says what has changed.

    d(g)  =  what f says of the changes of g      for each group touched

The law is that of `reduce.py`; how a group finds what has changed is its own affair.

State:  what the function keeps of each group.
Cost:   what the function takes for the changes of the touched groups.
Source: `reduce` of differential dataflow, with a function that is itself incremental.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from reactive.engine.collections.zset import Pair, Pairs, Row, by_group


class Group(Protocol):
    """The rows of a group, kept by the function. After `undo` it is as before the last `step`."""

    @property
    def is_empty(self) -> bool: ...
    def step(self, changes: Sequence[Pair]) -> Sequence[Pair]: ...
    def undo(self) -> None: ...
    def commit(self) -> None: ...
    def contents(self) -> Iterable[Pair]: ...
    def footprint(self) -> tuple[int, int]: ...


G = TypeVar("G", bound=Group)


class Groups(Generic[G]):
    """Groups by their keys: those that a step makes or changes are undone or committed with it."""

    __slots__ = ("_groups", "_key", "_made", "_new", "_stepped", "touched")

    def __init__(self, key: Callable[[Row], Any], new: Callable[[], G]) -> None:
        self._key = key
        self._new = new
        self._groups: dict[Any, G] = {}
        self._stepped: dict[Any, G] = {}
        self._made: list[Any] = []  # the keys of groups that were not there before
        self.touched = 0

    def step(self, delta: Pairs) -> list[Pair]:
        self._stepped, self._made = {}, []
        out: list[Pair] = []
        try:
            for key, changes in by_group(delta, self._key).items():
                out += self._shown(key, changes)
        except BaseException:
            self.undo()
            raise
        return out

    def _shown(self, key: Any, changes: Sequence[Pair]) -> Iterable[Pair]:
        """How what is shown of a group changes."""
        return self._group(key).step(changes)

    def undo(self) -> None:
        for group in self._stepped.values():
            group.undo()
        for key in self._made:
            self._groups.pop(key, None)
        self._stepped, self._made = {}, []

    def commit(self) -> None:
        for key, group in self._stepped.items():
            group.commit()
            if group.is_empty:
                del self._groups[key]
        self._stepped, self._made = {}, []

    def contents(self) -> Iterable[Pair]:
        return [pair for group in self._groups.values() for pair in group.contents()]

    def footprint(self) -> tuple[int, int]:
        rows, size = 0, sys.getsizeof(self._groups)
        for group in self._groups.values():
            held, taken = group.footprint()
            rows += held
            size += taken + sys.getsizeof(group)
        return rows, size

    def _group(self, key: Any) -> G:
        group = self._groups.get(key)
        if group is None:
            self._made.append(key)
            group = self._groups[key] = self._new()
        self._stepped[key] = group
        return group


class KeptGroups(Groups[Group]):
    """Groups of which a function keeps what it needs; rows are shown behind the key of theirs."""

    __slots__ = ()

    def _shown(self, key: Any, changes: Sequence[Pair]) -> Iterable[Pair]:
        shown = self._group(key).step(changes)
        self.touched += len(changes) + len(shown)
        return [((key, row), weight) for row, weight in shown]

    def contents(self) -> Iterable[Pair]:
        return [
            ((key, row), weight)
            for key, group in self._groups.items()
            for row, weight in group.contents()
        ]
