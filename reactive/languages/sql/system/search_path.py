"""The `search_path`: schemas in which tables without a schema are looked for.

    set search_path to app, public
    select * from orders               select * from app.orders, if it is there
    create table bills (...)           create table app.bills (...)

The schemas are written into the text before it is translated, so that stored definitions do not
depend on the path of the connection that has made them.

Cost:   one more parse of each text, while a path is set.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sqlglot import exp

from optimizer.errors import PlanError
from reactive.languages.sql.statements.target import is_temporary
from reactive.languages.sql.terms.common_types import OWN_SCHEMAS, SCHEMA, Dialect
from reactive.languages.sql.terms.errors import nearest
from reactive.languages.sql.terms.session import Session
from reactive.languages.sql.terms.values import Catalog, is_relation
from reactive.languages.sql.text.read import parse_statements
from reactive.languages.sql.text.schemas import OF_SYSTEM, schema_names

TEMPORARY = re.compile(r"\s*create\s+(?:or\s+replace\s+)?temp(?:orary)?\s", re.I)
"""The beginning of a statement that makes a table or view without a schema."""


def set_path(names: list[str], dialect: Dialect, catalog: Catalog, session: Session) -> None:
    """Set the schemas of a session; DuckDB refuses one that is not there.

    Raises
    ------
    PlanError: a schema is not there, or the dialect has none.
    """
    known = schema_names(catalog)
    path = []
    for name in names:
        folded = name.casefold().rpartition(".")[2]
        if folded in ("$user", "user", "default", *OF_SYSTEM):
            continue
        if folded in OWN_SCHEMAS:
            path.append("")
        elif dialect.name == "duckdb" and folded not in known:
            there = ", ".join(["main", *known])
            raise PlanError(
                f"there is no schema {name!r}{nearest(folded, known)}\n"
                f"  create schema {name}; there are {there}"
            )
        else:
            path.append(folded)
    session.path = () if path in ([], [""]) else tuple(path)


def current_schemas(dialect: Dialect, catalog: Catalog, session: Session) -> list[str]:
    """Return the schemas of the path that are there, the first first."""
    usual = "public" if dialect.name == "postgres" else "main"
    known = schema_names(catalog)
    return [each or usual for each in session.path or ("",) if not each or each in known]


def with_schemas(
    text: str,
    dialect: Dialect,
    catalog: Catalog,
    session: Session,
    parameters: Mapping[str, Any],
) -> str:
    """Return a text in which tables without a schema have that in which the path finds them."""
    given = {name.casefold() for name, value in parameters.items() if is_relation(value)}
    places = []
    for tree in parse_statements(text, dialect, parameters):
        own = given | {each.alias.casefold() for each in tree.find_all(exp.CTE)}
        for node in _named(tree):
            start = node.this.meta.get("start")
            schema = None
            if start is not None and node.name.casefold() not in own:
                schema = _schema_of(node, tree, dialect, catalog, session)
            if schema:
                places.append((start, schema))
    for start, schema in sorted(places, reverse=True):
        text = f"{text[:start]}{_quoted(schema)}.{text[start:]}"
    return text


def _named(tree: Any) -> Iterator[Any]:
    """Yield the tables of a statement that are named without a schema."""
    if isinstance(tree, exp.Drop) and (tree.args.get("kind") or "").upper() == "INDEX":
        return
    for node in tree.find_all(exp.Table):
        is_name = isinstance(node.this, exp.Identifier) and not node.args.get("db")
        if is_name and SCHEMA not in node.meta and not isinstance(node.parent, exp.AlterRename):
            yield node


def _schema_of(node: Any, tree: Any, dialect: Dialect, catalog: Catalog, session: Session) -> str:
    """Return the schema of a table: where it is, or is made; "" for the usual one."""
    name = node.name
    if _is_temporary(name, catalog):
        return ""
    if isinstance(tree, exp.Create) and _is_target(node, tree):
        properties = tree.args.get("properties")
        if properties is not None and properties.find(exp.TemporaryProperty) is not None:
            return ""
        return _first(catalog, session)
    found = find_schema(name, dialect, catalog, session)
    if found is not None:
        return found
    is_system = name.casefold().startswith(("pg_", "sqlite_"))
    return "" if is_system or "" in searched(dialect, session) else session.path[0]


def find_schema(name: str, dialect: Dialect, catalog: Catalog, session: Session) -> str | None:
    """Return the schema of the path in which a table or view is, "" for the usual one, or None."""
    for schema in searched(dialect, session):
        if catalog.find(f"{schema}.{name}" if schema else name) is not None:
            return schema
    return None


def searched(dialect: Dialect, session: Session) -> tuple[str, ...]:
    """Return the schemas that are searched; in DuckDB the usual one comes last at least."""
    path = session.path or ("",)
    return (*path, "") if dialect.name == "duckdb" and "" not in path else path


def _is_temporary(name: str, catalog: Catalog) -> bool:
    """Return True for a TEMPORARY table or view, which is in no schema."""
    if catalog.stored is not None:
        return is_temporary(name, catalog)
    table, view = catalog.table(name), catalog.view_texts.get(name.casefold())
    definition = None if table is None else catalog.definitions.get(table.plan.number)
    text = view.text if view is not None else definition.texts[0] if definition else ""
    return TEMPORARY.match(text) is not None


def _is_target(node: Any, tree: Any) -> bool:
    """Return True for the table or view that a CREATE makes."""
    made = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    return node is made


def _first(catalog: Catalog, session: Session) -> str:
    """Return the first schema of the path that is there."""
    known = schema_names(catalog)
    for schema in session.path:
        if not schema or schema in known:
            return schema
    path = ", ".join(session.path)
    raise PlanError(f"no schema of the search_path is there: {path}\n  create schema {path}")


def _quoted(name: str) -> str:
    """Return a name as SQL writes it."""
    return name if name.isidentifier() and name.isascii() else '"' + name.replace('"', '""') + '"'
