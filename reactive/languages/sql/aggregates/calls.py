"""Calls of aggregates, the folds that aggregates are made of, and those over all values of a group.

A call of an aggregate as it is written, and the folds that aggregates are made of.

sum(distinct x) filter (where p)         argument x, distinct, test true(p)
percentile_cont(0.5) within group (order by x)     arguments x and 0.5, order x

Aggregates of all values of a group: quantiles, and those whose result depends on an order.

    median(x)                       Quantile of x, whose values are kept in order
    median(distinct x)              Collect of x, and a function of that
    array_agg(x order by y)         Collect of (y, x), sorted

Cost:   O(log group) for a changed row of a quantile of plain values. Others take O(group) for each
        group that changes, and O(group * log group) where it is sorted.

Aggregates that are computed of sums: variance, correlation, regression.

    var_samp(x)      of the count, the sum of x and that of x * x
    corr(x, y)       of the count, and the sums of x, y, x * y, x * x and y * y

The sums are of fractions and so exact, whatever has come and gone.

Cost:   O(1) per changed row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Any, TypeAlias

from sqlglot import exp

from optimizer import plan
from optimizer.expr import (
    NONE,
    Call,
    Conditional,
    Constant,
    Expr,
    Item,
    Operation,
    conjunction,
    constant,
    tuple_of,
)
from optimizer.record import record
from reactive.api.aggregates import Aggregation, Count, Sum, make_fold
from reactive.engine.operators.accumulators import CollectAccumulator
from reactive.engine.operators.statistics import QuantileOfOrder
from reactive.languages.sql.expressions.casts import cast
from reactive.languages.sql.postgres import numerics as postgres
from reactive.languages.sql.runtime import folds
from reactive.languages.sql.sqlite.comparisons import grouped_by, is_number, map_value
from reactive.languages.sql.sqlite.values import addend
from reactive.languages.sql.terms.errors import peek, take
from reactive.languages.sql.terms.folding import with_folded_constants
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.types import ANY, DECIMAL, FLOAT, INT, TEXT, SqlType
from reactive.languages.sql.terms.values import (
    TypedValue,
    as_optional,
    callee,
    nullable_value,
    present,
)


@record
class CallFolds:
    """The folds of an aggregate, and its value of their results, which are in that order."""

    folds: tuple[plan.Folded, ...]
    result: Callable[[tuple[Expr, ...]], TypedValue] = field(compare=False)


@record
class AggregateCall:
    """A call of an aggregate: its arguments and clauses."""

    node: Any
    scope: Scope
    arguments: tuple[exp.Expr, ...]
    distinct: bool
    order: tuple[exp.Expr, ...]
    test: Expr | None
    grouped: bool
    in_group: bool = False
    """True if the rows are a group, not those of a window."""
    in_order: bool = False
    """True if the values are in the order of a window, which replaces an order of its own."""
    taken: set[int] = field(default_factory=set, compare=False)
    """The places of the arguments that were read."""

    def value(self, place: int = 0) -> TypedValue:
        """Return the argument at `place`, NULL where FILTER leaves the row out.

        Refuse a missing argument.
        """
        if place >= len(self.arguments):
            raise self.scope.error(
                self.node, f"{aggregate_name(self.node)} needs one more argument"
            )
        self.taken.add(place)
        return self.only(self.scope.value(self.arguments[place]))

    def only(self, value: TypedValue) -> TypedValue:
        """Return a value that is NULL in rows that FILTER leaves out; `value` if there is none."""
        if self.test is None:
            return value
        return nullable_value(Conditional(self.test, as_optional(value), NONE), value.type)

    def constant(self, place: int) -> Any:
        """Return the value of the argument at `place`, a tuple of a list.

        Refuse an argument that is not constant.
        """
        self.taken.add(place)
        expr = with_folded_constants(as_optional(self.scope.value(self.arguments[place])))
        if isinstance(expr, Constant):
            return expr.value
        items = [each.value for each in getattr(expr, "items", ()) if isinstance(each, Constant)]
        if not items:
            raise self.scope.error(self.node, "this argument has to be constant")
        return tuple(items)


Maker: TypeAlias = Callable[[AggregateCall], CallFolds]
"""Function from a call to its folds; one line of a table per aggregate."""


def parse_aggregate(node: Any, scope: Scope, *, grouped: bool) -> AggregateCall:
    """Return the parsed clauses of an aggregate; refuse IGNORE NULLS, and arguments beside `*`."""
    test: Expr | None = None
    within: tuple[exp.Expr, ...] = ()
    while isinstance(node, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        if isinstance(node, exp.IgnoreNulls | exp.RespectNulls) and not _is_any_value(node):
            remedy = "write FILTER (WHERE x IS NOT NULL)"
            raise scope.error(node, "IGNORE NULLS and RESPECT NULLS are not of aggregates", remedy)
        if isinstance(node, exp.Filter):
            test = scope.true(node.expression.this)
        elif isinstance(node, exp.WithinGroup):
            within = tuple(node.expression.expressions)
        node = node.this
    if within:
        take(node)  # `mode()` has no argument
    arguments, distinct, order = _split_clauses(node)
    if any(isinstance(each, exp.Star) for each in arguments):
        if len(arguments) > 1:
            raise scope.error(node, f"{aggregate_name(node)}() takes nothing beside *")
        take(arguments[0])
        arguments = ()
    if within:  # percentile_cont(0.5) within group (order by x) is quantile_cont(x, 0.5)
        arguments = (within[0].this, *arguments)
        order = within
    return AggregateCall(node, scope, arguments, distinct, order, test, grouped)


def _is_any_value(node: Any) -> bool:
    """Return True for ANY_VALUE, which the parser wraps in IGNORE NULLS."""
    return isinstance(node, exp.IgnoreNulls) and isinstance(node.this, exp.AnyValue)


def _split_clauses(node: Any) -> tuple[tuple[exp.Expr, ...], bool, tuple[exp.Expr, ...]]:
    """Return an aggregate's arguments, whether it is DISTINCT, and the keys of its ORDER BY."""
    names = ("expressions",) if isinstance(node, exp.Anonymous) else tuple(node.arg_types)
    found: list[exp.Expr] = []
    distinct, order = False, tuple[exp.Expr, ...]()
    for name in names:
        given = peek(node, name)
        parts = given if isinstance(given, list) else [given]
        for place, each in enumerate(parts):
            if isinstance(each, exp.Expr):
                asked = node.args.get(name)  # which is read now
                each = asked[place] if parts is given else asked
            if isinstance(each, exp.Order):
                order, each = tuple(each.expressions), each.this
            if isinstance(each, exp.Distinct):
                distinct = True
                inside = each.expressions
                if len(inside) == 1 and isinstance(inside[0], exp.Order):
                    order, inside = tuple(inside[0].expressions), [inside[0].this]
                found += inside
            elif isinstance(each, exp.Expr):
                found.append(each)
    return tuple(found), distinct, order


