"""The rows of a system table as a source of FROM."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from reactive.languages.sql.system import duckdb, information_schema, postgres, sqlite
from reactive.languages.sql.system.columns import (
    FUNCTIONS_OF_DUCKDB,
    INFORMATION_SCHEMA,
    KINDS,
    MISSING,
    OF_DUCKDB,
    PG_CATALOG,
    Columns,
    columns_of,
)
from reactive.languages.sql.system.listing import Listing, listing_of
from reactive.languages.sql.system.relations import constant_rows
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.values import NamedPlan

Rows = Callable[[Listing], Iterator[dict[str, Any]]]
OWN = "information_schema"


def rows_of_system(schema: str, name: str, node: Any, around: Scope) -> NamedPlan | None:
    """Return the rows of a system table; None of a name that is none.

    Raises
    ------
    PlanError: `information_schema` has no such table.
    """
    dialect = around.dialect.name
    missing: dict[str, Any] = {}
    usual: dict[str, Any] = {}
    rows: Rows | None
    if schema == OWN:
        tables = columns_of(INFORMATION_SCHEMA)
        if dialect == "duckdb":
            tables = {**tables, **columns_of(OF_DUCKDB)}
        if name not in tables:
            known = f"there are {', '.join(tables)}"
            raise around.error(node, f"there is no table {node.name!r} in {OWN}", known)
        columns, rows = tables[name], information_schema.ROWS.get(name)
    elif name.startswith("pg_") and name in columns_of(PG_CATALOG):
        columns, rows = columns_of(PG_CATALOG)[name], postgres.ROWS.get(name)
        usual, missing = postgres.USUAL_VALUES.get(name, {}), MISSING
    elif name.endswith("()") and name[:-2] in columns_of(FUNCTIONS_OF_DUCKDB):
        columns, rows = columns_of(FUNCTIONS_OF_DUCKDB)[name[:-2]], duckdb.ROWS.get(name[:-2])
        missing = {"b": False, "m": ()}
    elif name in sqlite.TABLES:
        columns, rows = sqlite.TABLES[name]
    else:
        return None
    found = () if rows is None else rows(listing_of(around))
    return _source(columns, found, usual, missing)


def _source(
    columns: Columns,
    rows: Any,
    usual: dict[str, Any],
    missing: dict[str, Any],
) -> NamedPlan:
    """Return rows with all of the columns of a table, sorted."""
    defaults = {name: usual.get(name, missing.get(letter)) for name, letter in columns}
    made = [tuple({**defaults, **row}[name] for name, _ in columns) for row in rows]
    made.sort(key=lambda row: tuple(map(str, row)))
    return constant_rows(made, tuple((name, KINDS[letter]) for name, letter in columns))
