"""A copy of a durable file while it is written to: `Database.backup`.

    commits until now  -->  read in one transaction  -->  PATH-part  -->  synced, renamed to PATH

Commits go on meanwhile: in WAL mode who reads has what was there when it began.

State:  none.
Cost:   that of reading and writing the file once.
Source: sqlite.org/backup.html.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from optimizer.errors import PlanError
from reactive.borders.durable.refusals import failed
from reactive.borders.durable.sqlite_file import SqliteFile
from reactive.errors import DurabilityError


def back_up(engine: Any, path: str | os.PathLike[str]) -> None:
    """Copy the file of a database, with all that was committed before the call.

    Raises
    ------
    PlanError: the database has no file, or there is one at `path`.
    DurabilityError: the file cannot be read, or the copy cannot be written.
    """
    engine.check_open()
    journal = engine.journal
    if journal is None or not isinstance(journal.store, SqliteFile):
        where = "in memory" if journal is None else f"in {journal.store.name}"
        raise PlanError(
            f"cannot back up a database that is {where}: it has no file\n"
            "  give it a path, Database('shop.db'); of Postgres use pg_dump"
        )
    target = os.path.realpath(os.fspath(path))
    if os.path.lexists(path):
        raise PlanError(
            f"cannot write a backup to {target}: there is something already\n"
            "  give a new path; a backup takes the place of no file"
        )
    journal.flush()
    _copy(journal.store.name, target)


def _copy(source: str, target: str) -> None:
    part = f"{target}-part"
    try:
        mode = Path(source).stat().st_mode & 0o777
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        try:
            _read_into(source, part)
            _sync(part)
            Path(part).rename(target)
            _sync(os.path.dirname(target))  # noqa: PTH120
        except BaseException:
            for end in ("", "-journal", "-wal", "-shm"):
                Path(f"{part}{end}").unlink(missing_ok=True)
            raise
    except (sqlite3.Error, OSError) as error:
        raise DurabilityError(failed(target, "write the backup", error)) from error


def _read_into(source: str, part: str) -> None:
    address = f"{Path(source).as_uri()}?mode=ro"
    with (
        closing(sqlite3.connect(address, uri=True)) as old,
        closing(sqlite3.connect(part, isolation_level=None)) as new,
    ):
        old.backup(new)
        new.execute("pragma journal_mode = delete").fetchall()  # it is one file
        new.execute("update reactive_state set value = hex(randomblob(8)) where name = 'id'")


def _sync(path: str) -> None:
    """Wait for the disk."""
    with suppress(PermissionError):  # a folder of Windows is not opened
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)
