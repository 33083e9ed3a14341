"""No acknowledged commit is lost, and no commit is partial.

After kill -9, loss of power, errors, interrupts, a full disk, a torn log, two processes. `python -m
tests.borders.durable` runs most of it at length.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from reactive import Database, DurabilityError
from reactive.borders.durable.sqlite_store import SqliteStore
from tests.borders.durable.crashed import crashed_everywhere, failed_everywhere, written
from tests.borders.durable.disk import Disk
from tests.borders.durable.faulty import Faults
from tests.borders.durable.history import Tables, go_on, states, store
from tests.borders.durable.killed import killed
from tests.borders.durable.life import LEVELS
from tests.borders.durable.raised import interrupted, raised_everywhere, refused_everywhere
from tests.borders.durable.recording import FAILS_TO_SYNC, Recording, can_record
from tests.budget import seeds

recorded = pytest.mark.skipif(not can_record(), reason="the library of SQLite is out of reach")


@pytest.mark.long
@recorded
@pytest.mark.parametrize("level", dict.fromkeys(LEVELS))
def test_what_was_acknowledged_is_there_after_an_end_at_any_write(level: str) -> None:
    for seed in seeds(24, 12):
        found = crashed_everywhere(seed, level, step=5)
        assert found["kill"] > 15 and found["power"] > 5 and found["cut"]


@pytest.mark.long
@recorded
@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process cannot be forked here")
def test_a_process_that_is_killed_leaves_files_that_are_as_was_noted() -> None:
    for seed in seeds(8, 4):
        assert killed(seed, step=23) > 3


@pytest.mark.long
def test_a_call_that_raises_undoes_its_commit_wholly() -> None:
    for seed in seeds(2, 2):
        assert raised_everywhere(seed, step=15) > 5


@pytest.mark.long
@recorded
def test_a_write_that_fails_undoes_its_commit_wholly() -> None:
    for seed in seeds(4, 4):
        assert refused_everywhere(seed, step=11) > 5


@pytest.mark.long
@recorded
def test_after_a_write_that_fails_a_prefix_is_left() -> None:
    for seed in seeds(8, 4):
        assert failed_everywhere(seed, step=11) > 5


@pytest.mark.parametrize("level", dict.fromkeys(LEVELS))
def test_an_exception_from_outside_leaves_what_the_file_has(level: str) -> None:
    for seed in seeds(2, 2):
        assert interrupted(seed, 25, level) > 5


@recorded
def test_after_an_error_that_comes_late_nobody_says_what_the_file_has(tmp_path: Path) -> None:
    recording = Recording()
    there = SqliteStore(tmp_path / "shop.db", synchronous="full", connect=recording.connect)
    db = Database(store=there)
    words = db.table(str, name="words")
    words.add("to")
    recording.fails = lambda number, call: FAILS_TO_SYNC if call[0] == "sync" else 0
    with pytest.raises(DurabilityError, match=r"open it anew: .* with that commit or without"):
        words.add("be")
    assert (list(words), db.version) == (["to"], 1)
    with pytest.raises(DurabilityError, match=r"whether commit 2 is in .* is not known"):
        words.add("or")
    disk = Disk()
    for call in recording.calls:
        disk.make(call)
    with written(disk.killed()) as path, Database(path) as left:
        assert (sorted(left.table(str, name="words")), left.version) == (["be", "to"], 2)
    recording.fails = lambda number, call: 0
    db.close()
    with Database(tmp_path / "shop.db") as db:
        assert (list(db.table(str, name="words")), db.version) == (["to"], 1)


def test_subscribers_hear_nothing_that_the_file_does_not_have(tmp_path: Path) -> None:
    for at in range(45, 80, 3):
        path, heard = tmp_path / f"{at}.db", list[Any]()
        faults = Faults(at, _disk_error)
        tables = Tables(store(str(path), connect=faults.connect))
        following = tables.orders.subscribe(lambda d, h=heard: h.append(d.version))  # type: ignore[misc]
        try:
            go_on(tables, at, 0, lambda _: None)
        except DurabilityError:
            assert tables.db._engine.journal.store.version() >= max(heard, default=0)
        following.close()
        tables.db.close()


def _disk_error() -> None:
    raise sqlite3.OperationalError("disk I/O error")


def test_a_full_disk_undoes_a_commit_and_the_next_one_has_room(tmp_path: Path) -> None:
    with Database(tmp_path / "shop.db") as db:
        words = db.table(str, name="words")
        view = words.select(len).materialize()
        words.add("to")
        connection = db._engine.journal.store._connection
        (pages,) = connection.execute("pragma page_count").fetchone()
        connection.execute(f"pragma max_page_count = {pages}")
        with pytest.raises(DurabilityError, match=r"cannot write .*shop\.db: database or disk is"):
            words.add("be" * 10**5)
        with pytest.raises(DurabilityError, match="make room"), db.transaction():
            words.remove("to")
            words.add("or" * 10**5)
        assert (list(words), list(view), db.version) == (["to"], [2], 1)
        connection.execute(f"pragma max_page_count = {2 * pages + 1000}")
        words.add("be" * 10**5)
        assert sorted(view) == [2, 2 * 10**5]
    with Database(tmp_path / "shop.db") as db:
        assert sorted(map(len, db.table(str, name="words"))) == [2, 2 * 10**5]


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(8, 2))
def test_of_a_torn_log_a_prefix_is_left(tmp_path: Path, seed: int) -> None:
    path, random = tmp_path / "shop.db", Random(seed)
    tables = Tables(store(str(path)), views=False)
    go_on(tables, seed, 0, lambda _: None)
    wanted, whole = states(seed), (tmp_path / "shop.db-wal").read_bytes()
    assert len(whole) > 10_000
    found = set()
    for number in range(12):
        torn = tmp_path / f"{number}"
        torn.mkdir()
        shutil.copy(path, torn / "shop.db")
        (torn / "shop.db-wal").write_bytes(_torn(whole, random))
        try:
            opened = Tables(store(str(torn / "shop.db")), views=False)
        except DurabilityError:  # nothing but the head of a file is left
            continue
        state = opened.state()
        opened.db.close()
        if state[-1]:
            assert state in wanted
        found.add(state[-1])
    tables.db.close()
    assert len(found) > 2


def _torn(whole: bytes, random: Random) -> bytes:
    """Return a log whose end is missing or overwritten."""
    at = random.randint(len(whole) // 4, len(whole))
    end = b"" if random.random() < 0.5 else random.randbytes(len(whole) - at)
    return whole[:at] + end


def test_a_second_process_is_refused_and_let_in_when_the_first_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    program = (
        "import sys; from reactive import Database\n"
        "db = Database(sys.argv[1]); db.table(str, name='words').add('to')\n"
        "print('open', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "open\n"
        with pytest.raises(DurabilityError, match="is open in another process"):
            Database(path)
        with sqlite3.connect(path) as reader:
            assert reader.execute("select value from words").fetchall() == [("to",)]
        reader.close()
        other.kill()
    with Database(path) as db:
        assert list(db.table(str, name="words")) == ["to"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process cannot be forked here")
@pytest.mark.parametrize("durability", ["commit", "group"])
def test_a_child_of_the_process_does_not_write(tmp_path: Path, durability: Any) -> None:
    db = Database(tmp_path / "shop.db", durability=durability)
    words = db.table(str, name="words")
    words.add("to")
    child = os.fork()
    if not child:
        try:
            words.add("be")
        except DurabilityError as error:
            os._exit(7 if "parent" in str(error) else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    words.add("or")
    with pytest.raises(DurabilityError, match="is open in another"):
        Database(tmp_path / "shop.db")
    db.close()
    with Database(tmp_path / "shop.db") as db:
        assert sorted(db.table(str, name="words")) == ["or", "to"]


def test_a_group_that_is_not_written_is_told_at_flush_and_refused_afterwards(
    tmp_path: Path,
) -> None:
    db = Database(tmp_path / "shop.db", durability="exit")
    words = db.table(str, name="words")
    words.add("to")
    db.flush()
    (pages,) = db._engine.journal.store._connection.execute("pragma page_count").fetchone()
    db._engine.journal.store._connection.execute(f"pragma max_page_count = {pages}")
    words.add("be" * 10**5)
    with pytest.raises(DurabilityError, match="full"):
        db.flush()
    for act in (db.flush, lambda: words.add("or"), db.close):
        with pytest.raises(DurabilityError, match="has commits up to 1 only"):
            act()
    with Database(tmp_path / "shop.db") as again:
        assert list(again.table(str, name="words")) == ["to"]


def test_a_program_that_does_not_close_has_its_group_written(tmp_path: Path) -> None:
    program = (
        "import sys; from reactive import Database\n"
        "db = Database(sys.argv[1], durability='group')\n"
        "words = db.table(str, name='words')\n"
        "for n in range(500): words.add(str(n))"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "shop.db")], check=True)
    with Database(tmp_path / "shop.db") as db:
        assert (len(db.table(str, name="words")), db.version) == (500, 500)
