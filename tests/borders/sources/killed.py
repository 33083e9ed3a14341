"""A source that runs in a thread of a durable database whose process is killed at random moments.

The source reports a batch through a pipe when the next batch is requested. The reopened database
has each batch up to its token once and none after it; with `durability="commit"` it has all
reported batches. Then the source continues in another process, from the token.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, Literal, NamedTuple

from reactive import Batch, Database, Ingestion, Table

LEVELS: tuple[Literal["commit", "group"], ...] = ("commit", "group")
LONGEST = 0.08
"""Seconds from the first batch of a process until it is killed, at most."""
PATIENCE = 30


class Line(NamedTuple):
    """A row; in a table without key, a repeated row has two copies."""

    batch: int
    place: int


def batch_of(number: int) -> Batch[Line]:
    """Return a batch of some rows, some of an origin, and some of a file that grows."""
    rows = [Line(number, place) for place in range(number % 4)]
    more = [Line(number, -1)]
    growing = {} if number % 3 else {"grows": more}
    return Batch(rows, origins={"last": [Line(number, -2)]}, appends=growing, token=number + 1)


def wanted(batches: int) -> Counter[Line]:
    """The rows after some batches."""
    found: Counter[Line] = Counter()
    for number in range(batches):
        batch: Any = batch_of(number)
        found.update([*batch.upserts, *batch.appends.get("grows", ())])
    if batches:
        found[Line(batches - 1, -2)] += 1
    return found


def killed(path: Path, seed: int, kills: int) -> int:
    """Kill it some times; how many batches there are at the end."""
    random = Random(seed)
    level = random.choice(LEVELS)
    batches = 0
    for _ in range(kills):
        told = _killed_once(path, level, random.random() * LONGEST)
        with closing(Database(path, durability=level)) as db:
            table, reading = _reading(db, None)
            found = reading.token or 0
            assert found >= batches, (seed, level)
            assert found >= told or level != "commit", (seed, level, found, told)
            assert Counter(table) == wanted(found), (seed, level, found)
            batches = found
    return batches


def _killed_once(path: Path, level: Literal["commit", "group"], delay: float) -> int:
    """Run the source in a child that is killed; return the last batch that it reported."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _as_child(path, level, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        first = pipe.read(8)
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        told = first + pipe.read()
    whole = told[: len(told) // 8 * 8]
    return int.from_bytes(whole[-8:], "big")


def _as_child(path: Path, level: Literal["commit", "group"], writing: int) -> None:
    def lines(since: int | None, stop: threading.Event) -> Iterator[Batch[Line]]:
        number = since or 0
        while not stop.is_set():
            yield batch_of(number)
            number += 1
            os.write(writing, number.to_bytes(8, "big"))

    try:
        db = Database(path, durability=level)
        _, reading = _reading(db, lines)
        reading.start()
        time.sleep(PATIENCE)
    finally:
        os._exit(1)


def _reading(db: Database, source: Any) -> tuple[Table[Line], Ingestion[Line]]:
    table = db.table(Line, name="lines")
    return table, db.ingest(source, table, name="lines", start=False)
