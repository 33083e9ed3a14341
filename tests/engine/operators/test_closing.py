"""Groups that close: they are dropped by commits only, at the end of their window."""

from __future__ import annotations

from typing import Any

from reactive.engine.operators.accumulators import CountAccumulator
from reactive.engine.operators.closing import Closing, ClosingAggregates, ClosingSessions
from reactive.engine.operators.event_time import EventClock
from reactive.engine.operators.frontiers import DelayedWatermark, Frontier
from reactive.engine.operators.windows.sessions import SessionGroup


def test_a_group_is_dropped_when_its_window_has_ended() -> None:
    clock = EventClock(0)
    closing = Closing(Frontier((DelayedWatermark(clock),), is_beyond=True), lambda end: end)
    groups = ClosingAggregates(lambda row: row, [(CountAccumulator(), None)], closing=closing)
    groups.step([(10, 1), (20, 1), (10, 1)])
    groups.undo()
    groups.step([(10, 1), (20, 1)])
    clock.move_to(10)
    assert set(groups.groups) == {10, 20}
    groups.commit()
    assert set(groups.groups) == {20}
    assert groups.step([(20, 1), (30, 1)]) == [((20, 1), -1), ((20, 2), 1), ((30, 1), 1)]
    clock.move_to(40)
    groups.commit()
    assert groups.footprint()[0] == 0


def test_sessions_are_dropped_with_keys_that_have_no_other() -> None:
    clock = EventClock(0)

    def window(start: Any, end: Any) -> Any:
        return start, end

    groups = ClosingSessions(
        lambda row: row[1], lambda: SessionGroup(5, window), Frontier((DelayedWatermark(clock),))
    )
    groups.step([(("x", "ann", 1), 1), (("y", "ann", 3), 1), (("z", "bob", 30), 1)])
    groups.commit()
    clock.move_to(8)
    shown = groups.step([(("w", "bob", 33), 1)])
    groups.commit()
    assert groups.footprint()[0] == 2
    assert (("bob", ("w", (30, 38))), 1) in shown
    groups.step([(("v", "ann", 8), 1)])
    groups.undo()
    clock.move_to(38)
    groups.step([(("u", "eve", 50), 1)])
    groups.commit()
    assert groups.footprint()[0] == 1
