"""Aggregates: the folds of a group that each needs, and the value that it makes of their results.

    count(x)                  Sum of 1 where x is not NULL, or Count
    sum(x)                    Sum and that count: of nothing it is NULL
    sum(x) filter (where p)   the same of `x where p, else NULL`
    var_samp(x)               the count, the sum, and the sum of squares, which are exact
    arg_min(x, y)             Min of the pair (y, x)
    median(x), array_agg(x order by y), sum(distinct x)     Collect, and a function of that

An aggregate is one line of a table. Equal folds are shared by all aggregates of a query.

Cost:   O(1) per changed row, O(log group) for the least and greatest; O(group) for each changed
        group for the aggregates of the last line of the picture.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from optimizer.expr import NONE, Call, Conditional, Expr, Item, conjunction, constant
from reactive.api.aggregates import (
    Aggregate,
    Aggregation,
    Avg,
    CountDistinct,
    Max,
    Min,
    Monoid,
    Sum,
)
from reactive.languages.sql.aggregates import rarer
from reactive.languages.sql.aggregates.calls import (
    AggregateCall,
    CallFolds,
    Maker,
    OfDifferent,
    aggregate_name,
    count_of,
    end,
    extreme_rows,
    join_texts,
    list_values,
    make_regression,
    make_variance,
    nothing,
    numeric_argument,
    of_values,
    pair,
    pairs,
    parse_aggregate,
    quantile,
    whole_group,
)
from reactive.languages.sql.aggregates.calls import fold as fold
from reactive.languages.sql.expressions import collations
from reactive.languages.sql.expressions.casts import cast
from reactive.languages.sql.expressions.comparisons import by_parts, from_parts
from reactive.languages.sql.json import aggregates as json
from reactive.languages.sql.postgres import numerics as postgres
from reactive.languages.sql.runtime import folds, intervals
from reactive.languages.sql.sqlite.comparisons import (
    bare,
    grouped_by,
    has_collation,
    has_one_class,
    rank_by_collation,
    unrank_value,
)
from reactive.languages.sql.terms.errors import nearest
from reactive.languages.sql.terms.types import (
    BOOL,
    DECIMAL,
    FLOAT,
    INT,
    INTERVAL,
    TIMESTAMP,
    SqlType,
    sql_name,
)
from reactive.languages.sql.terms.values import TypedValue, nullable_value, present

if TYPE_CHECKING:
    from reactive.languages.sql.terms.scope import Scope


def is_aggregate(node: exp.Expr) -> bool:
    """Return True for a call of an aggregate, also with a FILTER."""
    if isinstance(node, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        return is_aggregate(node.this)
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in TABLE
    return isinstance(node, exp.AggFunc) and not isinstance(node, WINDOWS)


WINDOWS = (
    *(exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile, exp.Lag),
    *(exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue),
)
"""Functions of windows only, which sqlglot parses as aggregates."""


def make_aggregate(node: Any, scope: Scope, *, grouped: bool) -> CallFolds:
    """Return an aggregate of the rows of a scope; if it is not `grouped`, there may be no rows.

    Raises
    ------
    PlanError: there is no such aggregate.
    """
    asked = parse_aggregate(node, scope, grouped=grouped)
    return folds_of_call(replace(asked, in_group=True))


def folds_of_call(asked: AggregateCall) -> CallFolds:
    """Return the folds of a call; refuse an unknown aggregate, and arguments left unread."""
    key = (
        str(asked.node.this).lower()
        if isinstance(asked.node, exp.Anonymous)
        else (type(asked.node))
    )
    maker, where = TABLE.get(key), ""
    if asked.scope.dialect.name == "sqlite" and key not in OF_SQLITE:
        maker, where = None, " in sqlite"
    if asked.scope.dialect.name == "postgres" and key in rarer.TABLE:
        maker, where = None, " in postgres"
    if maker is None:
        name = aggregate_name(asked.node)
        raise asked.scope.error(
            asked.node, f"there is no aggregate {name!r}{where}{nearest(name, NAMES)}"
        )
    if asked.order and key in ORDERLESS and asked.scope.dialect.name != "sqlite":
        _read_order(asked)
    aggregated = maker(asked)
    if key is not exp.Count and asked.scope.dialect.name == "duckdb":
        collations.refuse_collated(
            asked.node, asked.scope, tuple(map(asked.scope.value, asked.arguments))
        )
    if len(asked.taken) < len(asked.arguments):
        told = f"takes {len(asked.taken)}, and got {len(asked.arguments)}"
        raise asked.scope.error(
            asked.node, f"{aggregate_name(asked.node)}() {told} arguments", "leave the others out"
        )
    return aggregated


def _read_order(asked: AggregateCall) -> None:
    """Read an ORDER BY that does not change the aggregate, so that it counts as read.

    Raises
    ------
    PlanError: it is not one that the dialect takes.
    """
    given = [each.sql() for each in asked.arguments]
    for key in asked.order:
        asked.scope.value(key.this)
        _ = [key.args.get(each) for each in ("desc", "nulls_first")]
        if asked.distinct and key.this.sql() not in given:
            raise asked.scope.error(
                key, "the ORDER BY of an aggregate with DISTINCT is not by its argument"
            )


def _fold_count(asked: AggregateCall) -> CallFolds:
    """Return the folds of COUNT; refuse several arguments, and ORDER BY in count(*)."""
    scope = asked.scope
    if asked.order and not asked.arguments:
        raise scope.error(asked.node, "count(*) has no ORDER BY", "leave it out")
    if asked.distinct:
        if len(asked.arguments) > 1:
            name = scope.dialect.name
            remedy = "count rows of a query with DISTINCT" if name == "sqlite" else "write (a, b)"
            raise scope.error(
                asked.node,
                f"{name} has no count(DISTINCT) of {len(asked.arguments)} values",
                remedy,
            )
        of = asked.value()
        if scope.dialect.numeric_booleans or has_collation(of.type):
            of = grouped_by(of)
        function = fold(CountDistinct(nothing, skip_none=of.nullable), of, scope)
        return CallFolds((function,), lambda found: TypedValue(found[0], INT))
    if len(asked.arguments) > 1:
        message = f"count() takes 0 or 1 argument, and got {len(asked.arguments)}"
        raise asked.scope.error(asked.node, message, "count(DISTINCT (a, b)) counts pairs")
    of = asked.value() if asked.arguments else asked.only(TypedValue(constant(1), INT))
    return CallFolds((count_of(of, scope),), lambda found: TypedValue(found[0], INT))


def _count_if(asked: AggregateCall) -> CallFolds:
    """Translate DuckDB's COUNT_IF: the sum of truth values, which of no rows is NULL."""
    of = cast(asked.value(), INT, asked.scope)
    if asked.distinct:
        return of_values(
            folds.total_of_different, of, type_of_sum(of.type, asked.scope), asked.scope
        )
    return _sum_of_value(asked, of)


