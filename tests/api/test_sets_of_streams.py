"""Set and bag operations over two streams, beside counters of all events in time."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from reactive import Database
from tests.budget import SEED

Event = tuple[int, Any]
Rows = Counter[Event]
METHODS: dict[str, Callable[[Rows, Rows], Rows]] = {
    "union": lambda a, b: Counter((a | b).keys()),
    "union_all": lambda a, b: a + b,
    "difference": lambda a, b: Counter(a.keys() - b.keys()),
    "difference_all": lambda a, b: a - b,
    "intersection": lambda a, b: Counter(a.keys() & b.keys()),
    "intersection_all": lambda a, b: a & b,
}


@pytest.mark.parametrize("method", METHODS)
def test_rows_are_those_of_all_events(method: str) -> None:
    """Duplicates, late events, events without a time, jumps and commits that are rolled back."""
    draw, db = random.Random(f"{SEED} {method}"), Database()
    streams = [db.stream(tuple, at=lambda e: e[1], lateness=lag, name=f"s{lag}") for lag in (2, 5)]
    made = getattr(streams[0], method)(streams[1])
    assert made.explain().bounded
    view, seen, now = made.materialize(), (Counter[Event](), Counter[Event]()), 0
    for _ in range(400):
        now += draw.choice([0, 0, 1, 1, 40 * (draw.random() < 0.03)])
        batches = [
            [
                (draw.randrange(2), None if draw.random() < 0.02 else now - draw.randrange(7))
                for _ in range(draw.choice([0, 1, 2, 4]))
            ]
            for _ in streams
        ]
        marks = [stream.watermark.first() for stream in streams]
        fails = draw.random() < 0.1
        try:
            with db.transaction():
                for stream, batch in zip(streams, batches, strict=True):
                    stream.add_all(batch)
                if fails:
                    raise KeyError
        except KeyError:
            pass
        else:
            for rows, batch, mark in zip(seen, batches, marks, strict=True):
                in_time = [e for e in batch if mark is None or e[1] is None or e[1] >= mark]
                rows.update(in_time)
        assert Counter(dict(view.zset().items())) == METHODS[method](*seen)
    if method != "union_all":
        held = [e.rows for e in view.stats().operators if not e.name.startswith("rows of")]
        assert sum(held) < 60 < sum(len(rows) for rows in seen)
