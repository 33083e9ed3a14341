"""CREATE and DROP: tables of named tuples, and views by their queries."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

from sqlglot import exp

from optimizer.errors import PlanError
from optimizer.kinds.fields import class_maker
from optimizer.record import record
from reactive.api import family
from reactive.api.family import readers
from reactive.api.internal_interface import engine_of
from reactive.api.table import Table
from reactive.engine.transactions.row_gate import FROM_TUPLES
from reactive.languages.sql.expressions import collations
from reactive.languages.sql.expressions.scalar import checked_length
from reactive.languages.sql.queries.grouping import evaluated_constant, misreadings_told
from reactive.languages.sql.sqlite.comparisons import column_type
from reactive.languages.sql.sqlite.functions import collation_named, declared_name
from reactive.languages.sql.sqlite.values import OWN_COLLATIONS, KeyBy, store_value
from reactive.languages.sql.statements.column_types import declaring_text, takes
from reactive.languages.sql.statements.constraints import (
    Constraint,
    enforce,
    index,
    take_constraints,
)
from reactive.languages.sql.statements.generated import Filled, take_filled
from reactive.languages.sql.statements.liked_tables import write_out
from reactive.languages.sql.statements.table_definition import TableDefinition, usual_names
from reactive.languages.sql.statements.target import ChangedTable, fits, run_plan
from reactive.languages.sql.statements.views import (
    column_names,
    create_schema,
    create_view,
    drop_relation,
)
from reactive.languages.sql.terms.errors import take
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.types import (
    SqlType,
    hint_of,
    sql_name,
    type_of_sql,
)
from reactive.languages.sql.terms.values import (
    BindingColumn,
    BindingSchema,
    unique_field_names,
)

REFUSED = {exp.AutoIncrementColumnConstraint: "AUTOINCREMENT"}


def create(tree: Any, around: Scope, db: Any) -> int:
    """Create a table or a view; return the number of rows that a query put into the table."""
    kind = (tree.kind or "").upper()
    stored = around.environment.catalog.stored
    if kind == "INDEX":
        ChangedTable(tree.this.args["table"], around)  # which opens it
        _ = tree.args.get("concurrently")
        if stored is not None and stored.has_run(around.text):
            return 0
        return index(tree, around)
    if kind == "SCHEMA":
        return create_schema(tree, around)
    if kind not in ("TABLE", "VIEW"):
        raise around.error(tree, f"CREATE {kind} is not supported")
    target = _name_node(tree)
    around.check_schema(target)
    written = write_out(tree, around)
    if written is not None:
        return int(db.execute(written))
    name = target.name
    is_temporary = _is_temporary(tree)
    if stored is not None and not tree.args.get("exists") and not is_temporary:
        if stored.has_run(around.text):
            return 0
        stored.declaring(name)
    if not _may_make(tree, name, around):
        return 0
    _check_properties(tree, kind, around)
    if kind == "VIEW":
        drop = partial(_drop_replaced, tree, name, kind, around, db)
        create_view(tree, name, around, drop, is_stored=not is_temporary)
        return 0
    return _create_table(tree, name, around, db)


def _is_temporary(tree: Any) -> bool:
    """Return True for CREATE TEMPORARY: nothing is written to the file."""
    properties = tree.args.get("properties")
    return properties is not None and properties.find(exp.TemporaryProperty) is not None


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
        drop_relation(_name_node(tree), kind, around, db, views=True)


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
    """Refuse the properties of CREATE, but for TEMPORARY, and MATERIALIZED of a view."""
    properties = tree.args.get("properties")
    for each in () if properties is None else properties.expressions:
        is_materialized = isinstance(each, exp.MaterializedProperty) and kind == "VIEW"
        if not (is_materialized or isinstance(each, exp.TemporaryProperty)):
            said = each.sql().upper() or each.key.removesuffix("property").upper()
            raise around.error(each, f"{said} is not supported in CREATE {kind}", "leave it out")


# Tables.


@record
class Declared:
    """The declaration of a table: columns, values that are not given, the key, constraints."""

    name: str
    schema: BindingSchema
    defaults: dict[str, Any]
    lengths: dict[str, int]
    key_fields: tuple[str, ...]
    constraints: tuple[Constraint, ...]
    filled: Filled = Filled({})

    @property
    def key(self) -> Any:
        """The field that is the key, or the function of rows that returns it; None without one."""
        if not self.key_fields:
            return None
        by_name = {
            c.read: c.type.collation
            for c in self.schema.columns
            if c.type.collation in OWN_COLLATIONS  # in DuckDB a key is compared by its texts
        }
        if not by_name.keys().isdisjoint(self.key_fields):
            return KeyBy(self.key_fields, tuple(map(by_name.get, self.key_fields)))
        return self.key_fields[0] if len(self.key_fields) == 1 else attrgetter(*self.key_fields)

    @property
    def row_type(self) -> Any:
        """The class of rows."""
        hints = [(str(c.read), hint_of(c.type, nullable=c.nullable)) for c in self.schema.columns]
        return table_class(self.name, tuple(hints))

    def make(self, engine: Any, replaced: Any = None, **options: Any) -> Any:
        """Make the table, and note its declaration; it does not enforce its constraints.

        Parameters
        ----------
        replaced: a table of this name, in the place of which it is made.
        options: `durable` and `migrate` of `Database.table`.
        """
        stored = options.get("durable"), None, options.get("migrate")
        row_type, key, name = self.row_type, self.key, self.name
        table = engine.add_table(
            lambda number, old: Table(engine, number, row_type, name, key, True, False, old),
            None if replaced is None else name,
            stored,
        )
        self.note(table)
        return table

    def note(self, table: Any) -> None:
        """Note the declaration as that of a table."""
        catalog, number = engine_of(table).catalog, table.plan.number
        catalog.schemas[number], catalog.defaults[number] = self.schema, self.defaults
        catalog.lengths[number] = self.lengths
        catalog.declared[number] = self


def declare(tree: Any, name: str, around: Scope) -> Declared:
    """Read the columns and constraints of a CREATE TABLE."""
    names = usual_names(tree, around)
    constraints = take_constraints(tree) if isinstance(tree.this, exp.Schema) else []
    constraints = [replace(c, usual_name=n) for c, n in zip(constraints, names, strict=False)]
    filled = take_filled(tree, around)
    constraints += filled.constraints()
    with misreadings_told(tree, around):
        schema, defaults, key = _declared_columns(tree, around)
        lengths = _lengths(tree, around)
    made = _declared(name, schema, defaults, lengths, key, constraints)
    return replace(made, filled=filled)


def _declared(
    name: str,
    schema: BindingSchema,
    defaults: dict[str, Any],
    lengths: dict[str, int],
    key: tuple[str, ...],
    constraints: list[Constraint],
) -> Declared:
    """Return a declaration, with the fields that columns are, and the key as a function."""
    fields = unique_field_names(schema.names)
    columns = tuple(replace(c, read=f) for c, f in zip(schema.columns, fields, strict=True))
    places = {c.name.casefold(): f for c, f in zip(columns, fields, strict=True)}
    of_key = tuple([places[name] for name in key])
    return Declared(name, BindingSchema(columns), defaults, lengths, of_key, tuple(constraints))


def _create_table(tree: Any, name: str, around: Scope, db: Any) -> int:
    """Create a table of declared columns, or of a query; return the number of its rows."""
    found = list[Any]()
    catalog, engine = around.environment.catalog, engine_of(db)
    if tree.expression is not None:
        query = around.query(tree.expression)
        node, schema = query.rows(around.replace_names(column_names(tree), query.names, tree.this))
        around.refuse_unread(tree)
        found = run_plan(node, tree, around)
        declared = _declared(name, schema, {}, {}, (), [])
        is_kept = engine.journal is not None and not _is_temporary(tree)
        if is_kept and (of := _definition_of(name, schema, around)):
            declared = of[1]  # the columns that the table has when the database is opened again
    else:
        declared = declare(tree, name, around)

    def make(of: Declared) -> Any:
        """Make the table, with its constraints; nothing if one of them cannot be read."""
        anew: dict[str, Any] = {}
        if _is_temporary(tree):
            anew = {"durable": False}
        elif engine.journal is not None:
            anew = {"migrate": _leave_out if replaces else partial(_with_defaults, of, around)}
        table = of.make(engine, **anew)
        try:
            if replaces:
                table.clear()  # of the rows that are stored
            if tree.expression is not None and not may_exist and len(table):
                raise _already_stored(tree, name, around)
            enforce(declared.constraints, table, around)
        except BaseException:
            unmake(table)
            raise
        return table

    around.refuse_unread(tree)
    replaces, may_exist = bool(tree.args.get("replace")), bool(tree.args.get("exists"))
    if declared.constraints and (replaces or catalog.find(name) is not None):
        db.drop(make(replace(declared, name=f"{name} (new)")))  # raises before one is replaced
    _drop_replaced(tree, name, "TABLE", around, db)
    table = make(declared)
    define_table(table, tree, around)
    if len(table):  # which the file had
        return 0
    table.add_all([table.row_type(*row) for row in found])
    return len(found)


def define_table(table: Any, tree: Any, around: Scope) -> None:
    """Note the statement that has made a table; of a query, a statement with its columns."""
    catalog, number = around.environment.catalog, table.plan.number
    if tree.expression is None:
        values = dict(around.constants)
        made = TableDefinition((around.text,), (values,), around.dialect.name)
        catalog.define(number, made)
    elif (found := _definition_of(table.name, catalog.schemas[number], around)) is not None:
        catalog.define(number, found[0])


def _definition_of(
    name: str, schema: BindingSchema, around: Scope
) -> tuple[TableDefinition, Declared] | None:
    """Return a statement that declares the columns of a query, and how it is read.

    None if the columns that it declares would not take all values of those of the query.
    """
    dialect = around.dialect.name
    text = declaring_text(name, [(c.name, c.type) for c in schema.columns], dialect)
    made = TableDefinition((text,), ({},), dialect)
    with suppress(PlanError):
        declared = declare(made.folded().create, name, around.of_text(text, {}))
        pairs = zip(declared.schema.columns, schema.columns, strict=True)
        if all(takes(one.type, other.type) for one, other in pairs):
            return made, declared
    return None


def _with_defaults(declared: Declared, around: Scope, fields: dict[str, Any]) -> Any:
    """Return the row of a stored row of other columns, as a `migrate=` function.

    Raises `PlanError` if a stored column is not declared, or a new one has no value.
    """
    columns = {str(column.read): column for column in declared.schema.columns}
    lost = next((name for name in fields if name not in columns), None)
    if lost is not None:
        raise around.error(
            None,
            f"table {declared.name!r} has a column {lost!r} in the file, which is not declared",
            f"create table if not exists {declared.name} ...; alter table {declared.name} drop"
            f" column {lost}",
        )
    values = []
    for read, column in columns.items():
        value = fields[read] if read in fields else declared.defaults.get(column.name)
        if value is None and not column.nullable:
            raise around.error(
                None,
                f"column {column.name!r} of table {declared.name!r} is NOT NULL, and a row in the"
                " file has no value",
                f"{column.name} ... default ...",
            )
        if not fits(value, column.type):
            raise around.error(
                None,
                f"column {column.name!r} of table {declared.name!r} has {value!r:.60} in the file",
                f"create table if not exists {declared.name} ...; alter table {declared.name} alter"
                f" column {column.name} type {sql_name(column.type).lower()}",
            )
        values.append(value)
    return declared.row_type(*values)


def _leave_out(_: object) -> None:
    """Discard a stored row of other columns, as a `migrate=` function."""


def unmake(table: Any) -> None:
    """Drop a table that was refused after it was made; rows that are stored stay in the file."""
    engine = engine_of(table)
    if engine.journal is not None and len(table):
        engine.journal.release(table)
    with engine.shaping(to_write=True):
        why = f"table {table.name!r} was refused"
        family.drop(engine, table, views=True, why=why)


def _already_stored(tree: Any, name: str, around: Scope) -> PlanError:
    """Return the error for a table of a query, of which the file has rows."""
    file = around.environment.engine.journal.store.name
    return around.error(
        _name_node(tree),
        f"table {name!r} is durable, and has rows in {file}",
        "CREATE OR REPLACE puts those of the query in their place; with columns it keeps its own",
    )


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
    """Refuse the constraints of CREATE TABLE that are not supported, such as AUTOINCREMENT."""
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
        if kind is not None and around.dialect.name == "duckdb":
            kind = _with_collation(kind, constraints, around)
    if kind is None:
        raise around.error(node, f"there is no type {declared.sql() if declared else ''!r}")
    own = kind if kind.affinity is None else None
    value = None if default is None else evaluated_constant(default, around, own)
    if kind.affinity is not None:
        value = store_value(value, kind.affinity)
    return BindingColumn(node.name, kind, not (is_key or not_null), None), value, is_key


def _with_collation(kind: SqlType, constraints: list[Any], around: Scope) -> SqlType:
    """Return the type of a column of DuckDB with the collation that it declares.

    Refuse one of a UNIQUE column, which DuckDB compares by the texts.
    """
    named = [each for each in constraints if isinstance(each, exp.CollateColumnConstraint)]
    for each in named:
        name = collations.collation_named(each.this, around)
        is_unique = any(isinstance(c, exp.UniqueColumnConstraint) for c in constraints)
        if kind.kind != "text" or is_unique:
            raise around.error(each.this, "a collation is of a text column that is not UNIQUE")
        kind = replace(kind, collation=None if name == "BINARY" else name)
    return kind


def _sqlite_type(declared: Any, constraints: list[Any], around: Scope) -> SqlType:
    """Return the type of a column of SQLite: its affinity, and what its texts are compared by."""
    names = [
        collation_named(each.this, around)
        for each in constraints
        if isinstance(each, exp.CollateColumnConstraint)
    ]
    return column_type(declared_name(declared), collation=names[-1] if names else None)


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
