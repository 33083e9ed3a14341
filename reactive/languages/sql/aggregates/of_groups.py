"""Aggregates of all values of a group: quantiles, and those whose result depends on an order.

    median(x)                       Collect of x, and a function of that
    array_agg(x order by y)         Collect of (y, x), sorted

Cost:   O(group) for each group that changes; O(group * log group) where it is sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from optimizer.expr import NONE, Conditional, Expr, conjunction, tuple_of
from optimizer.record import record
from reactive.languages.sql.aggregates.calls import (
    Aggregated,
    Asked,
    Maker,
    Of,
    OfDifferent,
    number,
    of_values,
)
from reactive.languages.sql.expressions.casts import cast
from reactive.languages.sql.runtime import folds
from reactive.languages.sql.terms.types import ANY, FLOAT, TEXT, SqlType
from reactive.languages.sql.terms.values import Value, itself, present, whole


def whole_group(function: Callable[..., Any], kind: SqlType | None = None) -> Maker:
    """A function of all values that are not NULL."""

    def made(asked: Asked) -> Aggregated:
        of = number(asked) if kind is FLOAT else asked.value()
        called = OfDifferent(function) if asked.distinct else function
        return of_values(called, of, kind or of.type, asked.scope)

    return made


def quantile(function: Callable[..., Any], at: Any = None) -> Maker:
    def made(asked: Asked) -> Aggregated:
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
        return of_values(called, of, kind, asked.scope)

    return made


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
            values = folds.in_order(rows, self.directions, distinct=self.distinct)
        return self.function(values, *self.more)


def directions_of(order: Sequence[Any]) -> tuple[tuple[bool, bool], ...]:
    """Of each key of an order whether it is descending, and whether NULL is first."""
    return tuple((bool(o.args.get("desc")), bool(o.args.get("nulls_first"))) for o in order)


def _in_order(
    asked: Asked, function: Callable[..., Any], of: Value, kind: SqlType, *more: Any, nulls: bool
) -> Aggregated:
    """An aggregate whose result depends on the order: ORDER BY's, or else that of the values."""
    scope = asked.scope
    order = asked.order or (() if asked.in_order else (exp.Ordered(nulls_first=False),))
    keys = [scope.value(o.this) for o in order if asked.order] or [of][: len(order)]
    packed = Value(tuple_of(*map(whole, keys), whole(of)), ANY)
    test = (
        asked.test if nulls else _both(asked.test, conjunction(present(of)) if of.nulls else None)
    )
    if test is not None:
        packed = itself(Conditional(test, packed.expr, NONE), ANY)
    called = _Ordered(function, directions_of(order), asked.distinct, more)
    return of_values(called, packed, kind, scope)


def _both(one: Expr | None, other: Expr | None) -> Expr | None:
    if one is None or other is None:
        return other if one is None else one
    return conjunction((one, other))


def joined(asked: Asked) -> Aggregated:
    """STRING_AGG, GROUP_CONCAT, LISTAGG."""
    separator = asked.constant(1) if len(asked.arguments) > 1 else ","
    unfiltered = replace(asked, test=None)
    of = cast(unfiltered.value(), TEXT, asked.scope)
    return _in_order(asked, folds.joined, of, TEXT, separator, nulls=False)


def listed(asked: Asked) -> Aggregated:
    """ARRAY_AGG, which keeps NULL."""
    of = replace(asked, test=None).value()
    kind = SqlType("array", items=(of.type,))
    return _in_order(asked, folds.listed, of, kind, nulls=True)


def end(function: Callable[..., Any], *, nulls: bool) -> Maker:
    def made(asked: Asked) -> Aggregated:
        of = replace(asked, test=None).value()
        return _in_order(asked, function, of, of.type, nulls=nulls)

    return made
