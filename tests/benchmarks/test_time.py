"""The benchmark of time runs, and compares equal work."""

from __future__ import annotations

import pytest

from asv_benchmarks import time, time_joins


@pytest.mark.parametrize("name", time.VIEWS)
def test_a_tick_removes_as_many_rows_as_the_deletion(name: str) -> None:
    side = time.Ticks(name, 200)
    for _ in range(3):
        counts = []
        for act in (side.tick, lambda: side.events.remove_all(side.rows())):
            deltas: list[int] = []
            with side.view.subscribe(lambda delta: deltas.append(len(delta.items()))):
                act()
            counts.append(deltas)
        assert counts[0] == counts[1]
    side.db.verify()


def test_the_report_has_each_view() -> None:
    report = time.report(400, 1)
    assert all(name in report for name in time.VIEWS)


@pytest.mark.parametrize("name", time_joins.CASES)
def test_a_join_over_time_shows_what_the_twin_shows(name: str) -> None:
    sides = time_joins.CASES[name][1](60, 20)
    changes = sides.changes(40)
    for side in (sides.engine, sides.by_hand):
        side(changes[:-1])
    sides.check()
