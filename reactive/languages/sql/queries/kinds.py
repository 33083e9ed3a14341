"""Queries of all kinds: SELECT, set operations, VALUES, and WITH before any of them.

WITH RECURSIVE, by the fixpoint of the library.

with recursive reach(a, b) as (
    select a, b from edges  union  select r.a, e.b from reach r join edges e on r.b = e.a)

UNION, EXCEPT and INTERSECT of texts that a collation of SQLite says are the same.

select 'a' collate nocase as x union select 'A'      one row

The collation of a column is that of the first query, or of the second where the first has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from optimizer import plan
from optimizer.errors import StratificationError
from optimizer.expr import NONE, Function, Outer, Subquery, walk
from reactive.api.fixpoint import fixpoint
from reactive.api.internal_interface import engine_of
from reactive.api.iterate import iterate
from reactive.api.relation import AnyRelation, Relation
from reactive.languages.sql.expressions.casts import apply, cast, equal_types, no_common_type_error
from reactive.languages.sql.expressions.collations import refuse_collated
from reactive.languages.sql.expressions.zones import check_alike, is_constant
from reactive.languages.sql.postgres.numbers import RANGES
from reactive.languages.sql.queries.grouping import (
    constant_of,
    grouping_key,
    literal_rows,
    one_row,
    select_values,
)
from reactive.languages.sql.queries.ordering import (
    SelectColumn,
    distinct_on,
    limits,
    order_of,
    plan_sort_keys,
)
from reactive.languages.sql.queries.query import SelectQuery, query_of_rows
from reactive.languages.sql.queries.select import select
from reactive.languages.sql.sqlite.comparisons import (
    collate,
    collation_of,
    common_column_type,
    has_collation,
)
from reactive.languages.sql.terms.common_types import goes_on
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.types import NULL, SqlType, common, sql_name
from reactive.languages.sql.terms.values import BindingColumn as OfRow
from reactive.languages.sql.terms.values import (
    BindingSchema,
    NamedPlan,
    TypedValue,
    as_optional,
    plan_with_columns,
)

OPERATIONS: dict[tuple[type, bool], Any] = {
    (exp.Union, True): plan.Union,
    (exp.Union, False): plan.UnionAll,
    (exp.Except, True): plan.Difference,
    (exp.Except, False): plan.DifferenceAll,
    (exp.Intersect, True): plan.Intersection,
    (exp.Intersect, False): plan.IntersectionAll,
}


def read_query(node: Any, around: Scope) -> SelectQuery:
    """Return a query.

    Raises
    ------
    PlanError: the node is not a query, or names something unknown.
    """
    around = with_names(node, around)
    match node:
        case exp.Select():
            return select(node, around)
        case exp.SetOperation():
            return _apply_order(_set_operation(node, around), node)
        case exp.Values():
            return _apply_order(_values_query(node, around), node)
        case exp.Subquery():
            inner = around.query(node.this)
            return _apply_order(inner, node) if _has_order_or_limit(node) else inner
        case _:
            raise around.error(node, f"this is no query: {node.sql()[:60]}")


def _has_order_or_limit(node: Any) -> bool:
    return any(node.args.get(name) for name in ("order", "limit", "offset"))


def _apply_order(made: SelectQuery, node: Any) -> SelectQuery:
    """Apply the ORDER BY and LIMIT of a set operation or a query in parentheses.

    Without them, `made` is unchanged.
    """
    if not _has_order_or_limit(node):
        return made
    rows, schema = made.rows()
    of_rows = query_of_rows(rows, schema, made.scope.around())
    columns = [SelectColumn(name, None, False) for name in schema.names]
    order = order_of(node, of_rows.scope, columns, of_rows.values)
    limit, offset = limits(node, of_rows.scope)
    return replace(of_rows, sort=plan_sort_keys(order, of_rows.scope), limit=limit, offset=offset)


# WITH.


def with_names(node: Any, around: Scope) -> Scope:
    """Return the scope of a query or statement, with the names of its WITH; refuse SEARCH.

    Without a WITH it is `around` itself.
    """
    clause = node.args.get("with_")
    if clause is None:
        return around
    if clause.args.get("search") is not None:
        raise around.error(clause, "SEARCH and CYCLE are not supported", "compute the column")
    inner = around.around()
    for cte in clause.expressions:
        named = _plan_of_name(cte, inner, is_recursive=bool(clause.args.get("recursive")))
        inner.environment = inner.environment.with_names({cte.alias: named})
    return inner


def _plan_of_name(cte: Any, around: Scope, *, is_recursive: bool) -> NamedPlan:
    """Return the plan of a name that WITH defines; refuse USING KEY and statements that write."""
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
    found: SelectQuery = around.query(cte.this)
    return found.as_source(around.replace_names(names, found.names, cte))


# Set operations.


def _set_operation(node: Any, around: Scope) -> SelectQuery:
    """Return UNION, INTERSECT or EXCEPT of two queries; refuse different numbers of columns."""
    left, right = around.query(node.left), around.query(node.right)
    if node.args.get("by_name"):
        left, right = _by_name(left, right, node, around)
    if len(left.values) != len(right.values):
        raise around.error(
            node.right,
            f"{node.key.upper()} of {len(left.values)} columns and of {len(right.values)}",
        )
    is_set = bool(node.args.get("distinct", True)) or not isinstance(node, exp.Union)
    if around.dialect.name == "duckdb":
        refuse_collated(node, around, (*left.values, *right.values))
    left, right = _same_types(left, right, node)
    kind = OPERATIONS[_operation_class(node), bool(node.args.get("distinct", True))]
    (mine, schema), (theirs, other) = left.rows(), right.rows(left.names)
    if schema.names != other.names or _read_of(schema) != _read_of(other):
        theirs = _same_rows(theirs, other, schema, around)
    both = _merge_schemas(schema, other, around)
    if around.dialect.name == "sqlite":
        both = with_collations(both, left, right)
        if is_set and is_by_collation(both):
            return collated_set(node, mine, theirs, both, around)
    return query_of_rows(kind(mine, theirs), both, around)


def _same_types(
    left: SelectQuery, right: SelectQuery, node: Any
) -> tuple[SelectQuery, SelectQuery]:
    """Return both queries with columns of the types that they have in common."""
    pairs = [
        (mine, theirs)
        if mine.type == theirs.type
        else equal_types((mine, theirs), left.scope, node, place="column")[0]
        for mine, theirs in zip(left.values, right.values, strict=True)
    ]
    mine, theirs = (tuple(side) for side in zip(*pairs, strict=True))
    return replace(left, values=mine), replace(right, values=theirs)


def _operation_class(node: Any) -> type:
    """Return the class of a set operation: UNION, INTERSECT or EXCEPT."""
    return next(kind for kind, _ in OPERATIONS if isinstance(node, kind))


def _read_of(schema: BindingSchema) -> tuple[Any, ...]:
    """Return the field or position by which each column is read from a row."""
    return tuple(column.read for column in schema.columns)


def _same_rows(node: plan.Node, of: BindingSchema, like: BindingSchema, around: Scope) -> plan.Node:
    """Return rows of the schema `of`, converted to rows that are read as those of `like`."""
    made = query_of_rows(node, of, around)
    return select_values(made.node, made.scope, like.names, made.values)[0]


def _by_name(
    left: SelectQuery, right: SelectQuery, node: Any, around: Scope
) -> tuple[SelectQuery, SelectQuery]:
    """Return both queries with the columns of either, NULL where one has no column of the name.

    Raises
    ------
    PlanError: a query has two columns of one name.
    """
    for each, of in ((left, node.left), (right, node.right)):
        folded = [name.casefold() for name in each.names]
        twice = next((name for name in each.names if folded.count(name.casefold()) > 1), None)
        if twice is not None:
            raise around.error(of, f"BY NAME needs one column {twice!r}", "give the others an AS")
    mine = {name.casefold() for name in left.names}
    names = (*left.names, *(name for name in right.names if name.casefold() not in mine))
    return _with_columns(left, names, around), _with_columns(right, names, around)


def _with_columns(query: SelectQuery, names: Sequence[str], around: Scope) -> SelectQuery:
    """Return a query with columns of these names in their order, NULL for those it lacks."""
    found = {name.casefold(): v for name, v in zip(query.names, query.values, strict=True)}
    null = around.value(exp.Null())
    values = tuple(found.get(name.casefold(), null) for name in names)
    return replace(query, names=tuple(names), values=values)


def _merge_schemas(left: BindingSchema, right: BindingSchema, around: Scope) -> BindingSchema:
    """Return the schema of rows from either side: common types, nullable if one side is."""
    columns = []
    for mine, theirs in zip(left.columns, right.columns, strict=True):
        kind = theirs.type if mine.type is NULL else _common(mine.type, theirs.type, around)
        columns.append(replace(mine, type=kind, nullable=mine.nullable or theirs.nullable))
    return BindingSchema(tuple(columns))


def _common(left: SqlType, right: SqlType, around: Scope) -> SqlType:
    return (
        common_column_type([left, right])
        if around.dialect.numeric_booleans
        else common(left, right)
    )


# VALUES.


def _values_query(node: Any, around: Scope) -> SelectQuery:
    """Return VALUES as a query, of literal rows if all cells are constant; refuse other lengths."""
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    if len({len(row) for row in rows}) > 1:
        raise around.error(node, "the rows of VALUES are not equally long")
    cells = _of_columns([[around.value(cell) for cell in row] for row in rows], node, around)
    names = _default_names(node, len(rows[0]), around)
    if any(not _is_constant(cell) for row in cells for cell in row):
        return _rows_of_values(cells, names, around)
    schema = _schema(names, cells, around)
    try:
        made = [tuple(map(constant_of, row)) for row in cells]
    except Exception:  # a cell has no value: an error of its row, as if it was computed of a column
        return _rows_of_values(cells, names, around)
    return query_of_rows(literal_rows(made), schema, around)


def _of_columns(
    rows: Sequence[Sequence[TypedValue]], node: Any, around: Scope
) -> list[tuple[TypedValue, ...]]:
    """Return the cells of VALUES, converted to one type per column; refuse columns without one."""
    columns = []
    for column in zip(*rows, strict=True):
        kinds = [cell.type for cell in column if cell.type.kind != "null"]
        if around.dialect.name == "duckdb" and kinds and kinds[0].kind == "text":
            other = next((kind for kind in kinds if kind.kind not in ("text", "any")), None)
            if other is not None:  # a text constant fixes the type for later rows
                raise no_common_type_error(node, around, [kinds[0], other], "choice")
        columns.append(equal_types(column, around, node)[0])
    return list(zip(*columns, strict=True))


def _default_names(node: Any, count: int, around: Scope) -> list[str]:
    """Return the dialect's names of `count` unnamed columns: `col0`, or `column1`, and so on."""
    first, start = {"sqlite": ("column", 1), "postgres": ("column", 1)}.get(
        around.dialect.name, ("col", 0)
    )
    return [f"{first}{n}" for n in range(start, start + count)]


