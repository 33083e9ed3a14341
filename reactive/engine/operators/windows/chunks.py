"""Chunks of rows that stand beside each other, as columns, and the places at which keys change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

ShownRow = tuple[Any, Any, Any, Any]
"""A row as a chunk holds it: its sort key, its head, its cell, and its answer or answers."""


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

    def move(self, number: int, place: int, to: int, row: ShownRow, log: list[Any]) -> None:
        """Replace the row at a place by another, at a place without it; log how to undo that.

        An interrupt can occur only before or after. `number` is that of the chunk.
        """
        key, head, cell, answer = row
        keys, heads, cells, shown = self.keys, self.heads, self.cells, self.shown
        was, end = (keys[place], heads[place], cells[place], shown[place]), len(log)
        log[end:end] = (("moved", number, place, to, was),)  # no call from here on
        if place == to:
            keys[to], heads[to], cells[to], shown[to] = key, head, cell, answer
        else:
            del keys[place], heads[place], cells[place], shown[place]
            keys[to:to] = (key,)
            heads[to:to] = (head,)
            cells[to:to] = (cell,)
            shown[to:to] = (answer,)
        self.known = None

    def move_back(self, place: int, to: int, was: ShownRow) -> None:
        """Undo `move`, by the arguments that it has logged."""
        self.move(0, to, place, was, [])


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
