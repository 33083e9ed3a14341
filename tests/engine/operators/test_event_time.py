"""The watermark and the look-up as operators: each step is undone exactly, or committed."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from optimizer.expr import Lifted, Parameter
from reactive import TableError
from reactive.engine.collections.zset import UniformDelta
from reactive.engine.operators.event_time import EventClock, EventLookup, EventTimes, Watermark
from reactive.engine.operators.index_by import IndexBy
from tests.budget import SEED

ROW = Lifted(Parameter(0), ("row",), (), 1)


def test_a_watermark_grows_only_and_only_by_commits() -> None:
    clock = EventClock(5)
    watermark = Watermark(clock, "clicks", EventTimes(ROW))
    assert watermark.step([(None, 1), (float("nan"), 1)]) == []
    assert watermark.step([(10, 1), (30, 1), (20, 1)]) == [(((), 25), 1)]
    assert (clock.watermark, list(watermark.contents())) == (None, [])
    watermark.undo()
    watermark.commit()
    assert clock.watermark is None
    watermark.step([(12, 1)])
    watermark.commit()
    assert watermark.step([(8, 2), (12, 1)]) == []
    watermark.commit()
    shown: Any = clock.watermark, list(watermark.contents())
    assert shown == (7, [(((), 7), 1)])
    with pytest.raises(TableError, match="became late"):
        watermark.step([(40, 1), (6, 1)])
    watermark.undo()
    assert watermark.step([(14, 1)]) == [(((), 7), -1), (((), 9), 1)]
    assert watermark.footprint()[0] == 1


NOON = datetime(2024, 3, 31, 12)
ELSEWHERE = NOON.replace(tzinfo=ZoneInfo("Europe/Berlin"))


@pytest.mark.parametrize(
    ("times", "span"),
    [
        ([3, 1, 2], (1, 3)),
        ([3, 1.5, 2], (1.5, 3)),
        ([float("nan"), 2.5, 1.5, float("nan")], (1.5, 2.5)),
        ([float("inf"), float("-inf")], (float("-inf"), float("inf"))),
        ([None, "b", "a"], ("a", "b")),
        ([float("nan"), None], (None, None)),
        ([True, 3, False], (False, 3)),
        ([NOON, NOON - timedelta(1)], (NOON - timedelta(1), NOON)),
        ([date(2024, 5, 2), date(2024, 5, 1)], (date(2024, 5, 1), date(2024, 5, 2))),
        ([ELSEWHERE, NOON.replace(tzinfo=UTC)], (ELSEWHERE, NOON.replace(tzinfo=UTC))),
        ([], (None, None)),
    ],
    ids=str,
)
def test_the_span_of_events_leaves_out_what_is_no_time(times: Any, span: Any) -> None:
    read = EventTimes(ROW)
    assert read.span(UniformDelta(times, 1)) == span
    assert read.span([(time, 1) for time in times] + [(None, -1)]) == span
    for time in times:
        assert read.span([(time, 1)]) == (read.read(time), read.read(time))


def test_a_look_up_pairs_events_with_the_rows_after_the_commit() -> None:
    rnd = random.Random(SEED)
    rows = IndexBy(lambda row: row[1])
    lookup = EventLookup(rows, lambda event, row: (event, row), lambda event, row: (event, row))
    held: dict[Any, int] = {}
    for n in range(300):
        right, after = [], dict(held)
        for _ in range(rnd.choice([0, 1, 3])):
            row = (f"r{rnd.randrange(5)}", rnd.randrange(3))
            weight = -after[row] if after.get(row) and rnd.random() < 0.5 else rnd.choice([1, 2])
            after[row] = after.get(row, 0) + weight
            right.append((row, weight))
        left = [((n, rnd.randrange(4)), 1) for _ in range(rnd.choice([0, 1, 2]))]
        found = lookup.step(left, rows.step(right))
        expected: list[Any] = []
        pairs: list[Any]
        for (event, key), _ in left:
            partners = [(row, times) for (row, of), times in after.items() if of == key and times]
            pairs = [((event, (row, key)), times) for row, times in partners]
            expected += pairs or [((event, None), 1)]
        assert sorted(found, key=repr) == sorted(expected, key=repr)
        if rnd.random() < 0.4:
            rows.undo()
        else:
            rows.commit()
            held = after
        assert rows.index.rows == sum(1 for times in held.values() if times)
