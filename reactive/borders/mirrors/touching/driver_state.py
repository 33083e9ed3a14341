"""The transaction of a driver's connection: whether there is one, and BEGIN where there is none.

                      begins by itself                 state
    sqlite3           before INSERT, UPDATE, DELETE,   in_transaction
    aiosqlite         REPLACE as the first word only   in_transaction
    psycopg, psycopg2 before every statement           info.transaction_status
    mysql-connector   before every statement           in_transaction
    asyncpg           by its adapter                   is_in_transaction()

Of a driver that says nothing, `in_transaction` is None, and nothing is done.

Source: PEP 249; `sqlite3`, "Transaction control"; libpq, PQtransactionStatus.
"""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import Connection

from reactive.borders.mirrors.touching.texts import WRITES, bare

_SAVEPOINT = re.compile(r"\s*savepoint\b", re.IGNORECASE)
_ENDS = re.compile(r"\b(commit|end|rollback|release|begin|start)\b", re.IGNORECASE)
_OUTSIDE = re.compile(
    r"\s*(begin|commit|end|rollback|release|pragma|vacuum|attach|detach"
    r"|create\s+(temp\w*\s+|unique\s+|virtual\s+)?(table|view|index))\b",
    re.IGNORECASE,
)
"""Statements of SQLite that begin or end transactions, are refused or ignored inside of one, or
make what is no row of a table that is there."""


def is_savepoint(text: str) -> bool:
    """Return True if a statement begins a savepoint."""
    return _SAVEPOINT.match(text) is not None


def may_end(text: str) -> bool:
    """Return True if a statement may end the transaction that it is in, or be in none: one that
    has a word that writes, or a word of transactions."""
    words = bare(text)
    return bool(WRITES.search(words) or _ENDS.search(words))


def in_transaction(connection: Connection) -> bool | None:
    """Return True inside a transaction of the driver, False outside, None if it does not say."""
    driver: Any = connection.connection.driver_connection
    found = getattr(driver, "in_transaction", None)
    if isinstance(found, bool):
        return found
    status = getattr(getattr(driver, "info", None), "transaction_status", None)
    if status is not None:
        return int(status) != 0
    ask = getattr(driver, "is_in_transaction", None)
    return bool(ask()) if callable(ask) else None


def is_autocommit(connection: Connection) -> bool:
    """Return True if the driver commits each statement, whatever SQLAlchemy knows of that."""
    driver: Any = connection.connection.driver_connection
    return getattr(driver, "autocommit", None) is True


def begin(connection: Connection, cursor: Any, text: str) -> None:
    """Begin a transaction of SQLite before a statement, as its driver does not always."""
    if connection.dialect.name != "sqlite" or _OUTSIDE.match(text):
        return
    if connection._is_autocommit_isolation():
        return
    if in_transaction(connection) is False:
        level = getattr(connection.connection.driver_connection, "isolation_level", None)
        cursor.execute(f"BEGIN {level or ''}".rstrip())
