"""Several deltas of one subscription as one, for a reader that does not keep up.

    from version 3 to 4, from 4 to 5    -->    from 3 to 5
    weights                                    added, what cancels is dropped; so updates compose
    edits of an ordered relation               from the older sequence to the newer
    a snapshot                                 absorbs what comes before and after it

State:  a weight per row that differs between the two versions; of an ordered relation also the
        sequence as far as it was edited, in terms of the older one.
Cost:   O(|d|) to add a delta, times moving the references behind an edit; O(state) to read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from reactive.delta import Delta
from reactive.operators.order_by import Edit
from reactive.zset import Row, integrate


class Merged:
    """A delta that others are added to; `delta` is what they come to.

    >>> both = Merged(Delta(1, [("to", 1), ("be", 1)]))
    >>> both.add(Delta(2, [("to", -1), ("or", 1)]))
    >>> both.delta()
    Delta(version=2, added=('be', 'or'))
    """

    __slots__ = ("_is_snapshot", "_key", "_sequence", "_version", "_weights")

    def __init__(self, first: Delta[Any]) -> None:
        self._begin(first)

    def _begin(self, delta: Delta[Any]) -> None:
        self._version = delta.version
        self._is_snapshot = delta.is_snapshot
        self._key = delta._key
        self._weights: dict[Row, int] = dict(delta)
        self._sequence = Sequenced()
        self._sequence.edit(delta.edits)

    def add(self, delta: Delta[Any]) -> None:
        """Take in the next delta."""
        if delta.is_snapshot:
            self._begin(delta)
            return
        integrate(self._weights, delta._pairs)
        self._sequence.edit(delta.edits)
        self._version = delta.version

    @property
    def is_nothing(self) -> bool:
        """Whether all that came has gone again."""
        return not (self._is_snapshot or self._weights or self._sequence.is_edited)

    def delta(self) -> Delta[Any] | None:
        """One for all; None if they come to nothing."""
        pairs, edits = list(self._weights.items()), self._sequence.edits()
        if not pairs and not edits and not self._is_snapshot:
            return None
        return Delta(self._version, pairs, self._key, edits, is_snapshot=self._is_snapshot)


class Sequenced:
    """A sequence as far as it has been edited, in terms of what it was.

    Its items are places in the old sequence, and rows that have come, each in a tuple. Behind the
    last one follows what is left of the old sequence.

    >>> numbers = Sequenced()
    >>> numbers.edit([Edit(1, "a", -1), Edit(3, "b", 1), Edit(1, "a", 1), Edit(4, "b", -1)])
    >>> numbers.edits()
    []
    """

    __slots__ = ("_came", "_gone", "_items", "_next")

    def __init__(self) -> None:
        self._items: list[Any] = []
        self._next = 0  # the first place of the old sequence that is in no item
        self._gone: dict[int, Row] = {}  # the rows that have gone, by their old place
        self._came = 0

    @property
    def is_edited(self) -> bool:
        """Whether anything may differ."""
        return bool(self._came or self._gone)

    def edit(self, edits: Iterable[Edit]) -> None:
        """Edit it further."""
        items = self._items
        for position, row, weight in edits:
            self._reach(position + (weight < 0))
            if weight > 0:
                items.insert(position, (row,))
                self._came += 1
                continue
            item = items.pop(position)
            if item.__class__ is int:
                self._gone[item] = row
            else:
                self._came -= 1

    def _reach(self, length: int) -> None:
        """Have so many items."""
        missing = length - len(self._items)
        if missing > 0:
            self._items.extend(range(self._next, self._next + missing))
            self._next += missing

    def edits(self) -> list[Edit]:
        """What turns the old sequence into the new one: first what goes, from the end."""
        gone, came = self._differences()
        out = [Edit(place, row, -1) for place, row in sorted(gone.items(), key=_place)[::-1]]
        return out + [Edit(position, row, 1) for position, row in came]

    def _differences(self) -> tuple[dict[int, Row], list[tuple[int, Row]]]:
        """The rows that have gone, by old place, and those that have come, by new position.

        Of a row that has gone and come again between the same two others, neither is told, as long
        as those of which this is true stand in their old order.
        """
        gone, came = dict(self._gone), list[tuple[int, Row]]()
        gap: list[tuple[int, Row]] = []
        places = sorted(gone)
        start = 0
        for position, item in enumerate((*self._items, self._next)):
            if item.__class__ is tuple:
                gap.append((position, item[0]))
                continue
            end = bisect_left(places, item)
            if gap:
                kept = _unmoved(gap, [(place, gone[place]) for place in places[start:end]])
                for place in kept.values():
                    del gone[place]
                came += [pair for pair in gap if pair[0] not in kept]
                gap = []
            start = end
        return gone, came


def _unmoved(came: Sequence[tuple[int, Row]], gone: Sequence[tuple[int, Row]]) -> dict[int, int]:
    """The new position and old place of rows that went and came, as many as keep their order."""
    places: defaultdict[Row, list[int]] = defaultdict(list)
    for place, row in reversed(gone):
        places[row].append(place)
    pairs = [(position, places[row].pop()) for position, row in came if places.get(row)]
    return dict(_rising(pairs))


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """As many of the pairs as possible of which the second parts rise."""
    ends: list[int] = []  # the least last part of a rising run of each length
    last: list[int] = []  # and the pair that it is of
    before: list[int | None] = []  # the pair that stands before each in its longest run
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        ends[length:], last[length:] = [place, *ends[length + 1 :]], [number, *last[length + 1 :]]
        before.append(last[length - 1] if length else None)
    run: list[tuple[int, int]] = []
    at = last[-1] if last else None
    while at is not None:
        run.append(pairs[at])
        at = before[at]
    return run[::-1]


def _place(pair: tuple[int, Row]) -> int:
    return pair[0]
