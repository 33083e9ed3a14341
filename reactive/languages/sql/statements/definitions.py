"""CREATE and DROP: tables of named tuples, and views by their queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, NamedTuple

from sqlglot import exp

from optimizer.errors import PlanError
from optimizer.kinds.fields import class_maker
from reactive.api.family import readers
from reactive.api.internal_interface import engine_of
from reactive.engine.transactions.row_gate import FROM_TUPLES
from reactive.languages.sql.expressions.scalar import checked_length
from reactive.languages.sql.queries.grouping import evaluated_constant, misreadings_told
from reactive.languages.sql.relation import make_relation
from reactive.languages.sql.sqlite.comparisons import column_type, has_collation
from reactive.languages.sql.sqlite.functions import collation_named, declared_name
from reactive.languages.sql.sqlite.values import KeyBy, store_value
from reactive.languages.sql.statements.constraints import (
    Constraint,
    drop_index,
    enforce,
    index,
    take_constraints,
)
from reactive.languages.sql.statements.target import run_plan
from reactive.languages.sql.terms.errors import take
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.types import SqlType, hint_of, type_of_sql
from reactive.languages.sql.terms.values import BindingColumn, BindingSchema, unique_field_names

REFUSED = {
    exp.GeneratedAsIdentityColumnConstraint: "GENERATED",
    exp.ComputedColumnConstraint: "GENERATED",
    exp.AutoIncrementColumnConstraint: "AUTOINCREMENT",
}


def create(tree: Any, around: Scope, db: Any) -> int:
    """Create a table or a view; return the number of rows that a query put into the table."""
    kind = (tree.kind or "").upper()
    if kind == "INDEX":
        return index(tree, around)
    if kind == "SCHEMA" and tree.args.get("exists"):
        around.check_schema(tree.this)  # the only one is there
        return 0
    if kind not in ("TABLE", "VIEW"):
        raise around.error(tree, f"CREATE {kind} is not supported")
    target = _name_node(tree)
    around.check_schema(target)
    name = target.name
    if not _may_make(tree, name, around):
        return 0
    _check_properties(tree, kind, around)
    if kind == "VIEW":
        _create_view(tree, name, around, db)
        return 0
    return _create_table(tree, name, around, db)


def _name_node(tree: Any) -> Any:
    """Return the node with the name of a table or view, without its columns."""
    return tree.this.this if isinstance(tree.this, exp.Schema) else tree.this


def _may_make(tree: Any, name: str, around: Scope) -> bool:
    """Return True if nothing has the name, or is replaced; False for IF NOT EXISTS; else raise."""
    may_exist, replaces = bool(tree.args.get("exists")), bool(tree.args.get("replace"))
    if around.environment.catalog.find(name) is None:
        return True
    if may_exist:
        return False
    if not replaces:
        raise around.error(
            _name_node(tree),
            f"there is a table or view {name!r} already",
            "CREATE OR REPLACE, or DROP it",
        )
    return True


def _drop_replaced(tree: Any, name: str, kind: str, around: Scope, db: Any) -> None:
    """Drop what CREATE OR REPLACE replaces, once everything that the statement says was read."""
    around.refuse_unread(tree)
    if around.environment.catalog.find(name) is not None:
        _refuse_referenced(tree, name, kind, around)
        _drop_relation(_name_node(tree), kind, around, db, views=True)


def _refuse_referenced(tree: Any, name: str, kind: str, around: Scope) -> None:
    """Refuse to replace a table that a constraint of another one reads, and would be lost."""
    catalog = around.environment.catalog
    table = catalog.table(name)
    if kind != "TABLE" or table is None:
        return
    engine = catalog.engine
    read = {engine.views.get(leaf.rank) for leaf in readers(engine, table)}
    for number, views in engine.constraints.items():
        if number != table.plan.number and not read.isdisjoint(views):
            other = engine.tables[number].name
            raise around.error(
                _name_node(tree),
                f"table {name!r} cannot be replaced: it is read by a constraint of {other!r}",
                f"drop {other!r} first",
            )


def _check_properties(tree: Any, kind: str, around: Scope) -> None:
    """Refuse the properties of CREATE, but for MATERIALIZED of a view."""
    properties = tree.args.get("properties")
    for each in () if properties is None else properties.expressions:
        if not (isinstance(each, exp.MaterializedProperty) and kind == "VIEW"):
            said = each.sql().upper() or each.key.removesuffix("property").upper()
            raise around.error(each, f"{said} is not supported in CREATE {kind}", "leave it out")


# Tables.


def _create_table(tree: Any, name: str, around: Scope, db: Any) -> int:
    """Create a table of declared columns, or of a query; return the number of its rows."""
    lengths, constraints = dict[str, int](), list[Constraint]()
    found, defaults, key = list[Any](), dict[str, Any](), tuple[str, ...]()
    if tree.expression is not None:
        query = around.query(tree.expression)
        node, schema = query.rows(around.replace_names(_column_names(tree), query.names, tree.this))
        around.refuse_unread(tree)
        found = run_plan(node, tree, around)
    else:
        if isinstance(tree.this, exp.Schema):
            constraints = take_constraints(tree)
        with misreadings_told(tree, around):
            schema, defaults, key = _declared_columns(tree, around)
            lengths = _lengths(tree, around)
    fields = unique_field_names(schema.names)
    columns = tuple(replace(c, read=f) for c, f in zip(schema.columns, fields, strict=True))
    hints = [(c.read, hint_of(c.type, nullable=c.nullable)) for c in columns]
    row_type = table_class(name, tuple(hints))
    places = {c.name.casefold(): f for c, f in zip(columns, fields, strict=True)}
    of_key = [places[name] for name in key]
    chosen: Any = None
    if of_key:
        chosen = of_key[0] if len(of_key) == 1 else attrgetter(*of_key)
        by_name = {c.read: c.type.collation for c in columns if has_collation(c.type)}
        if not by_name.keys().isdisjoint(of_key):
            chosen = KeyBy(tuple(of_key), tuple(map(by_name.get, of_key)))

    def make(called: str) -> Any:
        """Make the table, with its constraints; nothing if one of them cannot be read."""
        anew = {"migrate": _leave_out} if replaces and engine_of(db).journal is not None else {}
        table = db.table(row_type, name=called, key=chosen, **anew)
        catalog = around.environment.catalog
        catalog.schemas[table.plan.number] = BindingSchema(columns)
        catalog.defaults[table.plan.number] = defaults
        catalog.lengths[table.plan.number] = lengths
        try:
            if replaces:
                table.clear()  # of the rows that are stored
            if tree.expression is not None and not may_exist and len(table):
                raise _already_stored(tree, name, around)
            enforce(constraints, table, around)
        except BaseException:
            _unmake(table, db)
            raise
        return table

    around.refuse_unread(tree)
    replaces, may_exist = bool(tree.args.get("replace")), bool(tree.args.get("exists"))
    if constraints and (replaces or around.environment.catalog.find(name) is not None):
        db.drop(make(f"{name} (new)"))  # raises before anything is replaced
    _drop_replaced(tree, name, "TABLE", around, db)
    table = make(name)
    if len(table):  # which the file had
        return 0
    table.add_all([table.row_type(*row) for row in found])
    return len(found)


def _leave_out(_: object) -> None:
    """Discard a stored row of other columns, as a `migrate=` function."""


def _unmake(table: Any, db: Any) -> None:
    """Drop a table that was refused after it was made; rows that are stored stay in the file."""
    engine = engine_of(table)
    if engine.journal is not None and len(table):
        engine.journal.release(table)
    db.drop(table, views=True)


def _already_stored(tree: Any, name: str, around: Scope) -> PlanError:
    """Return the error for a table of a query, of which the file has rows."""
    file = around.environment.engine.journal.store.name
    return around.error(
        _name_node(tree),
        f"table {name!r} is durable, and has rows in {file}",
        "CREATE OR REPLACE puts those of the query in their place; with columns it keeps its own",
    )


def _column_names(tree: Any) -> tuple[str, ...]:
    """Return the names of columns in parentheses behind that of a table or view; () without any."""
    if not isinstance(tree.this, exp.Schema):
        return ()
    return tuple(column.name for column in tree.this.expressions)


def _declared_columns(
    tree: Any, around: Scope
) -> tuple[BindingSchema, dict[str, Any], tuple[str, ...]]:
    """Return the columns, their defaults, and the key's folded names; refuse other parts."""
    if not isinstance(tree.this, exp.Schema):
        raise around.error(tree, "CREATE TABLE needs columns, or AS and a query")
    _refuse(tree, around)
    columns, defaults, key, keys = [], {}, [], 0
    for node in tree.this.expressions:
        if isinstance(node, exp.PrimaryKey):
            take(node.args.get("include"))  # a node also where nothing is included
            key += [_key_name(each) for each in node.expressions]
            keys += 1
        elif isinstance(node, exp.ColumnDef) or _is_untyped(node, around):
            column, default, is_key = _read_declaration(node, around)
            columns.append(column)
            key += [column.name.casefold()] if is_key else []
            keys += is_key
            if default is not None:
                defaults[column.name] = default
        else:
            raise around.error(node, f"{node.sql()[:40]} is not supported in CREATE TABLE")
    names = [column.name.casefold() for column in columns]
    twice = next((column.name for n, column in enumerate(columns) if names[n] in names[:n]), None)
    if twice is not None:
        raise around.error(tree, f"there are two columns {twice!r}")
    if keys > 1:
        raise around.error(tree, "a table has one PRIMARY KEY", "primary key (column, ...)")
    for name in key:
        if name not in names:
            raise around.error(tree, f"the primary key names {name!r}, which is no column")
    made = (replace(c, nullable=c.nullable and c.name.casefold() not in key) for c in columns)
    if around.dialect.name == "sqlite" and len(key) == 1:
        rowid = _rowid_of(tree, key[0])
        made = (
            replace(c, type=rowid) if rowid and c.name.casefold() == key[0] else c for c in made
        )
    return BindingSchema(tuple(made)), defaults, tuple(key)


