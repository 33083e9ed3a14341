"""The watermark and the look-up as operators: each step is undone exactly, or committed."""

from __future__ import annotations

import random
from typing import Any

import pytest

from reactive import TableError
from reactive.engine.operators.event_time import EventClock, EventLookup, Watermark
from tests.budget import SEED


def test_a_watermark_grows_only_and_only_by_commits() -> None:
    clock = EventClock(5)
    watermark = Watermark(clock, "clicks")
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


def test_a_look_up_that_is_undone_leaves_the_rows_as_they_were() -> None:
    rnd = random.Random(SEED)
    lookup = EventLookup(lambda event, row: (event, row), is_left=True)
    held: dict[Any, int] = {}
    for n in range(300):
        right, after = [], dict(held)
        for _ in range(rnd.choice([0, 1, 3])):
            row = (f"r{rnd.randrange(5)}", rnd.randrange(3))
            weight = -after[row] if after.get(row) and rnd.random() < 0.5 else rnd.choice([1, 2])
            after[row] = after.get(row, 0) + weight
            right.append((row, weight))
        left = [((n, rnd.randrange(4)), 1) for _ in range(rnd.choice([0, 1, 2]))]
        found = lookup.step(left, right)
        expected = []
        for (event, key), _ in left:
            partners = [(row, times) for (row, of), times in after.items() if of == key and times]
            expected += [((event, row), times) for row, times in partners or [(None, 1)]]
        assert sorted(found, key=repr) == sorted(expected, key=repr)
        if rnd.random() < 0.4:
            lookup.undo()
            lookup.undo()
        else:
            lookup.commit()
            held = after
        assert lookup.footprint()[0] == sum(1 for times in held.values() if times)
