"""The rows that a SQL transaction has touched so far: keys of tables, or whole tables.

They may be more than the changed rows, never fewer: rows touched inside a savepoint that is rolled
back are read again without need.

A transaction that reads an older snapshot must not overwrite rows that others have published since:

    REPEATABLE READ    A and B begin; A changes row 3, and commits: the mirror has A's row
                       B touches row 3 without changing it, and would read its state before A

Rows published by A after B's snapshot are left out of B's reading: Postgres refuses changes of such
a row by B, so the row that B reads is old. If A committed during B's first statement, the order is
unknown: if B reads the row differently from the mirror, B is refused, as Postgres refuses
transactions that it cannot serialize; with other databases, always.

With READ COMMITTED each statement reads the latest state, and SQLite has one writer at a time: then
nothing is recorded.

State:  the keys, until the SQL transaction ends; for each open transaction, the keys that others
        publish meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, Table

from reactive.borders.mirrors.kinds import Key, MirrorKind
from reactive.errors import TransactionError


class TouchedRows:
    """The rows touched by the transaction of one connection.

    Parameters
    ----------
    connection: the connection that reads them again, in the same transaction.
    everything: True if all tables must be read, because its statements were not seen.
    """

    __slots__ = (
        "__weakref__",
        "connection",
        "doubtful",
        "dropped",
        "everything",
        "gathered",
        "has_state",
        "is_begun",
        "is_open",
        "keys",
        "overtaken",
        "whole",
    )

    def __init__(self, connection: Connection, *, everything: bool = False) -> None:
        self.connection = connection
        self.everything = everything
        self.keys: dict[Table, set[Key]] = {}
        self.whole: set[Table] = set()
        self.dropped: set[Table] = set()
        """The tables in `whole` that may have been dropped."""
        self.is_open = True
        """True until the transaction commits or rolls back."""
        self.is_begun = self.has_state = False
        """True once its first statement has begun; and once it has been run."""
        self.overtaken: dict[Any, set[Any]] = {}
        self.doubtful: dict[Any, set[Any]] = {}
        """The keys that others have published meanwhile: after its snapshot, or perhaps before."""
        self.gathered: dict[Any, list[Any]] = {}
        """The keys that a joint transaction has changed already on behalf of this one."""

    def __bool__(self) -> bool:
        return bool(self.everything or self.whole or any(self.keys.values()))

    def note(self, table: Table, keys: Iterable[Key]) -> None:
        """Record rows of a table that are inserted, updated or deleted."""
        found = set(keys)
        if any(None in key for key in found):
            self.whole.add(table)
        elif found:
            self.keys.setdefault(table, set()).update(found)

    def note_all(self, tables: Iterable[Table]) -> None:
        """Record tables as a whole."""
        self.whole.update(tables)

    def note_dropped(self, tables: Iterable[Table]) -> None:
        """Record tables that may have been dropped."""
        found = set(tables)
        self.whole |= found
        self.dropped |= found

    def take(self, other: TouchedRows) -> None:
        """Add the rows that another transaction has touched."""
        self.everything |= other.everything
        self.whole |= other.whole
        self.dropped |= other.dropped
        self.overtaken |= other.overtaken
        self.doubtful |= other.doubtful
        for table, keys in other.keys.items():
            self.keys.setdefault(table, set()).update(keys)

    def forget(self) -> None:
        """Forget the touched rows, which have been read."""
        self.everything = False
        self.keys.clear()
        self.whole.clear()
        self.dropped.clear()

    def end(self) -> None:
        """Record the end of the transaction."""
        self.forget()
        self.is_open = False

    def of(self, kind: MirrorKind) -> set[Key] | None:
        """Return the keys of the rows of a kind to read again; None for all rows."""
        if self.everything or not self.whole.isdisjoint(kind.places):
            return None
        found: set[Key] = set()
        for table, places in kind.places.items():
            keys = self.keys.get(table)
            if keys and places is None:
                return None
            found.update([tuple([key[p] for p in places or ()]) for key in keys or ()])
        return found


LEVELS = frozenset({"REPEATABLE READ", "SERIALIZABLE", "SNAPSHOT"})
"""The isolation levels whose transactions read a snapshot of the SQL database."""
Changed = Mapping[Any, Iterable[Any]]
"""Tables of the database, with the keys of the changed rows."""


def reads_one_state(connection: Connection) -> bool:
    """Return True if a transaction may read an older state than others have committed."""
    dialect = connection.dialect
    level = (
        connection.get_execution_options().get("isolation_level")
        or getattr(dialect, "_on_connect_isolation_level", None)
        or connection.default_isolation_level
    )
    return dialect.name != "sqlite" and str(level).upper().replace("_", " ") in LEVELS


def commit_over(
    others: Callable[[], Iterable[TouchedRows]], changed: Changed, commit: Callable[[], None]
) -> None:
    """Commit, and record for the open transactions which rows they may not see.

    Parameters
    ----------
    others: returns the transactions that read a snapshot of the SQL database.
    changed: the committed changes.
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
    touched: TouchedRows,
    table: Any,
    rows: dict[Any, Any],
    asked: list[Any],
    held: Mapping[Any, Any],
) -> tuple[dict[Any, Any], list[Any]]:
    """Return `rows` and `asked` without the rows that are older than those of the mirror.

    Raises
    ------
    TransactionError: the age of a row is unknown.
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
