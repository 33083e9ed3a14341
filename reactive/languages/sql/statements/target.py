"""The table that a statement changes, with its columns, defaults and key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from reactive.errors import TableError
from reactive.languages.sql.queries.rows import Rows, rows_of
from reactive.languages.sql.sqlite.values import KeyBy
from reactive.languages.sql.statements.row_numbers import KnownKeys, RowNumbers
from reactive.languages.sql.terms.catalog import named_rows
from reactive.languages.sql.terms.errors import nearest
from reactive.languages.sql.terms.schema import Column, Schema
from reactive.languages.sql.terms.scope import Scope

OF_NAMES: dict[str, type] = {"int": int, "float": float, "text": str, "bytes": bytes}
"""The classes of values of fields, by the kinds of their types."""


class Target:
    """A table that is changed, with its columns."""

    def __init__(self, node: Any, around: Scope) -> None:
        inner = node.this if isinstance(node, exp.Schema) else node
        around.check_schema(inner)
        catalog = around.environment.catalog
        self.table = catalog.table(inner.name)
        if self.table is None:
            names = [table.name for table in catalog.engine.tables.values()]
            raise around.error(
                node, f"there is no table {inner.name!r}{nearest(inner.name, names)}"
            )
        self.name, self.alias = self.table.name, inner.alias_or_name
        self.schema: Schema = catalog.schema_of(self.table)
        self.defaults = catalog.defaults.get(self.table.plan.number, {})
        self.lengths = catalog.lengths.get(self.table.plan.number, {})
        if catalog.known_keys is None:
            catalog.known_keys = KnownKeys()
        self.numbers = RowNumbers(self.table, self.schema, catalog.known_keys)
        self._around = around

    def rows(self) -> Rows:
        return rows_of(named_rows(self.table.plan, self.schema), self.alias)

    def place(self, name: str, node: Any) -> int:
        """Return the place of the column that has a name."""
        for place, column in enumerate(self.schema.columns):
            if column.name.casefold() == name.casefold():
                return place
        raise self._around.error(
            node,
            f"table {self.name!r} has no column {name!r}{nearest(name, self.schema.names)}",
            f"it has {', '.join(self.schema.names)}",
        )

    def key_names(self) -> set[str] | None:
        """The folded names of the columns of the key; None if it is no column."""
        key = self.table.plan.key
        if key and isinstance(key.function, KeyBy):
            return {c.name.casefold() for c in self.schema.columns if c.read in key.function.fields}
        names = getattr(key.function, "__reduce__", lambda: ("", ()))()[1] if key else ()
        folded = {str(name).casefold() for name in names}
        by_read = {c.read: c.name.casefold() for c in self.schema.columns}
        found = {by_read.get(name, "") for name in names if isinstance(name, str)}
        return found if found and "" not in found and len(found) == len(folded) else None

    def not_null(self, values: Sequence[Any]) -> list[int]:
        """Return the columns that are NOT NULL, and have no value; those of numbers have some."""
        pairs = list(zip(self.schema.columns, values, strict=True))
        for column, value in pairs:
            if value is not None:
                self._check_class(column, value)
        return [n for n, (column, v) in enumerate(pairs) if v is None and not column.nullable]

    def made(self, values: Sequence[Any]) -> Any:
        """The row with these values."""
        for column, value in zip(self.schema.columns, values, strict=True):
            if value is None and not column.nullable:
                raise TableError(
                    f"column {column.name!r} of table {self.name!r} is NOT NULL, and has no value"
                )
            if column.type.affinity is not None and value is not None:
                self._check_class(column, value)
            length = self.lengths.get(column.name)
            if length is not None and isinstance(value, str) and len(value) > length:
                raise TableError(
                    f"column {column.name!r} of table {self.name!r} takes {length} letters, "
                    f"and {value!r:.100} has {len(value)}"
                )
        read = self.schema.columns[0].read
        return values[0] if read is None else self._maker()(values)

    def _check_class(self, column: Column, value: Any) -> None:
        """Check that a value is of the class that a column of SQLite has, if it has one."""
        kind = OF_NAMES.get(column.type.kind)
        if kind is not None and not isinstance(value, kind):
            raise TableError(
                f"column {column.name!r} of table {self.name!r} takes {kind.__name__}, "
                f"and {value!r:.100} is none"
            )

    def _maker(self) -> Callable[[Sequence[Any]], Any]:
        kind = self.table.row_type
        return tuple if not hasattr(kind, "__mro__") or kind is tuple else lambda v: kind(*v)
