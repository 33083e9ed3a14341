"""An error reports a file that is deleted or replaced while open: no commit is lost silently."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reactive import Count, Database, DurabilityError
from reactive.borders.durable import sqlite_store


def deleted(path: Path) -> None:
    path.unlink()


def replaced(path: Path) -> None:
    shutil.copy(path, f"{path}-copy")
    Path(f"{path}-copy").replace(path)


def without_its_log(path: Path) -> None:
    Path(f"{path}-wal").unlink()


def without_its_lock(path: Path) -> None:
    Path(f"{path}-lock").unlink()


def without_its_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


WAYS = [deleted, replaced, without_its_log, without_its_lock, without_its_folder]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder" / "shop.db"


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at files at each commit."""
    monkeypatch.setattr(sqlite_store, "EVERY", -1.0)


@pytest.mark.parametrize("act", WAYS)
@pytest.mark.usefixtures("always")
def test_a_commit_is_undone_when_the_file_is_not_there_any_more(
    path: Path, act: Callable[[Path], None]
) -> None:
    db = Database(path)
    words = db.table(str, name="words")
    lengths = words.group_by(len).aggregate(Count()).materialize()
    words.add("to")
    act(path)
    for _ in range(2):
        with pytest.raises(DurabilityError, match="deleted or replaced while it was open"):
            words.add("be")
        assert (list(words), dict(lengths), db.version) == (["to"], {2: 1}, 1)
        with pytest.raises(DurabilityError, match="save what the tables hold"), db.transaction():
            words.remove("to")
            words.add_all(["that", "is"])
        assert (list(words), dict(lengths), db.version) == (["to"], {2: 1}, 1)
    with pytest.raises(DurabilityError, match="deleted or replaced"):
        db.table(int, name="numbers")
    db.close()


@pytest.mark.usefixtures("always")
def test_commits_go_on_when_the_file_is_back(path: Path) -> None:
    with Database(path) as db:
        words = db.table(str, name="words")
        path.rename(path.with_name("away"))
        with pytest.raises(DurabilityError, match="back to its place"):
            words.add("to")
        path.with_name("away").rename(path)
        words.add("be")
    with Database(path) as db:
        assert list(db.table(str, name="words")) == ["be"]


@pytest.mark.parametrize("durability", ["group", "exit"])
def test_flush_tells_of_a_file_that_is_gone(path: Path, durability: str) -> None:
    db = Database(path, durability=durability)  # type: ignore[arg-type]
    words = db.table(str, name="words")
    words.add("to")
    db.flush()
    path.unlink()
    with db.transaction():
        words.add_all(["be", "that"])
    words.remove("be")
    with pytest.raises(DurabilityError, match="deleted or replaced"):
        db.flush()
    with pytest.raises(DurabilityError, match=r"up to 1 only: .*deleted or replaced"):
        words.add("is")
    with pytest.raises(DurabilityError, match="deleted or replaced"):
        db.close()


@pytest.mark.parametrize("durability", ["group", "exit"])
@pytest.mark.parametrize("key", [None, "real"])
@pytest.mark.usefixtures("always")
def test_groups_go_on_when_the_file_is_back_and_flush_is_called(
    path: Path, durability: Any, key: str | None
) -> None:
    with Database(path, durability=durability) as db:
        numbers = db.table(int, name="numbers", key=key)
        numbers.add(1)
        db.flush()
        path.rename(path.with_name("away"))
        numbers.add(2)
        for _ in range(2):
            with pytest.raises(DurabilityError, match="deleted or replaced"):
                db.flush()
            with pytest.raises(DurabilityError, match=r"back to its place, and call db.flush\(\)"):
                numbers.add(3)
        assert sorted(numbers) == [1, 2]
        path.with_name("away").rename(path)
        db.flush()
        numbers.add(4)
        if durability == "group":
            until = time.monotonic() + 10
            while not db._engine.journal.is_settled() and time.monotonic() < until:
                time.sleep(0.01)
            assert db._engine.journal.is_settled(), "its thread writes again"
    with Database(path) as db:
        assert sorted(db.table(int, name="numbers", key=key)) == [1, 2, 4]


def test_closing_tells_of_a_file_that_is_gone_if_commits_may_be_lost(path: Path) -> None:
    db = Database(path)
    words = db.table(str, name="words")
    path.unlink()
    words.add("to")  # it is not looked at before `EVERY` seconds are over
    with pytest.raises(DurabilityError, match="committed last may be in no file"):
        db.close()
    Database(path).close()


def test_files_are_looked_at_now_and_then_only(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_store, "EVERY", 1000.0)
    with Database(path) as db:
        words = db.table(str, name="words")
        looks: list[str] = []
        monkeypatch.setattr("reactive.borders.durable.sqlite_store.Path.stat", looks.append)
        for word in "abcdef":
            words.add(word)
        assert looks == []
        monkeypatch.undo()