def type_of_sum(kind: SqlType, scope: Scope) -> SqlType:
    """Return the type of a sum: a wide integer or decimal, else the type of the values.

    In Postgres it is the type that Postgres gives it.
    """
    if scope.dialect.name == "postgres":
        return postgres.type_of_numeric_sum(kind)
    match kind.kind:
        case "int" | "bool":
            return SqlType("int", size=16)
        case "decimal":
            return SqlType("decimal", 38, kind.scale)
        case _:
            return kind


def _fold_sum(asked: AggregateCall) -> CallFolds:
    """Return the folds of SUM, whose result is NULL if no summand has a value."""
    of = numeric_argument(asked)
    kind = type_of_sum(of.type, asked.scope)
    if asked.distinct and kind.kind == "decimal":
        of = cast(of, SqlType("decimal", None, kind.scale), asked.scope)
    if asked.distinct:
        return of_values(folds.total_of_different, of, kind, asked.scope)
    if of.type.kind == "interval":
        return _of_intervals(asked, of, intervals.interval_of)
    return _sum_of_value(asked, of)


def _of_intervals(asked: AggregateCall, of: TypedValue, function: Any) -> CallFolds:
    """Make a function of the sums of months, days and microseconds.

    Equal intervals may differ in these parts.
    """
    parts = (intervals.months_of, intervals.days_of, intervals.micros_of)
    sums = [
        fold(
            Sum(nothing, skip_none=of.nullable),
            TypedValue(Call(constant(part), (of.expr,)), INT, of.nulls),
            asked.scope,
        )
        for part in parts
    ]
    count = count_of(of, asked.scope)

    def value(found: tuple[Expr, ...]) -> TypedValue:
        given = found if function is intervals.mean_of_intervals else found[:3]
        return nullable_value(
            Conditional(found[3], Call(constant(function), given), NONE), INTERVAL
        )

    return CallFolds((*sums, count), value)


