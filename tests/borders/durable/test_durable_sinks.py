"""A sink of a durable database continues after a restart.

No batch is lost, and a repeated batch has the same number.
"""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from reactive import Count, Database, DurabilityError, PlanError
from reactive.borders.durable.postgres_store import PostgresStore
from reactive.borders.durable.sqlite_store import SqliteStore
from reactive.borders.durable.store import MemoryStore
from tests.borders.durable.faulty import Faults, full
from tests.borders.durable.recording import can_record
from tests.borders.durable.told import Receiver, refused_everywhere, told_everywhere
from tests.borders.durable.written_to import KINDS, written_everywhere
from tests.budget import SEED, seeds, stride

recorded = pytest.mark.skipif(not can_record(), reason="the library of SQLite is out of reach")


class Device(NamedTuple):
    """A row of a table."""

    id: int
    heat: int


class Alert(NamedTuple):
    """A row that only a callable makes."""

    device: int


@dataclass(frozen=True)
class Bell:
    """A row whose class does not make it again as it was."""

    ring: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "ring", self.ring + 1)


@pytest.mark.long
@recorded
@pytest.mark.parametrize("level", ["commit", "group", "exit"])
def test_after_an_end_at_any_write_the_batches_come_to_the_view(level: str) -> None:
    for seed in seeds(12, 6):
        assert told_everywhere(seed, level, stride(2, 6)) > 5


@recorded
@pytest.mark.parametrize("level", ["commit", "group"])
def test_after_a_write_that_fails_the_batches_come_to_the_view(level: str) -> None:
    for seed in seeds(12, 12):
        assert refused_everywhere(seed, level, stride(6, 2)) > 3


@pytest.mark.long
@recorded
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", ["commit", "group", "exit"])
def test_after_an_end_at_any_write_a_target_gets_what_is_missing(level: str, kind: str) -> None:
    for seed in seeds(2, 2):
        assert written_everywhere(seed, level, kind, stride(4, 6)) > 2


def hot(db: Database, limit: int = 90) -> tuple[Any, Any]:
    devices = db.table(Device, key="id", name="devices")
    view = devices.where(lambda d: d.heat > limit).select(lambda d: d.id).materialize("hot")
    return devices, view


def test_the_numbers_and_the_rows_go_on_after_a_restart(tmp_path: Path) -> None:
    told = Receiver()
    for start in (0, 10, 20):
        with Database(tmp_path / "x.db") as db:
            devices, view = hot(db)
            sink = view.changes_to(told, name="alerts")
            assert (None if sink.position is None else sink.position.batch) == (
                start // 10 * 2 - 1 if start else None
            )
            for number in range(start, start + 2):
                devices.upsert(Device(number, 99))
                db.flush()
            devices.add(Device(number + 5, 1))
            db.flush()
    assert told.batches == [(n, [(row, 1)]) for n, row in enumerate([0, 1, 10, 11, 20, 21])]


@pytest.mark.parametrize("durability", ["commit", "group", "exit"])
def test_what_changed_while_there_was_no_sink_is_the_next_batch(
    tmp_path: Path, durability: Any
) -> None:
    told = Receiver()
    with Database(tmp_path / "x.db", durability=durability) as db:
        devices, view = hot(db)
        devices.add_all([Device(1, 99), Device(2, 99)])
        with view.changes_to(told, name="alerts"):
            pass
        devices.delete(1)
        devices.upsert(Device(3, 99))
    with Database(tmp_path / "x.db") as db:
        hot(db)[1].changes_to(told, name="alerts").flush()
    assert told.batches == [(0, [(1, 1), (2, 1)]), (1, [(1, -1), (3, 1)])]


def test_a_batch_that_was_not_taken_comes_again_in_the_next_process_as_it_was(
    tmp_path: Path,
) -> None:
    told = Receiver(fails=True)
    with Database(tmp_path / "x.db") as db:
        devices, view = hot(db)
        sink = view.changes_to(told)
        devices.add_all([Device(11, 99), Device(2, 99)])
        with pytest.raises(ConnectionError):
            sink.flush()
        devices.delete(2)
    told.fails = False
    with Database(tmp_path / "x.db") as db:
        sink = hot(db)[1].changes_to(told)
        assert sink.position is not None and sink.position.batch == 0
        sink.flush()
    assert [(n, sorted(changes)) for n, changes in told.batches] == [
        (0, [(2, 1), (11, 1)]),
        (1, [(2, -1)]),
    ]


