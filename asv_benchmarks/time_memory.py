"""Memory of queries over streams: events that are late by a bound, and views that hold no rows.

    python -m asv_benchmarks.time_memory [--events 10000000] [--batch 100]

Each query runs in a process of its own, and only a subscription reads it. The memory of the process
is read after a tenth of the events, and at the end. The goal is at most 1.1 times as much; the rows
that operators hold are shown beside it.
"""

from __future__ import annotations

import argparse
import gc
import os
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from random import Random
from time import process_time
from typing import Any, NamedTuple

from asv_benchmarks.table import machine, markdown
from reactive import Count, Database, Relation, Sum, session, tumbling

LATENESS = 50
KEYS = 1_000
GOAL = 1.1
BATCH = 100


class Event(NamedTuple):
    """An event of one of two streams."""

    key: int
    at: int
    value: int


Query = Callable[[Any, Any], Relation[*tuple[Any, ...]]]


def _near(a: Event, b: Event) -> bool:
    return a.key == b.key and abs(a.at - b.at) <= 20


QUERIES: dict[str, Query] = {
    "counts per window": lambda a, b: (
        a.window(tumbling(100), at=lambda e: e.at)
        .group_by(lambda e, w: (e.key, w))
        .aggregate(Count(), Sum("value"))
    ),
    "sessions": lambda a, b: (
        a.window(session(10, by=lambda e: e.key), at=lambda e: e.at)
        .group_by(lambda e, w: (e.key, w))
        .aggregate(Count())
    ),
    "interval join": lambda a, b: a.join(b, on=_near),
    "left join, closed": lambda a, b: a.left_join(b, on=_near, emit="closed"),
}


class Run:
    """Two streams with a query that is subscribed to."""

    def __init__(self, name: str) -> None:
        db = Database()
        streams = [db.stream(Event, at="at", lateness=LATENESS, name=n) for n in ("a", "b")]
        self.streams: tuple[Any, Any] = (streams[0], streams[1])
        self.changes = 0
        self.query = QUERIES[name](*self.streams)
        self._held = self.query.subscribe(self._count)

    def _count(self, delta: Any) -> None:
        self.changes += 1

    def feed(self, events: int, batch: int, rnd: Random, start: int = 0) -> None:
        """Add events, half to each stream: ten to a moment, late by less than the lateness."""
        for first in range(start, start + events, 2 * batch):
            for stream in self.streams:
                now, draw = first // 10, rnd.random
                stream.add_all(
                    [
                        Event(int(draw() * KEYS), now + LATENESS - int(draw() * LATENESS), place)
                        for place in range(batch)
                    ]
                )

    def held(self) -> int:
        """Return the number of rows that the operators hold."""
        graph = self.streams[0]._engine.graph
        sizes = [getattr(node.operator, "footprint", None) for node in graph._nodes.values()]
        return sum(size()[0] for size in sizes if size is not None)


def resident() -> float:
    """Return the megabytes of the process."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def measure(name: str, events: int, batch: int) -> tuple[float, float, int, int, float]:
    """Return megabytes and rows after a tenth of the events and at the end; events per second."""
    run, rnd = Run(name), Random(0)
    begin = process_time()
    run.feed(events // 10, batch, rnd)
    early = resident(), run.held()
    run.feed(events - events // 10, batch, rnd, events // 10)
    seconds = process_time() - begin
    return early[0], resident(), early[1], run.held(), events / seconds


def main() -> None:
    """Print the table of all queries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--query", choices=[*QUERIES], nargs="*", default=[*QUERIES])
    given = parser.parse_args()
    print(machine(), f"{given.events:,} events, {given.batch} per commit", sep="\n", end="\n\n")
    rows = []
    for name in given.query:
        with get_context("spawn").Pool(1) as pool:
            before, after, few, many, speed = pool.apply(measure, (name, given.events, given.batch))
        ratio = after / before
        rows.append(
            [
                name,
                f"{before:.1f}",
                f"{after:.1f}",
                f"{ratio:.2f}{'' if ratio <= GOAL else ' !'}",
                f"{few:,}",
                f"{many:,}",
                f"{speed:,.0f}",
            ]
        )
        print(rows[-1], flush=True)
    head = ["query", "MB at a tenth", "MB at the end", "ratio", "rows", "rows", "events/s"]
    print(*markdown(head, rows), sep="\n")


if __name__ == "__main__":
    main()
