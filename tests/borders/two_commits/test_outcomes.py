"""An error at COMMIT says whether the database has surely not committed."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

from reactive.borders.two_commits.joint import is_refusal

psycopg = pytest.importorskip("psycopg")
apsw = pytest.importorskip("apsw")
exc = pytest.importorskip("sqlalchemy.exc")


def of_sqlite(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("it says why")
    error.sqlite_errorcode = code
    return error


def of_apsw(code: int) -> Exception:
    found: Exception = apsw.exception_for(code)
    return found


def of_state(state: str) -> Exception:
    found: Exception = psycopg.errors.lookup(state)("it says why")
    return found


def wrapped(error: Exception, *, lost: bool = False) -> Any:
    return exc.DBAPIError.instance(
        "COMMIT", None, error, psycopg.Error, connection_invalidated=lost, hide_parameters=False
    )


def by_django(error: Exception) -> Exception:
    kind = type("OperationalError", (Exception,), {"__module__": "django.db.utils"})
    found: Exception = kind("it says why")
    found.__cause__ = error
    return found


class OfMysql(Exception):
    __module__ = "pymysql.err"


class IntegrityError(Exception):
    """The error class of an arbitrary driver."""


class InterfaceError(Exception): ...


REFUSALS = [
    sqlite3.IntegrityError("FOREIGN KEY constraint failed"),
    sqlite3.ProgrammingError("Cannot operate on a closed database."),
    *map(of_sqlite, (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_LOCKED)),
    of_sqlite(sqlite3.SQLITE_BUSY_SNAPSHOT),
    *map(of_apsw, (apsw.SQLITE_BUSY, apsw.SQLITE_CONSTRAINT)),
    *map(of_state, ("23505", "40001", "40P01", "25P02", "53100", "57014")),
    psycopg.ProgrammingError("Explicit commit() forbidden within a Transaction context"),
    wrapped(of_state("23505")),
    exc.InvalidRequestError("This session is in 'inactive' state"),
    by_django(of_state("23505")),
    OfMysql(1213, "Deadlock found"),
    IntegrityError("no"),
]
UNKNOWN = [
    *map(of_sqlite, (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR_FSYNC)),
    of_apsw(apsw.SQLITE_IOERR),
    *map(of_state, ("08006", "08003", "57P01", "57P02", "40003", "XX000", "58030")),
    psycopg.OperationalError("consuming input failed: server closed the connection"),
    psycopg.InterfaceError("the connection is lost"),
    wrapped(of_state("23505"), lost=True),
    wrapped(psycopg.OperationalError("server closed the connection")),
    by_django(psycopg.OperationalError("server closed the connection")),
    OfMysql(2013, "Lost connection to MySQL server during query"),
    InterfaceError("gone"),
    *(ConnectionResetError(), TimeoutError(), OSError(), ValueError(), Exception()),
    *(KeyboardInterrupt(), SystemExit(), GeneratorExit()),
]


@pytest.mark.parametrize("error", REFUSALS, ids=repr)
def test_these_are_refusals(error: BaseException) -> None:
    assert is_refusal(error)


@pytest.mark.parametrize("error", UNKNOWN, ids=repr)
def test_after_these_nobody_knows(error: BaseException) -> None:
    assert not is_refusal(error)