def _is_untyped(node: Any, around: Scope) -> bool:
    """Return True for a column of CREATE TABLE without a type, which SQLite allows."""
    return around.dialect.name == "sqlite" and isinstance(node, exp.Identifier)


def _rowid_of(tree: Any, name: str) -> SqlType | None:
    """Return the type of an INTEGER PRIMARY KEY, whose values are integers; None of other keys."""
    for node in tree.this.expressions:
        is_key = isinstance(node, exp.ColumnDef) and node.name.casefold() == name
        if (
            is_key
            and not _is_descending(node)
            and declared_name(node.args.get("kind")).upper() == "INTEGER"
        ):
            return column_type("INTEGER", is_rowid=True)
    return None


def _is_descending(node: Any) -> bool:
    """Return True for a column with PRIMARY KEY DESC, which in SQLite is no row id."""
    kinds = (each.args.get("kind") for each in node.args.get("constraints") or ())
    return any(
        isinstance(k, exp.PrimaryKeyColumnConstraint) and bool(k.args.get("desc")) for k in kinds
    )


def _lengths(tree: Any, around: Scope) -> dict[str, int]:
    """Return the greatest lengths of texts, by the names of columns that have one."""
    columns = [node for node in tree.this.expressions if isinstance(node, exp.ColumnDef)]
    if around.dialect.name == "sqlite":
        return {}
    found = {node.name: checked_length(node.args["kind"], around) for node in columns}
    return {name: length for name, length in found.items() if length is not None}


