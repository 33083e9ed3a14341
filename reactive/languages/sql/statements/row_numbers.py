"""The numbers that SQLite gives to rows without an INTEGER PRIMARY KEY."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reactive.errors import TableError
from reactive.languages.sql.terms.schema import Column, Schema

GREATEST_KEY = 2**63 - 1
NO_KEY = -(2**63) - 1
"""Less than any key."""


class KnownKeys:
    """The greatest keys of tables, as far as all commits since were statements of SQL.

    Another commit may have changed any table: all are forgotten then.
    """

    def __init__(self) -> None:
        self._version = -1
        self._keys: dict[int, int] = {}

    def of(self, table: Any) -> int | None:
        """Return the greatest key of a table; None if it is not known."""
        engine = table._engine
        if engine.version != self._version or engine.pending:
            return None
        return self._keys.get(table.plan.number)

    def note(self, table: Any, before: int, greatest: int | None) -> None:
        """Take notice of a statement, before which there were so many commits, and of the greatest
        key that a table has now, if that is known."""
        version = table._engine.version
        is_alone = version in (before, before + 1)
        if before != self._version or not is_alone:
            self._keys.clear()
        self._version = version
        if greatest is None or not is_alone:
            self._keys.pop(table.plan.number, None)
        else:
            self._keys[table.plan.number] = greatest


def greatest_key(table: Any, read: str) -> int:
    """Return the greatest key of all rows of a table, or `NO_KEY`."""
    return max((getattr(row, read) for row in table), default=NO_KEY)


class RowNumbers:
    """Numbers of rows whose INTEGER PRIMARY KEY in SQLite is NULL: the greatest there is and one.

    `place` is that of the key, None in other tables; `given` says that a row was numbered.
    """

    def __init__(self, table: Any, schema: Schema, known: KnownKeys) -> None:
        self.given = False
        self.place = next((n for n, c in enumerate(schema.columns) if _is_rowid(c)), None)
        self._table, self._known = table, known
        self._read = None if self.place is None else schema.columns[self.place].read
        self._greatest: int | None = None  # of the rows made so far, then of all
        self._before = table._engine.version
        self._known_before = known.of(table)

    def note(self, *, inserted: bool) -> None:
        """Take notice of the statement, once it is over; `inserted` says that rows were added, none
        removed, and no key changed."""
        greatest = None
        if inserted and not self._table._engine.pending:
            greatest = self._known_before
            if greatest is not None and self._greatest is not None:
                greatest = max(greatest, self._greatest)
        self._known.note(self._table, self._before, greatest)

    def filled(self, row: Sequence[Any]) -> list[Any]:
        """Return the values of a row, the key of which is numbered where it is None.

        Raises
        ------
        TableError: the greatest key is the greatest integer, after which SQLite draws at random.
        """
        values = list(row)
        if self.place is None:
            return values
        if values[self.place] is None:
            values[self.place] = self._next()
        key = values[self.place]
        if isinstance(key, int) and (self._greatest is None or key > self._greatest):
            self._greatest = key
        return values

    def _next(self) -> int:
        if not self.given:  # the table is looked at only where a key is missing
            known = self._known_before
            if known is None:
                known = self._known_before = greatest_key(self._table, str(self._read))
            mine = known if self._greatest is None else max(known, self._greatest)
            self._greatest, self.given = mine, True
        last = 0 if self._greatest in (None, NO_KEY) else self._greatest
        if last == GREATEST_KEY:
            raise TableError(
                f"cannot number a row of {self._table.name!r}: {last} is the greatest key there is"
                "\n  insert a value of the key"
            )
        return last + 1


def _is_rowid(column: Column) -> bool:
    """Return True for an INTEGER PRIMARY KEY of SQLite, the only column with a class of numbers."""
    return column.type.affinity is not None and column.type.kind == "int" and not column.nullable
