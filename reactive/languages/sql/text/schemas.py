"""Schemas: `app.orders` is a table whose name in the database is "app.orders".

    select orders.id from app.orders        select orders.id from "app.orders" as orders
    select app.orders.id from app.orders    the same
    create table app.orders (...)           create table "app.orders" (...)
    select * from main.t, public.t          the tables without a schema

A schema is there if CREATE SCHEMA has made it, or if a table or view is in it.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from optimizer.errors import PlanError
from reactive.languages.sql.terms.common_types import OWN_SCHEMAS, SCHEMA
from reactive.languages.sql.terms.errors import nearest

OF_SYSTEM = ("information_schema", "pg_catalog")
DEFINING = (
    *(exp.Create, exp.Drop, exp.Alter, exp.AlterRename, exp.Reference, exp.Index),
    *(exp.TruncateTable, exp.Comment),
)
"""Nodes whose table has no alias."""


def schema_names(catalog: Any) -> list[str]:
    """Return the folded names of the schemas of users, which were made or have tables."""
    tables = (table.name or "" for table in catalog.engine.tables.values())
    stored = () if catalog.stored is None else catalog.stored.names()
    every = (*tables, *catalog.views, *catalog.kept, *stored)
    inside = (first.casefold() for first, dot, _ in (n.partition(".") for n in every) if dot)
    return list(dict.fromkeys((*catalog.spaces, *inside)))


def check_known(part: Any, around: Any, *, is_strange: bool) -> None:
    """Raise `PlanError` for a schema that is not there; a strange one cannot be meant here."""
    asked, known = part.name, schema_names(around.environment.catalog)
    if is_strange or asked.casefold() not in known:
        usual = "public" if around.dialect.name == "postgres" else "main"
        remedy = f"create schema {asked}; there are {', '.join([usual, *known])}"
        raise around.error(part, f"there is no schema {asked!r}{nearest(asked, known)}", remedy)


def with_flat_names(tree: Any) -> Any:
    """Return a statement in which tables of schemas have their names in the database.

    Their nodes note the schema, which is looked up when the table is.
    """
    named = [node for node in tree.find_all(exp.Table) if _schema_of(node)]
    if not named:
        return tree
    if isinstance(tree, exp.Drop) and (tree.args.get("kind") or "").upper() == "INDEX":
        for node in named:  # an index is found by its own name
            node.set("db", None)
        return tree
    places = {(_schema_of(node), node.name.casefold()) for node in named}
    shared = _names_of_several(tree, places)
    for column in list(tree.find_all(exp.Column)):
        _name_table(column, places, shared)
    for node in named:
        _flatten(node, shared)
    if isinstance(tree, exp.Alter) and tree.this.meta.get(SCHEMA):
        for action in tree.args.get("actions") or ():
            if isinstance(action, exp.AlterRename) and not action.this.db:
                action.this.set("db", tree.this.meta[SCHEMA].copy())
                _flatten(action.this, shared)
    return tree


def _names_of_several(tree: Any, places: set[tuple[str, str]]) -> set[str]:
    """Return the folded names of tables of schemas that other things in a statement have, too."""
    others = {
        node.alias_or_name.casefold()
        for node in tree.find_all(exp.Table, exp.Subquery, exp.CTE)
        if not _has_flat_name(node)
    }
    names = [name for _, name in places]
    return {name for name in names if name in others or names.count(name) > 1}


def _name_table(column: Any, places: set[tuple[str, str]], shared: set[str]) -> None:
    """Let a column of a table of a schema name this table, by its alias."""
    part, table = column.args.get("db"), column.table.casefold()
    if part is not None:
        if (part.name.casefold(), table) not in places:
            return
        column.set("db", None)
        if table in shared:
            flat = f"{part.name}.{column.table}"
            column.set("table", exp.to_identifier(flat, quoted=True))
    elif table in shared:
        query = column.find_ancestor(exp.Select, exp.Update, exp.Delete)
        while query is not None:
            found = [n for n in query.find_all(exp.Table, exp.Subquery) if _is_own(n, query, table)]
            if len(found) > 1:
                raise PlanError(
                    f"{column.table!r} is the name of several tables in FROM\n"
                    f"  write {found[0].db or 'main'}.{column.table}, or give them aliases"
                )
            if found:
                if _has_flat_name(found[0]):
                    flat = f"{found[0].db}.{found[0].name}"
                    column.set("table", exp.to_identifier(flat, quoted=True))
                return
            query = query.find_ancestor(exp.Select, exp.Update, exp.Delete)


def _is_own(node: Any, query: Any, name: str) -> bool:
    """Return True for a table or query of a name that stands in FROM of this query itself."""
    around = node.find_ancestor(exp.Select, exp.Update, exp.Delete)
    return around is query and node.alias_or_name.casefold() == name


def _has_flat_name(node: Any) -> bool:
    """Return True for a table of a schema without an alias of its own."""
    return bool(_schema_of(node)) and not node.alias


def _schema_of(node: Any) -> str:
    """Return the folded name of the schema of a table, if it names one of the user's."""
    part = node.args.get("db")
    if part is None or not isinstance(node.this, exp.Identifier):
        return ""
    folded: str = part.name.casefold()
    return "" if folded in OWN_SCHEMAS or folded in OF_SYSTEM else folded


def _flatten(node: Any, shared: set[str]) -> None:
    """Give a table its name in the database; its alias is its own name, if no other has it."""
    schema, name = node.args["db"], node.name
    flat = f"{schema.name}.{name}"
    node.meta[SCHEMA] = schema
    node.set("this", exp.to_identifier(flat, quoted=True))
    node.set("db", None)
    around = node.parent.parent if isinstance(node.parent, exp.Schema) else node.parent
    if not node.alias and not isinstance(around, DEFINING):
        called = flat if name.casefold() in shared else name
        node.set("alias", exp.TableAlias(this=exp.to_identifier(called, quoted=True)))
