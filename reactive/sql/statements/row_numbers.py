"""The numbers that SQLite gives to rows without an INTEGER PRIMARY KEY."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reactive.errors import TableError
from reactive.sql.terms.schema import Column, Schema

GREATEST_KEY = 2**63 - 1


class RowNumbers:
    """Numbers of rows whose INTEGER PRIMARY KEY in SQLite is NULL: the greatest there is and one.

    `place` is that of the key, None in other tables; `given` says that a row was numbered.
    """

    def __init__(self, table: Any, schema: Schema) -> None:
        self.given = False
        self.place = next((n for n, c in enumerate(schema.columns) if _is_rowid(c)), None)
        self._table = table
        self._read = None if self.place is None else schema.columns[self.place].read
        self._greatest: int | None = None  # of the rows made so far, then of all

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
            keys = [getattr(row, str(self._read)) for row in self._table]
            keys += [] if self._greatest is None else [self._greatest]
            self._greatest, self.given = max(keys, default=0), True
        last = self._greatest or 0
        if last == GREATEST_KEY:
            raise TableError(
                f"cannot number a row of {self._table.name!r}: {last} is the greatest key there is"
                "\n  insert a value of the key"
            )
        return last + 1


def _is_rowid(column: Column) -> bool:
    """Return True for an INTEGER PRIMARY KEY of SQLite, the only column with a class of numbers."""
    return column.type.affinity is not None and column.type.kind == "int" and not column.nullable
