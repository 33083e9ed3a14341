"""Time that passes: ticks of a clock beside the same changes of rows, in one process and in turns.

    python -m asv_benchmarks.time [--size 1000000] [--ticks 60]

A tick of which ten rows leave a view, or expire, is compared with the deletion of ten rows of the
same table, with the same view over it. The goal is at most three times as much.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from statistics import median
from time import process_time
from typing import Any, NamedTuple

from asv_benchmarks.table import machine, markdown
from reactive import Count, Database, now

START = datetime(2024, 1, 1, tzinfo=UTC)
AGE = timedelta(days=100)
STEP = timedelta(seconds=1)
PER_TICK = 10
"""Rows that leave at each tick."""
WARM_UP = 12
"""Ticks before the first measured one; code is generated during them."""


class Event(NamedTuple):
    """A row with a moment."""

    id: int
    at: datetime


View = Callable[[Any], Any]
VIEWS: dict[str, View] = {
    "age": lambda events: events.where(lambda e: now() - e.at < AGE),
    "age, counted": lambda events: events.where(lambda e: now() - e.at < AGE).aggregate(Count()),
    "end": lambda events: events.where(lambda e: e.at + AGE > now()),
    "expiring table": lambda events: events.aggregate(Count()),
}


class Ticks:
    """A table whose rows become old, ten with each tick, with a view over them."""

    def __init__(self, name: str, size: int) -> None:
        self.db = Database()
        expires = name == "expiring table"
        options: dict[str, Any] = {"expire_after": AGE, "at": "at"} if expires else {}
        self.events: Any = self.db.table(Event, name="events", key="id", **options)
        self.events.add_all(Event(n, START + (n // PER_TICK) * STEP) for n in range(size))
        self.db.clock.advance(START + AGE - STEP)
        self.view = VIEWS[name](self.events).materialize()
        self._ticks, self._last = 0, size

    def tick(self) -> None:
        """Advance the clock by the distance of two groups of ten rows."""
        self.db.clock.advance(START + AGE + self._ticks * STEP)
        self._ticks += 1

    def rows(self) -> list[Event]:
        """Return the newest ten rows, to be deleted."""
        self._last -= PER_TICK
        return [self.events[n] for n in range(self._last, self._last + PER_TICK)]


def measure(name: str, size: int, ticks: int) -> tuple[float, float]:
    """Return the median microseconds of a tick, and of the deletion of ten rows."""
    side = Ticks(name, size)
    for _ in range(WARM_UP):
        side.tick()
        side.events.remove_all(side.rows())
    times: tuple[list[float], list[float]] = ([], [])
    gc.collect()
    gc.disable()
    try:
        for _ in range(ticks):
            rows = side.rows()
            acts: list[Callable[[], None]] = [side.tick, partial(side.events.remove_all, rows)]
            for place, act in enumerate(acts):
                began = process_time()
                act()
                times[place].append(process_time() - began)
    finally:
        gc.enable()
    side.db.verify()
    return median(times[0]) * 1e6, median(times[1]) * 1e6


def report(size: int, ticks: int) -> str:
    """Return the table of all measurements."""
    rows = []
    for name in VIEWS:
        tick, deletion = measure(name, size, ticks)
        rows.append([name, f"{tick:.0f}", f"{deletion:.0f}", f"{tick / deletion:.1f}"])
    heads = [f"of {size:,} rows", "tick, us", "deletion, us", "ratio"]
    return "\n".join([machine(), "", *markdown(heads, rows)])


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--ticks", type=int, default=60)
    given = parser.parse_args(arguments)
    print(report(given.size, given.ticks))


if __name__ == "__main__":
    main()
