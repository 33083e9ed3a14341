"""The readers of an index by the rows that they want: of a value, of several, or of a range.

    7                   the views of customer 7
    AnyOf((7, 8))       found by either
    Between(3, None)    found by every key above 3, and by those that it does not compare with

A row without a key, or with one that the condition may raise for, is for all readers to look at.

State:  a reference per reader and value; ranges in order.
Cost:   O(1) and the readers found; O(log ranges) more where there are any.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from optimizer.plans.wanted import AnyOf, Between
from reactive.engine.collections import range_index
from reactive.engine.collections.index import Mark
from reactive.engine.collections.key_range import Form, Range
from reactive.engine.dataflow.turns import Turns

if TYPE_CHECKING:
    from reactive.engine.dataflow.node import Node

Kind = tuple[Form, tuple[bool, bool]]
FEW = 64
"""Readers that may be remembered after they have gone."""


class Routes:
    """What each reader of a node wants, and who wants the rows of a key."""

    __slots__ = ("_exactly", "_ranges", "_readers", "turns")

    def __init__(self) -> None:
        self.turns = Turns()
        """Their turns to be looked at."""
        self._readers: dict[Node, None] = {}
        self._exactly: dict[Any, list[Node]] = {}
        self._ranges: dict[Kind, range_index.RangeIndex] = {}

    def __len__(self) -> int:
        return len(self._readers)

    def readers(self) -> Collection[Node]:
        """All of them."""
        return self._readers.keys()

    def add(self, reader: Node) -> None:
        """Have a reader found by what it wants."""
        self._readers[reader] = None
        self.turns.add(reader)
        wanted = reader.at
        if isinstance(wanted, Between):
            self._range(wanted).add(_key(wanted), reader, 1)
            return
        for value in wanted.values if isinstance(wanted, AnyOf) else (wanted,):
            self._exactly.setdefault(value, []).append(reader)

    def remove(self, reader: Node) -> None:
        """The reverse, if it is there."""
        if reader not in self._readers:
            return
        del self._readers[reader]
        if len(self.turns) > 2 * len(self._readers) + FEW:
            self.turns.drop_idle()
        wanted = reader.at
        if isinstance(wanted, Between):
            self._range(wanted).add(_key(wanted), reader, -1)
            return
        for value in wanted.values if isinstance(wanted, AnyOf) else (wanted,):
            readers = self._exactly[value]
            readers.remove(reader)
            if not readers:
                del self._exactly[value]

    def find(self, key: Any) -> Sequence[Node]:
        """Who wants to see the rows of a key."""
        if key.__class__ is Mark:
            return list(self._readers)
        found = self._exactly.get(key, ())
        if not self._ranges:
            return found
        ranges = self._ranges.values()
        return [*found, *(reader for index in ranges for reader, _ in index.pairs(key))]

    def _range(self, wanted: Between) -> range_index.RangeIndex:
        """Ranges that have the same ends, in their order."""
        low, high = wanted.low is not None, wanted.high is not None
        own: Form = "interval" if low and high else "point"
        other: Form = "point" if low and high else "high" if low else "low"
        kind = (other, wanted.closed)
        if kind not in self._ranges:
            self._ranges[kind] = range_index.RangeIndex(Range(own, other, wanted.closed), id)
        return self._ranges[kind]


def _key(wanted: Between) -> Any:
    """A range as the key of a reader: both of its ends, or the one that it has."""
    if wanted.low is None or wanted.high is None:
        return wanted.high if wanted.low is None else wanted.low
    return (wanted.low, wanted.high)
