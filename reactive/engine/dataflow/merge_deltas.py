"""Merge several deltas of one subscription, for a reader that lags behind.

    from version 3 to 4, from 4 to 5    -->    from 3 to 5
    weights                                    added; zero weights are dropped
    updates                                    composed: a -> b, b -> c is a -> c
    edits of an ordered relation               from the older sequence to the newer
    places                                     the same for each partition
    a snapshot                                 absorbs the deltas before and after it

State:  a weight per row that differs between the two versions; of an ordered relation, or places,
        also an item per edit.
Cost:   O(|d|) to add a delta, an edit O(sqrt(edits)); O(state) to read.
"""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import Any

from reactive.engine.collections.order import Edit, EditedSequence
from reactive.engine.collections.zset import Row, integrate
from reactive.engine.dataflow.delta import (
    Delta,
    MoveComposer,
    with_columns,
    with_places,
    with_tick,
)


class DeltaAccumulator:
    """Accumulator of deltas; `delta` returns their sum.

    >>> both = DeltaAccumulator(Delta(1, [("to", 1), ("be", 1)]))
    >>> both.add(Delta(2, [("to", -1), ("or", 1)]))
    >>> both.delta()
    Delta(version=2, added=('be', 'or'))
    """

    __slots__ = (
        "_chains",
        "_columns",
        "_is_snapshot",
        "_key",
        "_places",
        "_sequence",
        "_tick",
        "_version",
        "_weights",
    )

    def __init__(self, first: Delta[Any]) -> None:
        self._begin(first)

    def _begin(self, delta: Delta[Any]) -> None:
        """Start to accumulate from a first delta; earlier deltas are discarded."""
        self._version = delta.version
        self._tick = delta.tick
        self._is_snapshot = delta.is_snapshot
        self._key = delta._key
        self._columns = getattr(delta, "_columns", None)
        self._weights: dict[Row, int] = dict(delta)
        self._sequence = EditedSequence()
        self._sequence.edit(delta._edits)
        self._places: dict[Any, EditedSequence] = {}
        self._edit_places(delta)
        self._chains = MoveComposer()
        self._follow(delta)

    def add(self, delta: Delta[Any]) -> None:
        """Add the next delta."""
        if delta.is_snapshot:
            self._begin(delta)
            return
        integrate(self._weights, delta._pairs)
        self._sequence.edit(delta._edits)
        self._edit_places(delta)
        self._version = delta.version
        self._tick = delta.tick or self._tick
        self._follow(delta)

    def _edit_places(self, delta: Delta[Any]) -> None:
        """Compose the edits of each partition, whose key is their path; a snapshot has none."""
        if self._is_snapshot:
            return
        for path, edits in groupby(delta.places, key=attrgetter("path")):
            self._places.setdefault(path, EditedSequence()).edit(edits)

    def _follow(self, delta: Delta[Any]) -> None:
        """Compose the updates; updates that the key alone pairs are found in the sum later."""
        if self._is_snapshot or not (delta._has_moves or self._chains):
            return
        for row in delta.removed:
            self._chains.remove(row)
        for old, new in delta.updated:
            self._chains.move(old, new)

    @property
    def version(self) -> int:
        """The version of the last delta added."""
        return self._version

    @property
    def is_nothing(self) -> bool:
        """True if the deltas cancel out."""
        is_edited = any(each.is_edited for each in (self._sequence, *self._places.values()))
        return not (self._is_snapshot or self._weights or is_edited)

    def delta(self) -> Delta[Any] | None:
        """Return the sum of all deltas; None if they cancel out."""
        pairs, edits = list(self._weights.items()), self._sequence.edits()
        places = [
            Edit(*edit, path=path) for path, each in self._places.items() for edit in each.edits()
        ]
        if not pairs and not edits and not places and not self._is_snapshot:
            return None
        moves = self._chains.moves if self._chains else None
        made: Delta[Any] = Delta(
            self._version, pairs, self._key, edits, is_snapshot=self._is_snapshot, moves=moves
        )
        return with_columns(with_tick(with_places(made, places), self._tick), self._columns)
