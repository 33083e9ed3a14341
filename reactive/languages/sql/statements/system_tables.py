"""Tables of names: `information_schema`, `pg_catalog`, those of DuckDB, and `sqlite_master`.

    information_schema.tables     pg_class     duckdb_tables()     pragma_table_info('orders')

Their rows are those of the moment at which a query is made: a query of them does not follow later
statements.

Cost:   O(columns of the database) for each query.
"""

from __future__ import annotations

from typing import Any

from reactive.languages.sql.terms.common_types import OF_SYSTEM, OWN_SCHEMAS
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.values import NamedPlan

OWN = "information_schema"


def system_table(node: Any, around: Scope) -> NamedPlan | None:
    """Return the rows of a table of names that FROM names; None of another table."""
    name, schema = node.name.casefold(), (node.db or "").casefold()
    is_own = not schema or schema in OWN_SCHEMAS
    if schema != OWN and not (is_own and name.startswith(OF_SYSTEM)):
        return None
    if name.startswith("pg_") and around.dialect.name == "sqlite":
        return None
    if name in ("sqlite_master", "sqlite_schema") and around.dialect.name == "postgres":
        return None
    environment = around.environment
    if not schema and environment.find(node.name) is not None:
        return None
    from reactive.languages.sql.system.tables import rows_of_system

    found = rows_of_system(schema if schema == OWN else "", name, node, around)
    if found is not None:
        environment.from_catalog.add(OWN)  # which is no table: the query is read each time
        _ = node.args.get("db")
    return found
