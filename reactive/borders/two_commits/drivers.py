"""What is asked of a driver's connection before a commit: whether it has a transaction to commit.

    autocommit    each statement is committed by itself, so there is nothing to commit or roll back
    failed        Postgres rolls back at COMMIT if a statement had failed before, and tells nobody

Cost: a look at attributes; of Postgres by another driver than psycopg a query.
"""

from __future__ import annotations

from typing import Any

IN_ERROR = 3
"""`PQTRANS_INERROR` of libpq."""


def why_autocommit(connection: Any) -> str | None:
    """Why each statement is committed by itself; None if it is not so, or cannot be told."""
    if getattr(connection, "autocommit", False) is True:
        return "it is in autocommit mode"
    if is_without_begin(connection):
        return "its isolation_level is None"
    return None


def is_without_begin(connection: Any) -> bool:
    """Whether it is of SQLite, begins no transaction by itself, and has none open."""
    kinds = {kind.__module__.partition(".")[0] for kind in type(connection).__mro__}
    if not kinds & {"sqlite3", "_sqlite3", "aiosqlite"}:
        return False
    begins = (
        connection.isolation_level is not None or getattr(connection, "autocommit", -1) is False
    )
    return not begins and not connection.in_transaction


def why_not_ready(connection: Any) -> str | None:
    """Why a COMMIT would not commit what has been done; None if it would, or it cannot be told."""
    if getattr(connection, "closed", False) not in (False, 0):
        return "its connection is closed"
    information = getattr(connection, "info", None)
    if getattr(information, "transaction_status", None) == IN_ERROR:
        return (
            "a statement of its transaction has failed, and Postgres would roll back at COMMIT "
            "without an error"
        )
    return None
