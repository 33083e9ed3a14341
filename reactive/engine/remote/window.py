"""The first rows of an order whose other rows are elsewhere.

    order_by(k).limit(n, offset)      needs the first offset + n rows; some more are held here,
                                      up to a bound. What is beyond it is only kept.

A row within the bound is inserted or deleted here. When so many were deleted that there are too
few, the rows that are kept are looked through once for the next ones: after at least as many
removals from the top as were held in reserve.

State:  some multiple of offset + n rows.
Cost:   O(|dL| + rows held) per flush; now and then O(all rows).
Source: K. Yi et al., *Efficient Maintenance of Materialized Top-k Views*, 2003.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from optimizer import plan
from reactive.engine.collections.order import sort_key, tie_key
from reactive.engine.collections.zset import Pair, Pairs, Row, consolidate
from reactive.engine.operators.plain import order_key
from reactive.engine.remote.external import ExternalInput
from reactive.engine.remote.remote import Entry, Remote

RESERVE = 64
"""Rows that are held at least beyond those that are needed."""


class Window:
    """A `Remote` whose output are the first rows of an order and some more; `rows` keeps them all.

    Parameters
    ----------
    order: the node that is to be shown; another operator does so with what this emits.
    rows: a remote whose output is its input.
    """

    def __init__(self, order: plan.OrderBy, rows: Remote) -> None:
        assert order.limit is not None
        self._rows = rows
        self._key = order_key(order)
        self._descending = order.descending
        self._needed = order.limit + order.offset
        self._held: Counter[Row] = Counter()
        self._bound: _Rank | None = None
        """The last row that is held, if rows beyond it are kept."""
        self._is_known = False
        self.begun_anew = rows.begun_anew
        self.adopt = rows.adopt
        self.bucket = rows.bucket
        self.entries = rows.entries
        self.footprint = rows.footprint

    @property
    def resumed(self) -> int | None:
        return self._rows.resumed

    def pack(self, place: int, key: Any, row: Row) -> tuple[int, Any]:
        bucket, packed = self._rows.pack(place, key, row)
        return bucket, _Packed(packed, row)

    def stage(self, number: int, entries: Sequence[Entry]) -> None:
        self._is_known = False  # what is held is looked up once they are there
        self._rows.stage(number, _sent(entries))

    def apply(
        self,
        number: int,
        entries: Sequence[Entry],
        fed: Sequence[ExternalInput] = (),
        *,
        quiet: bool = False,
    ) -> Pairs:
        self._rows.apply(number, _sent(entries), fed, quiet=True)
        seen = self._is_known and not fed
        held, bound = self._after(entries) if seen else self._looked_up()
        changes = consolidate([*held.items(), *((row, -n) for row, n in self._held.items())])
        self._held, self._bound, self._is_known = held, bound, True
        return () if quiet else changes

    def _after(self, entries: Sequence[Entry]) -> tuple[Counter[Row], _Rank | None]:
        """What is held after these insertions and deletions."""
        held, bound = self._held.copy(), self._bound
        for _, _, packed, weight in entries:
            if bound is None or not bound < self._rank(packed.row):
                held[packed.row] += weight
        held = Counter({row: n for row, n in held.items() if n})
        if held.total() < self._needed and bound is not None:
            return self._looked_up()
        return self._first(held.items, bound) if len(held) > 2 * self._wanted else (held, bound)

    def _looked_up(self) -> tuple[Counter[Row], _Rank | None]:
        return self._first(self._rows.contents, None)

    def _first(
        self, pairs: Callable[[], Iterable[Pair]], bound: _Rank | None
    ) -> tuple[Counter[Row], _Rank | None]:
        """The first of some rows, and the last rank that is held; `bound` if these are all."""
        first = heapq.nsmallest(self._wanted + 1, pairs(), key=lambda pair: self._rank(pair[0]))
        if len(first) <= self._wanted:
            return Counter(dict(first)), bound
        last, beyond = (self._rank(row) for row, _ in first[-2:])
        if last < beyond:
            return Counter(dict(first[:-1])), last
        return Counter({row: n for row, n in pairs() if not last < self._rank(row)}), last

    @property
    def _wanted(self) -> int:
        return 2 * self._needed + RESERVE

    def _rank(self, row: Row) -> _Rank:
        return _Rank(sort_key(self._key(row)), row, self._descending)

    def contents(self) -> Iterable[Pair]:
        if not self._is_known:
            self._held, self._bound = self._looked_up()
            self._is_known = True
        return list(self._held.items())

    def at(self, bucket: int) -> Iterable[Pair]:
        return self.contents()

    def describe(self) -> str:
        return f"{self._rows.describe()}; the first {self._held.total()} rows in the process"

    def stop(self) -> None:
        self._rows.stop()

    def close(self) -> None:
        self._rows.close()


class _Packed:
    """A row as it is sent, and as it is."""

    __slots__ = ("packed", "row")

    def __init__(self, packed: Any, row: Row) -> None:
        self.packed = packed
        self.row = row

    def __eq__(self, other: object) -> bool:
        return bool(self.packed == _unpacked(other))

    def __hash__(self) -> int:
        return hash(self.packed)


def _sent(entries: Sequence[Entry]) -> list[Entry]:
    return [(place, bucket, _unpacked(row), weight) for place, bucket, row, weight in entries]


def _unpacked(row: Any) -> Any:
    return row.packed if isinstance(row, _Packed) else row


class _Rank:
    """The place of a row in the order; rows that no order tells apart share theirs."""

    __slots__ = ("_descending", "_key", "_row")

    def __init__(self, key: Any, row: Row, descending: bool) -> None:
        self._key = key
        self._row = row
        self._descending = descending

    def __lt__(self, other: _Rank) -> bool:
        first, second = (other, self) if self._descending else (self, other)
        if first._key < second._key or second._key < first._key:
            return bool(first._key < second._key)
        return bool(tie_key(self._row) < tie_key(other._row))
