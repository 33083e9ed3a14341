"""Aggregates that only DuckDB has: several extremes of a group, its most frequent values, and more.

    max(x, 3)                   the three greatest values, as a list
    arg_max(x, y, 3)            x of the three rows with the greatest y
    arg_max(x, y order by z)    of several rows with the greatest y the first by z
    approx_quantile(x, 0.3)     exact here, as are the other approximate ones
    histogram(x)                the number of rows of each value, as a map

Cost:   O(group) for each changed group.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from reactive.languages.sql.aggregates.calls import (
    AggregateCall,
    CallFolds,
    Maker,
    Of,
    OfDifferent,
    count_of_extremes,
    end,
    extreme_rows,
    make_regression,
    make_variance,
    of_values,
    whole_group,
)
from reactive.languages.sql.runtime import folds
from reactive.languages.sql.terms.types import FLOAT, UNSIGNED, SqlType


def several_extremes(asked: AggregateCall, *, greatest: bool) -> CallFolds:
    """Return the folds of `min(x, n)` or `max(x, n)`: a list, NULL of no values."""
    of, count = asked.value(), count_of_extremes(asked, 1)
    function: Any = Of(folds.extremes, (count, greatest))
    if asked.distinct:
        function = OfDifferent(function)
    return of_values(function, of, SqlType("array", items=(of.type,)), asked.scope)


def _extremes(*, greatest: bool, null_key: bool = False) -> Maker:
    def make_folds(asked: AggregateCall) -> CallFolds:
        return extreme_rows(asked, greatest=greatest, null_value=True, null_key=null_key)

    return make_folds


def mode(asked: AggregateCall) -> CallFolds:
    """Return the folds of MODE: of several the least, with a descending order the greatest.

    Refuse an order by another value.
    """
    of = asked.value()
    is_last = bool(asked.order and asked.order[0].args.get("desc"))
    for each in asked.order:
        each.args.get("nulls_first")
        if each.this != asked.arguments[0]:
            raise asked.scope.error(each, "the ORDER BY of mode() is by its argument")
    function: Callable[..., Any] = folds.last_mode if is_last else folds.mode
    return of_values(
        OfDifferent(function) if asked.distinct else function, of, of.type, asked.scope
    )


def _top(asked: AggregateCall) -> CallFolds:
    """Translate APPROX_TOP_K: the most frequent values, of equally frequent ones the least."""
    of, count = asked.value(), count_of_extremes(asked, 1)
    kind = SqlType("array", items=(of.type,))
    return of_values(Of(folds.most_frequent, (count,)), of, kind, asked.scope)


def _approximate_quantile(asked: AggregateCall) -> CallFolds:
    """Translate APPROX_QUANTILE, without an error; refuse what is no number."""
    of, place = asked.value(), asked.constant(1)
    if of.type.kind not in ("int", "float", "decimal", "any"):
        raise asked.scope.error(asked.node, "approx_quantile() takes numbers", "quantile_disc()")
    kind = SqlType("array", items=(of.type,)) if isinstance(place, tuple) else of.type
    function = Of(folds.quantile_of_middles, (place, of.type.kind, of.type.scale))
    return of_values(OfDifferent(function) if asked.distinct else function, of, kind, asked.scope)


def _histogram(asked: AggregateCall) -> CallFolds:
    """Translate HISTOGRAM: the number of rows of each value, as a map; NULL of no values."""
    if len(asked.arguments) > 1:
        raise asked.scope.error(asked.node, "histogram() with boundaries is not supported")
    of = asked.value()
    kind = SqlType("map", items=(of.type, SqlType("int", size=8, names=UNSIGNED)))
    function: Any = OfDifferent(folds.histogram) if asked.distinct else folds.histogram
    return of_values(function, of, kind, asked.scope)


def _entropy(asked: AggregateCall) -> CallFolds:
    function: Any = OfDifferent(folds.entropy) if asked.distinct else folds.entropy
    return of_values(function, asked.value(), FLOAT, asked.scope)


TABLE: dict[str | type[exp.Expr], Maker] = {
    exp.ApproxQuantile: _approximate_quantile,
    exp.ApproxTopK: _top,
    "arg_min_null": _extremes(greatest=False),
    "arg_max_null": _extremes(greatest=True),
    "arg_min_nulls_last": _extremes(greatest=False, null_key=True),
    "arg_max_nulls_last": _extremes(greatest=True, null_key=True),
    "arbitrary": end(folds.first, nulls=True),
    "entropy": _entropy,
    "histogram": _histogram,
    "kurtosis_pop": whole_group(folds.kurtosis_of_all, FLOAT),
    "sem": make_variance(folds.standard_error, folds.standard_error, 0),
    "weighted_avg": make_regression(folds.weighted_mean, "y", "xy"),
    "wavg": make_regression(folds.weighted_mean, "y", "xy"),
}
ORDERED = ("arbitrary", *(name for name in TABLE if str(name).startswith("arg_")))
"""Those that an ORDER BY inside changes."""
