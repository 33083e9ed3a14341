"""Rows that are emitted when they change no more."""

from __future__ import annotations

from reactive.engine.operators.closing import OF_ROW, ClosedRows
from reactive.engine.operators.event_time import EventClock
from reactive.engine.operators.frontiers import DelayedWatermark, Frontier


def test_a_row_is_emitted_once_when_all_streams_have_passed_it() -> None:
    first, second = (DelayedWatermark(EventClock(0), delay) for delay in (None, 2))
    rows = ClosedRows(Frontier((first, second)))
    came = [(("a", 3, OF_ROW), 2), (("b", 5, OF_ROW), 1), (("c", 5, OF_ROW), 1)]
    assert rows.step([*came, ((None, 9, 0), 1)]) == []
    rows.undo()
    assert rows.footprint()[0] == 0
    assert rows.step([*came, ((None, 9, 0), 1)]) == []
    rows.commit()
    expected = [(((), "a"), 2), (((), "b"), 1)]
    for again in range(2):
        assert rows.step([((None, 8, 1), 1), (("c", 5, OF_ROW), -1)]) == expected
        if not again:
            rows.undo()
            assert rows.footprint()[0] == 3
    rows.commit()
    assert rows.footprint()[0] == 0
    assert rows.step([((None, 8, 1), -1), ((None, 99, 1), 1), (("late", 1, OF_ROW), 1)]) == [
        (((), "late"), 1)
    ]


def test_rows_without_a_value_are_never_emitted() -> None:
    rows = ClosedRows(Frontier((DelayedWatermark(EventClock(0)),)))
    none = [(("a", None, OF_ROW), 1), (("b", float("nan"), OF_ROW), 1)]
    assert rows.step([*none, ((None, 9, 0), 1)]) == []
