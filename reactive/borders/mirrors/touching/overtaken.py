"""Rows that others publish while a transaction reads an older state of the SQL database.

    REPEATABLE READ    A and B begin; A changes row 3, and commits: the mirror has A's row
                       B touches row 3 without changing it, and would read it as it was before A

What A published after B had its state is not of B: Postgres refuses B's own change of such a row,
so what B reads of it is old, and is left out. If A committed while B made its first statement,
nobody knows which came first: if B reads the row otherwise than the mirror has it, B is refused, as
Postgres refuses transactions that it cannot put into an order; so it is with other databases.

With READ COMMITTED each statement reads the last state, and SQLite has one writer at a time: there
nothing is noted.

State:  for each transaction that is open the keys that others publish meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sqlalchemy import Connection

from reactive.borders.mirrors.touching.touched import Touched
from reactive.errors import TransactionError

LEVELS = frozenset({"REPEATABLE READ", "SERIALIZABLE", "SNAPSHOT"})
"""The isolation levels whose transactions read one state of the SQL database."""
Changed = Mapping[Any, Iterable[Any]]
"""Tables of the database, and the keys of the rows that were changed."""


def reads_one_state(connection: Connection) -> bool:
    """Whether what a transaction reads may be older than what others have committed."""
    dialect = connection.dialect
    level = (
        connection.get_execution_options().get("isolation_level")
        or getattr(dialect, "_on_connect_isolation_level", None)
        or connection.default_isolation_level
    )
    return dialect.name != "sqlite" and str(level).upper().replace("_", " ") in LEVELS


def commit_over(
    others: Callable[[], Iterable[Touched]], changed: Changed, commit: Callable[[], None]
) -> None:
    """Commit, and note for the transactions that are open what they may not see.

    Parameters
    ----------
    others: the transactions that read one state of the SQL database.
    changed: what is committed.
    """
    before = [each for each in others() if each.has_state]
    commit()
    for each in others():
        if not each.is_open or not each.is_begun:
            continue
        is_certain = each in before and each.connection.dialect.name == "postgresql"
        noted = each.overtaken if is_certain else each.doubtful
        for table, keys in changed.items():
            noted.setdefault(table, set()).update(keys)


def without_old(
    touched: Touched, table: Any, rows: dict[Any, Any], asked: list[Any], held: Mapping[Any, Any]
) -> tuple[dict[Any, Any], list[Any]]:
    """The rows that a transaction has read, and the keys that it was asked for, without old ones.

    Raises
    ------
    TransactionError: nobody knows whether a row is old.
    """
    doubtful = touched.doubtful.get(table, ())
    for key in {*asked, *rows}.intersection(doubtful):
        if rows.get(key) != held.get(key):
            raise TransactionError(_DOUBTFUL.format(table.name, key))
    old = touched.overtaken.get(table, ())
    found = {key: row for key, row in rows.items() if key not in old}
    return found, [key for key in asked if key not in old]


_DOUBTFUL = (
    "the transaction cannot be put into an order: another one committed row {1!r} of table {0!r} "
    "while it began to read\n"
    "  nothing has changed, here or there; do it again, or use READ COMMITTED"
)
