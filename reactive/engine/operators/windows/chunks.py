"""Chunks of rows that stand beside each other, as columns, and the places at which keys change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any


class Chunk:
    """Some rows that stand beside each other."""

    __slots__ = ("cells", "heads", "keys", "known", "shown")

    def __init__(
        self, keys: list[Any], heads: list[Any], cells: list[Any], shown: list[Any]
    ) -> None:
        self.keys = keys
        self.heads = heads
        self.cells = cells
        self.shown = shown
        self.known: dict[Any, Any] | None = None
        """Values that functions computed from all rows, by the name of the function."""

    def cached(self, name: Any, compute: Callable[[list[Any]], Any]) -> Any:
        """Return a value of all cells, which is computed once until a row changes."""
        if self.known is None:
            self.known = {}
        if name not in self.known:
            self.known[name] = compute(self.cells)
        return self.known[name]


def runs_of_equals(keys: list[Any]) -> Iterator[tuple[int, int]]:
    """Yield the spans of several equal keys."""
    start = 0
    for place in places_of_changes(keys):
        if place - start > 1:
            yield start, place
        start = place


def count_changes_of(chunk: Chunk, cells: list[Any]) -> int:
    """Return the number of keys of a chunk that differ from the one before."""
    return count_changes(chunk.keys)


def count_changes(keys: list[Any]) -> int:
    """Return the number of keys that differ from the one before."""
    return len(places_of_changes(keys)) - 1


def places_of_changes(keys: list[Any]) -> list[int]:
    """Return the places at which another key begins, and the number of keys."""
    pairs = enumerate(pairwise(keys), 1)
    found = [place for place, (key, after) in pairs if key is not after and key != after]
    return [*found, len(keys)] if keys else []