def _sum_of_value(asked: AggregateCall, of: TypedValue) -> CallFolds:
    """Return the folds of SUM without DISTINCT; they count, too, where the result may be NULL."""
    kind = type_of_sum(of.type, asked.scope)
    if kind.kind == "decimal" and of.type.kind == "int":
        of = cast(of, kind, asked.scope)
    function = fold(Sum(nothing, skip_none=of.nullable), of, asked.scope)
    if asked.grouped and not of.nullable:
        return CallFolds((function,), lambda found: TypedValue(found[0], kind))
    count = count_of(of, asked.scope)
    return CallFolds((function, count), lambda found: _if_any(found, kind))


def _if_any(found: tuple[Expr, ...], kind: SqlType) -> TypedValue:
    """Return the first result of `found`; NULL if the second, a count, is 0."""
    return nullable_value(Conditional(found[1], found[0], NONE), kind)


def _total(asked: AggregateCall) -> CallFolds:
    """Translate SQLite's TOTAL, which is a float: 0.0 of no values."""
    of = numeric_argument(asked)
    if asked.distinct:
        return of_values(folds.total_or_zero_of_different, of, FLOAT, asked.scope)
    function = fold(Sum(nothing, skip_none=of.nullable), of, asked.scope)
    return CallFolds(
        (function,), lambda found: TypedValue(Call(constant(float), (found[0],)), FLOAT)
    )


def _avg(asked: AggregateCall) -> CallFolds:
    """Return the folds of AVG of numbers, times or intervals; exact in Postgres for exact types."""
    of = numeric_argument(asked)
    if asked.scope.dialect.name == "postgres" and of.type.kind in postgres.EXACT_KINDS:
        return _numeric_avg(asked, of)
    kind = of.type if of.type.kind == "interval" else FLOAT
    if of.type.kind in ("date", "time", "timestamp", "timestamptz"):
        return _mean_of_times(asked, of)
    if of.type.kind == "interval" and not asked.distinct:
        return _of_intervals(asked, of, intervals.mean_of_intervals)
    if asked.distinct:
        return of_values(folds.mean_of_different, of, kind, asked.scope)
    mean = fold(Avg(nothing, skip_none=of.nullable), of, asked.scope)
    if kind is not FLOAT or of.type.kind != "decimal":
        return CallFolds((mean,), lambda found: nullable_value(found[0], kind))
    return CallFolds(
        (mean,), lambda found: TypedValue(Call(constant(float), found), FLOAT, (found[0],))
    )


def _numeric_avg(asked: AggregateCall, of: TypedValue) -> CallFolds:
    """Translate AVG of integers and numerics in Postgres."""
    if asked.distinct:
        return of_values(postgres.mean_of_different, of, DECIMAL, asked.scope)
    total = fold(Sum(nothing, skip_none=of.nullable), of, asked.scope)
    return CallFolds(
        (total, count_of(of, asked.scope)),
        lambda found: _if_any((Call(constant(postgres.mean), found), found[1]), DECIMAL),
    )


def _mean_of_times(asked: AggregateCall, of: TypedValue) -> CallFolds:
    """Return the mean of moments by the exact sum of microseconds, which only DuckDB has."""
    if asked.scope.dialect.name != "duckdb":
        raise asked.scope.error(
            asked.node, f"{asked.scope.dialect.name} has no avg of {sql_name(of.type)}"
        )
    kind = TIMESTAMP if of.type.kind == "date" else of.type
    whole_numbers = TypedValue(Call(constant(folds.microseconds_of), (of.expr,)), INT, of.nulls)
    back = {"time": folds.time_of_mean, "timestamptz": folds.instant_of_mean}
    function = back.get(of.type.kind, folds.moment_of_mean)
    if asked.distinct:
        return of_values(OfDifferent(folds.MeanOf(function)), whole_numbers, kind, asked.scope)
    total = fold(Sum(nothing, skip_none=of.nullable), whole_numbers, asked.scope)
    count = count_of(of, asked.scope)
    return CallFolds(
        (total, count), lambda found: nullable_value(Call(constant(function), found), kind)
    )


