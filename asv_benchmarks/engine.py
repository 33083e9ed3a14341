"""The engine's side of anything measured: a database, its tables, a view and a subscription."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from asv_benchmarks.workload import Asked, Listener, Result, TableDelta, Verb
from reactive import Database, OrderedView, Table


class Engine:
    """Run a query as a user would; with `optimize=False`, as it is written."""

    def __init__(self, asked: Asked, listener: Listener, *, optimize: bool = True) -> None:
        self._db = Database(optimize=optimize)
        self._tables = tables_of(asked, self._db)
        self.view = asked.query(*self._tables).materialize(asked.name)
        self._subscription = self.view.subscribe(listener.delta)

    def verbs(self) -> Sequence[tuple[Verb, Verb]]:
        return [(table.add, table.remove) for table in self._tables]

    def batch(self, *deltas: TableDelta) -> None:
        statements = self._statements(deltas)
        if len(statements) == 1:
            statement, rows = statements[0]
            statement(rows)
            return
        with self._db.transaction():
            for statement, rows in statements:
                statement(rows)

    def result(self) -> Result:
        if isinstance(self.view, OrderedView):
            return self.view.snapshot()
        items: list[Any] = list(self.view.zset().items())
        return dict(items)

    def _statements(
        self, deltas: Sequence[TableDelta]
    ) -> list[tuple[Callable[[Sequence[Any]], None], Sequence[Any]]]:
        statements: list[tuple[Callable[[Sequence[Any]], None], Sequence[Any]]] = []
        for table, delta in zip(self._tables, deltas, strict=True):
            statements += [(table.remove_all, delta.removed)] if delta.removed else []
            statements += [(table.add_all, delta.added)] if delta.added else []
        return statements


def tables_of(asked: Asked, db: Database) -> list[Table[Any]]:
    """Return the tables that a query reads, empty."""
    return [
        db.table(table.row_type, name=f"table_{number}", key=table.key)
        for number, table in enumerate(asked.tables)
    ]
