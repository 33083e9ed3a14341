"""What a SQL transaction has touched so far: keys of tables, or whole tables.

It may be more than what has changed: a savepoint that is rolled back takes its changes back, and
what was touched within is read again for nothing. It is never less.

State:  the keys, until the SQL transaction ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, Table

from reactive.borders.mirrors.kinds import Key, Kind


class Touched:
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
        """What others have published meanwhile, see `overtaken.py`."""
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

    def take(self, other: Touched) -> None:
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

    def of(self, kind: Kind) -> set[Key] | None:
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
