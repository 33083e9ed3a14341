"""`db.sql` and `db.execute`: texts of SQL, of a database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import partial
from types import NoneType
from typing import Any

from sqlglot import exp

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.expr import Expr, Lifted, Parameter, row_names
from reactive.api.columns import is_parameter
from reactive.api.internal_interface import engine_of
from reactive.engine.runtime.large_stack import call_with_large_stack, has_large_stack
from reactive.languages.sql.expressions import predicate, scalar
from reactive.languages.sql.functions import lambdas
from reactive.languages.sql.queries import query
from reactive.languages.sql.queries.grouping import freed, misreadings_told
from reactive.languages.sql.queries.kinds import read_query as read_query
from reactive.languages.sql.queries.query import SelectQuery
from reactive.languages.sql.queries.text_recipes import TextRecipes
from reactive.languages.sql.relation import make_relation
from reactive.languages.sql.statements import commands
from reactive.languages.sql.statements.changes import run
from reactive.languages.sql.statements.kept import KeptStatements
from reactive.languages.sql.statements.system_tables import system_table
from reactive.languages.sql.terms.common_types import DIALECTS, Dialect
from reactive.languages.sql.terms.errors import nearest, nesting_error, refuse_unread
from reactive.languages.sql.terms.folding import with_folded_constants
from reactive.languages.sql.terms.scope import Language, OpenValues, Scope, SqlText
from reactive.languages.sql.terms.session import Session
from reactive.languages.sql.terms.values import (
    BindingSchema,
    Catalog,
    Environment,
    TypedValue,
    as_optional,
    construct_row,
    is_relation,
    plan_of_relation,
    schema_of_values,
)
from reactive.languages.sql.text.read import depth_of, parse_statement


def query_relation(
    engine: Any, text: str, parameters: Mapping[str, Any], session: Session | None = None
) -> Any:
    """Return the relation of a query, or of a command that shows something; refuse statements.

    session: that of a connection, in the place of that of the database.
    """
    catalog = catalog_of(engine)
    if session is None:
        session = catalog.session
    command = commands.QUERY.match(text)
    if command is not None:
        around = scope_of(
            exp.Null(), text, dialect_of(engine), catalog, parameters, session=session
        )
        explain = partial(_explain, engine, parameters, session)
        text, parameters = commands.as_query(command[1], command[2], around, explain)
    if session.path:
        text = _qualified(engine, text, parameters, session)
    if catalog.queries is None:
        catalog.queries = TextRecipes(catalog, partial(_translate_query, engine))
    copied = catalog.queries.find(text, parameters)
    if copied is not None:
        node, schema = copied
        return make_relation(engine, node, schema, ())
    node, schema, environment = _translate_query(engine, text, parameters, session=session)
    return make_relation(engine, node, schema, tuple(dict.fromkeys(environment.views)))


def _qualified(engine: Any, text: str, parameters: Mapping[str, Any], session: Session) -> str:
    """Return a text whose tables name the schemas in which the `search_path` finds them."""
    from reactive.languages.sql.system.search_path import with_schemas

    return with_schemas(text, dialect_of(engine), catalog_of(engine), session, parameters)


def _explain(
    engine: Any, parameters: Mapping[str, Any], session: Session, text: str, is_run: bool
) -> list[str]:
    """Return the lines of the plan of a query; `is_run` adds what a run of it takes."""
    relation = query_relation(engine, text, parameters, session)
    if not is_run:
        return str(relation.explain()).splitlines()
    with relation.materialize() as view:
        return str(view.explain(analyze=True)).splitlines()


def _translate_query(
    engine: Any,
    text: str,
    parameters: Mapping[str, Any],
    open_values: OpenValues | None = None,
    session: Session | None = None,
) -> tuple[plan.Node, BindingSchema, Environment]:
    """Return the plan of a query, its columns, and the names that it has read."""
    tree, around = _read_statement(engine, text, parameters, open_values, session)
    if not isinstance(tree, exp.Query | exp.Values):
        word = text.split()[0].upper()
        is_command = word in ("ANALYZE", "PRAGMA", "SET", "USE")
        raise PlanError(
            f"sql takes a query, not {word}\n  write SELECT ..."
            if is_command
            else f"a query cannot write: sql takes a query, not {word}\n"
            "  db.execute(...) changes tables"
        )
    query = around.query(tree)
    with misreadings_told(tree, around):
        node, schema = _order_rows(query) if query.sort else query.rows()
    refuse_unread(tree, text)
    return node, schema, around.environment


PLAIN = frozenset({int, str, float, bool, bytes, NoneType})
"""Classes of values that are no parameters of a database, which are read here."""


def execute(
    db: Any,
    text: str,
    parameters: Mapping[str, Any],
    returned: list[Any],
    session: Session | None = None,
) -> int:
    """Run one statement, and return the number of rows that it changed.

    returned: an empty list, which gets the columns and the rows of RETURNING.
    session: that of a connection, in the place of that of the database.
    """
    engine = engine_of(db)
    catalog = catalog_of(engine)
    if session is None:
        session = catalog.session
    for value in parameters.values():
        if value.__class__ not in PLAIN:
            parameters = {name: v() if is_parameter(v) else v for name, v in parameters.items()}
            break
    if session.path and commands.STATEMENT.match(text) is None:
        text = _qualified(engine, text, parameters, session)
    if catalog.statements is None:
        catalog.statements = KeptStatements(partial(_read_statement, engine))
    write = catalog.statements.find(engine, text, parameters)
    if write is not None:
        return int(write(db))
    command = commands.STATEMENT.match(text)
    if command is not None:
        around = scope_of(
            exp.Null(), text, dialect_of(engine), catalog, parameters, session=session
        )
        asked = commands.run_command(command[1], command[2], around)
        return 0 if asked is None else execute(db, *asked, returned, session)
    tree, around = _read_statement(engine, text, parameters, session=session)
    around.environment.returned = returned
    if isinstance(tree, exp.Merge):
        from reactive.languages.sql.statements.merge import merge

        return merge(tree, around, db)
    return run(tree, around, db)


def _read_statement(
    engine: Any,
    text: str,
    parameters: Mapping[str, Any],
    open_values: OpenValues | None = None,
    session: Session | None = None,
) -> tuple[exp.Expr, Scope]:
    """Return the tree of a statement, and the scope around it."""
    dialect, catalog = dialect_of(engine), catalog_of(engine)
    tree = parse_statement(text, dialect, parameters)
    _refuse_unnamed(parameters, tree)
    return tree, scope_of(tree, text, dialect, catalog, parameters, open_values, session)


def is_query(engine: Any, text: str, parameters: Mapping[str, Any]) -> bool:
    """Return True if a text, such as one that begins with WITH, is a query and no statement."""
    return isinstance(parse_statement(text, dialect_of(engine), parameters), exp.Query)


def _refuse_unnamed(parameters: Mapping[str, Any], tree: exp.Expr) -> None:
    """Check that a text names each parameter that is given for it.

    A text with a name that has no value is left to its translation, which knows the place.

    Raises
    ------
    PlanError: a constant stands nowhere as `:name`, or a relation in no FROM.
    """
    if not parameters:
        return
    constants = {each.name for each in tree.find_all(exp.Placeholder, exp.Parameter)}
    if not constants <= set(parameters):
        return
    own = {each.alias.casefold() for each in tree.find_all(exp.CTE)}
    sources = {each.name for each in tree.find_all(exp.Table)}
    folded = {each.casefold() for each in sources} - own
    for name, value in parameters.items():
        if is_relation(value) and not (is_parameter(value) and name in constants):
            reason = f"no FROM reads {name!r}{nearest(name, sources)}"
            if name.casefold() in own:
                reason = f"WITH gives the name {name!r} to another query"
            is_named, remedy = name.casefold() in folded, f"from {name}"
        else:
            reason = f"the text has no :{name}{nearest(name, constants)}"
            is_named, remedy = name in constants, f":{name}"
        if not is_named:
            todo = _OF_DATABASE.get(name, f"write {remedy} in the text, or leave the parameter out")
            raise PlanError(f"cannot use the parameter {name!r}: {reason}\n  {todo}")


_OF_DATABASE = {
    "dialect": "the dialect is of the database: Database(dialect='postgres')",
    "timezone": "the zone is of the database: Database(timezone='Europe/Rome')",
    "on_error": "materialize(on_error=...) takes it",
}
"""Remedies for parameters that are options of something else."""


def dialect_of(engine: Any) -> Dialect:
    """Return the dialect of a database."""
    found = DIALECTS[engine.dialect]
    return found if engine.timezone == "UTC" else replace(found, timezone=engine.timezone)


def catalog_of(engine: Any) -> Catalog:
    """Return the catalog of a database, made at the first call."""
    if engine.catalog is None:
        engine.catalog = Catalog(engine)
        engine.catalog.system_table = system_table
        if engine.journal is not None and engine.journal.writes:
            from reactive.languages.sql.statements.stored_definitions import StoredDefinitions

            scope = partial(_scope_of_stored, engine.catalog)
            engine.catalog.stored = StoredDefinitions(engine, scope)
            engine.catalog.spaces |= dict.fromkeys(engine.catalog.stored.schemas)
    found: Catalog = engine.catalog
    return found


def _scope_of_stored(
    catalog: Catalog, text: str, dialect: Dialect, values: Mapping[str, Any]
) -> Scope:
    """Return the scope around a statement of the file."""
    return scope_of(exp.Null(), text, dialect, catalog, values)


def _order_rows(query: SelectQuery) -> tuple[plan.Node, BindingSchema]:
    """Return the rows of a query in its order, within its limit, and their schema."""
    places = [_column_of_key(key, query) for key in query.sort]
    if None in places:
        return _by_more(query)
    node, schema = replace(query, sort=(), limit=None, offset=0).rows()
    columns = [as_optional(value) for value in schema.values(Parameter(0))]
    keys = tuple(
        replace(key, function=_of_rows(columns[place], 1))
        for key, place in zip(query.sort, places, strict=True)
        if place is not None
    )
    return plan.OrderBy(node, keys, query.limit, query.offset), schema


def _column_of_key(key: plan.SortKey, query: SelectQuery) -> int | None:
    """Return the number of the column that equals a sort key; None if no column does."""
    assert isinstance(key.function, Lifted)
    body = key.function.body
    columns = (with_folded_constants(as_optional(value)) for value in query.values)
    return next((place for place, column in enumerate(columns) if column == body), None)


def _by_more(query: SelectQuery) -> tuple[plan.Node, BindingSchema]:
    """Return rows in the order of values that are not among their columns, and their schema."""
    schema, kind = schema_of_values(query.names, query.values)
    row = query.scope.function(construct_row(kind, [as_optional(value) for value in query.values]))
    beside = [key.function for key in query.sort]
    node = freed(plan.Extend(query.node, (), (row, *beside)))
    keys = tuple(
        replace(key, function=_of_rows(Parameter(place), 1 + len(beside)))
        for place, key in enumerate(query.sort, 1)
    )
    return plan.OrderBy(node, keys, query.limit, query.offset, shown=1), schema


def _of_rows(expr: Expr, bindings: int) -> Lifted:
    """Return an expression of `bindings` bindings as a callable."""
    return Lifted(expr, row_names(bindings), (), bindings)


# SQL put together: which module reads what, and the plan of a text.


SYSTEM = tuple(
    getattr(exp, name)
    for name in (
        *("Anonymous", "CurrentVersion", "CurrentSchema", "CurrentDatabase", "CurrentCatalog"),
        *("CurrentUser", "SessionUser", "CurrentSchemas"),
    )
    if hasattr(exp, name)
)
"""Nodes that may ask for the names of the database and the user."""


def _read_value(node: Any, scope: Scope) -> TypedValue:
    """Return the value of a node; ARRAY of a query is an array of all its rows.

    `[x + 1 for x in l]` is one, too.
    """
    if isinstance(node, SYSTEM):
        found = commands.system_value(node, scope)
        if found is not None:
            is_value = isinstance(found, TypedValue)
            return found if is_value else scalar.value(found, scope)
    if isinstance(node, exp.Cast) and isinstance(node.args["to"], exp.ObjectIdentifier):
        return commands.object_value(node, scope)  # type: ignore[no-any-return]
    if isinstance(node, exp.Array) and _is_of(exp.Comprehension, node.expressions):
        return lambdas.comprehension(node.expressions[0], scope)
    if isinstance(node, exp.Array) and _is_of_query(node.expressions):
        return query.array_of_query(node.expressions[0], scope)
    return scalar.value(node, scope)


def _is_of(kind: type[exp.Expr], parts: list[Any]) -> bool:
    return len(parts) == 1 and isinstance(parts[0], kind)


def _is_of_query(parts: list[Any]) -> bool:
    """Return True if the only part of an ARRAY is a query that is not in brackets of its own."""
    return len(parts) == 1 and isinstance(parts[0], exp.Select | exp.SetOperation | exp.Values)


LANGUAGE = Language(
    value=_read_value,
    true=predicate.true,
    false=predicate.false,
    subquery=query.subquery,
    exists=query.exists,
    matches=query.match_query,
    query=read_query,
)


MOST_LEVELS = 40
"""Levels of a parsed text that are translated in the thread that asks."""


def _on_large_stack(read: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls `read` on a large stack; too deep a text raises `PlanError`."""

    def reading(node: Any, scope: Scope, **options: Any) -> Any:
        if has_large_stack():
            return read(node, scope, **options)
        try:
            return call_with_large_stack(lambda: read(node, scope, **options))
        except RecursionError:
            raise nesting_error(scope.text, node) from None

    return reading


DEEP_LANGUAGE = Language(*(_on_large_stack(getattr(LANGUAGE, f.name)) for f in fields(Language)))
"""The language for texts nested more deeply than the stack of a thread allows."""


def scope_of(
    tree: exp.Expr,
    text: str,
    dialect: Dialect,
    catalog: Catalog,
    parameters: Mapping[str, Any],
    open_values: OpenValues | None = None,
    session: Session | None = None,
) -> Scope:
    """Return the scope around a statement: the names of the database, and its parameters."""
    relations = {name: plan_of_relation(v) for name, v in parameters.items() if is_relation(v)}
    constants = {name: v for name, v in parameters.items() if is_parameter(v) or not is_relation(v)}
    environment = Environment(catalog, relations, session)
    language = LANGUAGE if depth_of(tree) <= MOST_LEVELS else DEEP_LANGUAGE
    is_view = isinstance(tree, exp.Create) and tree.kind == "VIEW"
    is_live = is_view or isinstance(tree, exp.Query | exp.Values)
    read = SqlText(text, dialect, language, constants, is_live=is_live)
    if open_values is not None:
        read = replace(read, open_values=open_values)
    return Scope(read, (), 0, None, environment)