def test_a_process_that_is_killed_while_it_tells_tells_it_again(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys\n"
        "from reactive import Database\n"
        "def tell(number, changes):\n"
        "    print(number, changes, flush=True)\n"
        "    if number == int(sys.argv[2]): os.kill(os.getpid(), signal.SIGKILL)\n"
        "db = Database(sys.argv[1])\n"
        "words = db.table(str, name='words')\n"
        "sink = words.materialize('words').changes_to(tell)\n"
        "sink.flush()\n"
        "words.add(sys.argv[2]); db.flush()\n"
    )
    lines = []
    for number in ("0", "9"):
        command = [sys.executable, "-c", program, str(tmp_path / "x.db"), number]
        lines += subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    assert lines == ["0 [('0', 1)]", "0 [('0', 1)]", "1 [('9', 1)]"]


@pytest.mark.parametrize("store", ["memory", "postgres"])
def test_other_stores_keep_it_too(store: str, request: pytest.FixtureRequest) -> None:
    told = Receiver()
    there: Any = MemoryStore()
    if store == "postgres":
        there = PostgresStore(request.getfixturevalue("database"))
    for word in ("to", "be", "be"):
        with Database(store=there, keep=3) as db:
            words = db.table(str, name="words")
            words.materialize("words").changes_to(told)
            words.add(word)
            db.flush()
            assert [[*past.changes] for past in db.history(since=0)] == [["words"]] * db.version
    assert told.batches == [(0, [("to", 1)]), (1, [("be", 1)]), (2, [("be", 1)])]


def test_rows_of_all_kinds_come_back_as_they_were(tmp_path: Path) -> None:
    rows = [
        (1, (True, 1.0, None, "a\0b", b"\xff\0", 2**70)),
        (2, (frozenset({"b", "a"}), float("inf"), "\U0001f600", "=", "+", "!batch")),
        (3, (float("nan"), -0.0, (), ((),), Decimal("1.50"), range(3))),
    ]
    told = Receiver()
    for _ in range(2):
        with Database(tmp_path / "x.db") as db:
            table = db.table(tuple, name="rows")
            table.materialize("rows").changes_to(told)
            if not table:
                table.add_all(rows[:2])
                table.add(rows[2], 3)
            db.flush()
    assert len(told.batches) == 1, "the second process finds no difference"
    with Database(tmp_path / "x.db") as db:
        table = db.table(tuple, name="rows")
        for row in list(table):
            table.discard(row)
        table.materialize("rows").changes_to(told)
        db.flush()
    ((_, first), (_, second)) = told.batches
    assert sorted(map(repr, first)) == sorted(repr((row, -weight)) for row, weight in second)


def test_rows_of_joins_and_groups_come_back(tmp_path: Path) -> None:
    told: list[Any] = []
    for _ in range(2):
        with Database(tmp_path / "x.db") as db:
            devices = db.table(Device, key="id", name="devices")
            pairs = devices.join(devices, on=lambda a, b: a.id == b.id).materialize("pairs")
            counts = devices.group_by("heat").aggregate(Count()).materialize("counts")
            for view in (pairs, counts):
                view.changes_to(lambda number, changes: told.append((number, changes)))
            if devices:
                devices.delete(1)
            else:
                devices.add(Device(1, 7))
            db.flush()
    one = Device(1, 7)
    assert told == [
        (0, [((one, one), 1)]),
        (0, [((7, 1), 1)]),
        (1, [((one, one), -1)]),
        (1, [((7, 1), -1)]),
    ]
    assert type(told[2][1][0][0][0]) is Device


