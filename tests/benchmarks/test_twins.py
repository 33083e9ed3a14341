"""All sides are honest: equal results after every change, and one report of each change."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from asv_benchmarks.measure import batch_times, latencies, script, side_of, sides
from asv_benchmarks.rows import Parcel
from asv_benchmarks.run import SIDES
from asv_benchmarks.workload import OldNew, Row, Side, TableDelta, Workload, load
from asv_benchmarks.workloads import REWRITTEN, WORKLOADS
from reactive import Delta, TableError

each_workload = pytest.mark.parametrize("workload", [*WORKLOADS, *REWRITTEN], ids=lambda w: w.name)
SIZE = 300
STEPS = 400
CROWD = [Parcel(number, number % 5, number % 3 + 6) for number in range(40)]
"""Parcels of few orders at few depots, so that many of them pair."""


class Copy:
    """A listener that maintains the result from its deltas."""

    def __init__(self) -> None:
        self.weights: Counter[Row] = Counter()
        self.calls = 0

    def delta(self, delta: Delta[Any]) -> None:
        self._add(list(delta.items()))

    def change(self, old: Row | None, new: Row | None) -> None:
        self.changes([(old, new)])

    def changes(self, changes: list[OldNew]) -> None:
        pairs = [pair for old, new in changes for pair in ((old, -1), (new, 1))]
        self._add([(row, weight) for row, weight in pairs if row is not None])

    def rows(self) -> dict[Row, int]:
        return {row: weight for row, weight in self.weights.items() if weight}

    def _add(self, pairs: list[tuple[Row, int]]) -> None:
        self.calls += 1
        for row, weight in pairs:
            self.weights[row] += weight


class History:
    """Random additions and removals of a few rows, so that rows repeat and groups end."""

    def __init__(self, workload: Workload, seed: int) -> None:
        self.random = Random(seed)
        rows = (CROWD, CROWD) if workload in REWRITTEN else workload.rows(SIZE, self.random)
        self.pools = [self.random.sample(pool, min(len(pool), 40)) for pool in rows]
        self.keyed = [table.key is not None for table in workload.tables]
        self.held: list[Counter[Row]] = [Counter() for _ in rows]

    def delta(self, table: int, count: int) -> TableDelta:
        """Return a few inserted rows, and a few present rows that are deleted."""
        held, pool = self.held[table], self.pools[table]
        there = list(held.elements())
        removed = self.random.sample(there, min(count, len(there)))
        came = [self.random.choice(pool) for _ in range(count)]
        gone = set(removed)
        added = [row for row in dict.fromkeys(came) if row not in gone]
        if self.keyed[table]:
            added = [row for row in added if not held[row]]
        held.update(added)
        held.subtract(removed)
        return TableDelta(added, removed)


def all_sides(workload: Workload) -> tuple[list[Side], list[Copy]]:
    copies = [Copy() for _ in SIDES]
    return [side_of(workload, name, copy) for name, copy in zip(SIDES, copies, strict=True)], copies


def assert_equal(made: list[Side], copies: list[Copy]) -> None:
    *others, twin = (side.result() for side in made)
    assert all(other == twin for other in others)
    rows = Counter(twin) if isinstance(twin, list) else twin
    for copy in copies:
        assert copy.rows() == rows


@pytest.mark.long
@each_workload
@pytest.mark.parametrize("seed", range(3))
def test_all_sides_are_equal_after_every_change(workload: Workload, seed: int) -> None:
    made, copies = all_sides(workload)
    history = History(workload, seed)
    for _ in range(STEPS):
        table = history.random.randrange(len(workload.tables))
        added, removed = history.delta(table, history.random.randrange(2))
        for side in made:
            add, remove = side.verbs()[table]
            for row in removed:
                remove(row)
            for row in added:
                add(row)
        assert_equal(made, copies)


@pytest.mark.long
@each_workload
@pytest.mark.parametrize("seed", range(3))
def test_all_sides_are_equal_after_every_batch(workload: Workload, seed: int) -> None:
    made, copies = all_sides(workload)
    history = History(workload, seed)
    for _ in range(STEPS // 10):
        deltas = [
            history.delta(table, history.random.randrange(20))
            for table in range(len(workload.tables))
        ]
        for side in made:
            side.batch(*deltas)
        assert_equal(made, copies)


@each_workload
def test_all_refuse_the_removal_of_an_absent_row(workload: Workload) -> None:
    made, _ = all_sides(workload)
    rows = workload.rows(SIZE, Random(1))
    for side in made:
        load(side, rows)
        for (_, remove), (row, *_) in zip(side.verbs(), rows, strict=True):
            remove(row)
            with pytest.raises((TableError, KeyError, ValueError)):
                remove(row)


@pytest.mark.long
@each_workload
def test_a_visible_change_is_heard_once_by_all(workload: Workload) -> None:
    random = Random(2)
    rows = workload.rows(SIZE, random)
    stream = workload.stream(rows, random)
    made, copies = all_sides(workload)
    for side in made:
        load(side, rows)
    for number in range(STEPS):
        table, row, weight = stream.visible()
        calls = [copy.calls for copy in copies]
        for side in made:
            side.verbs()[table][weight < 0](row)
        heard = [copy.calls - before for copy, before in zip(copies, calls, strict=True)]
        assert heard == [1] * len(SIDES)
        if number % 10 == 0:
            assert_equal(made, copies)


@pytest.mark.long
@each_workload
def test_measuring_leaves_all_sides_equal(workload: Workload) -> None:
    todo = script(workload, SIZE, changes=100, batches=1, delta=50)
    timed = sides(workload, todo, SIDES)
    assert all(latency.typical > 0 for latency in latencies(timed))
    assert all(seconds > 0 for seconds in batch_times(timed, todo.batches))
    assert timed[0].side.result() == timed[1].side.result() == timed[2].side.result()
