"""Sources that feed streams: events in time and late ones, refusals, retries and restarts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from reactive import (
    Batch,
    Count,
    Database,
    NotifySource,
    PlanError,
    SourceError,
    TableError,
    files,
    poll,
    tumbling,
)
from tests.borders.sources.killed_streams import EVENTS, killed_streams, wanted_counts
from tests.budget import SEED

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

PATIENCE = 20


class Tick(NamedTuple):
    """An event."""

    id: int
    at: int


class Followed:
    """A stream that a folder of files feeds, in one format."""

    def __init__(self, folder: Path, suffix: str, late: Any) -> None:
        self.folder, self.suffix, self._parts = folder, suffix, 0
        self.db = Database()
        self.ticks = self.db.stream(Tick, at="at", lateness=2, late=late, name="ticks")
        self.rows, self.late = self.ticks.materialize(), self.ticks.late.materialize()
        per_ten = self.ticks.window(tumbling(10), at="at").group_by(lambda t, w: w.start)
        self.counts = per_ten.aggregate(Count()).materialize()
        self.source = files(folder / f"*.{suffix}", Tick, append_only=True, name="files")

    def write(self, *rows: Tick, anew: bool = False) -> None:
        """Append rows to the file of this format, or write a new file."""
        self._parts += anew or self.suffix == "parquet" or not self._parts
        path = self.folder / f"{self._parts}.{self.suffix}"
        if self.suffix == "parquet":
            columns = {"id": [r.id for r in rows], "at": [r.at for r in rows]}
            pq.write_table(pa.table(columns), path.with_suffix(".part"))
            path.with_suffix(".part").rename(path)
            return
        is_csv = self.suffix == "csv"
        head = "id,at\n" if is_csv and not path.exists() else ""
        line = "{},{}\n" if is_csv else '{{"id": {}, "at": {}}}\n'
        with path.open("a") as file:
            file.write(head + "".join(line.format(*row) for row in rows))


SUFFIXES = pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])


@SUFFIXES
def test_rows_of_files_are_events_and_late_ones_go_elsewhere(tmp_path: Path, suffix: str) -> None:
    of = Followed(tmp_path, suffix, "keep")
    of.write(Tick(1, 10), Tick(2, 8), Tick(3, 12))
    with of.db.ingest(of.source, of.ticks) as reading:
        of.source.catch_up(PATIENCE)
        of.write(Tick(4, 9), Tick(5, 21))
        of.source.catch_up(PATIENCE)
        of.write(Tick(6, 20), anew=True)
        of.source.catch_up(PATIENCE)
        (tmp_path / f"1.{suffix}").unlink()
        of.source.catch_up(PATIENCE)
        assert reading.state == "running"
    assert sorted(row.id for row in of.rows) == [1, 2, 3, 5, 6]
    assert list(of.late) == [Tick(4, 9)]
    assert sorted(of.counts) == [(0, 1), (10, 2), (20, 2)]
    assert (of.ticks.watermark.first(), reading.rows, len(reading.origins)) == (19, 6, 0)


@SUFFIXES
def test_a_source_stops_before_a_batch_with_a_late_event(tmp_path: Path, suffix: str) -> None:
    of = Followed(tmp_path, suffix, "raise")
    of.write(Tick(1, 10))
    reading = of.db.ingest(of.source, of.ticks)
    of.source.catch_up(PATIENCE)
    token, version = reading.token, of.db.version
    of.write(Tick(2, 11), Tick(3, 5), Tick(4, 30))
    with pytest.raises(TableError, match="its time, 5, is before the watermark, 8"):
        reading.wait(timeout=PATIENCE)
    assert (reading.state, reading.token, of.db.version) == ("failed", token, version)
    assert (list(of.rows), of.ticks.watermark.first()) == ([Tick(1, 10)], 8)
    reading.start()
    with pytest.raises(TableError, match="before the watermark, 8"):
        reading.wait(timeout=PATIENCE)
    reading.start(on_error="drop")
    of.source.catch_up(PATIENCE)
    assert [error.row for error in reading.errors] == [Tick(3, 5)]
    assert (sorted(row.id for row in of.rows), list(of.late)) == ([1, 2, 4], [])
    reading.stop()


def test_what_may_remove_rows_does_not_feed_a_stream(tmp_path: Path) -> None:
    db = Database()
    ticks = db.stream(Tick, at="at", lateness=0, name="ticks")
    table = db.table(int, name="numbers")
    refused: list[tuple[Any, str]] = [
        (files(tmp_path / "*.csv", Tick), "its files may change"),
        (files(tmp_path / "*.csv", Tick, deletions=tmp_path / "gone"), "deletions= names rows"),
        (poll(list, every=1, name="all"), "poll gives all rows each time"),
        (NotifySource("postgresql://nobody@localhost/none", "ticks"), "rows that have changed"),
    ]
    for source, text in refused:
        with pytest.raises(PlanError, match=text):
            db.ingest(source, ticks)
        with pytest.raises(PlanError, match=text):
            db.ingest(source, {Tick: ticks, int: table})
    assert db.tokens == {}


def test_batches_that_remove_events_are_refused() -> None:
    db = Database()
    ticks = db.stream(Tick, at="at", lateness=0, name="ticks")
    numbers = db.table(int, name="numbers")
    rows = ticks.materialize()
    reading = db.ingest(None, {Tick: ticks, int: numbers}, name="both")
    only = db.ingest(None, ticks, name="only")
    reading.take(Batch([Tick(1, 1), 7], appends={"a": [Tick(2, 2), 8]}, token=1))
    only.take(Batch(appends={"a": [Tick(3, 2)]}, token=1))
    before = sorted(rows), sorted(numbers), db.version
    assert before[:2] == ([Tick(1, 1), Tick(2, 2), Tick(3, 2)], [7, 8])
    for batch in (
        Batch([9], removes=[Tick(1, 1)], token=2),
        Batch([9], deletes={Tick: [1]}, token=2),
        Batch([9], origins={"b": [Tick(4, 4)]}, token=2),
    ):
        with pytest.raises(TableError, match="stream 'ticks' takes no changes that remove rows"):
            reading.take(batch)
    with pytest.raises(TableError, match="takes no changes that remove rows"):
        only.take(Batch(origins={"b": []}, token=2))
    assert (sorted(rows), sorted(numbers), db.version) == before
    assert (reading.token, only.token, dict(reading.origins)) == (1, 1, {"a": (8,)})
    reading.take(Batch([9], origins={"b": [10]}, token=2))
    assert sorted(numbers) == [7, 8, 9, 10]


@pytest.mark.parametrize("late", ["keep", "raise"])
def test_histories_of_batches_agree_with_lists(late: Any) -> None:
    rnd, db = Random(f"{late} {SEED}"), Database()
    ticks = db.stream(Tick, at="at", lateness=3, late=late, name="ticks")
    views = ticks.materialize(), ticks.late.materialize()
    reading = db.ingest(None, ticks, name="batches", on_error="drop")
    now, kept, missed, mark = 0, Counter[Tick](), Counter[Tick](), None
    for number in range(120):
        now += rnd.choice([0, 1, 4])
        some = [Tick(number, now - rnd.randrange(9)) for _ in range(rnd.choice([0, 1, 6]))]
        appended = [Tick(number, now - rnd.randrange(9)) for _ in range(rnd.choice([0, 0, 2]))]
        reading.take(Batch(some, appends={"file": appended}, token=number))
        for tick in (*some, *appended):
            (kept if mark is None or tick.at >= mark else missed)[tick] += 1
        mark = max((tick.at for tick in kept), default=None)
        mark = None if mark is None else mark - 3
        assert (ticks.watermark.first(), reading.token) == (mark, number)
        assert Counter(views[0]) == kept
        left_out = Counter(error.row for error in reading.errors)
        assert (Counter(views[1]), left_out) == (
            (missed, Counter()) if late == "keep" else (Counter(), missed)
        )


def test_a_stream_and_a_durable_table_have_no_common_token(tmp_path: Path) -> None:
    with Database(tmp_path / "a.db") as db:
        ticks = db.stream(Tick, at="at", lateness=0, name="ticks")
        numbers = db.table(int, name="numbers")
        with pytest.raises(SourceError, match="some are durable and some are not"):
            db.ingest(None, {Tick: ticks, int: numbers}, name="both")


def test_a_source_is_read_again_after_a_restart(tmp_path: Path) -> None:
    found = []
    for _ in range(2):
        with Database(tmp_path / "a.db") as db:
            ticks = db.stream(Tick, at="at", lateness=2, name="ticks")
            counts = ticks.window(tumbling(10), at="at").group_by(lambda t, w: w.start)
            view, late = counts.aggregate(Count()).materialize(), ticks.late.materialize()
            reading = db.ingest(_ticks, ticks, name="ticks")
            reading.wait(timeout=PATIENCE)
            found.append((sorted(view), list(late), ticks.watermark.first(), reading.token))
            assert reading.batches == 3
    assert found[0] == found[1] == ([(0, 1), (10, 1)], [Tick(2, 1)], 14, 3)


def _ticks(since: Any, stop: Any) -> Iterator[Batch[Tick]]:
    every = [Tick(1, 4), Tick(2, 1), Tick(3, 16)]
    for number in range(since or 0, len(every)):
        yield Batch([every[number]], token=number + 1)


@pytest.mark.filterwarnings("ignore::reactive.UnboundedStateWarning")
@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.parametrize("seed", [1, 2])
def test_each_window_is_written_once_in_spite_of_kills(tmp_path: Path, seed: int) -> None:
    assert killed_streams(tmp_path, seed, kills=6) == wanted_counts(EVENTS)