def test_a_sink_of_a_durable_database_has_a_name_of_its_own(tmp_path: Path) -> None:
    with Database(tmp_path / "x.db") as db:
        devices, view = hot(db)
        other = devices.materialize()
        with pytest.raises(PlanError, match="it has no name to be found by after a restart"):
            other.changes_to(print)
        other.changes_to(print, durable=False).stop()
        sink = view.changes_to(print, name="alerts")
        with pytest.raises(
            PlanError, match=r"cannot make a second sink named 'alerts': the sink of .*hot"
        ):
            other.changes_to(print, name="alerts")
        sink.stop()
        other.changes_to(print, name="alerts", migrate=True).stop()
        db.table(str, name="sink mine")
        with pytest.raises(PlanError, match="has a table 'sink mine' that no sink has written"):
            view.changes_to(print, name="mine")
        assert [table.name for table in db.tables()] == ["devices", "sink mine"]
    with Database() as db:
        view = hot(db)[1]
        with pytest.raises(PlanError, match="its database is in memory"):
            view.changes_to(print, durable=True)
        with pytest.raises(PlanError, match="migrate=True is not read"):
            view.changes_to(print, migrate=True)
    with Database(tmp_path / "x.db", readonly=True) as db:
        view = hot(db)[1]
        with pytest.raises(PlanError, match="open for reading alone"):
            view.changes_to(print, durable=True)
        view.changes_to(print, name="alerts").flush()


def test_a_query_that_has_changed_is_refused_or_its_difference_is_told(tmp_path: Path) -> None:
    told = Receiver()

    def begin(limit: int, **options: Any) -> None:
        with Database(tmp_path / "x.db") as db:
            devices, view = hot(db, limit)
            devices.upsert(Device(1, 50))
            devices.upsert(Device(2, 95))
            with view.changes_to(told, **options):
                pass

    begin(90)
    with pytest.raises(
        PlanError, match=r"cannot go on with sink 'hot': .* another query(.|\n)*migrate=True"
    ):
        begin(40)
    begin(40, migrate=True)
    begin(40)
    begin(90, name="others")
    assert told.batches == [(0, [(2, 1)]), (1, [(1, 1)]), (0, [(2, 1)])]


def test_what_a_sink_has_told_can_be_forgotten(tmp_path: Path) -> None:
    told = Receiver()
    with Database(tmp_path / "x.db") as db:
        devices, view = hot(db)
        devices.add(Device(1, 99))
        for _ in range(2):
            sink = view.changes_to(told)
            sink.flush()
            sink.forget()
            assert sink.state == "stopped"
        assert told.batches == [(0, [(1, 1)])] * 2
        with pytest.raises(PlanError, match="not kept in a durable database"):
            view.changes_to(told, durable=False).forget()
    names = (
        sqlite3.connect(tmp_path / "x.db").execute("select name from reactive_tables").fetchall()
    )
    assert names == [("devices",)]


def test_rows_that_cannot_be_kept_are_refused_and_wait(tmp_path: Path) -> None:
    with Database(tmp_path / "x.db") as db:
        devices = db.table(Device, key="id", name="devices")
        patterns = devices.select(lambda d: re.compile(str(d.id)))
        view = patterns.materialize("patterns")
        told = Receiver()
        sink = view.changes_to(told)
        devices.add(Device(1, 2))
        with pytest.raises(
            DurabilityError, match=r"cannot keep what sink 'patterns' is to tell: row re.compile"
        ):
            sink.flush()
        assert sink.state == "failed"
        devices.delete(1)
        sink.flush()
        assert (sink.state, told.batches) == ("running", [])
        opaque: Any = {"Alert": Alert, "Bell": Bell}
        for name in opaque:
            make: Any = lambda d, n=name: opaque[n](d.id)  # noqa: E731
            alerts = devices.select(make).materialize(name)
            devices.upsert(Device(1, 2))
            sink = alerts.changes_to(told)
            with pytest.raises(DurabilityError, match="row_type=Alert"):
                sink.flush()
            sink.stop()
        bell = alerts.changes_to(told, name="bell", row_type=Bell)
        with pytest.raises(DurabilityError, match="does not make again of its fields"):
            bell.flush()
        bell.stop()
        with pytest.raises(PlanError, match="which has no plain form"):
            alerts.changes_to(told, name="pattern", row_type=re.Pattern)
        named = devices.select(lambda d: opaque["Alert"](d.id)).materialize("named")
        named.changes_to(told, row_type=Alert).flush()
        assert told.batches == [(0, [(Alert(1), 1)])]


