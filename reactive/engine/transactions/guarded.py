"""Statements of a table that has its rows from elsewhere: everybody else is refused them."""

from __future__ import annotations

from typing import Any, NoReturn

from reactive.engine.transactions.row_gate import RowGate
from reactive.engine.transactions.statements import Statements
from reactive.errors import TableError


class Guarded:
    """Stands before the statements of a table.

    Parameters
    ----------
    table: whose statements are guarded from now on.
    why: what is said of it.
    remedy: how rows are changed instead.
    """

    def __init__(self, table: Any, why: str, remedy: str) -> None:
        self.unguarded: Statements = table._do
        """What changes the table when the rows elsewhere change."""
        self._told = f"table {table.name!r} {why}\n  {remedy}"
        table._do = self

    @property
    def store(self) -> Any:
        return self.unguarded.store

    def move_to(self, store: Any) -> None:
        self.unguarded.move_to(store)

    @property
    def gate(self) -> RowGate:
        return self.unguarded.gate

    def keep_lost(self) -> None:
        self.unguarded.keep_lost()

    def check(self, row: object) -> None:
        self.unguarded.check(row)

    def __getattr__(self, name: str) -> NoReturn:
        raise TableError(self._told)