def aggregate_name(node: Any) -> str:
    return str(node.this).lower() if isinstance(node, exp.Anonymous) else node.sql_name().lower()


def fold(aggregate: Aggregation[Any], of: TypedValue | None, scope: Scope) -> plan.Folded:
    """Return the plan's fold of an aggregate of the API, over a value of the rows."""
    return make_fold(aggregate, lambda function, role: _make_row_function(of, scope))


def _make_row_function(of: TypedValue | None, scope: Scope) -> Any:
    assert of is not None
    return scope.function(as_optional(of))


def nothing(*row: Any) -> Any:
    """Stands where the plan has an expression."""


def count_of(of: TypedValue, scope: Scope) -> plan.Folded:
    """Return the fold that counts values that are not NULL."""
    if not of.nullable:
        return fold(Count(), None, scope)
    one = Conditional(conjunction(present(of)), constant(1), constant(0))
    return fold(Sum(nothing), TypedValue(one, INT), scope)


def collect_values(of: TypedValue, scope: Scope) -> plan.Folded:
    """Collect all values, without NULL."""
    accumulator = CollectAccumulator(of.nullable)
    return plan.Folded("Collect", accumulator, _make_row_function(of, scope), (), of.nullable)


def pair(*values: TypedValue) -> TypedValue:
    """Return several values as a tuple; NULL if one of them is."""
    packed = tuple_of(*(value.expr for value in values))
    tests = present(*values)
    if not tests:
        return TypedValue(packed, SqlType("struct", items=tuple(v.type for v in values)))
    return nullable_value(Conditional(conjunction(tests), packed, NONE), ANY)


