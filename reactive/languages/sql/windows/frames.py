"""Aggregates of the frames of windows: what is done with the values of each frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from optimizer import plan
from optimizer.expr import (
    NONE,
    Call,
    Constant,
    Lifted,
    Parameter,
    all_parameters,
    constant,
    row_names,
    tuple_of,
)
from reactive.engine.codegen.functions import callable_of
from reactive.languages.sql.aggregates.calls import Asked, number
from reactive.languages.sql.aggregates.kinds import made_of, sum_type
from reactive.languages.sql.postgres import aggregates as postgres
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.types import ANY, FLOAT, INT, SqlType
from reactive.languages.sql.terms.values import Value, whole

OF_FRAMES: dict[type[exp.Expr], str] = {
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.Count: "count",
}


def of_frame(asked: Asked) -> tuple[Any, Value | None, SqlType, bool]:
    """What is done with the values of a frame, these, the type of the result, and whether NULL is
    among the values.

    Raises
    ------
    PlanError: the aggregate cannot be asked of frames.
    """
    kind = type(asked.node)
    if kind is exp.Count and not asked.distinct:
        of = asked.value() if asked.arguments else asked.only(Value(constant(1), INT))
        return "count", of, INT, False
    name = OF_FRAMES.get(kind)
    if name in ("min", "max") and asked.scope.dialect.numeric_booleans:
        name = None
    if name is not None and name != "count" and not asked.distinct:
        of = number(asked) if name in ("sum", "avg") else asked.value()
        types = {"sum": sum_type(of.type, asked.scope), "avg": FLOAT}
        if not (_is_numeric(name, of, asked.scope) or _is_of_times(name, of)):
            return name, of, types.get(name, of.type), False
    aggregated = made_of(asked)
    folds_, values = aggregated.folds, aggregated.result
    if len(folds_) == 1 and folds_[0].name == "Collect":
        value = folds_[0].value
        assert isinstance(value, Lifted)
        found = values((Parameter(0),))
        assert isinstance(found.expr, Call) and isinstance(found.expr.function, Constant)
        return found.expr.function.value, Value(value.body, ANY, (value.body,)), found.type, False
    function = _FoldsOf(tuple(folds_), values)
    packed = tuple_of(*(f.value.body if isinstance(f.value, Lifted) else NONE for f in folds_))
    return function, Value(packed, ANY), values(all_parameters(len(folds_))).type, True


def _is_numeric(name: str, of: Value, scope: Scope) -> bool:
    """True if Postgres makes a numeric of what it adds up."""
    if scope.dialect.name != "postgres" or of.type.kind not in postgres.EXACT:
        return False
    return name == "avg" or (name == "sum" and of.type.size == 8)


def _is_of_times(name: str, of: Value) -> bool:
    """True if it is AVG of moments, which have no sum, or adds up intervals, which have parts."""
    if of.type.kind == "interval":
        return name in ("sum", "avg")
    return name == "avg" and of.type.kind in ("date", "time", "timestamp", "timestamptz")


class _FoldsOf:
    """The aggregates of a frame by their accumulators: values are tuples, one item for each."""

    def __init__(self, of: tuple[plan.Folded, ...], result: Callable[..., Value]) -> None:
        self._of = of
        self._finish = callable_of(
            Lifted(whole(result(all_parameters(len(of)))), row_names(len(of)), (), len(of))
        )

    def __call__(self, values: Sequence[tuple[Any, ...]]) -> Any:
        results = []
        for place, each in enumerate(self._of):
            state = each.accumulator.zero()
            for value in values:
                state = each.accumulator.add(state, value[place], 1)
            results.append(each.accumulator.result(state))
        return self._finish(*results)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _FoldsOf) and self._of == other._of

    def __hash__(self) -> int:
        return hash(self._of)
