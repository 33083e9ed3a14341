"""Aggregates that are computed of sums: variance, correlation, regression.

    var_samp(x)      of the count, the sum of x and that of x * x
    corr(x, y)       of the count, and the sums of x, y, x * y, x * x and y * y

The sums are of fractions and so exact, whatever has come and gone.

Cost:   O(1) per changed row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from optimizer import plan
from optimizer.expr import Call, Expr, Item, Operation, constant
from reactive.api.aggregates import Sum
from reactive.languages.sql.aggregates.calls import (
    Aggregated,
    Asked,
    Maker,
    Of,
    OfDifferent,
    count_of,
    fold,
    nothing,
    number,
    of_values,
    pair,
)
from reactive.languages.sql.postgres import aggregates as postgres
from reactive.languages.sql.runtime import folds
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.types import ANY, DECIMAL, FLOAT, INT
from reactive.languages.sql.terms.values import Value, itself


def _exact(of: Value, power: int = 1, other: Value | None = None) -> Value:
    """A number, its square, or its product with another, exactly."""

    def part(value: Value) -> Expr:
        is_whole = value.type.kind == "int"
        return value.expr if is_whole else Call(constant(folds.exact), (value.expr,))

    if other is not None:
        return Value(Operation("*", (part(of), part(other))), ANY, (*of.nulls, *other.nulls))
    if power == 2:
        return Value(Operation("*", (part(of), part(of))), ANY, of.nulls)
    return Value(part(of), ANY, of.nulls)


def _sum_of(of: Value, scope: Scope) -> plan.Folded:
    return fold(Sum(nothing, skip_none=of.nullable), of, scope)


def spread(of_float: Callable[..., Any], of_numeric: Callable[..., Any], less: int) -> Maker:
    """Variance and deviation; of integers and numerics Postgres has its own."""

    def made(asked: Asked) -> Aggregated:
        of, scope = number(asked), asked.scope
        function, kind = of_float, FLOAT
        if scope.dialect.name == "postgres" and of.type.kind in postgres.EXACT:
            function, kind = of_numeric, DECIMAL
        if asked.distinct:
            return of_values(Of(_of_different, (function, less)), of, kind, scope)
        sums = (_sum_of(_exact(of), scope), _sum_of(_exact(of, 2), scope))
        return Aggregated(
            (count_of(of, scope), *sums),
            lambda found: itself(Call(constant(function), (*found, constant(less))), kind),
        )

    return made


def _of_different(values: Any, function: Callable[..., Any], less: int) -> Any:
    found = [folds.exact(value) for value in set(values)]
    return function(len(found), sum(found), sum(v * v for v in found), less)


def together(function: Callable[..., Any], *parts: str, less: int | None = None) -> Maker:
    """Aggregates of two numbers, of rows that have both; `parts` are the sums that it takes."""

    def made(asked: Asked) -> Aggregated:
        scope = asked.scope
        x, y = number(asked), number(asked, 1)
        both = pair(x, y)
        if asked.distinct:
            called = Of(_of_different_pairs, (function, parts, () if less is None else (less,)))
            return of_values(called, both, FLOAT, scope)
        one, two = (
            Value(Item(both.expr, constant(n)), v.type, both.nulls) for n, v in enumerate((x, y))
        )
        of = {"x": (one, None), "y": (two, None), "xy": (one, two), "xx": (one, one)}
        of["yy"] = (two, two)
        sums = [_sum_of(_exact(of[p][0], other=of[p][1]), scope) for p in parts]
        more = () if less is None else (constant(less),)
        return Aggregated(
            (count_of(both, scope), *sums),
            lambda found: itself(Call(constant(function), (*found, *more)), FLOAT),
        )

    return made


def _of_different_pairs(
    values: Any, function: Callable[..., Any], parts: Sequence[str], more: Sequence[int]
) -> Any:
    found = [tuple(map(folds.exact, pair)) for pair in set(values)]
    of = {"x": lambda x, y: x, "y": lambda x, y: y, "xy": lambda x, y: x * y}
    of |= {"xx": lambda x, y: x * x, "yy": lambda x, y: y * y}
    return function(len(found), *(sum(of[part](*pair) for pair in found) for part in parts), *more)


def pairs(asked: Asked) -> Aggregated:
    """REGR_COUNT: the rows that have both numbers."""
    both = pair(asked.value(), asked.value(1))
    if asked.distinct:
        return of_values(OfDifferent(len), both, INT, asked.scope)
    return Aggregated((count_of(both, asked.scope),), lambda found: Value(found[0], INT))
