"""CREATE and DROP: tables of named tuples, and views by their queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from typing import Any

from sqlglot import exp

from reactive.sql.queries.nodes import evaluated_constant, misreadings_told
from reactive.sql.relation import relation_of
from reactive.sql.statements.table_rows import hint_of, table_class
from reactive.sql.terms.schema import Column, Schema, field_names
from reactive.sql.terms.scope import Scope
from reactive.sql.terms.types import type_of_sql

REFUSED = {
    exp.CheckColumnConstraint: "CHECK",
    exp.UniqueColumnConstraint: "UNIQUE",
    exp.Reference: "REFERENCES",
    exp.ForeignKey: "FOREIGN KEY",
    exp.GeneratedAsIdentityColumnConstraint: "GENERATED",
    exp.ComputedColumnConstraint: "GENERATED",
    exp.AutoIncrementColumnConstraint: "AUTOINCREMENT",
}
Insert = Callable[[Any, Any], int]


def create(tree: Any, around: Scope, db: Any, insert: Insert) -> int:
    """Make a table or a view; how many rows a query put into it."""
    kind = (tree.kind or "").upper()
    if kind not in ("TABLE", "VIEW"):
        raise around.error(tree, f"CREATE {kind} is not supported")
    name = _target(tree).name
    if not _may_make(tree, name, kind, around, db):
        return 0
    if kind == "VIEW":
        _view(tree, name, around, db)
        return 0
    return _table(tree, name, around, db, insert)


def _target(tree: Any) -> Any:
    return tree.this.this if isinstance(tree.this, exp.Schema) else tree.this


def _may_make(tree: Any, name: str, kind: str, around: Scope, db: Any) -> bool:
    """Whether it is to be made: what has the name is replaced, or in the way."""
    catalog = around.environment.catalog
    if catalog.find(name) is None:
        return True
    if tree.args.get("exists"):
        return False
    if not tree.args.get("replace"):
        raise around.error(
            _target(tree),
            f"there is a table or view {name!r} already",
            "CREATE OR REPLACE, or DROP it",
        )
    _drop(_target(tree), kind, around, db, views=True)
    return True


# Tables.


def _table(tree: Any, name: str, around: Scope, db: Any, insert: Insert) -> int:
    found, defaults, key = None, dict[str, Any](), tuple[str, ...]()
    if tree.expression is not None:
        query = around.query(tree.expression)
        found, schema = query.rows(around.renamed(_names(tree), query.names, tree.this))
    else:
        with misreadings_told(tree, around):
            schema, defaults, key = _declared(tree, around)
    fields = field_names(schema.names)
    columns = tuple(replace(c, read=f) for c, f in zip(schema.columns, fields, strict=True))
    hints = [(c.read, hint_of(c.type, nullable=c.nullable)) for c in columns]
    row_type = table_class(name, tuple(hints))
    places = {c.name.casefold(): f for c, f in zip(columns, fields, strict=True)}
    of_key = [places[name] for name in key]
    chosen: Any = None
    if of_key:
        chosen = of_key[0] if len(of_key) == 1 else attrgetter(*of_key)
    table = db.table(row_type, name=name, key=chosen)
    catalog = around.environment.catalog
    catalog.schemas[table.plan.number] = Schema(columns)
    catalog.defaults[table.plan.number] = defaults
    return 0 if found is None else insert(table, found)


def _names(tree: Any) -> tuple[str, ...]:
    """The names of columns in parentheses behind that of a table or view."""
    if not isinstance(tree.this, exp.Schema):
        return ()
    return tuple(column.name for column in tree.this.expressions)


def _declared(tree: Any, around: Scope) -> tuple[Schema, dict[str, Any], tuple[str, ...]]:
    """The columns, their defaults, and the folded names of the key."""
    if not isinstance(tree.this, exp.Schema):
        raise around.error(tree, "CREATE TABLE needs columns, or AS and a query")
    _refuse(tree, around)
    columns, defaults, key = [], {}, []
    for node in tree.this.expressions:
        if isinstance(node, exp.PrimaryKey):
            key += [each.name.casefold() for each in node.expressions]
        elif isinstance(node, exp.ColumnDef):
            column, default, is_key = _column(node, around)
            columns.append(column)
            key += [column.name.casefold()] if is_key else []
            if default is not None:
                defaults[column.name] = default
        else:
            raise around.error(node, f"{node.sql()[:40]} is not supported in CREATE TABLE")
    names = [column.name.casefold() for column in columns]
    for name in key:
        if name not in names:
            raise around.error(tree, f"the primary key names {name!r}, which is no column")
    made = (replace(c, nullable=c.nullable and c.name.casefold() not in key) for c in columns)
    return Schema(tuple(made)), defaults, tuple(key)


def _refuse(tree: Any, around: Scope) -> None:
    for node in tree.this.walk():
        for kind, name in REFUSED.items():
            if isinstance(node, kind):
                raise around.error(
                    node,
                    f"{name} is not supported",
                    "leave it out; only a PRIMARY KEY is looked at",
                )


def _column(node: Any, around: Scope) -> tuple[Column, Any, bool]:
    constraints = [constraint.args.get("kind") for constraint in node.args.get("constraints") or ()]
    is_key = any(isinstance(c, exp.PrimaryKeyColumnConstraint) for c in constraints)
    not_null = any(
        isinstance(c, exp.NotNullColumnConstraint) and not c.args.get("allow_null")
        for c in constraints
    )
    default = next(
        (c.this for c in constraints if isinstance(c, exp.DefaultColumnConstraint)), None
    )
    kind = type_of_sql(node.args.get("kind"))
    if kind is None:
        declared = node.args.get("kind")
        raise around.error(node, f"there is no type {declared.sql() if declared else ''!r}")
    value = None if default is None else evaluated_constant(default, around)
    return Column(node.name, kind, not (is_key or not_null), None), value, is_key


# Views.


def _view(tree: Any, name: str, around: Scope, db: Any) -> None:
    catalog = around.environment.catalog
    query = around.query(tree.expression)
    names = around.renamed(_names(tree), query.names, tree.this)
    views = tuple(dict.fromkeys(around.environment.views))
    if _is_materialized(tree):
        node, schema = query.rows(names)
        relation = relation_of(catalog.engine, node, schema, views)
        catalog.kept[name.casefold()] = relation.materialize(name)
    else:
        catalog.views[name.casefold()] = query.named(names, views)


def _is_materialized(tree: Any) -> bool:
    properties = tree.args.get("properties")
    return properties is not None and properties.find(exp.MaterializedProperty) is not None


# DROP.


def drop(tree: Any, around: Scope, db: Any) -> int:
    """Drop tables or views."""
    kind = (tree.args.get("kind") or "").upper()
    if kind not in ("TABLE", "VIEW"):
        raise around.error(tree, f"DROP {kind} is not supported")
    for target in tree.args.get("tables") or [tree.this]:
        if around.environment.catalog.find(target.name) is None and tree.args.get("exists"):
            continue
        _drop(target, kind, around, db, views=bool(tree.args.get("cascade")))
    return 0


def _drop(target: Any, kind: str, around: Scope, db: Any, *, views: bool) -> None:
    catalog, folded = around.environment.catalog, target.name.casefold()
    if kind == "VIEW":
        kept = catalog.kept.pop(folded, None)
        if kept is not None:
            kept.close()
        elif catalog.views.pop(folded, None) is None:
            raise around.error(target, f"there is no view {target.name!r} that SQL made")
        return
    table = catalog.table(target.name)
    if table is None:
        raise around.error(target, f"there is no table {target.name!r}")
    db.drop(table, views=views)
