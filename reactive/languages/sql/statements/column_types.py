"""Types of the columns of a query, as CREATE TABLE declares them.

    SqlType("decimal")     decimal, in Postgres
    SqlType("null")        text in Postgres, int in DuckDB, no type in SQLite

State:  none.
Cost:   O(types).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from reactive.languages.sql.terms.types import SqlType, sql_name


def declaring_text(name: str, columns: Sequence[tuple[str, SqlType]], dialect: str) -> str:
    """Return the CREATE TABLE of a table with columns of types."""
    parts = [
        exp.ColumnDef(this=exp.to_identifier(column, quoted=True), kind=_type_node(kind, dialect))
        for column, kind in columns
    ]
    table = exp.Table(this=exp.to_identifier(name, quoted=True))
    made = exp.Create(this=exp.Schema(this=table, expressions=parts), kind="TABLE")
    return str(made.sql(dialect=dialect))


def _type_node(kind: SqlType, dialect: str) -> Any:
    """Return a type as the parser reads it; None for a column that is declared without one."""
    if dialect == "sqlite" and kind.kind in ("any", "null"):
        return None
    if kind.kind == "null":  # as the engines declare a column of NULL
        return exp.DataType.build("text" if dialect == "postgres" else "int")
    if kind.kind == "decimal" and kind.precision is None:
        return exp.DataType.build("decimal")
    return exp.DataType.build(_declared_name(kind), dialect="duckdb", udt=True)


def _declared_name(kind: SqlType) -> str:
    """Return DuckDB's name of a type, with the fields of structs and the size of floats."""
    if kind.kind == "struct":
        names = [exp.to_identifier(name, quoted=True).sql(dialect="duckdb") for name in kind.names]
        items = map(_declared_name, kind.items)
        return f"STRUCT({', '.join(map(' '.join, zip(names, items, strict=True)))})"
    if kind.kind == "array":
        return f"{_declared_name(kind.items[0])}[]"
    if kind.kind == "map":
        return f"MAP({', '.join(map(_declared_name, kind.items))})"
    return "REAL" if kind.kind == "float" and kind.size == 4 else sql_name(kind)


def takes(declared: SqlType, kind: SqlType) -> bool:
    """Return True if a column of a declared type takes all values of another type."""
    if "any" in (declared.kind, kind.kind):
        return declared.kind == "any"
    if kind.kind == "int" and kind.size is None:
        return declared.kind == "int" and declared.size in (None, 8)
    return declared == kind or kind.kind == "null"
