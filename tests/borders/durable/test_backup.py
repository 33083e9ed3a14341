"""A backup is the state after some commit, whole or not there."""

from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from reactive import Database, DurabilityError, PlanError
from reactive.borders.durable.store import MemoryStore


@pytest.mark.parametrize("durability", ["commit", "group", "exit"])
def test_a_backup_has_all_that_was_committed_and_no_part_of_what_comes(
    tmp_path: Path, durability: Any
) -> None:
    db = Database(tmp_path / "x.db", durability=durability, keep=5)
    left, right = db.table(int, name="left"), db.table(int, name="right")
    ended = threading.Event()

    def write() -> None:
        number = 0
        while not ended.is_set():
            with db.transaction():
                left.add(number)
                right.add(number)
            number += 1
            ended.wait(0.001)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(5):
            before = db.version
            db.backup(tmp_path / f"{number}.db")
            with Database(tmp_path / f"{number}.db") as copy:
                rows = sorted(copy.table(int, name="left"))
                assert rows == sorted(copy.table(int, name="right")) == [*range(copy.version)]
                assert copy.version >= before
                assert len(copy.history(since=0)) == min(copy.version, 5)
    finally:
        ended.set()
        writer.join()
        db.close()


def test_a_backup_is_one_file_with_the_permissions_of_the_original(tmp_path: Path) -> None:
    with Database(tmp_path / "x.db") as db:
        words = db.table(str, name="words")
        words.materialize("words").changes_to(lambda number, changes: None)
        words.add("to")
        db.flush()
        (tmp_path / "x.db").chmod(0o600)
        db.backup(tmp_path / "y.db")
        assert (tmp_path / "y.db").stat().st_mode & 0o777 == 0o600
        assert sorted(each.name for each in tmp_path.glob("y*")) == ["y.db"]
    ids = []
    for name in ("x.db", "y.db"):
        other = sqlite3.connect(tmp_path / name)
        ids += other.execute("select value from reactive_state where name = 'id'").fetchall()
        other.close()
    assert ids[0] != ids[1]
    with Database(tmp_path / "y.db") as db:
        sink = db.table(str, name="words").materialize("words").changes_to(print)
        assert sink.position is not None and sink.position.batch == 0


def test_what_cannot_be_backed_up_is_said_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Database() as db, pytest.raises(PlanError, match="in memory: it has no file"):
        db.backup(tmp_path / "y.db")
    with Database(store=MemoryStore()) as db, pytest.raises(PlanError, match="has no file"):
        db.backup(tmp_path / "y.db")
    with Database(tmp_path / "x.db") as db:
        db.table(str, name="words").add("to")
        for taken in ("x.db", "x.db-lock"):
            with pytest.raises(PlanError, match="there is something already"):
                db.backup(tmp_path / taken)
        with pytest.raises(DurabilityError, match=r"cannot write the backup .*nowhere"):
            db.backup(tmp_path / "nowhere" / "y.db")

        def fails(file: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("reactive.borders.durable.sqlite_file.os.fsync", fails)
        with pytest.raises(DurabilityError, match="No space left"):
            db.backup(tmp_path / "y.db")
        monkeypatch.undo()
        assert not list(tmp_path.glob("y*"))
        db.backup(os.fspath(tmp_path / "y.db"))
