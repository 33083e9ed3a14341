"""A file that is open is not opened a second time: by no other name, nor without its lock."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reactive import Database, DurabilityError
from reactive.borders.durable import file_lock

PROGRAM = (
    "import sys; from reactive import Database, DurabilityError\n"
    "try:\n"
    "    db = Database(sys.argv[1])\n"
    "    db.table(str, name='words').add('second'); db.close(); print('let in')\n"
    "except DurabilityError as error: print(error)\n"
)
by_inode = pytest.mark.skipif(
    not hasattr(file_lock.fcntl, "F_OFD_SETLK"), reason="the system has no locks of open files"
)


def linked(path: Path) -> Path:
    os.link(path, path.with_name("other.db"))
    return path.with_name("other.db")


def linked_elsewhere(path: Path) -> Path:
    (path.parent / "folder").mkdir()
    os.link(path, path.parent / "folder" / "shop.db")
    return path.parent / "folder" / "shop.db"


def without_lock(path: Path) -> Path:
    Path(f"{path}-lock").unlink()
    return path


def by_symbolic_link(path: Path) -> Path:
    path.with_name("link.db").symlink_to(path)
    return path.with_name("link.db")


WAYS = [linked, linked_elsewhere, without_lock, by_symbolic_link]


def opened_elsewhere(path: Path) -> str:
    """The answer of another process."""
    command = [sys.executable, "-c", PROGRAM, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@by_inode
@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_is_open_is_not_opened_by_another_way(
    tmp_path: Path, way: Callable[[Path], Path]
) -> None:
    path = tmp_path / "shop.db"
    db = Database(path)
    words = db.table(str, name="words")
    words.add("first")
    other = way(path)
    with pytest.raises(DurabilityError, match=r"in another database of this|hard link"):
        Database(other)
    assert "is open in another process" in (said := opened_elsewhere(other)) or "hard link" in said
    with pytest.raises(DurabilityError, match=r"open in another|hard link"):
        Database(other)
    if way is not without_lock:  # which its owner tells of
        words.add("third")
        db.close()
        assert "let in" in opened_elsewhere(path)
        with Database(path) as db:
            assert sorted(db.table(str, name="words")) == ["first", "second", "third"]


def test_a_link_to_a_file_whose_log_has_commits_is_refused(tmp_path: Path) -> None:
    path, copy = tmp_path / "shop.db", tmp_path / "copy.db"
    with Database(path) as db:
        db.table(str, name="words").add("to")
        for end in ("", "-wal"):  # as after kill -9
            shutil.copy(f"{path}{end}", f"{copy}{end}")
    os.link(copy, tmp_path / "other.db")
    for options in ({}, {"readonly": True}):
        with pytest.raises(DurabilityError, match=r"is a hard link to .*copy\.db, whose log"):
            Database(tmp_path / "other.db", **options)  # type: ignore[arg-type]
    with Database(copy) as db:
        assert list(db.table(str, name="words")) == ["to"]
    with Database(tmp_path / "other.db") as db:
        assert list(db.table(str, name="words")) == ["to"]
