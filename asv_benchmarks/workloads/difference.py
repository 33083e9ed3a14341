"""Difference: the items that are wanted and not done."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from random import Random
from typing import Any

from asv_benchmarks.churn import take
from asv_benchmarks.rows import Item
from asv_benchmarks.workload import (
    Change,
    Listener,
    Result,
    Rows,
    Stream,
    TableDelta,
    TableOf,
    Verb,
    Workload,
)
from asv_benchmarks.workloads.counts import take_one
from reactive import Relation, Table


def query(wanted: Table[Item], done: Table[Item]) -> Relation[*tuple[Any, ...]]:
    """The items of the left that the right lacks."""
    rest: Relation[*tuple[Any, ...]] = wanted - done
    return rest


class Twin:
    """Keep both tables with counts: each decides the effect of a change of the other one.

    Keep the result as a set, to be read.
    """

    def __init__(self, listener: Listener) -> None:
        self._wanted: dict[Item, int] = {}
        self._done: dict[Item, int] = {}
        self._result: set[Item] = set()
        self._listener = listener

    def verbs(self) -> Sequence[tuple[Verb, Verb]]:
        return [(self.add, self.remove), (self.add_done, self.remove_done)]

    def add(self, row: Item) -> None:
        count = self._wanted.get(row, 0)
        self._wanted[row] = count + 1
        if not count and row not in self._done:
            self._result.add(row)
            self._listener.change(None, row)

    def remove(self, row: Item) -> None:
        if not take_one(self._wanted, row) and row not in self._done:
            self._result.remove(row)
            self._listener.change(row, None)

    def add_done(self, row: Item) -> None:
        count = self._done.get(row, 0)
        self._done[row] = count + 1
        if not count and row in self._wanted:
            self._result.remove(row)
            self._listener.change(row, None)

    def remove_done(self, row: Item) -> None:
        if not take_one(self._done, row) and row in self._wanted:
            self._result.add(row)
            self._listener.change(None, row)

    def batch(self, *deltas: TableDelta) -> None:
        touched: dict[Item, None] = {}
        for counts, delta in zip((self._wanted, self._done), deltas, strict=True):
            for row, weight in delta.pairs():
                touched[row] = None
                if weight > 0:
                    counts[row] = counts.get(row, 0) + 1
                else:
                    take_one(counts, row)
        self._tell(touched)

    def result(self) -> Result:
        return dict.fromkeys(self._result, 1)

    def _tell(self, touched: dict[Item, None]) -> None:
        wanted, done, result = self._wanted, self._done, self._result
        changes: list[tuple[Item | None, Item | None]] = []
        for row in touched:
            now = row in wanted and row not in done
            if now and row not in result:
                result.add(row)
                changes.append((None, row))
            elif not now and row in result:
                result.remove(row)
                changes.append((row, None))
        self._listener.changes(changes)


class FourTurns:
    """An item is wanted, another one done, one no longer wanted, one not done after all.

    Each changes the result, and both tables stay as large as they are.
    """

    def __init__(self, rows: Rows, random: Random) -> None:
        wanted, done = rows
        both = set(done)
        self._open: list[Item] = [row for row in wanted if row not in both]
        self._both: list[Item] = done.copy()
        self._next = len(wanted)
        self._random = random
        self._turns = cycle((self._want, self._finish, self._forget, self._reopen))

    def visible(self) -> Change:
        return next(self._turns)()

    def ordinary(self) -> Change:
        return self.visible()

    def _want(self) -> Change:
        row = _item(self._next)
        self._next += 1
        self._open.append(row)
        return Change(0, row, 1)

    def _finish(self) -> Change:
        row = self._any(self._open)
        self._both.append(row)
        return Change(1, row, 1)

    def _forget(self) -> Change:
        return Change(0, self._any(self._open), -1)

    def _reopen(self) -> Change:
        row = self._any(self._both)
        self._open.append(row)
        return Change(1, row, -1)

    def _any(self, rows: list[Item]) -> Item:
        return take(rows, self._random.randrange(len(rows)))


def rows(size: int, random: Random) -> Rows:
    """Return items, and half of them again: equal, but other objects."""
    done = random.sample(range(size), size // 2)
    return [_item(number) for number in range(size)], [_item(number) for number in done]


def stream(rows: Rows, random: Random) -> Stream:
    """Insert and delete items on both sides."""
    return FourTurns(rows, random)


def _item(number: int) -> Item:
    return Item(number, number % 10)


WORKLOAD = Workload(
    name="difference",
    title="difference",
    tables=(TableOf(Item), TableOf(Item)),
    query=query,
    twin=Twin,
    rows=rows,
    stream=stream,
)
