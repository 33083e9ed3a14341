"""What a SQL transaction has touched so far: keys of tables, or whole tables.

It may be more than what has changed: a savepoint that is rolled back takes its changes back, and
what was touched within is read again for nothing. It is never less.

State:  the keys, until the SQL transaction ends.

Rows that others publish while a transaction reads an older state of the SQL database.

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

from sqlalchemy import Connection, Table

from reactive.borders.mirrors.kinds import Key, MirrorKind
from reactive.errors import TransactionError


class TouchedRows:
    """Of the transaction of one connection.

    Parameters
    ----------
    connection: by which it is read again, in the same transaction.
    everything: whether all tables are to be read: nobody has seen its statements.
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
        """Those of `whole` that may not be there any more."""
        self.is_open = True
        """Whether the transaction has neither committed nor rolled back."""
        self.is_begun = self.has_state = False
        """Whether its first statement is under way; whether that was made."""
        self.overtaken: dict[Any, set[Any]] = {}
        self.doubtful: dict[Any, set[Any]] = {}
        """What others have published meanwhile, see `touched.py`."""
        self.gathered: dict[Any, list[Any]] = {}
        """What a transaction that commits this one has changed already for it."""

    def __bool__(self) -> bool:
        return bool(self.everything or self.whole or any(self.keys.values()))

    def note(self, table: Table, keys: Iterable[Key]) -> None:
        """Rows of a table have been inserted, updated or deleted, or will be."""
        found = set(keys)
        if any(None in key for key in found):
            self.whole.add(table)
        elif found:
            self.keys.setdefault(table, set()).update(found)

    def note_all(self, tables: Iterable[Table]) -> None:
        """Any rows of these may have changed."""
        self.whole.update(tables)

    def note_dropped(self, tables: Iterable[Table]) -> None:
        """Tables may not be there any more."""
        found = set(tables)
        self.whole |= found
        self.dropped |= found

    def take(self, other: TouchedRows) -> None:
        """As well what another one has touched."""
        self.everything |= other.everything
        self.whole |= other.whole
        self.dropped |= other.dropped
        self.overtaken |= other.overtaken
        self.doubtful |= other.doubtful
        for table, keys in other.keys.items():
            self.keys.setdefault(table, set()).update(keys)

    def forget(self) -> None:
        """It has been read."""
        self.everything = False
        self.keys.clear()
        self.whole.clear()
        self.dropped.clear()

    def end(self) -> None:
        """It is over."""
        self.forget()
        self.is_open = False

    def of(self, kind: MirrorKind) -> set[Key] | None:
        """The keys of the rows of a kind to be read again; None if it is all of them."""
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
    others: Callable[[], Iterable[TouchedRows]], changed: Changed, commit: Callable[[], None]
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
    touched: TouchedRows,
    table: Any,
    rows: dict[Any, Any],
    asked: list[Any],
    held: Mapping[Any, Any],
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