def _key_name(node: Any) -> str:
    if isinstance(node, exp.Ordered):
        node.args.get("nulls_first")  # which the parser adds
    return str(node.name).casefold()


def _refuse(tree: Any, around: Scope) -> None:
    """Refuse the constraints of CREATE TABLE that are not supported, such as GENERATED."""
    for node in tree.this.walk():
        for kind, name in REFUSED.items():
            if isinstance(node, kind):
                raise around.error(node, f"{name} is not supported", "leave it out")


def _read_declaration(node: Any, around: Scope) -> tuple[BindingColumn, Any, bool]:
    """Return a declared column, its default, and whether it is the key; refuse unknown types."""
    named = node.args.get("constraints") or ()
    _ = [each.name for each in named]  # of the constraints; no message needs them
    constraints = [each.args.get("kind") for each in named]
    is_key = any(isinstance(c, exp.PrimaryKeyColumnConstraint) for c in constraints)
    for each in constraints:
        if isinstance(each, exp.PrimaryKeyColumnConstraint | exp.NotNullColumnConstraint):
            take(each)
        if isinstance(each, exp.PrimaryKeyColumnConstraint):
            take(each.args.get("include"))  # a node also where nothing is included
            each.args.get("desc")  # of the order in the file
    not_null = any(
        isinstance(c, exp.NotNullColumnConstraint) and not c.args.get("allow_null")
        for c in constraints
    )
    default = next(
        (c.this for c in constraints if isinstance(c, exp.DefaultColumnConstraint)), None
    )
    declared = node.args.get("kind")
    if around.dialect.name == "sqlite":
        kind: SqlType | None = _sqlite_type(declared, constraints, around)
    else:
        kind = type_of_sql(declared)
    if kind is None:
        raise around.error(node, f"there is no type {declared.sql() if declared else ''!r}")
    own = kind if kind.affinity is None else None
    value = None if default is None else evaluated_constant(default, around, own)
    if kind.affinity is not None:
        value = store_value(value, kind.affinity)
    return BindingColumn(node.name, kind, not (is_key or not_null), None), value, is_key