def _is_constant(value: TypedValue) -> bool:
    """Return True if a value reads no outer row and no sub-query."""
    return not any(isinstance(part, Outer | Subquery) for part in walk(as_optional(value)))


def _schema(
    names: Sequence[str], rows: Sequence[Sequence[TypedValue]], around: Scope
) -> BindingSchema:
    """Return the schema of some rows: the common type of each column, nullable if a cell is."""
    columns = []
    for place, name in enumerate(names):
        cells = [row[place] for row in rows]
        kind = cells[0].type
        for cell in cells[1:]:
            kind = _common(kind, cell.type, around)
        columns.append(OfRow(name, kind, any(cell.nullable for cell in cells), place))
    return BindingSchema(tuple(columns))


def _rows_of_values(
    rows: Sequence[Sequence[TypedValue]], names: Sequence[str], around: Scope
) -> SelectQuery:
    """Return VALUES with cells that read outer values as a query: a SELECT per row."""
    scope = around.over((), 1)
    made = [select_values(one_row(), scope, names, row) for row in rows]
    node, schema = made[0]
    for other, more in made[1:]:
        node, schema = plan.UnionAll(node, other), _merge_schemas(schema, more, around)
    return query_of_rows(node, schema, around)


def recursive(cte: Any, names: Sequence[str], around: Scope) -> NamedPlan:
    """Return the relation that WITH RECURSIVE defines.

    Raises
    ------
    PlanError: the query is not a UNION of a start and a step.
    """
    body = cte.this
    if not isinstance(body, exp.Union):
        raise around.error(
            cte, f"recursive {cte.alias!r} is no UNION of where it begins and how it goes on"
        )
    for part in ("order", "limit", "offset"):
        if body.args.get(part):
            raise around.error(
                body.args[part],
                f"recursive {cte.alias!r} cannot have {part.upper()}",
                "say in a WHERE where the recursion ends, and order what is made of it",
            )
    first = around.query(body.left)
    called = around.replace_names(names, first.names, cte)
    begin, schema = first.rows(called)
    if around.dialect.numeric_booleans:  # later rows may be of other classes
        columns = (replace(c, type=replace(c.type, kind="any")) for c in schema.columns)
        schema = BindingSchema(tuple(columns))
    return _solve_recursion(cte, begin, schema, called, around)


