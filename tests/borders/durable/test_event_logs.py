"""Durable streams: events, tokens and watermark in the file, and views as before on reopening."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from reactive import Batch, Count, Database, PlanError, TableError, tumbling
from tests.borders.durable.logged import BATCHES, Living, Sale, drawn_batches, ended_everywhere
from tests.borders.durable.recording import can_record
from tests.budget import SEED, seeds

LEVELS = ["commit", "group", "exit"]
recorded = pytest.mark.skipif(not can_record(), reason="the library of SQLite is out of reach")


@recorded
@pytest.mark.parametrize("level", LEVELS)
def test_an_end_at_any_write_leaves_the_views_of_the_batches_up_to_the_token(level: str) -> None:
    assert ended_everywhere(SEED, level, step=37) > 2


@pytest.mark.long
@recorded
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("seed", seeds(26))
def test_an_end_at_every_write(seed: int, level: str) -> None:
    assert ended_everywhere(seed, level, step=3) > 20


@pytest.mark.parametrize("level", LEVELS)
def test_reopened_at_any_batch_the_source_continues(tmp_path: Path, level: Any) -> None:
    batches = drawn_batches(SEED)
    for until in range(BATCHES + 1):
        living = Living(tmp_path / "a.db", level=level)
        assert (living.reading.token or 0) == max(0, until - 1)
        living.check(batches)
        assert [*living.take(batches, until)] == [until] * (until > 0)
        living.check(batches)
        living.db.close()


def _stream(db: Database, **options: Any) -> Any:
    return db.stream(Sale, at="at", lateness=2, name="sales", **options)


def test_a_commit_that_fails_leaves_no_event(tmp_path: Path) -> None:
    with Database(tmp_path / "a.db") as db:
        sales = _stream(db, durable=True)
        with pytest.raises(KeyError), db.transaction():
            sales.add(Sale("a", 9))
            raise KeyError
        sales.add(Sale("a", 1))
        assert sales.watermark.first() == -1
    with Database(tmp_path / "a.db") as db:
        sales = _stream(db, durable=True)
        assert (list(sales.materialize()), sales.watermark.first()) == ([Sale("a", 1)], -1)


def test_late_views_have_the_events_of_the_log(tmp_path: Path) -> None:
    """Without the log a view that is made later is refused."""
    with Database(tmp_path / "a.db") as db:
        sales = _stream(db, durable=True)
        for at in (1, 25, 24, 2):
            sales.add(Sale("a", at))
        counts = sales.window(tumbling(10), at="at").group_by(lambda s, w: w.start)
        view = counts.aggregate(Count()).where(lambda start, n: n > 0).materialize()
        assert sorted(view) == [(0, 1), (20, 2)]
        view.verify()
        sales.add(Sale("b", 50))
        with pytest.raises(TableError, match="flowed already"):  # its groups are dropped
            counts.aggregate(Count()).where(lambda start, n: n < 9).materialize()
        assert len(sales.where(lambda s: s.item == "a").materialize()) == 3


def test_state_is_dropped_again_after_the_first_event(tmp_path: Path) -> None:
    def opened(db: Database) -> Any:
        sales = _stream(db, durable=True)
        counts = sales.window(tumbling(10), at="at").group_by(lambda s, w: w).aggregate(Count())
        return sales, counts.where(lambda w, n: n > 0).materialize()

    def kept(view: Any) -> int:
        return sum(each.rows for each in view.stats().operators if "Count" in each.name)

    with Database(tmp_path / "a.db") as db:
        sales, _ = opened(db)
        sales.add_all(Sale("a", at) for at in range(0, 1000, 5))
    with Database(tmp_path / "a.db") as db:
        sales, view = opened(db)
        assert kept(view) == 100
        sales.add(Sale("a", 1000))
        assert (len(view), kept(view)) == (101, 2)


def test_what_looks_up_is_not_verified(tmp_path: Path) -> None:
    living = Living(tmp_path / "a.db")
    with pytest.raises(TableError, match="looks up rows as of earlier commits"):
        living._views["priced"].verify()
    living.db.close()


def test_a_stream_is_durable_only_if_that_is_asked(tmp_path: Path) -> None:
    with Database(tmp_path / "a.db") as db:
        _stream(db).add(Sale("a", 1))
    with Database(tmp_path / "a.db") as db:
        assert not list(_stream(db).watermark)


class OldSale(NamedTuple):
    """The events before they had an item."""

    at: int


def test_events_of_an_older_class_are_converted(tmp_path: Path) -> None:
    with Database(tmp_path / "a.db") as db:
        old = db.stream(OldSale, at="at", lateness=2, name="sales", durable=True)
        old.add_all([OldSale(7), OldSale(8), OldSale(7), OldSale(-9)])
        old.add(OldSale(5))
    with Database(tmp_path / "a.db") as db:
        with pytest.raises(PlanError, match="migrate="):
            _stream(db, durable=True)
        sales = _stream(db, durable=True, migrate=lambda row: Sale("old", row["at"]))
        assert sorted(sales.materialize()) == sorted(Sale("old", at) for at in (7, 8, 7, -9))
        assert list(sales.late.materialize()) == [Sale("old", 5)]
        sales.add(Sale("new", 6))
    with Database(tmp_path / "a.db") as db:
        assert len(_stream(db, durable=True).materialize()) == 5


def test_a_stream_that_is_dropped_leaves_nothing_in_the_file(tmp_path: Path) -> None:
    with Database(tmp_path / "a.db") as db:
        living = db.stream(Sale, at="at", lateness=2, name="sales", durable=True)
        prices = db.table(Sale, name="prices", key="item")
        living.lookup(prices, on="item").select(lambda s, p: s).materialize()
        prices.add(Sale("a", 1))
        living.add(Sale("a", 1))
        assert [name for name in db._engine.journal.store.tables() if "sales" in name] == [
            "sales",
            "sales_late",
            "lookups of sales",
        ]
        db.drop(living.late, views=True)
        db.drop(living, views=True)
        assert [*db._engine.journal.store.tables()] == ["prices"]


def test_streams_that_cannot_be_durable_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="its database is in memory"):
        _stream(Database(), durable=True)
    with Database(tmp_path / "a.db") as db:
        db.table(int, name="numbers").add(1)
        with pytest.raises(PlanError, match="its rows are not stored"):
            db.table(Sale, name="other", stored=False, durable=True)
        sales = _stream(db, durable=True)
        with pytest.raises(TableError, match="which keeps its events"):
            sales.late.remove(Sale("a", 1))
    with Database(tmp_path / "a.db", readonly=True) as db, pytest.raises(PlanError, match="alone"):
        _stream(db, durable=True)


def test_a_source_feeds_durable_streams_and_tables_together(tmp_path: Path) -> None:
    with Database(tmp_path / "a.db") as db:
        sales, numbers = _stream(db, durable=True), db.table(int, name="numbers")
        reading = db.ingest(None, {Sale: sales, int: numbers}, name="both")
        reading.take(Batch([Sale("a", 1), 7], token=1))
    with Database(tmp_path / "a.db") as db:
        sales, numbers = _stream(db, durable=True), db.table(int, name="numbers")
        reading = db.ingest(None, {Sale: sales, int: numbers}, name="both")
        found = reading.token, list(sales.materialize()), list(numbers)
        assert found == (1, [Sale("a", 1)], [7])


@dataclass(frozen=True)
class Signal:
    """An event with a value that is not plain."""

    at: int
    pattern: re.Pattern[str]


def decoded(text: str) -> Signal:
    at, _, pattern = text.partition(" ")
    return Signal(int(at), re.compile(pattern))


def test_events_of_any_class_are_stored_by_a_codec(tmp_path: Path) -> None:
    codec = (lambda s: f"{s.at} {s.pattern.pattern}", decoded)

    def opened(db: Database) -> Any:
        return db.stream(Signal, at="at", lateness=2, name="signals", durable=True, codec=codec)

    events = [Signal(1, re.compile("a+")), Signal(7, re.compile("b"))]
    with Database(tmp_path / "a.db") as db:
        opened(db).add_all(events)
    with Database(tmp_path / "a.db") as db:
        signals = opened(db)
        assert sorted(signals.materialize(), key=lambda s: s.at) == events
        assert signals.watermark.first() == 5
