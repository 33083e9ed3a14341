"""Statements of a mirrored table: only the mirror makes them, everybody else is told so."""

from __future__ import annotations

from typing import Any, NoReturn

from reactive.api.table import Table
from reactive.errors import TableError
from reactive.transactions.statements import Statements


class Guarded:
    """Stands before the statements of a table.

    Parameters
    ----------
    table: whose statements are guarded from now on.
    remedy: how rows are changed instead.
    """

    def __init__(self, table: Table[Any], remedy: str) -> None:
        self.unguarded: Statements = table._do
        """What the mirror itself changes the table by."""
        self._name = table.name
        self._remedy = remedy
        table._do = self  # type: ignore[assignment]

    @property
    def store(self) -> Any:
        return self.unguarded.store

    @store.setter
    def store(self, store: Any) -> None:
        self.unguarded.store = store

    def is_row(self, row: object) -> bool:
        return self.unguarded.is_row(row)

    def __getattr__(self, name: str) -> NoReturn:
        raise TableError(
            f"table {self._name!r} is a mirror, and changes when the SQL database does\n"
            f"  {self._remedy}"
        )