def _solve_recursion(
    cte: Any, begin: plan.Node, schema: BindingSchema, names: tuple[str, ...], around: Scope
) -> NamedPlan:
    """Return the fixpoint; only its making shows which columns may become NULL."""
    is_bag = not cte.this.args.get("distinct")
    while True:
        step = _RecursionStep(cte, begin, schema, names, around)
        found = _all_rounds(step, begin, around) if is_bag else _least_rows(step, begin, around)
        columns = tuple(
            replace(mine, nullable=mine.nullable or theirs.nullable)
            for mine, theirs in zip(schema.columns, step.made[0].columns, strict=True)
        )
        if columns == schema.columns:
            return plan_with_columns(found.plan, schema)
        schema = BindingSchema(columns)


def _least_rows(step: _RecursionStep, begin: plan.Node, around: Scope) -> AnyRelation:
    """Return the least set of rows.

    If rows can exclude others, it is computed by rounds, provided that only the FROM of its own
    step reads the recursion.

    Raises
    ------
    StratificationError: a sub-query of the step reads it.
    """
    try:
        return fixpoint(step.set_of)
    except StratificationError:
        inside = step.read_inside()
        if inside is not None:
            raise _inside_itself(inside, around) from None
    start: AnyRelation = Relation(around.environment.engine, begin).distinct()

    def again(last: AnyRelation, found: AnyRelation) -> tuple[AnyRelation, AnyRelation]:
        following = step.following(last).distinct().difference(found)
        return following, found.union(following)

    return iterate(again, (start, start), until="settled")[1]


