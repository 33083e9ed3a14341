"""A recursion by partitions in a flush that the process does: those that a change can touch.

    rows of a side that go   --ways, over the rows as they are--> rows that lose a derivation
    rows of a side that come --ways-->                            rows that may be new
    their partitions: the seeds after, all of the sides --this engine--> after - before

What goes and what comes is looked at one after the other: a row that loses one derivation and gets
another has the same number of them, and may still hang in the air.

Sound:  as `decomposed.py`. Ways are joins and what looks at one row after the other, so that rows
        of one sign derive rows of one sign.
State:  none beside the tables.
Cost:   O(rows of the sides + derivations in the touched partitions).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from reactive.engine.codegen.functions import callable_of
from reactive.engine.collections.zset import Row, canonical
from reactive.engine.reference.bags import Bag
from spark_backend.codec.hashing import flattened_values, leaves
from spark_backend.codec.schema import Typed
from spark_backend.direct.flush import NOTHING, DirectFlush, TooMany, together
from spark_backend.direct.lookup import Lookup, fields_read
from spark_backend.recursion.parts import Parts
from spark_backend.recursion.worker import Task, brought_to_end
from spark_backend.state.tables import TableSpec


class DirectPartitions:
    """The partitions of a recursion.

    Parameters
    ----------
    specs: the tables of its rows and of its seeds.
    key: what tells partitions apart.
    """

    def __init__(self, parts: Parts, specs: Sequence[TableSpec], task: Task, key: Typed) -> None:
        self._parts, self._task, self._key, self._kept = parts, task, key, parts.own.kept
        self._rows, self._seeds = specs
        self._key_of = callable_of(parts.column)
        self._lookup = Lookup(leaves(key), fields_read((parts.column,), self._kept, 1))

    def delta(self, flush: DirectFlush) -> Bag:
        """How the rows of the relation change."""
        if not self._parts.is_positive:
            raise TooMany("a recursion with a negation")
        seeds = together([flush.delta(step) for step in self._parts.seeds])
        changes = [side.direct_change(flush) for side in self._parts.sides]
        if not seeds and not any(changes):
            return NOTHING
        flush.check_anew(side.spec for side in self._parts.sides)
        flush.add(self._seeds, self._kept, seeds)
        found = self._brought_to_end(flush, self._touched(flush, seeds, changes), seeds, changes)
        flush.add(self._rows, self._kept, found)
        later = flush.beside({self._parts.own: found})
        for premise in self._parts.premises:
            flush.add(premise.spec, premise.source.kept, later.delta(premise.source))
        return found

    def _touched(self, flush: DirectFlush, seeds: Bag, changes: Sequence[Bag]) -> set[Any]:
        """The partitions of rows that may go, or that come."""
        lost = {row for row, weight in seeds.items() if weight < 0}
        lost.update(self._derived(flush, changes, -1))
        come = {row for row, weight in seeds.items() if weight > 0}
        come.update(self._derived(flush, changes, 1))
        there = self._of(flush, self._rows, self._keys(come))
        return self._keys(lost) | self._keys(row for row in come if there.get(row, 0) <= 0)

    def _derived(self, flush: DirectFlush, changes: Sequence[Bag], sign: int) -> set[Row]:
        """What rows that go, or that come, derive from rows as they are."""
        known = {
            side.source: Counter({row: 1 for row, weight in change.items() if weight * sign > 0})
            for side, change in zip(self._parts.sides, changes, strict=True)
        }
        beside = flush.beside(known)
        return {row for way in self._parts.ways for row in beside.delta(way)}

    def _brought_to_end(
        self, flush: DirectFlush, keys: set[Any], seeds: Bag, changes: Sequence[Bag]
    ) -> Bag:
        before = self._of(flush, self._rows, keys)
        after = together([self._of(flush, self._seeds, keys), self._among(seeds, keys)])
        sides = [
            together([flush.all_rows(side.spec, side.source.kept), change])
            for side, change in zip(self._parts.sides, changes, strict=True)
        ]
        found = Counter(dict.fromkeys(brought_to_end(self._task, after, sides), 1))
        gone = Counter({row: -1 for row, weight in before.items() if weight > 0})
        return together([found, gone])

    def _of(self, flush: DirectFlush, spec: TableSpec, keys: set[Any]) -> Bag:
        """The rows of a table that are of some partitions."""
        if not keys:
            return NOTHING
        asked = {tuple(flattened_values(self._key, key)) for key in keys}
        return self._among(flush.having(spec, self._kept, self._lookup, asked), keys)

    def _among(self, rows: Bag, keys: set[Any]) -> Bag:
        return Counter({row: n for row, n in rows.items() if self._partition(row) in keys})

    def _keys(self, rows: Iterable[Row]) -> set[Any]:
        return {self._partition(row) for row in rows}

    def _partition(self, row: Row) -> Any:
        return canonical(self._key_of(row))
