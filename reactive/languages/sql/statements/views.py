"""CREATE VIEW and DROP: a named query, or a materialized view that lives until it is dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from optimizer.record import record
from reactive.api.relation import AnyRelation
from reactive.engine.runtime.sql_names import DialectName
from reactive.languages.sql.relation import make_relation
from reactive.languages.sql.statements.constraints import drop_index
from reactive.languages.sql.statements.table_definition import TableDefinition
from reactive.languages.sql.statements.target import is_temporary
from reactive.languages.sql.terms.common_types import OWN_SCHEMAS
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.values import NamedPlan
from reactive.languages.sql.text.schemas import schema_names


@record
class ViewText:
    """The statement that has made a view, the values of its parameters, and its dialect."""

    text: str
    values: Any
    dialect: DialectName
    is_stored: bool = True
    """False of a TEMPORARY view, and of one that reads such a table or view."""


def create_view(
    tree: Any, name: str, around: Scope, drop_replaced: Callable[[], None], *, is_stored: bool
) -> None:
    """Create a view: a materialized view of rows, or a plan that queries read by name.

    is_stored: False if a file does not get the definition.
    """
    catalog = around.environment.catalog
    found = read_view(tree, around)
    drop_replaced()
    set_view(name, found, around)
    is_stored = is_stored and not any(
        is_temporary(each, catalog) for each in around.environment.from_catalog
    )
    text = ViewText(around.text, dict(around.constants), around.dialect.name, is_stored)
    catalog.view_texts[name.casefold()] = text
    if catalog.stored is not None and is_stored:
        catalog.stored.define_view(name, text)


def read_view(tree: Any, around: Scope) -> NamedPlan | AnyRelation:
    """Return the source that a CREATE VIEW names, or the relation of a materialized view."""
    query = around.query(tree.expression)
    names = around.replace_names(column_names(tree), query.names, tree.this)
    views = tuple(dict.fromkeys(around.environment.views))
    if _is_materialized(tree):
        node, schema = query.rows(names)
        made: AnyRelation = make_relation(around.environment.catalog.engine, node, schema, views)
        return made
    found: NamedPlan = query.as_source(names, views)
    return found


def set_view(name: str, found: NamedPlan | AnyRelation, around: Scope) -> None:
    """Give a view its name, in the place of the one that has it."""
    catalog, folded = around.environment.catalog, name.casefold()
    if isinstance(found, NamedPlan):
        catalog.views[folded] = found
        return
    earlier = catalog.kept.pop(folded, None)
    if earlier is not None:
        earlier.close()
    catalog.kept[folded] = found.materialize(name)


def find_view(name: str, around: Scope) -> Any:
    """Return the view of a name that SQL made; None if there is none."""
    catalog, folded = around.environment.catalog, name.casefold()
    if catalog.stored is not None:
        catalog.stored.open("view", name)
    kept = catalog.kept.get(folded)
    return catalog.views.get(folded) if kept is None else kept


def drop_view(target: Any, around: Scope) -> None:
    """Drop a view that SQL made; refuse an unknown name."""
    catalog, folded = around.environment.catalog, target.name.casefold()
    catalog.view_texts.pop(folded, None)
    if catalog.stored is not None:
        catalog.stored.open("view", target.name)
        catalog.stored.forget(f"view {folded}")
    kept = catalog.kept.pop(folded, None)
    if kept is not None:
        kept.close()
    elif catalog.views.pop(folded, None) is None:
        raise around.error(target, f"there is no view {target.name!r} that SQL made")


def column_names(tree: Any) -> tuple[str, ...]:
    """Return the names of columns in parentheses behind that of a table or view; () without any."""
    if not isinstance(tree.this, exp.Schema):
        return ()
    return tuple(column.name for column in tree.this.expressions)


def _is_materialized(tree: Any) -> bool:
    properties = tree.args.get("properties")
    return properties is not None and properties.find(exp.MaterializedProperty) is not None


# DROP.


def drop_relations(tree: Any, around: Scope, db: Any) -> int:
    """Drop tables or views, and return 0; refuse unknown names without IF EXISTS."""
    kind = (tree.args.get("kind") or "").upper()
    if kind == "SCHEMA":
        return drop_schemas(tree, around, db)
    if kind not in ("TABLE", "VIEW", "INDEX"):
        raise around.error(tree, f"DROP {kind} is not supported")
    may_miss, views = bool(tree.args.get("exists")), bool(tree.args.get("cascade"))
    _ = tree.args.get("concurrently"), tree.args.get("restrict")
    targets = tree.args.get("tables") or [tree.this]
    named = [(target, target.name) for target in targets]
    for target, _ in named:
        around.check_schema(target)
    _ = tree.args.get("materialized")
    around.refuse_unread(tree)
    catalog = around.environment.catalog
    if kind == "INDEX":
        for target, name in named:
            if not may_miss or name.casefold() in catalog.indexes:
                drop_index(target, around)
        return 0
    if may_miss:
        named = [each for each in named if catalog.find(each[1]) is not None]
    for target, name in named[1:]:  # before the first is dropped
        found = catalog.table(name) if kind == "TABLE" else find_view(name, around)
        if found is None:
            raise around.error(target, f"there is no {kind.lower()} {name!r}")
    for target, _name in named:
        drop_relation(target, kind, around, db, views=views)
    return 0


def drop_relation(target: Any, kind: str, around: Scope, db: Any, *, views: bool) -> None:
    """Drop a table, or a view that SQL made; refuse a table that views read, unless `views`."""
    catalog = around.environment.catalog
    if kind == "VIEW":
        drop_view(target, around)
        return
    table = catalog.table(target.name)
    if table is None:
        raise around.error(target, f"there is no table {target.name!r}")
    db.drop(table, views=views)


# Schemas.


def create_schema(tree: Any, around: Scope) -> int:
    """Make a schema, and return 0; refuse one that is there, without IF NOT EXISTS."""
    catalog, name = around.environment.catalog, tree.this.db
    may_exist = bool(tree.args.get("exists"))
    around.refuse_unread(tree)
    _check_schemas(tree, around)
    if catalog.stored is not None and catalog.stored.has_run(around.text):
        return 0
    if name.casefold() in (*schema_names(catalog), *OWN_SCHEMAS):
        if may_exist:
            return 0
        problem = f"there is a schema {name!r} already"
        raise around.error(tree, problem, "create schema if not exists")
    catalog.spaces[name.casefold()] = None
    if catalog.stored is not None:
        definition = TableDefinition((around.text,), ({},), around.dialect.name)
        catalog.stored.write({f"schema {name.casefold()}": definition})
    return 0


def _check_schemas(tree: Any, around: Scope) -> None:
    """Refuse schemas in SQLite, where ATTACH names files."""
    if around.dialect.name == "sqlite":
        raise around.error(tree, "sqlite has no schemas", "name tables without one")


def drop_schemas(tree: Any, around: Scope, db: Any) -> int:
    """Drop schemas, and return 0; CASCADE drops what is in them, else they must be empty."""
    catalog = around.environment.catalog
    names = [each.db for each in tree.args.get("tables") or [tree.this]]
    may_miss, is_cascade = bool(tree.args.get("exists")), bool(tree.args.get("cascade"))
    _ = tree.args.get("restrict")
    around.refuse_unread(tree)
    _check_schemas(tree, around)
    for name in names:
        if name.casefold() not in schema_names(catalog):
            if may_miss:
                continue
            if name.casefold() in OWN_SCHEMAS:
                raise around.error(tree, f"the schema {name!r} cannot be dropped")
            known = ", ".join(schema_names(catalog)) or "none"
            raise around.error(tree, f"there is no schema {name!r}", f"there are {known}")
        if catalog.stored is not None:
            catalog.stored.open_all()
        _drop_contents(tree, name, around, db, is_cascade=is_cascade)
        catalog.spaces.pop(name.casefold(), None)
        if catalog.stored is not None:
            catalog.stored.forget(f"schema {name.casefold()}")
    return 0


def _drop_contents(tree: Any, name: str, around: Scope, db: Any, *, is_cascade: bool) -> None:
    """Drop the views and tables of a schema; refuse to without `is_cascade`."""
    catalog, prefix = around.environment.catalog, f"{name.casefold()}."
    views = [each for each in (*catalog.views, *catalog.kept) if each.startswith(prefix)]
    tables = [
        t for t in catalog.engine.tables.values() if (t.name or "").casefold().startswith(prefix)
    ]
    if (views or tables) and not is_cascade:
        inside = ", ".join([*views, *(str(table.name) for table in tables)])
        raise around.error(
            tree, f"schema {name!r} is not empty: it has {inside}", "drop schema ... cascade"
        )
    for each in views:
        drop_view(exp.Table(this=exp.to_identifier(each, quoted=True)), around)
    for table in tables:
        db.drop(table, views=True)