def _inside_itself(node: exp.Expr, around: Scope) -> StratificationError:
    """Return the error that a recursive query is read in a sub-query of its own step."""
    told = around.error(
        node,
        f"recursive {node.name!r} is read in a sub-query of its own step, where a new row may take "
        "others away",
        "read it in the FROM of the step, or write UNION ALL",
    )
    return StratificationError(str(told))


def _all_rounds(step: _RecursionStep, begin: plan.Node, around: Scope) -> AnyRelation:
    """Return the rows of all rounds, with their weights.

    The first round is `begin`.
    """
    start: AnyRelation = Relation(around.environment.engine, begin)

    def again(last: AnyRelation, found: AnyRelation) -> tuple[AnyRelation, AnyRelation]:
        following = step.following(last)
        return following, found.union_all(following)

    return iterate(again, (start, start), until="settled")[1]


class _RecursionStep:
    """The step of a recursion: the rows that follow some rows, and the first rows."""

    def __init__(
        self,
        cte: Any,
        begin: plan.Node,
        schema: BindingSchema,
        names: tuple[str, ...],
        around: Scope,
    ) -> None:
        self._cte, self._begin, self._schema = cte, begin, schema
        self._names, self._around = names, around
        self.made: list[BindingSchema] = []

    def set_of(self, relation: AnyRelation) -> AnyRelation:
        """Return the first rows, and the rows that follow the rows so far."""
        following = self.following(relation)
        return Relation(engine_of(following), plan.Union(self._begin, following.plan))

    def read_inside(self) -> exp.Expr | None:
        """Return where a sub-query of the step reads the recursion; None if none does."""
        body = self._cte.this.right
        name = self._cte.alias.lower()
        read = [each for each in body.find_all(exp.Table) if each.name.lower() == name]
        inside: list[exp.Expr] = [each for each in read if each.parent_select is not body]
        return inside[0] if inside else None

    def following(self, relation: AnyRelation) -> AnyRelation:
        """Return the rows that follow others; refuse another number of columns."""
        inner = self._around.around()
        known = {self._cte.alias: plan_with_columns(relation.plan, self._schema)}
        inner.environment = inner.environment.with_names(known)
        again: SelectQuery = inner.query(self._cte.this.right)
        if len(again.values) != len(self._names):
            raise self._around.error(
                self._cte.this.right,
                f"recursive {self._cte.alias!r} has {len(self._names)} columns, "
                f"and goes on with {len(again.values)}",
            )
        if self._cte.this.args.get("distinct") and any(
            has_collation(column.type) for column in self._schema.columns
        ):
            raise self._around.error(
                self._cte.this,
                f"recursive {self._cte.alias!r} is a UNION of texts with a collation of sqlite",
                "write COLLATE BINARY, or UNION ALL",
            )
        node, schema = self._of_columns(again).rows(self._names)
        self.made.append(schema)
        return Relation(self._around.environment.engine, node)

    def _of_columns(self, again: SelectQuery) -> SelectQuery:
        """Return a query with columns of the types that the recursion begins with.

        Raises
        ------
        PlanError: the dialect takes a recursion only where they are of them.
        """
        node, scope = self._cte.this.right, again.scope
        if scope.dialect.numeric_booleans:
            return again
        values = []
        for place, (column, value) in enumerate(
            zip(self._schema.columns, again.values, strict=True)
        ):
            following = value.type
            if value.type.kind == "text" and is_constant(value) and column.type.kind != "array":
                value, following = cast(value, column.type, scope), NULL
            if not is_constant(value) and "text" not in (column.type.kind, following.kind):
                check_alike(node, scope, TypedValue(NONE, column.type), value)
            if not goes_on(scope.dialect.name, column.type, following):
                raise self._around.error(
                    node,
                    f"cannot go on with {sql_name(value.type)} in column {place + 1}: recursive "
                    f"{self._cte.alias!r} begins with {sql_name(column.type)}",
                    f"make them one: cast(... as {sql_name(column.type)})",
                )
            if column.type.kind not in ("any", "null") and value.type.kind != "any":
                value = _narrow_type(value, column.type, scope)
            values.append(value)
        return replace(again, values=tuple(values))


