"""Indexes of rows that are dropped: by commits only, and with the states beside them."""

from __future__ import annotations

from typing import Any

from reactive.engine.operators.closing import ExpiringIndexBy
from reactive.engine.operators.event_time import EventClock
from reactive.engine.operators.frontiers import DelayedWatermark, Frontier


class Beside:
    """A state that notes what it is to forget."""

    def __init__(self) -> None:
        self.forgotten: list[Any] = []

    def forget(self, row: Any) -> None:
        self.forgotten.append(row)


def _made(clock: EventClock) -> ExpiringIndexBy:
    frontier = Frontier((DelayedWatermark(clock, 10),))
    return ExpiringIndexBy(lambda row: row[0], value=lambda row: row[1], frontier=frontier)


def test_rows_below_the_frontier_are_dropped_with_the_state_beside_them() -> None:
    clock, beside = EventClock(0), Beside()
    index = _made(clock)
    index.beside(beside)
    index.step([(("a", 3), 2), (("a", 5), 1), (("b", None), 1), (("b", "x"), 1)])
    index.undo()
    index.step([(("a", 3), 2), (("a", 9), 1), (("b", None), 1), (("b", float("nan")), 1)])
    clock.move_to(30)
    assert index.index.rows == 4  # until the step is committed
    index.commit()
    assert beside.forgotten == [("a", 3), ("a", 9)]
    assert index.footprint()[0] == 2
    index.step([(("b", None), -1), (("c", 25), 1)])
    index.commit()
    clock.move_to(36)
    assert [row for _, (row, _) in index.index.items()][1:] == []


def test_nothing_is_told_to_an_index_that_is_gone() -> None:
    clock = EventClock(0)
    index: ExpiringIndexBy | None = _made(clock)
    del index
    clock.move_to(30)
    kept = _made(clock)
    kept.step([(("a", 3), 1)])
    kept.commit()
    assert kept.index.rows == 0
