"""Least and greatest value of each sensor, with inserted and deleted extremes."""

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
from asv_benchmarks.workloads.counts import take_one
from reactive import Max, Min, Relation, Table

Shown = tuple[int, int, int]


def query(readings: Table[Reading]) -> Relation[*tuple[Any, ...]]:
    """(sensor, least value, greatest value)."""
    extremes: Relation[*tuple[Any, ...]] = readings.group_by(lambda r: r.sensor).aggregate(
        Min(lambda r: r.value), Max(lambda r: r.value)
    )
    return extremes


class Twin:
    """Keep readings with their counts, to refuse the removal of an absent one.

    Keep the values of each sensor in order, since the next extreme may be any of them, and the row
    of the result, to see immediately whether a value is an extreme.
    """

    def __init__(self, listener: Listener) -> None:
        self._readings: dict[Reading, int] = {}
        self._values: dict[int, SortedList] = {}
        self._shown: dict[int, Shown] = {}
        self._listener = listener

    def verbs(self) -> Sequence[tuple[Verb, Verb]]:
        return [(self.add, self.remove)]

    def add(self, row: Reading) -> None:
        self._readings[row] = self._readings.get(row, 0) + 1
        sensor, value = row.sensor, row.value
        values = self._values.get(sensor)
        if values is None:
            self._values[sensor] = SortedList((value,))
            self._show(sensor, None, (sensor, value, value))
            return
        values.add(value)
        old = self._shown[sensor]
        if value < old[1]:
            self._show(sensor, old, (sensor, value, old[2]))
        elif value > old[2]:
            self._show(sensor, old, (sensor, old[1], value))

    def remove(self, row: Reading) -> None:
        take_one(self._readings, row)
        sensor, value = row.sensor, row.value
        values = self._values[sensor]
        values.remove(value)
        old = self._shown[sensor]
        if not values:
            del self._values[sensor], self._shown[sensor]
            self._listener.change(old, None)
        elif value in old[1:]:
            new = (sensor, values[0], values[-1])
            if new != old:
                self._show(sensor, old, new)

    def batch(self, *deltas: TableDelta) -> None:
        readings = self._readings
        came: dict[int, list[int]] = {}
        touched: dict[int, None] = {}
        for row, weight in deltas[0].pairs():
            touched[row.sensor] = None
            if weight > 0:
                readings[row] = readings.get(row, 0) + 1
                came.setdefault(row.sensor, []).append(row.value)
            else:
                take_one(readings, row)
                self._values[row.sensor].remove(row.value)
        for sensor, values in came.items():
            self._values.setdefault(sensor, SortedList()).update(values)
        self._tell(touched)

    def result(self) -> Result:
        return dict.fromkeys(self._shown.values(), 1)

    def _show(self, sensor: int, old: Shown | None, new: Shown) -> None:
        self._shown[sensor] = new
        self._listener.change(old, new)

    def _tell(self, touched: dict[int, None]) -> None:
        changes: list[OldNew] = []
        for sensor in touched:
            old, values = self._shown.pop(sensor, None), self._values[sensor]
            new: Shown | None = None
            if values:
                new = self._shown[sensor] = (sensor, values[0], values[-1])
            else:
                del self._values[sensor]
            if old != new:
                changes.append((old, new))
        self._listener.changes(changes)


class Sliding:
    """Insert a new least value of a sensor, then delete the greatest one of a sensor."""

    def __init__(self, rows: list[Reading], random: Random) -> None:
        self._by_sensor: list[SortedList] = [SortedList(key=_value) for _ in range(SENSORS)]
        for row in rows:
            self._by_sensor[row.sensor].add(row)
        self._next = len(rows)
        self._random = random
        self._adding = False

    def visible(self) -> Change:
        self._adding = not self._adding
        readings = self._sensor()
        if not self._adding:
            return Change(0, readings.pop(), -1)
        least: Reading = readings[0]
        return self._add(Reading(self._next, least.sensor, least.value - SPACING))

    def ordinary(self) -> Change:
        self._adding = not self._adding
        if self._adding:
            return self._add(reading(self._next, self._random))
        readings = self._sensor()
        return Change(0, readings.pop(self._random.randrange(len(readings))), -1)

    def _add(self, row: Reading) -> Change:
        self._by_sensor[row.sensor].add(row)
        self._next += 1
        return Change(0, row, 1)

    def _sensor(self) -> SortedList:
        """The readings of a random sensor that has more than one."""
        while True:
            readings = self._by_sensor[self._random.randrange(SENSORS)]
            if len(readings) > 1:
                return readings


def rows(size: int, random: Random) -> Rows:
    """Readings of a thousand sensors."""
    return ([reading(number, random) for number in range(size)],)


def stream(rows: Rows, random: Random) -> Stream:
    """Insert and delete extremes."""
    return Sliding(rows[0], random)


def _value(row: Reading) -> int:
    return row.value


WORKLOAD = Workload(
    name="min_max",
    title="min and max, the extreme deleted",
    tables=(TableOf(Reading),),
    query=query,
    twin=Twin,
    rows=rows,
    stream=stream,
)
