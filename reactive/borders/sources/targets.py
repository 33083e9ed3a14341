"""The tables that rows of a source go into: each row into that of its class."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

from optimizer.errors import PlanError
from reactive.api.table import Table
from reactive.borders.sources.batch import Keys, Rows
from reactive.engine.collections.zset import Row
from reactive.engine.runtime.interrupts import reraise_asynchronous
from reactive.errors import SourceError, TableError

ByTable: TypeAlias = dict[int, list[Any]]
"""Rows or keys by the number of a table among the targets; rows that have none by `NOWHERE`."""
NOWHERE = -1


class Targets:
    """One table that takes all rows, or several, by the classes of their rows."""

    __slots__ = ("_by_class", "_numbers", "tables")

    def __init__(self, into: Table[Any] | Mapping[type, Table[Any]], engine: object) -> None:
        by_class: Mapping[type, Table[Any]] | None = into if isinstance(into, Mapping) else None
        self.tables = (into,) if not isinstance(into, Mapping) else tuple(into.values())
        self._by_class = None if by_class is None else {kind: n for n, kind in enumerate(by_class)}
        self._numbers: dict[type, int] = dict(self._by_class or {})
        for table in self.tables:
            _check(table, engine)
        if not self.tables or len({*map(id, self.tables)}) < len(self.tables):
            raise PlanError("ingest takes tables by the classes of their rows, each table once")

    def __str__(self) -> str:
        return ", ".join(table.name for table in self.tables)

    def by_class(self) -> dict[type, Table[Any]]:
        """The tables by the classes of their rows."""
        classes = self._by_class or {table.row_type: 0 for table in self.tables}
        return {kind: self.tables[number] for kind, number in classes.items()}

    def check_there(self, tables: Mapping[int, object]) -> None:
        """Raise `SourceError` if one of them was dropped."""
        for table in self.tables:
            if tables.get(table.plan.number) is not table:
                raise SourceError(
                    f"table {table.name!r} of the source was dropped, or replaced by another one\n"
                    "  ingest under another name, into the table that is there now: db.tables()"
                )

    def by_table(self, given: Rows[Any]) -> ByTable:
        """Rows by the table that they go into."""
        if isinstance(given, Mapping):
            return {self.number(kind): list(rows) for kind, rows in given.items() if rows}
        if self._by_class is None:
            return {0: list(given)} if given else {}
        found: ByTable = {}
        for row in given:
            number = self._numbers.get(type(row))
            if number is None:
                number = self._learn(type(row))
            found.setdefault(number, []).append(row)
        return found

    def keys(self, given: Keys) -> dict[int, Collection[Any]]:
        """Keys by the table that they are of."""
        if isinstance(given, Mapping):
            return {self.number(kind): keys for kind, keys in given.items() if keys}
        if given and self._by_class is not None:
            raise PlanError(
                "keys that are deleted from one of several tables are given by the classes of "
                "their rows\n  Batch(deletes={Order: [7, 8]})"
            )
        return {0: given} if given else {}

    def held(self, number: int) -> Mapping[Any, Row]:
        """The rows of a keyed table by their keys, as they are in the transaction that is open."""
        keyed = self.tables[number]._keyed
        assert keyed is not None
        found: Mapping[Any, Row] = keyed.by_key
        return found

    def expect(self, number: int, keys: Collection[Any]) -> None:
        """These keys of a keyed table are about to be looked up."""
        keyed = self.tables[number]._keyed
        if hasattr(keyed, "expect"):
            keyed.expect(keys)

    def key_of(self, number: int) -> Callable[[Row], Any]:
        """What gives the key of a row of a keyed table."""
        keyed = self.tables[number]._keyed
        assert keyed is not None
        found: Callable[[Row], Any] = keyed.key
        return found

    def is_keyed(self, number: int) -> bool:
        """Whether a table has a key."""
        return self.tables[number]._keyed is not None

    def number(self, kind: type) -> int:
        """The number of the table that takes rows of a class."""
        if self._by_class is None:
            return 0
        number = self._numbers.get(kind)
        return self._learn(kind) if number is None else number

    def refusal(self, number: int, row: Row) -> Exception | None:
        """Why a table does not take a row, whatever else is in it."""
        try:
            if number == NOWHERE:
                raise TableError(
                    f"no table was given for {row!r:.100}, of class {type(row).__name__}\n"
                    f"  ingest(source, into={{{type(row).__name__}: table, ...}})"
                )
            self.tables[number]._do.check(row)
            if self.is_keyed(number):
                self.key_of(number)(row)
        except Exception as error:
            reraise_asynchronous(error)
            return error
        return None

    def _learn(self, kind: type) -> int:
        """The table of a class that is made of one that a table was given for."""
        known = self._by_class or {}
        found = next((known[base] for base in kind.__mro__ if base in known), NOWHERE)
        self._numbers[kind] = found
        return found


def _check(table: Any, engine: object) -> None:
    if not isinstance(table, Table) or table._engine is not engine:
        raise PlanError(
            f"ingest takes a table of its database to put rows into, not {table!r:.100}\n"
            "  db.ingest(source, into=table), or into={Order: orders, Customer: customers}"
        )
    if table.plan.key is not None and table._keyed is None:
        raise PlanError(
            f"table {table.name!r} has its rows elsewhere, and finds none by key\n"
            "  ingest into a table of the process, or into one without key"
        )