def numeric_argument(asked: AggregateCall, place: int = 0) -> TypedValue:
    """Return the argument at `place` as a number to add up, read from a text if need be."""
    value = asked.value(place)
    if asked.scope.dialect.numeric_booleans:
        return value if is_number(value.type) else map_value(addend, FLOAT, value)
    if value.type.kind == "text":
        value = cast(value, FLOAT, asked.scope)
    return value


def of_values(
    function: Callable[..., Any], of: TypedValue, kind: SqlType, scope: Scope
) -> CallFolds:
    """Return the folds that collect all values of `of` in a group, and call `function` on them."""
    return CallFolds(
        (collect_values(of, scope),),
        lambda found: nullable_value(Call(callee(function), found), kind),
    )


@record
class OfDifferent:
    """A function of values, given each of them once."""

    function: Callable[..., Any]

    def __call__(self, values: Any) -> Any:
        return self.function(set(values))


@record
class Of:
    """A function of values, given more besides."""

    function: Callable[..., Any]
    more: tuple[Any, ...]

    def __call__(self, values: Any) -> Any:
        return self.function(values, *self.more)


def whole_group(function: Callable[..., Any], kind: SqlType | None = None) -> Maker:
    """Make a function of all values that are not NULL."""

    def make_folds(asked: AggregateCall) -> CallFolds:
        of = numeric_argument(asked) if kind is FLOAT else asked.value()
        called = OfDifferent(function) if asked.distinct else function
        return of_values(called, of, kind or of.type, asked.scope)

    return make_folds


def quantile(function: Callable[..., Any], at: Any = None) -> Maker:
    """Return the maker of a quantile; `at` is its fraction, or None if the second argument is."""

    def make_folds(asked: AggregateCall) -> CallFolds:
        of = asked.value()
        place = asked.constant(1) if at is None else at
        descending = bool(asked.order and asked.order[0].args.get("desc"))
        kind = of.type
        if function is folds.quantile_between and kind.kind == "int":
            kind = FLOAT
        if isinstance(place, tuple):
            kind = SqlType("array", items=(kind,))
        called = Of(function, (place,))
        if descending and function is folds.quantile_of:
            called = Of(folds.quantile_from_last, (place,))
        elif descending:
            called = Of(function, (1 - place,))
        if asked.distinct:
            return of_values(OfDifferent(called), of, kind, asked.scope)
        if asked.in_group and of.type.kind in ORDERED and not isinstance(place, tuple):
            return _values_in_order(called, of, kind, asked.scope)
        return of_values(called, of, kind, asked.scope)

    return make_folds


ORDERED = frozenset({"int", "float", "decimal", "date", "timestamp", "text"})
"""Kinds of types whose values have one order, in which equal values are the same."""


def _values_in_order(function: Of, of: TypedValue, kind: SqlType, scope: Scope) -> CallFolds:
    """Return the fold that keeps the values of a group in order, and calls `function` on them."""
    is_between = function.function is folds.quantile_between
    accumulator = QuantileOfOrder(
        of.nullable, interpolation="linear" if is_between else "lower", find=function
    )
    value = _make_row_function(of, scope)
    quantile = plan.Folded("Quantile", accumulator, value, (), of.nullable)
    return CallFolds((quantile,), lambda found: nullable_value(found[0], kind))


@record
class _Ordered:
    """A function of values in an order."""

    function: Callable[..., Any]
    directions: tuple[tuple[bool, bool], ...]
    distinct: bool
    more: tuple[Any, ...] = ()

    def __call__(self, rows: Any) -> Any:
        if not self.directions:  # of a window with an order
            values = [row[-1] for row in rows]
            values = list(dict.fromkeys(values)) if self.distinct else values
        else:
            values = folds.sort_last_items(rows, self.directions, distinct=self.distinct)
        return self.function(values, *self.more)


