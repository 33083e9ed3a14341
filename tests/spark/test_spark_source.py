"""Streams of Spark that feed streams of events in the process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
import pyarrow as pa
import pyarrow.parquet as pq

from reactive import Count, Database, PlanError, TableError, tumbling
from spark_backend import SparkSource

PATIENCE = 120


@dataclass(frozen=True, slots=True)
class Tick:
    """An event."""

    id: int
    at: int


class Following:
    """A stream that a folder of Parquet files feeds, read by Spark."""

    def __init__(self, offload: Any, folder: Path, late: Any) -> None:
        self.folder, self._parts = folder, 0
        self.db = Database(offload=offload)
        self.ticks = self.db.stream(Tick, at="at", lateness=2, late=late, name="ticks")
        self.rows, self.late = self.ticks.materialize(), self.ticks.late.materialize()
        per_ten = self.ticks.window(tumbling(10), at="at").group_by(lambda t, w: w.start)
        self.counts = per_ten.aggregate(Count()).materialize()
        self.source = SparkSource(offload, str(folder), Tick, name="spark", trigger=0)

    def put(self, *rows: tuple[int | None, int]) -> None:
        """Write a file, which is there whole or not at all."""
        self._parts += 1
        table = pa.table({"id": [r[0] for r in rows], "at": [r[1] for r in rows]})
        pq.write_table(table, self.folder / f".{self._parts}")
        (self.folder / f".{self._parts}").rename(self.folder / f"{self._parts}.parquet")

    def ids(self) -> list[int]:
        """Return the events in time."""
        return sorted(row.id for row in self.rows)


def wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.fixture
def following(session: Any, offload: Any, tmp_path: Path) -> Iterator[Callable[[str], Following]]:
    made: list[Following] = []

    def follow(late: str) -> Following:
        made.append(Following(offload, tmp_path, late))
        return made[-1]

    yield follow
    for each in made:
        each.db.close()


@pytest.mark.quick
def test_rows_of_spark_are_events(following: Callable[[str], Following]) -> None:
    of = following("keep")
    of.put((1, 10), (2, 8))
    with of.db.ingest(of.source, of.ticks) as reading:
        wait_until(lambda: reading.batches == 1)
        of.put((3, 7), (4, 21))
        wait_until(lambda: reading.batches == 2)
        assert (of.ids(), list(of.late), reading.token) == ([1, 2, 4], [Tick(3, 7)], 1)
    of.put((5, 22))
    reading.start()  # from its checkpoint
    wait_until(lambda: len(of.rows) == 4)
    assert (of.ids(), sorted(of.counts)) == ([1, 2, 4, 5], [(0, 1), (10, 1), (20, 2)])
    reading.stop()


def test_a_late_event_stops_the_source_before_its_batch(
    following: Callable[[str], Following],
) -> None:
    of = following("raise")
    of.put((1, 10))
    reading = of.db.ingest(of.source, of.ticks)
    wait_until(lambda: reading.batches == 1)
    of.put((2, 30), (3, 7))
    for _ in range(2):
        with pytest.raises(TableError, match="its time, 7, is before the watermark, 8"):
            reading.wait(timeout=PATIENCE)
        assert (reading.state, reading.token, of.ids()) == ("failed", 0, [1])
        reading.start()
    with pytest.raises(TableError):
        reading.wait(timeout=PATIENCE)
    reading.start(on_error="drop")
    wait_until(lambda: reading.token == 1)
    assert (of.ids(), [error.row for error in reading.errors]) == ([1, 2], [Tick(3, 7)])
    reading.stop()


def test_rows_that_do_not_fit_are_refused(
    following: Callable[[str], Following], offload: Any, tmp_path: Path
) -> None:
    of = following("keep")
    of.put((1, 10), (None, 11))
    reading = of.db.ingest(of.source, of.ticks)
    with pytest.raises(TableError, match=r"source 'spark': .*null"):
        reading.wait(timeout=PATIENCE)
    reading.start(on_error="drop")
    wait_until(lambda: reading.batches == 1)
    assert (of.ids(), len(reading.errors)) == ([1], 1)
    reading.stop()
    with pytest.raises(PlanError, match="follows a stream"):
        SparkSource(offload, lambda spark: spark.range(3), int)
