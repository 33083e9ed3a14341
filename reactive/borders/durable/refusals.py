"""Messages of errors when a store cannot be opened, read or written."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from reactive.errors import DurabilityError

WRITER = "a file of durable tables has one writer: the database that opened it, in its process"
DAMAGED = (
    *(ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError),
    AssertionError,
)
"""The exceptions of reading a value that differs from the written one."""
UNDONE = "nothing has changed: no table, no view, and nothing in the file"


def is_open_elsewhere(name: str) -> str:
    """Return the message for a file that another process has open."""
    return f"{name} is open in another process\n  {WRITER}; others may read it: sqlite3 {name}"


def is_open_here(name: str) -> str:
    """Return the message for a file that another database of this process has open."""
    return (
        f"{name} is open in another database of this process\n"
        "  close that one first, db.close(), as in a notebook's cell that is run again; or use it"
    )


def has_other_name(name: str, other: str) -> str:
    """Return the message for a file that is a hard link to one that has a log."""
    return (
        f"cannot open {name}: it is a hard link to {other}, whose log, {other}-wal, has "
        "commits that are not found by this name\n"
        f"  open {other}; or make a copy by db.backup({name!r})"
    )


def no_database(name: str) -> str:
    """Return the message for a SQLite file without tables of this library."""
    return (
        f"{name} is a database of SQLite that has no durable tables of this library\n"
        "  choose another path; rows of SQL tables come by db.ingest, or by a mirror"
    )


def changed_by_others(name: str, table: str, sql_name: str) -> str:
    """Return the message for a SQL table that has lost columns or gained some."""
    return (
        f"the SQL table {sql_name!r} in {name}, of the rows of table {table!r}, is gone or has "
        "other columns: somebody else has changed it\n"
        "  change the class of the rows instead, with migrate=; have the columns as they were, or "
        "put a backup in the place of the file"
    )


def written_by_others(name: str, table: str, changed: int, rows: Sequence[object]) -> str:
    """Return the message for rows that a commit replaces or deletes, but the store lacks."""
    return (
        f"{name}: table {table!r} has {changed} of {len(rows)} rows that "
        f"have to be there: {rows!r:.200}\n"
        "  somebody else has written to it; open it anew, and compare the table"
    )


def later_format(name: str, found: int, known: int) -> str:
    """Return the message for a store that a later release has written."""
    return (
        f"{name} is of format {found}, and this is a library of format {known}\n"
        "  update the library: pip install -U reactive-collections"
    )


def no_file(name: str) -> str:
    """Return the message for a file that does not exist and is to be read."""
    return (
        f"there is no file {name} that could be read\n"
        "  Database(path), without readonly=True, makes one; see that the path is that of a writer"
    )


def is_for_reading(name: str) -> str:
    """Return the message for a file that is opened with `readonly=True`."""
    return f"{name} is open for reading alone: Database(..., readonly=True)"


class MissingFileError(DurabilityError):
    """The file is not at its path. Nothing has been written, and the file may be restored."""


def file_replaced(name: str, missing: str) -> str:
    """Return the message for a file that is no longer at its path."""
    beside = "" if missing == name else f", by {missing},"
    return (
        f"{name} was deleted or replaced while it was open, as was seen{beside} now: what was "
        "committed last may be in no file, and nothing more is written\n"
        "  move that file, with the -wal beside it, back to its place, and try again, with "
        "durability='group' or 'exit' by db.flush(); or save what the tables hold, close the "
        "database, and open it anew"
    )


def damaged_row(name: str, table: str, row: object) -> str:
    """Return the message for a row that cannot be read."""
    return (
        f"cannot read table {table!r} in {name}: its row {row!r:.300} is damaged\n"
        "  restore a backup; or see what can be read by SQL, in a file by: sqlite3 .recover"
    )


def not_whole(name: str, found: object) -> str:
    """Return the message for a file with missing or overwritten parts."""
    return (
        f"cannot open {name}: the file is damaged: {found!s:.200}\n"
        "  put a backup in its place; or see what can be read: sqlite3 .recover"
    )


def call_failure(name: str, what: str, error: BaseException) -> str:
    """Return the message for a call that SQLite refuses."""
    return f"cannot {what} {name}: {error}\n  {remedy(error)}"


def is_unsure(error: BaseException) -> bool:
    """Return True if the log may contain a commit that SQLite reported as failed.

    The pages were written, and a later step failed, such as waiting for the disk.
    """
    code = getattr(error, "sqlite_errorcode", None) or 0
    return code & 0xFF in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM) and code not in _EARLY


def unsure_commit(name: str) -> str:
    """Return the message for a file after such an error."""
    return f"the disk has failed at the end of a commit to {name}\n  {_ANEW}"


_EARLY = (
    sqlite3.SQLITE_IOERR_READ,
    sqlite3.SQLITE_IOERR_SHORT_READ,
    sqlite3.SQLITE_IOERR_WRITE,
    sqlite3.SQLITE_IOERR_LOCK,
)
_ANEW = "close the database, and open it anew: it will be as stored, with that commit or without"


def remedy(error: BaseException) -> str:
    """Return the remedy for an error of SQLite or of the operating system."""
    if is_unsure(error):
        return _ANEW
    text = str(error).lower()
    for part, advice in _REMEDIES.items():
        if part in text:
            return advice
    return "see that the disk and the folder can be written, and try again"


_REMEDIES = {
    "full": "make room on the disk, and try again; the database is as it was before",
    "locked": "another program writes to the file: let it end its transaction, and try again",
    "malformed": "the file is damaged: put a backup in its place, or recover it: sqlite3 .recover",
    "not a database": "choose another path; or put a backup in its place, if it is damaged",
    "disk i/o": "the disk fails, or its file system: look at the log of the system",
    "readonly": "the file, or its folder, cannot be written: change its permissions",
    "unable to open": "see that the folder is there, and can be written",
    "no such file": "make the folder first; ~ is not read as the home directory",
    "is a directory": "give the path of a file in it, such as 'shop.db'",
    "permission": "the file, or its folder, cannot be written: change its permissions",
}