def directions_of(order: Sequence[Any]) -> tuple[tuple[bool, bool], ...]:
    """Return for each sort key whether it is descending, and whether NULL is first."""
    return tuple((bool(o.args.get("desc")), bool(o.args.get("nulls_first"))) for o in order)


def fold_in_order(
    asked: AggregateCall,
    function: Callable[..., Any],
    of: TypedValue,
    kind: SqlType,
    *more: Any,
    nulls: bool,
) -> CallFolds:
    """Return an aggregate whose result depends on the order: ORDER BY's, or that of the values."""
    scope = asked.scope
    order = asked.order or (() if asked.in_order else (exp.Ordered(nulls_first=False),))
    keys = [grouped_by(scope.value(o.this)) for o in order if asked.order] or [of][: len(order)]
    packed = TypedValue(tuple_of(*map(as_optional, keys), as_optional(of)), ANY)
    test = (
        asked.test
        if nulls
        else _join_tests(asked.test, conjunction(present(of)) if of.nulls else None)
    )
    if test is not None:
        packed = nullable_value(Conditional(test, packed.expr, NONE), ANY)
    called = _Ordered(function, directions_of(order), asked.distinct, more)
    return of_values(called, packed, kind, scope)


def _join_tests(one: Expr | None, other: Expr | None) -> Expr | None:
    """Return the conjunction of two tests; the other one if one is None."""
    if one is None or other is None:
        return other if one is None else one
    return conjunction((one, other))


def join_texts(asked: AggregateCall) -> CallFolds:
    """Translate STRING_AGG, GROUP_CONCAT, LISTAGG."""
    separator = asked.constant(1) if len(asked.arguments) > 1 else ","
    unfiltered = replace(asked, test=None)
    of = cast(unfiltered.value(), TEXT, asked.scope)
    return fold_in_order(asked, folds.joined, of, TEXT, separator, nulls=False)


def list_values(asked: AggregateCall) -> CallFolds:
    """Translate ARRAY_AGG, which keeps NULL."""
    of = replace(asked, test=None).value()
    kind = SqlType("array", items=(of.type,))
    return fold_in_order(asked, folds.listed, of, kind, nulls=True)


def end(function: Callable[..., Any], *, nulls: bool) -> Maker:
    """Return the maker of an aggregate that takes one value by the order; `nulls`: also a NULL."""

    def make_folds(asked: AggregateCall) -> CallFolds:
        of = replace(asked, test=None).value()
        return fold_in_order(asked, function, of, of.type, nulls=nulls)

    return make_folds


def _exact_product(of: TypedValue, power: int = 1, other: TypedValue | None = None) -> TypedValue:
    """Return a number, its square, or its product with another, exactly."""

    def part(value: TypedValue) -> Expr:
        is_whole = value.type.kind == "int"
        return value.expr if is_whole else Call(constant(folds.exact), (value.expr,))

    if other is not None:
        return TypedValue(Operation("*", (part(of), part(other))), ANY, (*of.nulls, *other.nulls))
    if power == 2:
        return TypedValue(Operation("*", (part(of), part(of))), ANY, of.nulls)
    return TypedValue(part(of), ANY, of.nulls)


def _sum_of(of: TypedValue, scope: Scope) -> plan.Folded:
    """Return the fold that sums a value, in which NULL is skipped."""
    return fold(Sum(nothing, skip_none=of.nullable), of, scope)


def make_variance(of_float: Callable[..., Any], of_numeric: Callable[..., Any], less: int) -> Maker:
    """Make a variance or deviation; of integers and numerics Postgres has its own."""

    def make_folds(asked: AggregateCall) -> CallFolds:
        of, scope = numeric_argument(asked), asked.scope
        function, kind = of_float, FLOAT
        if scope.dialect.name == "postgres" and of.type.kind in postgres.EXACT_KINDS:
            function, kind = of_numeric, DECIMAL
        if asked.distinct:
            return of_values(Of(_of_different, (function, less)), of, kind, scope)
        sums = (_sum_of(_exact_product(of), scope), _sum_of(_exact_product(of, 2), scope))
        return CallFolds(
            (count_of(of, scope), *sums),
            lambda found: nullable_value(Call(constant(function), (*found, constant(less))), kind),
        )

    return make_folds


