"""Queries during their translation: the rows of FROM, and queries in expressions.

Queries in expressions: EXISTS, IN, comparisons with ANY and ALL, and queries as values.

    exists (q)         TRUE if q has a row
    x in (q)           TRUE if q has a row with c = x
                       FALSE if it has neither such a row nor NULL, and x is not NULL or q is empty
    x < any (q)        as IN, by another comparison
    x < all (q)        TRUE if `x >= any (q)` is FALSE, and FALSE if that is TRUE
    (q)                the only value of the only row; NULL without rows

Each becomes a `Subquery` expression that reads the outer row by `Outer(i)`, and its node becomes
joins (`nodes.freed`). Tests of x for NULL stay outside, so that the subquery reads x by an equation
alone.

The result of FROM: a plan, and the columns of the sources in its bindings.

orders o                      one binding, o.total is b0.total
orders o, customers c         two, c.name is b1.name
o left join (c join x)        two, of which the second is a tuple of c and x, or None

A query during its translation keeps the values of its columns apart:

    select o.id, o.total * 2 from orders o       node orders, values (b0.id, b0.total * 2)

EXISTS and queries as values need no rows made of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from sqlglot import exp

from optimizer import plan
from optimizer.expr import (
    FALSE,
    TRUE,
    Call,
    Constant,
    Expr,
    Item,
    Lifted,
    Operation,
    Parameter,
    Quantified,
    Subquery,
    all_parameters,
    conjunction,
    constant,
    substitute,
    tuple_of,
    walk,
)
from optimizer.plans.strata import QuantifiedComparison
from optimizer.record import record
from reactive.api.aggregates import Collect
from reactive.languages.sql.aggregates.calls import nothing
from reactive.languages.sql.aggregates.kinds import fold
from reactive.languages.sql.expressions.casts import align, no_common_type_error
from reactive.languages.sql.expressions.comparisons import (
    COMPARISONS,
    OPPOSITE,
    all_of,
    any_of,
    by_parts,
    compare_in_order,
    compare_values,
)
from reactive.languages.sql.expressions.predicate import without_row_call
from reactive.languages.sql.expressions.zones import check_alike, is_constant
from reactive.languages.sql.queries.grouping import filter_rows, freed, select_values
from reactive.languages.sql.runtime.single import any_of as any_value
from reactive.languages.sql.runtime.single import in_order, only_of
from reactive.languages.sql.sqlite import comparisons as sqlite
from reactive.languages.sql.sqlite.comparisons import grouped_by, sorted_by
from reactive.languages.sql.terms.errors import put
from reactive.languages.sql.terms.scope import Correlation, Scope, ScopeSource
from reactive.languages.sql.terms.types import TEXT, SqlType
from reactive.languages.sql.terms.values import (
    BindingSchema,
    NamedPlan,
    TypedValue,
    as_optional,
    is_column,
    is_null,
    nullable_value,
    plan_with_columns,
    present,
)


def exists(node: Any, scope: Scope) -> Expr:
    """Return the condition that a query has a row; in Postgres it needs no columns."""
    inner = node.this
    is_select = isinstance(inner, exp.Select) and scope.dialect.name == "postgres"
    if is_select and not inner.expressions:
        put(inner, "expressions", [exp.Literal.number(1)])
    correlation, query = _correlate_query(node.this, scope)
    if query.is_one_row:
        return TRUE
    if not isinstance(query.limit, plan.Table) and query.limit != 0 and not query.offset:
        query = replace(query, limit=None)
    return _exists(query.cut().node, correlation)


def _exists(node: plan.Node, correlation: Correlation) -> Expr:
    return Subquery("exists", node, tuple(correlation.arguments))


def _correlate_query(node: Any, scope: Scope) -> tuple[Correlation, SelectQuery]:
    """Return a query inside an expression, and what it reads of the row around."""
    while isinstance(node, exp.Subquery) and not node.args.get("limit"):
        node = node.this
    correlation = Correlation(scope)
    return correlation, scope.around(correlation).query(node)


# Queries as values.


def subquery(node: Any, scope: Scope, *, as_row: bool = False) -> TypedValue:
    """Return the only value of a query, or its row as a struct; NULL where it has no row.

    Several rows are an error, except in SQLite, which takes any of them.
    """
    correlation, query = _correlate_query(node, scope)
    made, value = query.cut(), query.values[0]
    if as_row:
        kind = SqlType("struct", items=tuple(each.type for each in query.values))
        value = TypedValue(tuple_of(*map(as_optional, query.values)), kind)
    elif len(query.values) != 1:
        raise scope.error(
            node, f"a query in the place of a value has {len(query.values)} columns, not one"
        )
    if not query.is_one_row:
        made, value = _only_row(made, value, scope)
    one = freed(plan.Select(made.node, made.scope.function(as_optional(value))))
    found = Subquery("value", one, tuple(correlation.arguments))
    return TypedValue(found, value.type, (found,) if value.nullable else ())


def _only_row(
    query: SelectQuery, value: TypedValue, scope: Scope
) -> tuple[SelectQuery, TypedValue]:
    """Return a query of one row, and in it the only value of `query`, NULL if that has no row."""
    function = any_value if scope.dialect.name == "sqlite" else only_of
    collected = fold(Collect(nothing), value, query.scope)
    node = freed(plan.Aggregate(query.node, None, (collected,)))
    of_one = query.scope.over((), 1)
    only = nullable_value(Call(constant(function), (Parameter(0),)), value.type)
    return replace(query, node=node, scope=of_one), only


def array_of_query(node: Any, scope: Scope) -> TypedValue:
    """Return the values of a query as an array, in its order; refuse several columns."""
    correlation, query = _correlate_query(node, scope)
    if len(query.values) != 1:
        raise scope.error(node, f"ARRAY of a query with {len(query.values)} columns, not one")
    (value,) = query.values
    sort = query.sort
    keys = [key.function.body for key in sort if isinstance(key.function, Lifted)]
    cut = query.cut()
    entry = TypedValue(tuple_of(*keys, as_optional(value)), value.type)
    collected = fold(Collect(nothing), entry, cut.scope)
    node = freed(plan.Aggregate(cut.node, None, (collected,)))
    directions = tuple((key.descending, key.nulls) for key in sort)
    made = Call(constant(in_order), (constant(directions), Parameter(0)))
    one = plan.Select(node, scope.over((), 1).function(made))
    return TypedValue(
        Subquery("value", one, tuple(correlation.arguments)), SqlType("array", items=(value.type,))
    )


# Comparisons with queries.


@record
class RowComparison:
    """A row, the query with whose rows it is compared, and the comparison."""

    left: tuple[TypedValue, ...]
    symbol: str
    query: SelectQuery
    correlation: Correlation


def match_query(node: Any, scope: Scope, *, negated: bool) -> Expr:
    """Return the test that IN, or a comparison with ANY or ALL, is TRUE, or FALSE if `negated`."""
    left, query_node, written, is_all = _comparison_parts(node, scope)
    wanted, symbol = not negated, written
    if is_all:
        symbol, negated = OPPOSITE[symbol], not negated
    correlation, query = _correlate_query(query_node, scope)
    if len(left) != len(query.values):
        raise scope.error(
            node,
            f"{len(left)} values are compared with the {len(query.values)} columns of a query",
        )
    left, query = _align_sides(left, query, node, scope)
    if len(left) > 1 and symbol not in ("==", "!=") and scope.dialect.total_rows:
        left, query = _as_one(left), replace(query, values=_as_one(query.values))
    asked = RowComparison(left, symbol, query.cut(), correlation)
    found = _no_match(asked) if negated else _some_row_matches(asked)
    if isinstance(found, Constant):
        return found
    columns = asked.query.scope.function(tuple_of(*map(as_optional, asked.query.values)))
    rows = plan.Select(asked.query.node, columns)
    given = (*correlation.arguments, *map(as_optional, left))
    return Quantified(QuantifiedComparison(written, is_all, wanted, len(left)), rows, given, found)


def _align_sides(
    left: tuple[TypedValue, ...], query: SelectQuery, node: Any, scope: Scope
) -> tuple[tuple[TypedValue, ...], SelectQuery]:
    """Return both sides as they are compared, column by column; refuse types that cannot be."""
    pairs = []
    for mine, theirs in zip(left, query.values, strict=True):
        check_alike(node, scope, mine, theirs)
        if _is_apart(mine, theirs, scope):
            raise no_common_type_error(node, scope, [mine.type, TEXT], "order")
        mine, theirs = align(node, scope, mine, theirs, place="order")
        pairs.append((by_parts(mine), by_parts(theirs)))
    sides = tuple(zip(*pairs, strict=True))
    if sides == (left, query.values):
        return left, query
    return sides[0], replace(query, values=sides[1])


def _as_one(values: Sequence[TypedValue]) -> tuple[TypedValue, ...]:
    """Return a row as one value that is compared as a whole, where NULL is last."""
    kind = SqlType("struct", items=tuple(value.type for value in values))
    return (by_parts(TypedValue(tuple_of(*map(as_optional, values)), kind)),)


def _is_apart(mine: TypedValue, theirs: TypedValue, scope: Scope) -> bool:
    """Return True for a text constant of a query whose other side is of another type.

    In Postgres NULL is such a constant, too.
    """
    if scope.dialect.numeric_booleans or mine.type.kind in ("text", "any", "null"):
        return False
    is_null_text = scope.dialect.name == "postgres" and theirs.type.kind == "null"
    return is_null_text or (theirs.type.kind == "text" and is_constant(theirs))


def _comparison_parts(node: Any, scope: Scope) -> tuple[tuple[TypedValue, ...], Any, str, bool]:
    """Return the compared row, the query, the comparison, and whether all rows must satisfy it."""
    if isinstance(node, exp.In):
        return _values_of_row(node.this, scope), node.args["query"], "==", False
    symbol = COMPARISONS[type(node)]
    left, right = node.left, node.right
    if isinstance(left, exp.Any | exp.All):
        left, right, symbol = right, left, _MIRRORED[symbol]
    return _values_of_row(left, scope), right.this, symbol, isinstance(right, exp.All)


_MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _values_of_row(node: Any, scope: Scope) -> tuple[TypedValue, ...]:
    """Return the values of a row in parentheses; of a single value, a row of one."""
    while isinstance(node, exp.Paren):
        node = node.this
    row = without_row_call(node)
    parts = row.expressions if isinstance(row, exp.Tuple) else [node]
    return tuple(scope.value(part) for part in parts)


def _some_row_matches(asked: RowComparison) -> Expr:
    """Return the condition that the comparison is TRUE for some row."""
    if _is_ordered(asked) and len(asked.left) > 1:
        return _has_row(asked, _test_in_order(asked, _inside(asked, nullable=True)))
    if any(map(is_null, asked.left)):
        return FALSE
    tests = _tests(asked, _inside(asked, nullable=_is_ordered(asked)))
    found = any_of(*tests) if asked.symbol == "!=" else all_of(*tests)
    return all_of(*present(*asked.left), _has_row(asked, found))


def _is_ordered(asked: RowComparison) -> bool:
    """Return True for a comparison that raises for None.

    The rows of the query are compared even if the outer condition is false.
    """
    return asked.symbol not in ("==", "!=")


def _no_match(asked: RowComparison) -> Expr:
    """Return the condition that the comparison is FALSE for all rows."""
    if len(asked.left) > 1:
        return _no_row_matches(asked)
    (left,) = asked.left
    (column,) = asked.query.values
    inside = _inside(asked, nullable=_is_ordered(asked))
    none = [Operation("not", (_has_row(asked, *_tests(asked, inside)),))]
    if column.nullable:
        null = Operation("not", (conjunction(present(column)),))
        none.insert(0, Operation("not", (_has_row(asked, null),)))
    if left.nullable:
        is_empty = Operation("not", (_exists(asked.query.node, asked.correlation),))
        there = conjunction(present(left))
        return any_of(is_empty, all_of(there, *none))
    return all_of(*none)


def _no_row_matches(asked: RowComparison) -> Expr:
    """Return the condition that the comparison is FALSE for all rows of several values."""
    nullable = any(v.nullable for v in (*asked.left, *asked.query.values))
    if _is_ordered(asked):
        opposite = replace(asked, symbol=OPPOSITE[asked.symbol])
        is_false = _test_in_order(opposite, _inside(asked, nullable=True))
        return Operation("not", (_has_row(asked, Operation("not", (is_false,))),))
    if not nullable:
        tests = _tests(asked, _inside(asked, nullable=False))
        found = any_of(*tests) if asked.symbol == "!=" else all_of(*tests)
        return Operation("not", (_has_row(asked, found),))
    opposite = replace(asked, symbol=OPPOSITE[asked.symbol])
    tests = _tests(opposite, _inside(asked, nullable=True))
    is_false = all_of(*tests) if asked.symbol == "!=" else any_of(*tests)
    return Operation("not", (_has_row(asked, Operation("not", (is_false,))),))


def _inside(asked: RowComparison, *, nullable: bool) -> tuple[TypedValue, ...]:
    """Return the compared values as the query reads them; never NULL unless `nullable`."""
    inside = tuple(map(asked.correlation.read_outer, asked.left))
    return inside if nullable else tuple(replace(value, nulls=()) for value in inside)


def _tests(asked: RowComparison, left: Sequence[TypedValue]) -> list[Expr]:
    """Return the tests that compare the values `left` with the columns of the query, in pairs."""
    columns = asked.query.values
    pairs = list(zip(left, columns, strict=True))
    if asked.query.scope.dialect.numeric_booleans:
        pairs = [sqlite.comparable_sides(*pair, ordered=_is_ordered(asked)) for pair in pairs]
    return [
        compare_values(asked.symbol, *_without_guard(mine, column, asked.symbol))
        for mine, column in pairs
    ]


def _test_in_order(asked: RowComparison, left: Sequence[TypedValue]) -> Expr:
    """Return the test that a row of the query is greater, or less, by the first that differs."""
    pairs = list(zip(left, asked.query.values, strict=True))
    if asked.query.scope.dialect.numeric_booleans:
        pairs = [sqlite.comparable_sides(*pair, ordered=True) for pair in pairs]
    return compare_in_order(asked.symbol, pairs, compare_values)


def _without_guard(
    left: TypedValue, column: TypedValue, symbol: str
) -> tuple[TypedValue, TypedValue]:
    """Return both sides, the column without a test for NULL where `==` needs none."""
    is_leaf = column.nulls == (column.expr,)
    if symbol == "==" and is_leaf and not left.nullable:
        column = replace(column, nulls=())
    return left, column


def _has_row(asked: RowComparison, *tests: Expr) -> Expr:
    """Return the condition that the query has a row that satisfies all tests."""
    node = filter_rows(asked.query.node, asked.query.scope, all_of(*tests))
    return _exists(node, asked.correlation)


@record
class PlannedRows:
    """A plan of `bindings` bindings, and its named columns as expressions over them."""

    node: plan.Node
    bindings: int
    sources: tuple[ScopeSource, ...]
    merged: Mapping[str, TypedValue] = field(default_factory=dict)
    """Columns that USING made of two, by their folded names."""

    def scope(self, around: Scope) -> Scope:
        """Return the scope with the names of the rows."""
        made = around.over(self.sources, self.bindings)
        made.merged = dict(self.merged)
        return made

    def with_node(self, node: plan.Node) -> PlannedRows:
        """Return these sources over another plan with as many bindings."""
        return replace(self, node=node)

    def rebind(self, start: int, *, missing: bool) -> PlannedRows:
        """Return the columns as parts of the one binding `start`, which packs the bindings.

        If `missing`, they are NULL where the binding `start` is None.
        """
        place = Parameter(start)
        of: tuple[Expr, ...] = (place,)
        if self.bindings > 1:
            of = tuple(Item(place, constant(n)) for n in range(self.bindings))
        return self._substitute_bindings(of, (place,) if missing else ())

    def missing(self) -> PlannedRows:
        """Return the columns as values that are NULL where a binding that they read is None."""
        return self._substitute_bindings(all_parameters(self.bindings), None)

    def _substitute_bindings(
        self, of: tuple[Expr, ...], missing: tuple[Expr, ...] | None
    ) -> PlannedRows:
        """Return the columns with the expression `of[i]` in place of each binding `i`.

        A column also becomes NULL where an expression of `missing` is None. If `missing` itself is
        None, the column becomes NULL where a binding that it reads is None.
        """

        def substitute_value(value: TypedValue) -> TypedValue:
            expr = substitute(value.expr, of)
            inner = tuple(substitute(leaf, of) for leaf in value.nulls)
            before = missing if missing is not None else _bindings_of(value)
            return TypedValue(expr, value.type, tuple(dict.fromkeys((*before, *inner))))

        sources = tuple(
            ScopeSource(s.name, tuple((name, substitute_value(value)) for name, value in s.columns))
            for s in self.sources
        )
        merged = {name: substitute_value(value) for name, value in self.merged.items()}
        return PlannedRows(self.node, self.bindings, sources, merged)

    def columns(self, *, merged_first: bool = False) -> Iterator[tuple[str, str, TypedValue]]:
        """Yield source, name and value of the columns of a star, in order.

        Merged columns come once: before all others, or in place of the first of them.
        """
        told = set[str]()
        if merged_first:
            told = set(self.merged)
            yield from (("", self._spelling(name), value) for name, value in self.merged.items())
        for source in self.sources:
            for name, value in source.columns:
                folded = name.casefold()
                if folded not in self.merged:
                    yield source.name, name, value
                elif folded not in told:
                    told.add(folded)
                    yield "", name, self.merged[folded]

    def _spelling(self, folded: str) -> str:
        """Return a column name as the first source spells it; folded if there is none."""
        names = (n for source in self.sources for n, _ in source.columns)
        return next((n for n in names if n.casefold() == folded), folded)


def _bindings_of(value: TypedValue) -> tuple[Expr, ...]:
    """Return the bindings that a value reads."""
    found: dict[Expr, None] = {}
    pending = [value.expr, *value.nulls]
    for expr in pending:
        for each in _parameters_in(expr):
            found[each] = None
    return tuple(found)


def _parameters_in(expr: Expr) -> Iterator[Parameter]:
    return (e for e in walk(expr) if isinstance(e, Parameter))


def rows_of_plan(found: NamedPlan, name: str, names: tuple[str, ...] = ()) -> PlannedRows:
    """Return the rows of a plan under an alias; `names` are of its first columns."""
    values = [value for _, value in found.columns]
    called = (*names, *(name for name, _ in found.columns[len(names) :]))
    source = ScopeSource(name, tuple(zip(called, values, strict=True)))
    return PlannedRows(found.node, found.bindings, (source,))


@record
class SelectQuery:
    """The bindings of a plan, and the columns computed from them, with ORDER BY and LIMIT.

    `is_one_row` is True if there is one row, whatever the tables contain.
    """

    node: plan.Node
    scope: Scope = field(compare=False)
    names: tuple[str, ...]
    values: tuple[TypedValue, ...]
    sort: tuple[plan.SortKey, ...] = ()
    limit: int | plan.Table | None = None
    offset: int = 0
    is_one_row: bool = False

    @property
    def is_cut(self) -> bool:
        """True if a LIMIT or OFFSET leaves out rows."""
        return self.limit is not None or self.offset > 0

    def cut(self) -> SelectQuery:
        """Return the query without its order, with the rows within its limit."""
        if not self.is_cut:
            return replace(self, sort=())
        keys = self.sort or self._any_order()
        made = plan.OrderBy(self.node, keys, self.limit, self.offset)
        return replace(self, node=made, sort=(), limit=None, offset=0, is_one_row=False)

    def _any_order(self) -> tuple[plan.SortKey, ...]:
        """Return an order for a LIMIT without ORDER BY: by all columns."""
        return tuple(
            plan.SortKey(
                self.scope.function(_sort_expression(v, self.scope)),
                False,
                "last" if v.nullable else None,
            )
            for v in self.values
        )

    def rows(self, names: Sequence[str] = ()) -> tuple[plan.Node, BindingSchema]:
        """Return the plan of the rows, unordered, and their schema; `names` rename columns."""
        made = self.cut()
        called = (*names, *self.names[len(names) :])
        if made.values == made.scope_values():
            schema = made.scope.schema
            if schema is not None and schema.names == tuple(called):
                return made.node, schema
        return select_values(made.node, made.scope, called, made.values)

    def as_source(self, names: Sequence[str] = (), views: tuple[Any, ...] = ()) -> NamedPlan:
        """Return the query as a source of FROM.

        Columns that are read from bindings unchanged need no rows made of them.
        """
        if not self.is_cut and all(map(_is_unchanged_column, self.values)):
            called = (*names, *self.names[len(names) :])
            columns = tuple(zip(called, self.values, strict=True))
            return NamedPlan(self.node, columns, self.scope.bindings, views)
        return plan_with_columns(*self.rows(names), views)

    def scope_values(self) -> tuple[TypedValue, ...] | None:
        """Return the columns of rows that are put together already, else None."""
        schema = self.scope.schema
        return None if schema is None else schema.values(Parameter(0))


def _sort_expression(value: TypedValue, scope: Scope) -> Expr:
    """Return the sort key of rows that are ordered by a value."""
    return as_optional((sorted_by if scope.dialect.numeric_booleans else grouped_by)(value))


def _is_unchanged_column(value: TypedValue) -> bool:
    """Return True if the value is a column of a binding."""
    return is_column(value.expr) and all(map(is_column, value.nulls))


def query_of_rows(
    node: plan.Node, schema: BindingSchema, around: Scope, name: str = ""
) -> SelectQuery:
    """Return a query whose rows are there already."""
    values = schema.values(Parameter(0))
    scope = around.over([ScopeSource(name, tuple(zip(schema.names, values, strict=True)))], 1)
    scope.schema = schema
    return SelectQuery(node, scope, schema.names, values)
