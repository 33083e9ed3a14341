"""The ten greatest readings, in order."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from sortedcontainers import SortedList

from asv_benchmarks.rows import SENSORS, SPACING, Reading, reading
from asv_benchmarks.workload import (
    Change,
    Listener,
    OldNew,
    Result,
    Rows,
    Stream,
    TableDelta,
    TableOf,
    Verb,
    Workload,
)
from reactive import Relation, Table

TEN = 10
Entry = tuple[int, int, Reading]


def query(readings: Table[Reading]) -> Relation[*tuple[Any, ...]]:
    """The ten readings with the greatest values."""
    top: Relation[*tuple[Any, ...]] = readings.order_by(lambda r: r.value, descending=True).limit(
        10
    )
    return top


class Twin:
    """Keep all readings in order: any of them may move up when higher ones are deleted.

    The sorted list also tells whether a reading may be removed; no dictionary is needed.
    """

    def __init__(self, listener: Listener) -> None:
        self._entries = SortedList()
        self._listener = listener

    def verbs(self) -> Sequence[tuple[Verb, Verb]]:
        return [(self.add, self.remove)]

    def add(self, row: Reading) -> None:
        entries, entry = self._entries, _entry(row)
        place = entries.bisect_left(entry)
        entries.add(entry)
        if place < TEN:
            pushed_out = entries[TEN][2] if len(entries) > TEN else None
            self._listener.change(pushed_out, row)

    def remove(self, row: Reading) -> None:
        entries, entry = self._entries, _entry(row)
        place = entries.bisect_left(entry)
        entries.remove(entry)
        if place < TEN:
            moved_up = entries[TEN - 1][2] if len(entries) >= TEN else None
            self._listener.change(row, moved_up)

    def batch(self, *deltas: TableDelta) -> None:
        entries = self._entries
        before = self._top()
        for row in deltas[0].removed:
            entries.remove(_entry(row))
        entries.update(map(_entry, deltas[0].added))
        now = self._top()
        changes: list[OldNew] = [(row, None) for row in _less(before, now)]
        changes += [(None, row) for row in _less(now, before)]
        self._listener.changes(changes)

    def result(self) -> Result:
        return self._top()

    def _top(self) -> list[Reading]:
        return [row for _, _, row in self._entries[:TEN]]


class Leaders:
    """Insert a reading as the new leader, then delete one of the ten."""

    def __init__(self, rows: list[Reading], random: Random) -> None:
        self._rows = SortedList(rows, key=_value)
        self._next = len(rows)
        self._random = random
        self._adding = False

    def visible(self) -> Change:
        self._adding = not self._adding
        if not self._adding:
            place = len(self._rows) - 1 - self._random.randrange(TEN)
            return Change(0, self._rows.pop(place), -1)
        sensor = self._random.randrange(SENSORS)
        return self._add(Reading(self._next, sensor, self._rows[-1].value + SPACING))

    def ordinary(self) -> Change:
        self._adding = not self._adding
        if self._adding:
            return self._add(reading(self._next, self._random))
        return Change(0, self._rows.pop(self._random.randrange(len(self._rows))), -1)

    def _add(self, row: Reading) -> Change:
        self._rows.add(row)
        self._next += 1
        return Change(0, row, 1)


def rows(size: int, random: Random) -> Rows:
    """Readings whose values differ."""
    return ([reading(number, random) for number in range(size)],)


def stream(rows: Rows, random: Random) -> Stream:
    """Insert and delete readings of the ten."""
    return Leaders(rows[0], random)


def _entry(row: Reading) -> Entry:
    return (-row.value, row.id, row)


def _value(row: Reading) -> int:
    return row.value


def _less(rows: list[Reading], others: list[Reading]) -> list[Reading]:
    """Return the rows without the others, copy by copy."""
    rest = rows.copy()
    for row in others:
        if row in rest:
            rest.remove(row)
    return rest


WORKLOAD = Workload(
    name="top_ten",
    title="top 10",
    tables=(TableOf(Reading),),
    query=query,
    twin=Twin,
    rows=rows,
    stream=stream,
)