def _sqlite_type(declared: Any, constraints: list[Any], around: Scope) -> SqlType:
    """Return the type of a column of SQLite: its affinity, and what its texts are compared by."""
    names = [
        collation_named(each.this, around)
        for each in constraints
        if isinstance(each, exp.CollateColumnConstraint)
    ]
    return column_type(declared_name(declared), collation=names[-1] if names else None)


# Views.


def _create_view(tree: Any, name: str, around: Scope, db: Any) -> None:
    """Create a view: a materialized view of rows, or a plan that queries read by name."""
    catalog = around.environment.catalog
    query = around.query(tree.expression)
    names = around.replace_names(_column_names(tree), query.names, tree.this)
    views = tuple(dict.fromkeys(around.environment.views))
    if _is_materialized(tree):
        node, schema = query.rows(names)
        relation = make_relation(catalog.engine, node, schema, views)
        _drop_replaced(tree, name, "VIEW", around, db)
        catalog.kept[name.casefold()] = relation.materialize(name)
    else:
        _drop_replaced(tree, name, "VIEW", around, db)
        catalog.views[name.casefold()] = query.as_source(names, views)


def _is_materialized(tree: Any) -> bool:
    properties = tree.args.get("properties")
    return properties is not None and properties.find(exp.MaterializedProperty) is not None


# DROP.


def drop_relations(tree: Any, around: Scope, db: Any) -> int:
    """Drop tables or views, and return 0; refuse unknown names without IF EXISTS."""
    kind = (tree.args.get("kind") or "").upper()
    if kind not in ("TABLE", "VIEW", "INDEX"):
        raise around.error(tree, f"DROP {kind} is not supported")
    may_miss, views = bool(tree.args.get("exists")), bool(tree.args.get("cascade"))
    targets = tree.args.get("tables") or [tree.this]
    named = [(target, target.name) for target in targets]
    for target, _ in named:
        around.check_schema(target)
    around.refuse_unread(tree)
    for target, name in named:
        if kind == "INDEX":
            if not may_miss or name.casefold() in around.environment.catalog.indexes:
                drop_index(target, around)
            continue
        if around.environment.catalog.find(name) is None and may_miss:
            continue
        _drop_relation(target, kind, around, db, views=views)
    return 0


def _drop_relation(target: Any, kind: str, around: Scope, db: Any, *, views: bool) -> None:
    """Drop a table, or a view that SQL made; refuse a table that views read, unless `views`."""
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


# The classes of rows of tables that SQL makes: named tuples with the columns' types.


@class_maker
def table_class(name: str, fields: tuple[tuple[str, Any], ...]) -> Any:
    """Return the class of rows of a table.

    >>> import pickle
    >>> Word = table_class("words", (("id", int), ("word", str)))
    >>> row = Word(1, "to")
    >>> row, type(pickle.loads(pickle.dumps(row))) is Word
    (words(id=1, word='to'), True)
    """
    (called,) = unique_field_names([name])
    made: Any = NamedTuple(called, list(fields))  # type: ignore[misc]
    made.__module__ = __name__
    made.__reduce__ = _reduced_of(name, fields)  # type: ignore[method-assign]
    made.__doc__ = f"A row of table {name}."
    setattr(made, FROM_TUPLES, True)
    return made


def _reduced_of(name: str, fields: tuple[tuple[str, Any], ...]) -> Any:
    return lambda row: (table_row, (name, fields, tuple(row)))


def table_row(name: str, fields: tuple[tuple[str, Any], ...], values: Sequence[Any]) -> Any:
    """Return a row of a table."""
    return table_class(name, fields)(*values)
