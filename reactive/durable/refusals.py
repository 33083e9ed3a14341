"""What is said when a store cannot be opened, read or written."""

from __future__ import annotations

WRITER = "a file of durable tables has one writer: the database that opened it, in its process"
UNDONE = "nothing has changed: no table, no view, and nothing in the file"


def is_open_elsewhere(name: str) -> str:
    """Of a file that another database has."""
    return (
        f"{name} is open in another process, or in another database of this one\n"
        f"  {WRITER}; others may read it: sqlite3 {name}"
    )


def no_database(name: str) -> str:
    """Of a file of SQLite that is none of ours."""
    return (
        f"{name} is a database of SQLite that has no durable tables of this library\n"
        "  choose another path; rows of SQL tables come by db.ingest, or by a mirror"
    )


def failed(name: str, what: str, error: BaseException) -> str:
    """Of a call that SQLite refuses."""
    return f"cannot {what} {name}: {error}\n  {remedy(error)}"


def remedy(error: BaseException) -> str:
    """What to do."""
    text = str(error).lower()
    for part, advice in _REMEDIES.items():
        if part in text:
            return advice
    return "see that the disk and the folder can be written, and try again"


_REMEDIES = {
    "full": "make room on the disk, and try again; the database is as it was before",
    "locked": "another program writes to the file: let it end its transaction, and try again",
    "malformed": "the file is damaged: put a backup in its place, or recover it: sqlite3 .recover",
    "not a database": "the file is damaged, or no file of SQLite: put a backup in its place",
    "disk i/o": "the disk fails, or its file system: look at the log of the system",
    "readonly": "the file, or its folder, cannot be written: change its permissions",
    "unable to open": "see that the folder is there, and can be written",
    "no such file": "make the folder first",
    "permission": "the file, or its folder, cannot be written: change its permissions",
}