@pytest.mark.parametrize(
    "row", [("=[", 1), ("!batch", 0), ("=1", "one"), (b"x", 1), ('={"tuple": 1}', 1)]
)
def test_a_damaged_row_of_it_is_told(tmp_path: Path, row: Any) -> None:
    def begin() -> None:
        with Database(tmp_path / "x.db") as db:
            words = db.table(int, name="words")
            words.materialize("words").changes_to(lambda number, changes: None)
            db.flush()

    begin()
    other = sqlite3.connect(tmp_path / "x.db")
    other.execute('insert into "sink words" values (?, ?)', row)
    other.commit()
    other.close()
    with pytest.raises(DurabilityError, match=r"cannot read table 'sink words' in .*x\.db"):
        begin()


def test_a_write_that_raises_leaves_the_sink_as_it_was(tmp_path: Path) -> None:
    for at in range(1 + SEED % stride(1), 60, stride(1)):
        faults, told = Faults(0, full), Receiver()
        store = SqliteStore(tmp_path / f"{at}.db", connect=faults.connect)
        db = Database(store=store)
        words = db.table(str, name="words")
        sink = words.materialize("words").changes_to(told)
        faults._at = faults.calls + at
        for word in ("to", "be", "or", "not"):
            for act in (partial(words.add, word), sink.flush):
                try:
                    act()
                except DurabilityError:
                    act()
        sink.flush()
        assert told.content() == {"to": 1, "be": 1, "or": 1, "not": 1}
        faults._at = 0
        db.close()
        with Database(tmp_path / f"{at}.db") as db:
            db.table(str, name="words").materialize("words").changes_to(told)
            db.flush()
        assert told.content() == {"to": 1, "be": 1, "or": 1, "not": 1}


def test_what_is_told_is_in_the_file_though_groups_are_written_later(tmp_path: Path) -> None:
    db = Database(tmp_path / "x.db", durability="exit")
    words = db.table(str, name="words")
    seen = []

    def look(number: int, changes: list[Any]) -> None:
        other = sqlite3.connect(tmp_path / "x.db")
        seen.append((other.execute("select value from words").fetchall(), changes))
        other.close()

    sink = words.materialize("words").changes_to(look)
    words.add("to")
    sink.flush()
    assert seen == [([("to",)], [("to", 1)])]
    db.close()


def test_a_batch_costs_its_changes(tmp_path: Path) -> None:
    written: list[int] = []

    class Counting(SqliteStore):
        def write(self, records: Any) -> None:
            written.append(sum(len(c.gone) + len(c.come) for r in records for c in r.changes))
            super().write(records)

    db = Database(store=Counting(tmp_path / "x.db"))
    words = db.table(int, name="words")
    words.add_all(range(3000))
    sink = words.materialize("words").changes_to(lambda number, changes: None)
    sink.flush()
    words.add(-1)
    sink.flush()
    written.clear()
    words.add(-2)
    sink.flush()
    assert max(written) <= 8
    db.close()


def test_the_name_of_the_query_is_kept_with_the_table(tmp_path: Path) -> None:
    with Database(tmp_path / "x.db") as db:
        hot(db)[1].changes_to(print)
        about = db._engine.journal.store.tables()["sink hot"].about
        assert len(json.loads(about)["sink"]) == 32


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
def test_the_history_goes_on_when_a_sink_is_migrated_or_forgotten(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    memory = MemoryStore()

    def opened() -> Database:
        there: Any = memory
        if kind == "sqlite":
            there = SqliteStore(tmp_path / "x.db")
        elif kind == "postgres":
            there = PostgresStore(request.getfixturevalue("database"))
        return Database(store=there, keep=100)

    for limit in (90, 40):
        with opened() as db:
            devices, view = hot(db, limit)
            devices.upsert(Device(limit, 99))
            sink = view.changes_to(lambda number, changes: None, migrate=limit == 40)
            sink.flush()
    with opened() as db:
        view = hot(db, 40)[1]
        view.changes_to(lambda number, changes: None).forget()
        assert [past.version for past in db.history(since=0)] == [1, 2]
        assert sorted(view.changes_since(1)) == [(40, 1)]
