"""`db.sql` and `db.execute`: texts of SQL, of a database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlglot import exp

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.expr import Expr, Lifted, Parameter, row_names
from reactive.languages.sql.language import scope_of
from reactive.languages.sql.queries.nodes import freed, misreadings_told
from reactive.languages.sql.queries.query import Query
from reactive.languages.sql.relation import relation_of
from reactive.languages.sql.statements.kinds import run
from reactive.languages.sql.terms.arguments import refuse_unread
from reactive.languages.sql.terms.catalog import Catalog, is_relation
from reactive.languages.sql.terms.dialects import DIALECTS, Dialect
from reactive.languages.sql.terms.errors import nearest
from reactive.languages.sql.terms.schema import Schema, record_of, schema_of_values
from reactive.languages.sql.terms.values import whole
from reactive.languages.sql.text.read import one


def sql(engine: Any, text: str, parameters: Mapping[str, Any]) -> Any:
    """The relation of a query."""
    dialect, catalog = dialect_of(engine), catalog_of(engine)
    tree = one(text, dialect, parameters)
    _refuse_unnamed(parameters, tree)
    if not isinstance(tree, exp.Query | exp.Values):
        word = text.split()[0].upper()
        is_command = word in ("ANALYZE", "DESCRIBE", "EXPLAIN", "PRAGMA", "SET", "SHOW", "USE")
        raise PlanError(
            f"sql takes a query, not {word}\n  write SELECT ..."
            if is_command
            else f"a query cannot write: sql takes a query, not {word}\n"
            "  db.execute(...) changes tables"
        )
    around = scope_of(tree, text, dialect, catalog, parameters)
    query = around.query(tree)
    with misreadings_told(tree, around):
        node, schema = _in_order(query) if query.sort else query.rows()
    refuse_unread(tree, text)
    views = tuple(dict.fromkeys(around.environment.views))
    return relation_of(engine, node, schema, views)


def execute(db: Any, text: str, parameters: Mapping[str, Any]) -> int:
    """Run a statement; how many rows it changed."""
    engine = db._engine
    dialect, catalog = dialect_of(engine), catalog_of(engine)
    tree = one(text, dialect, parameters)
    _refuse_unnamed(parameters, tree)
    return run(tree, scope_of(tree, text, dialect, catalog, parameters), db)


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
        if is_relation(value):
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
    """The dialect of a database."""
    found = DIALECTS[engine.dialect]
    return found if engine.timezone == "UTC" else replace(found, timezone=engine.timezone)


def catalog_of(engine: Any) -> Catalog:
    """What names stand for in a database."""
    if engine.catalog is None:
        engine.catalog = Catalog(engine)
    found: Catalog = engine.catalog
    return found


def _in_order(query: Query) -> tuple[plan.Node, Schema]:
    """The rows of a query, which stand in its order."""
    places = [_column(key, query) for key in query.sort]
    if None in places:
        return _by_more(query)
    node, schema = replace(query, sort=(), limit=None, offset=0).rows()
    columns = [whole(value) for value in schema.values(Parameter(0))]
    keys = tuple(
        replace(key, function=_of_rows(columns[place], 1))
        for key, place in zip(query.sort, places, strict=True)
        if place is not None
    )
    return plan.OrderBy(node, keys, query.limit, query.offset), schema


def _column(key: plan.SortKey, query: Query) -> int | None:
    """The column that the rows stand in order by."""
    assert isinstance(key.function, Lifted)
    body = key.function.body
    return next((n for n, v in enumerate(query.values) if whole(v) == body), None)


def _by_more(query: Query) -> tuple[plan.Node, Schema]:
    """Rows that stand in an order by what they do not have, which is beside them."""
    schema, kind = schema_of_values(query.names, query.values)
    row = query.scope.function(record_of(kind, [whole(value) for value in query.values]))
    beside = [key.function for key in query.sort]
    node = freed(plan.Extend(query.node, (), (row, *beside)))
    keys = tuple(
        replace(key, function=_of_rows(Parameter(place), 1 + len(beside)))
        for place, key in enumerate(query.sort, 1)
    )
    return plan.OrderBy(node, keys, query.limit, query.offset, shown=1), schema


def _of_rows(expr: Expr, bindings: int) -> Lifted:
    return Lifted(expr, row_names(bindings), (), bindings)
