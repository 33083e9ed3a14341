"""Tables of names: `information_schema`, and `sqlite_master` in the dialect of SQLite.

    information_schema.tables, columns, schemata, table_constraints, key_column_usage

Their rows are those of the moment at which a query is made: a query of them does not follow later
statements.

Cost:   O(columns of the database) for each query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sqlglot import exp

from optimizer.errors import PlanError
from reactive.languages.sql.statements.table_definition import CHECKED, IS_KEY, UNIQUE
from reactive.languages.sql.terms.common_types import OWN_SCHEMAS
from reactive.languages.sql.terms.errors import nearest
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.types import sql_name
from reactive.languages.sql.terms.values import NamedPlan
from reactive.languages.sql.text.schemas import schema_names

OWN = "information_schema"
Rows = Iterator[tuple[Any, ...]]
SCHEMAS = {
    "duckdb": ("memory", "main"),
    "postgres": ("postgres", "public"),
    "sqlite": ("main", "main"),
}
"""Names of the catalog and the schema that all tables are in."""
OF_POSTGRES = {
    "DOUBLE": "double precision",
    "VARCHAR": "text",
    "BLOB": "bytea",
    "TIMESTAMP": "timestamp without time zone",
}


def system_table(node: Any, around: Scope) -> NamedPlan | None:
    """Return the rows of a table of names that FROM names; None of another table."""
    name, schema = node.name.casefold(), (node.db or "").casefold()
    found = TABLES.get(name) if schema == OWN else None
    if (
        not schema
        and around.dialect.name == "sqlite"
        and name in ("sqlite_master", "sqlite_schema")
    ):
        found = (_master, ("type", "name", "tbl_name", "rootpage", "sql"))
    if found is None:
        if schema == OWN:
            raise around.error(
                node, f"there is no table {node.name!r} in {OWN}", f"there are {', '.join(TABLES)}"
            )
        return None
    _ = node.args.get("db")
    around.environment.from_catalog.add(OWN)  # which is no table: the query is read each time
    catalog = around.environment.catalog
    if catalog.stored is not None:
        catalog.stored.open_all()
    make, names = found
    rows = sorted(make(around), key=lambda row: tuple(map(str, row)))
    has_types = around.dialect.name != "sqlite"
    query = around.query(_values(rows, names, has_types=has_types))
    made: NamedPlan = query.as_source(names)
    return made


def _values(rows: list[tuple[Any, ...]], names: tuple[str, ...], *, has_types: bool) -> Any:
    """Return a query of constant rows."""

    def made(name: str) -> Any:
        """Return a column, with a type where types are declared."""
        kind = "int" if name in NUMBERS else "text"
        column = exp.column(name)
        return exp.alias_(exp.cast(column, kind) if has_types else column, name)

    of = exp.values(rows or [(None,) * len(names)], alias="_rows", columns=names)
    found = exp.select(*map(made, names), copy=False).from_(of, copy=False)
    return found if rows else found.where(exp.false(), copy=False)


NUMBERS = frozenset({"ordinal_position", "rootpage"})


def _relations(around: Scope) -> Iterator[tuple[str, str, Any]]:
    """Yield the name, the kind and the columns of each table and view."""
    catalog = around.environment.catalog
    seen = set()
    for table in catalog.engine.tables.values():
        if table.name is not None and table.plan.stored:
            seen.add(table.name)
            columns = catalog.schema_of(table).columns
            yield table.name, "BASE TABLE", [(c.name, c.type, c.nullable) for c in columns]
    named = [*catalog.views, *catalog.kept, *(v.name for v in catalog.engine.live_views())]
    for name in named:
        found = None if name is None or name in seen else catalog.find(name)
        if found is not None:
            seen.add(name)
            yield name, "VIEW", [(n, value.type, value.nullable) for n, value in found.columns]


def _tables(around: Scope) -> Rows:
    for name, kind, _ in _relations(around):
        yield (*_place(name, around), kind)


def _place(name: str, around: Scope) -> tuple[str, str, str]:
    """Return the catalog and the schema of a table or view, and its name in the schema."""
    catalog, own = SCHEMAS[around.dialect.name]
    schema, dot, inside = name.partition(".")
    if dot and schema.casefold() in schema_names(around.environment.catalog):
        return catalog, schema, inside
    return catalog, own, name


def tables_shown(around: Scope, schema: str = "") -> tuple[str, dict[str, Any]]:
    """Return the query of the tables and views of a schema, or of those that are searched."""
    session, usual = around.environment.session, SCHEMAS[around.dialect.name][1]
    shown = [schema.casefold()] if schema else [usual]
    if session.path and not schema:
        from reactive.languages.sql.system.search_path import searched

        shown = [each or usual for each in searched(around.dialect, session)]
    named = {f"schema_{place}": each for place, each in enumerate(shown)}
    text = f"""select table_name as name from information_schema.tables
        where lower(table_schema) in ({", ".join(f":{name}" for name in named)}) order by 1"""
    return text, named


def named_place(written: str, around: Scope) -> tuple[str, str]:
    """Return the folded schema and name of a table or view that a command names, as FROM does.

    Raises
    ------
    PlanError: there is none.
    """
    name, catalog = written.replace('"', ""), around.environment.catalog
    first, dot, rest = name.partition(".")
    flat = rest if dot and first.casefold() in OWN_SCHEMAS else name
    if around.environment.session.path and not dot:
        from reactive.languages.sql.system.search_path import find_schema

        found = find_schema(name, around.dialect, catalog, around.environment.session)
        flat = f"{found}.{name}" if found else name
    if catalog.find(flat) is None:
        raise PlanError(f"there is no table or view {name!r}{nearest(flat, catalog.names())}")
    _, schema, inside = _place(flat, around)
    return schema.casefold(), inside.casefold()


def _columns(around: Scope) -> Rows:
    catalog = around.environment.catalog
    for name, _, columns in _relations(around):
        place = _place(name, around)
        table = catalog.table(name)
        defaults = {} if table is None else catalog.defaults.get(table.plan.number, {})
        for number, (column, kind, nullable) in enumerate(columns, 1):
            default = defaults.get(column)
            shown = None if default is None else exp.convert(default).sql(around.dialect.name)
            is_nullable = "YES" if nullable else "NO"
            yield (*place, column, number, shown, is_nullable, _type_name(kind, around))


def _type_name(kind: Any, around: Scope) -> str:
    """Return the name of a type in the dialect."""
    name = sql_name(kind)
    return OF_POSTGRES.get(name, name.lower()) if around.dialect.name == "postgres" else name


def _schemata(around: Scope) -> Rows:
    catalog, schema = SCHEMAS[around.dialect.name]
    for name in (schema, OWN, *schema_names(around.environment.catalog)):
        yield catalog, name


def _constraints(around: Scope) -> Iterator[tuple[str, Any]]:
    """Yield the name of each table with its constraints."""
    catalog = around.environment.catalog
    for number, definition in catalog.definitions.items():
        name = catalog.engine.tables[number].name
        for each in definition.folded().constraints():
            yield name, each


def _table_constraints(around: Scope) -> Rows:
    for name, each in _constraints(around):
        catalog, *place = _place(name, around)
        yield (catalog, place[0], each.name, *place, _kind_of(each.node))


def _kind_of(node: Any) -> str:
    """Return the kind of a constraint."""
    if isinstance(node, IS_KEY):
        return "PRIMARY KEY"
    return (
        "UNIQUE"
        if isinstance(node, UNIQUE)
        else "CHECK"
        if isinstance(node, CHECKED)
        else "FOREIGN KEY"
    )


def _key_columns(around: Scope) -> Rows:
    for name, each in _constraints(around):
        catalog, *place = _place(name, around)
        for number, column in enumerate(each.columns, 1):
            if not isinstance(each.node, CHECKED):
                yield (catalog, place[0], each.name, *place, column, number)


def _master(around: Scope) -> Rows:
    catalog = around.environment.catalog
    for name, kind, _ in _relations(around):
        table, sql = catalog.table(name), None
        if table is not None and table.plan.number in catalog.definitions:
            sql = catalog.definitions[table.plan.number].folded().create.sql("sqlite")
        elif name.casefold() in catalog.view_texts:
            sql = catalog.view_texts[name.casefold()].text
        yield "view" if kind == "VIEW" else "table", name, name, 0, sql


TABLES: dict[str, tuple[Callable[[Scope], Rows], tuple[str, ...]]] = {
    "tables": (_tables, ("table_catalog", "table_schema", "table_name", "table_type")),
    "columns": (
        _columns,
        (
            *("table_catalog", "table_schema", "table_name", "column_name", "ordinal_position"),
            *("column_default", "is_nullable", "data_type"),
        ),
    ),
    "schemata": (_schemata, ("catalog_name", "schema_name")),
    "table_constraints": (
        _table_constraints,
        (
            *("constraint_catalog", "constraint_schema", "constraint_name"),
            *("table_schema", "table_name", "constraint_type"),
        ),
    ),
    "key_column_usage": (
        _key_columns,
        (
            *("constraint_catalog", "constraint_schema", "constraint_name"),
            *("table_schema", "table_name", "column_name", "ordinal_position"),
        ),
    ),
}