def _make_extreme(kind: Any) -> Maker:
    """Return the maker of MIN or MAX, with the aggregation `kind`; it refuses a second argument."""

    def make_folds(asked: AggregateCall) -> CallFolds:
        if len(asked.arguments) > 1 and asked.scope.dialect.name == "duckdb":
            return rarer.several_extremes(asked, greatest=kind is Max)
        of = asked.value()
        is_sqlite = asked.scope.dialect.numeric_booleans
        if is_sqlite and (not has_one_class(of.type) or has_collation(of.type)):
            return _extreme_by_class(kind, of, asked)
        function = fold(kind(nothing, skip_none=of.nullable), by_parts(of), asked.scope)
        never = asked.grouped and not of.nullable
        return CallFolds(
            (function,),
            lambda found: TypedValue(from_parts(found[0], of), of.type, () if never else found),
        )

    return make_folds


def _extreme_by_class(kind: Any, of: TypedValue, asked: AggregateCall) -> CallFolds:
    """Return the least or greatest of values of several classes, by their ranks."""
    place = rank_by_collation(of)
    function = fold(kind(nothing, skip_none=of.nullable), place, asked.scope)
    kind_of = bare(of).type
    return CallFolds(
        (function,), lambda found: unrank_value(TypedValue(found[0], kind_of, (found[0],)))
    )


def _truth(kind: Any) -> Maker:
    """Make BOOL_AND, the least of truth values, or BOOL_OR, the greatest."""

    def make_folds(asked: AggregateCall) -> CallFolds:
        of = cast(asked.value(), BOOL, asked.scope)
        function = fold(kind(nothing, skip_none=of.nullable), of, asked.scope)
        return CallFolds((function,), lambda found: nullable_value(found[0], BOOL))

    return make_folds


def _make_bit_aggregate(aggregation: Callable[[], Aggregation[Any]], neutral: int) -> Maker:
    """Return the maker of an aggregate of bits; its fold reads `neutral` in place of NULL."""

    def make_folds(asked: AggregateCall) -> CallFolds:
        of, scope = asked.value(), asked.scope
        if asked.distinct and aggregation is _xor:
            return of_values(folds.exclusive_or_of_different, of, of.type, scope)
        bits = Call(constant(folds.whole_number), (of.expr,))
        filled = TypedValue(bits, INT)
        if of.nullable:
            filled = TypedValue(Conditional(conjunction(present(of)), bits, constant(neutral)), INT)
        function, count = fold(aggregation(), filled, scope), count_of(of, scope)
        return CallFolds((function, count), lambda found: _if_any(found, of.type))

    return make_folds


def _and() -> Aggregation[Any]:
    return Monoid(-1, operator.and_, of=nothing)


def _or() -> Aggregation[Any]:
    return Monoid(0, operator.or_, of=nothing)


def _xor() -> Aggregation[Any]:
    return Aggregate(0, operator.xor, operator.xor, of=nothing)


def _at_extreme(kind: Any) -> Maker:
    """Make ARG_MIN or ARG_MAX: of the row with the extreme key; of several, by the value."""

    def make_folds(asked: AggregateCall) -> CallFolds:
        if len(asked.arguments) > 2 or asked.order or asked.in_order:
            return extreme_rows(asked, greatest=kind is Max)
        value, key = asked.value(), asked.value(1)
        both = pair(by_parts(key), by_parts(value))
        function = fold(kind(nothing, skip_none=both.nullable), both, asked.scope)
        return CallFolds(
            (function,),
            lambda found: TypedValue(
                from_parts(Item(found[0], constant(1)), value), value.type, (found[0],)
            ),
        )

    return make_folds