def _of_different(values: Any, function: Callable[..., Any], less: int) -> Any:
    """Call `function` with count, sum and sum of squares of the different values, and `less`."""
    found = [folds.exact(value) for value in set(values)]
    return function(len(found), sum(found), sum(v * v for v in found), less)


def make_regression(function: Callable[..., Any], *parts: str, less: int | None = None) -> Maker:
    """Make an aggregate of two numbers, of rows that have both; `parts` are the sums it needs."""

    def make_folds(asked: AggregateCall) -> CallFolds:
        scope = asked.scope
        x, y = numeric_argument(asked), numeric_argument(asked, 1)
        both = pair(x, y)
        if asked.distinct:
            called = Of(_of_different_pairs, (function, parts, () if less is None else (less,)))
            return of_values(called, both, FLOAT, scope)
        one, two = (
            TypedValue(Item(both.expr, constant(n)), v.type, both.nulls)
            for n, v in enumerate((x, y))
        )
        of = {"x": (one, None), "y": (two, None), "xy": (one, two), "xx": (one, one)}
        of["yy"] = (two, two)
        sums = [_sum_of(_exact_product(of[p][0], other=of[p][1]), scope) for p in parts]
        more = () if less is None else (constant(less),)
        return CallFolds(
            (count_of(both, scope), *sums),
            lambda found: nullable_value(Call(constant(function), (*found, *more)), FLOAT),
        )

    return make_folds


def _of_different_pairs(
    values: Any, function: Callable[..., Any], parts: Sequence[str], more: Sequence[int]
) -> Any:
    """Call `function` with the count and the sums `parts` of the distinct pairs, then `more`."""
    found = [tuple(map(folds.exact, pair)) for pair in set(values)]
    of = {"x": lambda x, y: x, "y": lambda x, y: y, "xy": lambda x, y: x * y}
    of |= {"xx": lambda x, y: x * x, "yy": lambda x, y: y * y}
    return function(len(found), *(sum(of[part](*pair) for pair in found) for part in parts), *more)


def pairs(asked: AggregateCall) -> CallFolds:
    """Translate REGR_COUNT, which counts the rows that have both numbers."""
    both = pair(asked.value(), asked.value(1))
    if asked.distinct:
        return of_values(OfDifferent(len), both, INT, asked.scope)
    return CallFolds((count_of(both, asked.scope),), lambda found: TypedValue(found[0], INT))


MOST = 1_000_000
"""The greatest number of extremes, which DuckDB does not allow."""


def count_of_extremes(asked: AggregateCall, place: int) -> int:
    """Return how many extremes are asked for; refuse what is no number from 1 on."""
    found = asked.constant(place)
    if not isinstance(found, int) or not 0 < found < MOST:
        name = type(asked.node).sql_name().lower() if isinstance(asked.node, exp.Func) else ""
        raise asked.scope.error(
            asked.node, f"{name or asked.node.name}() takes a number from 1 to {MOST - 1}"
        )
    return found


def extreme_rows(
    asked: AggregateCall, *, greatest: bool, null_value: bool = False, null_key: bool = False
) -> CallFolds:
    """Return the folds of ARG_MIN or ARG_MAX with a number or an order, or in a window with one.

    Rows with a NULL are left out, but for a value if `null_value`, and a key if `null_key`.
    """
    inner = replace(asked, test=None)
    value, key = inner.value(), inner.value(1)
    count = count_of_extremes(asked, 2) if len(asked.arguments) > 2 else None
    tests = [] if null_value else present(value)
    tests = [*tests, *([] if null_key else present(key))]
    both = TypedValue(tuple_of(as_optional(key), as_optional(value)), ANY)
    if tests:
        both = nullable_value(Conditional(conjunction(tuple(tests)), both.expr, NONE), ANY)
    kind = value.type if count is None else SqlType("array", items=(value.type,))
    return fold_in_order(
        asked, folds.of_extremes, replace(both, type=kind), kind, count, greatest, nulls=False
    )
