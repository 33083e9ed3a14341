"""A source that feeds a stream of a durable database whose process is killed at random moments.

Closed windows of the stream are written to a file by a sink, whose position is in the database. A
process that is killed leaves neither token nor watermark: the next one reads the source again, from
the beginning, and the sink writes what is not written yet. So each closed window is in the file
once, with the count of all its events.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from reactive import Batch, Count, Database, tumbling

EVENTS = 400
LATENESS = 4
SIZE = 10
LONGEST = 0.1
"""Seconds from the first written batch of a process until it is killed, at most."""
PATIENCE = 60


class Event(NamedTuple):
    """An event of a batch, at a time that is a bit out of order."""

    number: int
    at: int


def event_of(number: int) -> Event:
    """Return an event; every seventh one is late."""
    return Event(number, number - (9 if number % 7 == 6 else number % 3))


def wanted_counts(events: int) -> dict[int, int]:
    """Return the counts of the closed windows after some events, one in each batch."""
    counts, newest = Counter[int](), -1
    for event in map(event_of, range(events)):
        if newest < 0 or event.at >= newest - LATENESS:
            counts[event.at // SIZE * SIZE] += 1
            newest = max(newest, event.at)
    return {start: n for start, n in counts.items() if start + SIZE <= newest - LATENESS}


def killed_streams(folder: Path, seed: int, kills: int) -> dict[int, int]:
    """Kill a process some times, and let the last one finish; return the written counts.

    Raises `AssertionError` if a window was written twice, or another batch under a number.
    """
    random = Random(seed)
    for _ in range(kills):
        _killed_once(folder, random.random() * LONGEST)
    _read_all(folder, None)
    written: dict[int, Any] = {}
    for line in (folder / "written.jsonl").read_text().splitlines():
        number, changes = json.loads(line)
        assert written.setdefault(number, changes) == changes
    found: dict[int, int] = {}
    for changes in written.values():
        for start, count, weight in changes:
            assert (weight, start in found) == (1, False)
            found[start] = count
    return found


def _killed_once(folder: Path, delay: float) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            _read_all(folder, writing)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        pipe.read(1)
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _read_all(folder: Path, writing: int | None) -> None:
    """Read the events so far into a stream, and then the others, one at a time.

    Closed windows are written once all events so far are read, and after each further one.
    """
    length = folder / "length"  # of the log that the source reads
    exist = int(length.read_text()) if length.exists() else SIZE
    more = threading.Condition()

    def events(since: int | None, stop: threading.Event) -> Iterator[Batch[Event]]:
        for number in range(since or 0, EVENTS):
            with more:
                more.wait_for(lambda number=number: exist > number, PATIENCE)  # type: ignore[misc]
            yield Batch([event_of(number)], token=number + 1)

    def write(number: int, changes: Any) -> None:
        rows = sorted([start, count, weight] for (start, count), weight in changes)
        with (folder / "written.jsonl").open("a") as file:
            file.write(json.dumps([number, rows]) + "\n")
            file.flush()

    with closing(Database(folder / "a.db")) as db:
        stream = db.stream(Event, at="at", lateness=LATENESS, name="events")
        per_window = stream.window(tumbling(SIZE), at="at").group_by(lambda e, w: w.start)
        counts = per_window.aggregate(Count())
        closed = counts.join(stream.watermark, on=lambda start, n, mark: start + SIZE <= mark)
        view = closed.select(lambda start, n, mark: (start, n)).materialize("closed")
        reading = db.ingest(events, stream, name="events")
        sink = view.changes_to(write, name="written")
        reading.wait(token=exist, timeout=PATIENCE)
        sink.flush()
        if writing is not None:
            os.write(writing, b"1")
        while exist < EVENTS:
            with more:
                exist += 1
                more.notify()
            length.with_suffix(".new").write_text(str(exist))
            length.with_suffix(".new").replace(length)
            reading.wait(token=exist, timeout=PATIENCE)
            sink.flush()