TABLE: dict[str | type[exp.Expr], Maker] = {
    exp.Count: _fold_count,
    exp.CountIf: _count_if,
    exp.ApproxDistinct: lambda asked: _fold_count(replace(asked, distinct=True)),
    exp.Sum: _fold_sum,
    exp.Avg: _avg,
    exp.Min: _make_extreme(Min),
    exp.Max: _make_extreme(Max),
    exp.LogicalAnd: _truth(Min),
    exp.LogicalOr: _truth(Max),
    exp.BitwiseAndAgg: _make_bit_aggregate(_and, -1),
    exp.BitwiseOrAgg: _make_bit_aggregate(_or, 0),
    exp.BitwiseXorAgg: _make_bit_aggregate(_xor, 0),
    exp.Stddev: make_variance(folds.deviation, postgres.deviation, 1),
    exp.StddevSamp: make_variance(folds.deviation, postgres.deviation, 1),
    exp.StddevPop: make_variance(folds.deviation, postgres.deviation, 0),
    exp.Variance: make_variance(folds.variance, postgres.variance, 1),
    exp.VariancePop: make_variance(folds.variance, postgres.variance, 0),
    exp.CovarPop: make_regression(folds.covariance, "x", "y", "xy", less=0),
    exp.CovarSamp: make_regression(folds.covariance, "x", "y", "xy", less=1),
    exp.Corr: make_regression(folds.correlation, "x", "y", "xy", "xx", "yy"),
    exp.RegrSlope: make_regression(folds.slope, "x", "y", "xy", "yy"),
    exp.RegrIntercept: make_regression(folds.intercept, "x", "y", "xy", "yy"),
    exp.RegrR2: make_regression(folds.fit, "x", "y", "xy", "xx", "yy"),
    exp.RegrAvgx: make_regression(folds.ratio, "y"),
    exp.RegrAvgy: make_regression(folds.ratio, "x"),
    exp.RegrSxx: make_regression(folds.deviations, "y", "y", "yy"),
    exp.RegrSyy: make_regression(folds.deviations, "x", "x", "xx"),
    exp.RegrSxy: make_regression(folds.deviations, "x", "y", "xy"),
    exp.RegrCount: pairs,
    exp.ArgMin: _at_extreme(Min),
    exp.ArgMax: _at_extreme(Max),
    exp.GroupConcat: join_texts,
    exp.ArrayAgg: list_values,
    exp.Median: quantile(folds.quantile_between, 0.5),
    exp.PercentileCont: quantile(folds.quantile_between),
    exp.PercentileDisc: quantile(folds.quantile_of),
    exp.Quantile: quantile(folds.quantile_of),
    exp.Mode: rarer.mode,
    exp.Skewness: whole_group(folds.skewness, FLOAT),
    exp.Kurtosis: whole_group(folds.kurtosis, FLOAT),
    exp.AnyValue: end(folds.first, nulls=False),
    exp.First: end(folds.first, nulls=True),
    exp.Last: end(folds.last, nulls=True),
    "every": _truth(Min),
    "total": _total,
    "fsum": _fold_sum,
    "sumkahan": _fold_sum,
    "kahan_sum": _fold_sum,
    "favg": _avg,
    "product": whole_group(folds.product, FLOAT),
    "geomean": whole_group(folds.geometric_mean, FLOAT),
    "geometric_mean": whole_group(folds.geometric_mean, FLOAT),
    "mad": whole_group(folds.spread, FLOAT),
    **rarer.TABLE,
    **json.TABLE,
}
ORDERLESS = frozenset(
    {
        key
        for key in TABLE
        if key not in (exp.GroupConcat, exp.ArrayAgg, exp.AnyValue, exp.First, exp.Last, exp.Mode)
        and key not in json.TABLE
        and key not in (exp.PercentileCont, exp.PercentileDisc, exp.ArgMin, exp.ArgMax)
        and key not in rarer.ORDERED
    }
)
"""Aggregates whose value no order of the rows changes."""
OF_SQLITE = frozenset({exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.GroupConcat, "total"})
"""Aggregates that SQLite has."""
OF_WINDOWS = (
    *("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead"),
    *("first_value", "last_value", "nth_value"),
)
"""Functions that have a meaning in a window only."""
OTHER_NAMES = (
    *("string_agg", "listagg", "list", "max_by", "min_by", "quantile_cont", "quantile_disc"),
    *OF_WINDOWS,
)
"""Names that sqlglot replaces by others, and names of window functions."""
NAMES: tuple[str, ...] = tuple(
    sorted(
        name.lower()
        for key in (*TABLE, *OTHER_NAMES)
        for name in ([key] if isinstance(key, str) else key.sql_names())  # type: ignore[attr-defined]
    )
)
"""The names of the aggregates, for messages."""
