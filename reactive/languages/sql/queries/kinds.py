"""Queries of all kinds: SELECT, set operations, VALUES, and WITH before any of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from optimizer import plan
from optimizer.expr import Outer, Subquery, walk
from reactive.languages.sql.expressions.casts import apart, equal_types
from reactive.languages.sql.queries.collated_sets import (
    collated_set,
    is_by_collation,
    with_collations,
)
from reactive.languages.sql.queries.nodes import constant_of, literal_rows, one_row, selected
from reactive.languages.sql.queries.ordering import limits, order_of, sort_keys
from reactive.languages.sql.queries.query import Query, query_of_rows
from reactive.languages.sql.queries.recursive import recursive
from reactive.languages.sql.queries.select import select
from reactive.languages.sql.queries.stars import Column
from reactive.languages.sql.sqlite.comparisons import together
from reactive.languages.sql.terms.catalog import Named
from reactive.languages.sql.terms.schema import Column as OfRow
from reactive.languages.sql.terms.schema import Schema
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.types import NULL, SqlType, common
from reactive.languages.sql.terms.values import Value, whole

OPERATIONS: dict[tuple[type, bool], Any] = {
    (exp.Union, True): plan.Union,
    (exp.Union, False): plan.UnionAll,
    (exp.Except, True): plan.Difference,
    (exp.Except, False): plan.DifferenceAll,
    (exp.Intersect, True): plan.Intersection,
    (exp.Intersect, False): plan.IntersectionAll,
}


def query(node: Any, around: Scope) -> Query:
    """A query.

    Raises
    ------
    PlanError: it is none, or names what there is not.
    """
    around = with_names(node, around)
    match node:
        case exp.Select():
            return select(node, around)
        case exp.SetOperation():
            return _ordered(_set_operation(node, around), node)
        case exp.Values():
            return _ordered(_values(node, around), node)
        case exp.Subquery():
            inner = around.query(node.this)
            return _ordered(inner, node) if _has_order(node) else inner
        case _:
            raise around.error(node, f"this is no query: {node.sql()[:60]}")


def _has_order(node: Any) -> bool:
    return any(node.args.get(name) for name in ("order", "limit", "offset"))


def _ordered(made: Query, node: Any) -> Query:
    """What is made of queries, by its own ORDER BY and LIMIT."""
    if not _has_order(node):
        return made
    rows, schema = made.rows()
    of_rows = query_of_rows(rows, schema, made.scope.around())
    columns = [Column(name, None, False) for name in schema.names]
    order = order_of(node, of_rows.scope, columns, of_rows.values)
    limit, offset = limits(node, of_rows.scope)
    return replace(of_rows, sort=sort_keys(order, of_rows.scope), limit=limit, offset=offset)


# WITH.


def with_names(node: Any, around: Scope) -> Scope:
    """Return the scope of a query or statement, with the names of its WITH."""
    clause = node.args.get("with_")
    if clause is None:
        return around
    if clause.args.get("search") is not None:
        raise around.error(clause, "SEARCH and CYCLE are not supported", "compute the column")
    inner = around.around()
    for cte in clause.expressions:
        named = _named(cte, inner, is_recursive=bool(clause.args.get("recursive")))
        inner.environment = inner.environment.with_names({cte.alias: named})
    return inner


def _named(cte: Any, around: Scope, *, is_recursive: bool) -> Named:
    if cte.args.get("key_expressions"):
        raise around.error(cte, "USING KEY is not supported", "fixpoint(keep=) keeps one row a key")
    cte.args.get("materialized")  # how it is computed, not what it is
    names = [column.name for column in cte.args["alias"].args.get("columns") or ()]
    if is_recursive and any(
        table.name.casefold() == cte.alias.casefold() for table in cte.this.find_all(exp.Table)
    ):
        return recursive(cte, names, around)
    if not isinstance(cte.this, exp.Query):
        raise around.error(cte, "a query cannot write", "db.execute(...) changes tables")
    found: Query = around.query(cte.this)
    return found.named(around.renamed(names, found.names, cte))


# Set operations.


def _set_operation(node: Any, around: Scope) -> Query:
    left, right = around.query(node.left), around.query(node.right)
    if node.args.get("by_name"):
        right = _by_name(left, right, node, around)
    if len(left.values) != len(right.values):
        raise around.error(
            node.right,
            f"{node.key.upper()} of {len(left.values)} columns and of {len(right.values)}",
        )
    is_set = bool(node.args.get("distinct", True)) or not isinstance(node, exp.Union)
    left, right = _same_types(left, right, node)
    kind = OPERATIONS[_kind(node), bool(node.args.get("distinct", True))]
    (mine, schema), (theirs, other) = left.rows(), right.rows(left.names)
    if schema.names != other.names or _read_of(schema) != _read_of(other):
        theirs = _same_rows(theirs, other, schema, around)
    both = _both(schema, other, around)
    if around.dialect.name == "sqlite":
        both = with_collations(both, left, right)
        if is_set and is_by_collation(both):
            return collated_set(node, mine, theirs, both, around)
    return query_of_rows(kind(mine, theirs), both, around)


def _same_types(left: Query, right: Query, node: Any) -> tuple[Query, Query]:
    """Both with columns of the types that they have in common."""
    pairs = [
        (mine, theirs)
        if mine.type == theirs.type
        else equal_types((mine, theirs), left.scope, node, place="column")[0]
        for mine, theirs in zip(left.values, right.values, strict=True)
    ]
    mine, theirs = (tuple(side) for side in zip(*pairs, strict=True))
    return replace(left, values=mine), replace(right, values=theirs)


def _kind(node: Any) -> type:
    return next(kind for kind, _ in OPERATIONS if isinstance(node, kind))


def _read_of(schema: Schema) -> tuple[Any, ...]:
    """How the columns are read of a row."""
    return tuple(column.read for column in schema.columns)


def _same_rows(node: plan.Node, of: Schema, like: Schema, around: Scope) -> plan.Node:
    """Rows that are read as others are."""
    made = query_of_rows(node, of, around)
    return selected(made.node, made.scope, like.names, made.values)[0]


def _by_name(left: Query, right: Query, node: Any, around: Scope) -> Query:
    places = {name.casefold(): n for n, name in enumerate(right.names)}
    if {name.casefold() for name in left.names} != places.keys():
        raise around.error(node, "BY NAME takes queries with the same columns")
    order = [places[name.casefold()] for name in left.names]
    return replace(right, names=left.names, values=tuple(right.values[n] for n in order))


def _both(left: Schema, right: Schema, around: Scope) -> Schema:
    """What is known of columns that are of either."""
    columns = []
    for mine, theirs in zip(left.columns, right.columns, strict=True):
        kind = theirs.type if mine.type is NULL else _common(mine.type, theirs.type, around)
        columns.append(replace(mine, type=kind, nullable=mine.nullable or theirs.nullable))
    return Schema(tuple(columns))


def _common(left: SqlType, right: SqlType, around: Scope) -> SqlType:
    return together([left, right]) if around.dialect.numeric_booleans else common(left, right)


# VALUES.


def _values(node: Any, around: Scope) -> Query:
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    if len({len(row) for row in rows}) > 1:
        raise around.error(node, "the rows of VALUES are not equally long")
    cells = _of_columns([[around.value(cell) for cell in row] for row in rows], node, around)
    names = _names(node, len(rows[0]), around)
    if any(not _is_constant(cell) for row in cells for cell in row):
        return _evaluated(cells, names, around)
    schema = _schema(names, cells, around)
    try:
        made = [tuple(map(constant_of, row)) for row in cells]
    except Exception:  # a cell has no value: an error of its row, as if it was computed of a column
        return _evaluated(cells, names, around)
    return query_of_rows(literal_rows(made), schema, around)


def _of_columns(
    rows: Sequence[Sequence[Value]], node: Any, around: Scope
) -> list[tuple[Value, ...]]:
    """The cells of VALUES, those of each column of one type."""
    columns = []
    for column in zip(*rows, strict=True):
        kinds = [cell.type for cell in column if cell.type.kind != "null"]
        if around.dialect.name == "duckdb" and kinds and kinds[0].kind == "text":
            other = next((kind for kind in kinds if kind.kind not in ("text", "any")), None)
            if other is not None:  # a constant, too, is a text for the rows behind it
                raise apart(node, around, [kinds[0], other], "choice")
        columns.append(equal_types(column, around, node)[0])
    return list(zip(*columns, strict=True))


def _names(node: Any, count: int, around: Scope) -> list[str]:
    first, start = {"sqlite": ("column", 1), "postgres": ("column", 1)}.get(
        around.dialect.name, ("col", 0)
    )
    return [f"{first}{n}" for n in range(start, start + count)]


def _is_constant(value: Value) -> bool:
    return not any(isinstance(part, Outer | Subquery) for part in walk(whole(value)))


def _schema(names: Sequence[str], rows: Sequence[Sequence[Value]], around: Scope) -> Schema:
    columns = []
    for place, name in enumerate(names):
        cells = [row[place] for row in rows]
        kind = cells[0].type
        for cell in cells[1:]:
            kind = _common(kind, cell.type, around)
        columns.append(OfRow(name, kind, any(cell.nullable for cell in cells), place))
    return Schema(tuple(columns))


def _evaluated(rows: Sequence[Sequence[Value]], names: Sequence[str], around: Scope) -> Query:
    """Rows of which some are computed of what is around."""
    scope = around.over((), 1)
    made = [selected(one_row(), scope, names, row) for row in rows]
    node, schema = made[0]
    for other, more in made[1:]:
        node, schema = plan.UnionAll(node, other), _both(schema, more, around)
    return query_of_rows(node, schema, around)
