"""What an error at COMMIT says: surely not committed, or nobody knows.

    refused    the database has answered, and the answer is no; or it was not asked
    unknown    the answer was lost, or never came: it may have committed all the same

                            refused                          unknown
    SQLite (result code)    busy, locked, constraint, full,  I/O error, corrupt, and others
                            interrupt, read only, ...
    SQLSTATE                all others                       08, 57P01 to 57P05, 40003, 58, XX
    MySQL (number)          of the server                    of the client (2000 to 2999), 1053
    PEP 249 class           IntegrityError, DataError,       OperationalError, InterfaceError,
                            ProgrammingError, NotSupported   InternalError, Error
    SQLAlchemy              of its own, nothing was sent     `connection_invalidated`

What is in no row is unknown: an exception from outside, a time-out, what another object raises.

Source: PEP 249; the codes of SQLite, appendix A of the manual of Postgres, the errors of MySQL.
"""

from __future__ import annotations

from typing import Any

from reactive.engine.runtime.interrupts import is_asynchronous

SQLITE_REFUSES = frozenset({1, 3, 4, 5, 6, 8, 9, 13, 17, 19, 20, 21, 23})
"""ERROR, PERM, ABORT, BUSY, LOCKED, READONLY, INTERRUPT, FULL, SCHEMA, CONSTRAINT, MISMATCH, MISUSE
and AUTH."""
LOST_CLASSES = ("08", "58", "XX")
"""Of SQLSTATE: the connection, the system, the server itself."""
LOST_STATES = frozenset({"40003", "57P01", "57P02", "57P03", "57P04", "57P05"})
"""The completion is unknown; the server is being shut down, or has crashed."""
MYSQL = frozenset({"pymysql", "MySQLdb", "mysql", "aiomysql", "asyncmy"})
MYSQL_LOST = frozenset({1053, 1927, *range(2000, 3000)})
NOT_DONE = frozenset({"IntegrityError", "DataError", "ProgrammingError", "NotSupportedError"})
"""Classes of PEP 249."""


def is_refusal(error: BaseException) -> bool:
    """Whether a database that has raised this at COMMIT has surely not committed.

    >>> import sqlite3
    >>> is_refusal(sqlite3.IntegrityError("FOREIGN KEY constraint failed"))
    True
    >>> is_refusal(sqlite3.OperationalError("disk I/O error"))
    False
    """
    if not isinstance(error, Exception) or is_asynchronous(error):
        return False
    root = _module(error)
    if root == "sqlalchemy":
        return _of_sqlalchemy(error)
    if root == "django" and isinstance(error.__cause__, Exception):
        return is_refusal(error.__cause__)
    for said in (_sqlite_code(error), _state(error), _mysql_number(error, root)):
        if said is not None:
            return said
    return any(kind.__name__ in NOT_DONE for kind in type(error).__mro__)


def _module(error: Exception) -> str:
    return type(error).__module__.partition(".")[0]


def _of_sqlalchemy(error: Any) -> bool:
    """Of an error of its own nothing has been sent; others have that of the driver."""
    if not hasattr(error, "connection_invalidated"):
        return True
    return not error.connection_invalidated and is_refusal(error.orig)


def _sqlite_code(error: Any) -> bool | None:
    """By the code of SQLite, which `sqlite3` and `apsw` each have in an attribute of their own."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None and _module(error) == "apsw":
        code = getattr(error, "result", None)
    return None if not isinstance(code, int) else (code & 0xFF) in SQLITE_REFUSES


def _state(error: Any) -> bool | None:
    """By SQLSTATE."""
    state = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    if not isinstance(state, str):
        return None
    return not (state.startswith(LOST_CLASSES) or state in LOST_STATES)


def _mysql_number(error: Exception, root: str) -> bool | None:
    if root not in MYSQL or not error.args or not isinstance(error.args[0], int):
        return None
    return error.args[0] not in MYSQL_LOST
