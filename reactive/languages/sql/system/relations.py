"""The tables, views, constraints and indexes of a database, as system tables list them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sqlglot import exp

from optimizer.errors import PlanError
from optimizer.plans.nodes import sources as written_out
from optimizer.record import record
from reactive.languages.sql.statements.table_definition import (
    CHECKED,
    IS_KEY,
    UNIQUE,
    DefinitionTree,
    with_values,
)
from reactive.languages.sql.terms.common_types import DIALECTS, OWN_SCHEMAS
from reactive.languages.sql.terms.errors import nearest
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.types import SqlType
from reactive.languages.sql.terms.values import (
    BindingColumn,
    BindingSchema,
    NamedPlan,
    plan_with_columns,
)
from reactive.languages.sql.text.read import parse_statements
from reactive.languages.sql.text.schemas import schema_names

SCHEMAS = {
    "duckdb": ("memory", "main"),
    "postgres": ("postgres", "public"),
    "sqlite": ("main", "main"),
}
"""Names of the catalog and the schema that all tables are in."""


@record
class NamedRelation:
    """A table or view: its name in the database and in its schema, and its columns."""

    name: str
    kind: str
    """BASE TABLE, VIEW or MATERIALIZED VIEW."""
    columns: tuple[tuple[str, SqlType, bool], ...]
    """The name of each column, its type, and True if it may be NULL."""
    schema: str
    inside: str


def relations(around: Scope) -> Iterator[NamedRelation]:
    """Yield the tables and views."""
    catalog = around.environment.catalog
    if catalog.stored is not None:
        catalog.stored.open_all()
    seen = set()
    for table in catalog.engine.tables.values():
        if table.name is not None and table.plan.stored:
            seen.add(table.name)
            columns = tuple((c.name, c.type, c.nullable) for c in catalog.schema_of(table).columns)
            yield NamedRelation(table.name, "BASE TABLE", columns, *place_of(table.name, around))
    named = [*catalog.views, *catalog.kept, *(v.name for v in catalog.engine.live_views())]
    for name in named:
        found = None if name is None or name in seen else catalog.find(name)
        if found is not None:
            seen.add(name)
            columns = tuple((n, value.type, value.nullable) for n, value in found.columns)
            kind = "MATERIALIZED VIEW" if name in catalog.kept else "VIEW"
            yield NamedRelation(name, kind, columns, *place_of(name, around))


def place_of(name: str, around: Scope) -> tuple[str, str]:
    """Return the schema of a table or view, and its name in the schema."""
    schema, dot, inside = name.partition(".")
    if dot and schema.casefold() in schema_names(around.environment.catalog):
        return schema, inside
    return SCHEMAS[around.dialect.name][1], name


def named_place(written: str, around: Scope) -> tuple[str, str]:
    """Return the folded schema and name of a table or view that a command names, as FROM does.

    Raises
    ------
    PlanError: there is none.
    """
    flat = flat_name(written, around)
    if flat is None:
        names = around.environment.catalog.names()
        name = written.replace('"', "")
        raise PlanError(f"there is no table or view {name!r}{nearest(name, names)}")
    schema, inside = place_of(flat, around)
    return schema.casefold(), inside.casefold()


def flat_name(written: str, around: Scope) -> str | None:
    """Return the name in the database of a table or view; None if there is none."""
    name, catalog = written.replace('"', ""), around.environment.catalog
    first, dot, rest = name.partition(".")
    flat = rest if dot and first.casefold() in OWN_SCHEMAS else name
    if around.environment.session.path and not dot:
        from reactive.languages.sql.system.search_path import find_schema

        found = find_schema(name, around.dialect, catalog, around.environment.session)
        flat = f"{found}.{name}" if found else name
    return None if catalog.find(flat) is None else flat


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


# Definitions.


def definition_of(name: str, around: Scope) -> DefinitionTree | None:
    """Return the trees of a table that SQL made, and of its indexes; None of others."""
    catalog = around.environment.catalog
    table = catalog.table(name)
    found = None if table is None else catalog.definitions.get(table.plan.number)
    return None if found is None else found.folded()


def view_query(name: str, around: Scope) -> Any:
    """Return the tree of CREATE VIEW of a view that SQL made; None of others."""
    found = around.environment.catalog.view_texts.get(name.casefold())
    if found is None:
        return None
    (tree,) = parse_statements(found.text, DIALECTS[found.dialect], found.values)
    with_values(tree, found.values)
    return with_written_names(tree, around)


def with_written_names(tree: Any, around: Scope) -> Any:
    """Write the tables of schemas as they were written: `app.orders`."""
    for node in tree.find_all(exp.Table):
        schema, inside = place_of(node.name, around)
        if inside != node.name:
            node.set("this", exp.to_identifier(inside))
            node.set("db", exp.to_identifier(schema))
            if node.alias == inside:
                node.set("alias", None)
    return tree


@record
class ListedConstraint:
    """A constraint of a table, with its name in the schema."""

    table: str
    name: str
    kind: str
    """PRIMARY KEY, UNIQUE, CHECK or FOREIGN KEY."""
    node: Any
    columns: tuple[str, ...]
    target: str | None = None
    """The table that a FOREIGN KEY references, by its name in the database."""
    target_columns: tuple[str, ...] = ()


def constraints(
    around: Scope, tree_of: Callable[[str], DefinitionTree | None]
) -> Iterator[ListedConstraint]:
    """Yield the constraints of the tables that SQL made; `tree_of` returns their trees."""
    catalog = around.environment.catalog
    for number in catalog.definitions:
        table = catalog.engine.tables[number].name
        schema, inside = place_of(table, around)
        tree = tree_of(table)
        for each in () if tree is None else tree.constraints():
            name = each.name
            if inside != table:
                name = name.removeprefix(f"{schema}.")
            target, of_target = _target_of(each.node, tree_of)
            yield ListedConstraint(
                table, name, _kind_of(each.node), each.node, each.columns, target, of_target
            )


def _kind_of(node: Any) -> str:
    """Return the kind of a constraint."""
    if isinstance(node, IS_KEY):
        return "PRIMARY KEY"
    if isinstance(node, UNIQUE):
        return "UNIQUE"
    return "CHECK" if isinstance(node, CHECKED) else "FOREIGN KEY"


def _target_of(
    node: Any, tree_of: Callable[[str], DefinitionTree | None]
) -> tuple[str | None, tuple[str, ...]]:
    """Return the table and the columns that a constraint references."""
    if not isinstance(node, exp.ForeignKey | exp.Reference):
        return None, ()
    named = (node.args["reference"] if isinstance(node, exp.ForeignKey) else node).this
    is_listed = isinstance(named, exp.Schema)
    target = named.this.name if is_listed else named.name
    if is_listed:
        return target, tuple(column.name for column in named.expressions)
    tree = tree_of(target)
    every = () if tree is None else tree.constraints()
    return target, next((e.columns for e in every if isinstance(e.node, IS_KEY)), ())


# Rows.


def constant_rows(
    rows: list[tuple[Any, ...]], columns: tuple[tuple[str, SqlType], ...]
) -> NamedPlan:
    """Return rows as a source with columns of the given types."""
    schema = BindingSchema(
        tuple([BindingColumn(name, kind, True, n) for n, (name, kind) in enumerate(columns)])
    )
    return plan_with_columns(written_out.values(rows), schema)