def _narrow_type(value: TypedValue, to: SqlType, scope: Scope) -> TypedValue:
    """Return a value as one of the type that a recursion begins with, which it may not fit."""
    if value.type == to:
        return value
    fits = value.type.kind in ("int", "bool") and (value.type.size or 0) <= (to.size or 0)
    made = cast(value, to, scope)
    if to.kind != "int" or to.size not in RANGES or fits:
        return made
    return apply(RANGES[to.size], to, made)


Collations = list[str | None]


def with_collations(kinds: BindingSchema, left: SelectQuery, right: SelectQuery) -> BindingSchema:
    """Return the columns of a set operation with the collation that each is compared by."""
    columns = zip(kinds.columns, left.values, right.values, strict=True)
    return BindingSchema(
        tuple(
            replace(
                c,
                type=replace(
                    c.type, collation=_shared_collation(m.type, t.type), is_collated=False
                ),
            )
            for c, m, t in columns
        )
    )


def _shared_collation(mine: SqlType, theirs: SqlType) -> str | None:
    """Return the collation of the left column, else of the right; None for BINARY."""
    return collation_of(mine) or collation_of(theirs)


def is_by_collation(kinds: BindingSchema) -> bool:
    """Return True if a collation says that different rows are the same."""
    return any(has_collation(column.type) for column in kinds.columns)


def collated_set(
    operation: Any, left: plan.Node, right: plan.Node, kinds: BindingSchema, around: Scope
) -> SelectQuery:
    """Return a set operation as a query, with one row for all that a collation makes equal."""
    if isinstance(operation, exp.Union):
        return _each_once(plan.UnionAll(left, right), kinds, around)
    match = plan.Match(_collation_key(left, kinds, around), _collation_key(right, kinds, around))
    kind = plan.AntiJoin if isinstance(operation, exp.Except) else plan.SemiJoin
    return _each_once(kind(left, right, match), kinds, around)


def _each_once(node: plan.Node, kinds: BindingSchema, around: Scope) -> SelectQuery:
    """Return a query with one of the rows that collations make equal."""
    rows = query_of_rows(node, kinds, around)
    same = [collate(value, value.type.collation) for value in rows.values]
    return replace(rows, node=distinct_on(node, rows.scope, same, (), rows.values))


def _collation_key(node: plan.Node, kinds: BindingSchema, around: Scope) -> Function:
    """Return the function from a row to a key, which is equal for rows equal by collation."""
    rows = query_of_rows(node, kinds, around)
    return rows.scope.function(
        grouping_key([collate(value, value.type.collation) for value in rows.values])
    )
