"""Aggregates that make JSON: of Postgres and of DuckDB.

    jsonb_agg(x order by y)       Collect of (y, x), sorted, as a document
    json_object_agg(k, v)         Collect of the pairs

Without an ORDER BY the values are in their own order, as those of ARRAY_AGG.

Cost:   O(group * log group) for each group that changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from optimizer.expr import tuple_of
from reactive.languages.sql.aggregates.calls import (
    AggregateCall,
    CallFolds,
    Maker,
    aggregate_name,
    fold_in_order,
)
from reactive.languages.sql.json import conversions, encoders
from reactive.languages.sql.json.of_duckdb import encoder_of
from reactive.languages.sql.terms.types import JSON, JSONB, SqlType
from reactive.languages.sql.terms.values import TypedValue, as_optional


def _check_dialect(asked: AggregateCall, name: str) -> None:
    """Refuse an aggregate of another dialect."""
    if asked.scope.dialect.name != name:
        raise asked.scope.error(
            asked.node,
            f"there is no aggregate {aggregate_name(asked.node)!r} in {asked.scope.dialect.name}",
            f"it is one of {name}",
        )


def _argument(asked: AggregateCall, place: int) -> TypedValue:
    """Return an argument, which may be the whole row of a table."""
    if place >= len(asked.arguments):
        return asked.value(place)  # which is an error
    asked.taken.add(place)
    return asked.scope.value(asked.arguments[place])


def _define_array(result: SqlType) -> Maker:
    """Make JSON_AGG or JSONB_AGG."""

    def make_folds(asked: AggregateCall) -> CallFolds:
        _check_dialect(asked, "postgres")
        of, zone = _argument(asked, 0), asked.scope.dialect.timezone
        function: Callable[..., Any] = encoders.CollectedArray(encoders.DataEncoder(of.type, zone))
        if result is JSON:
            function = encoders.CollectedArrayText(encoders.TextEncoder(of.type, zone))
        return fold_in_order(asked, function, of, result, nulls=True)

    return make_folds


def _define_object(result: SqlType) -> Maker:
    """Make JSON_OBJECT_AGG or JSONB_OBJECT_AGG."""

    def make_folds(asked: AggregateCall) -> CallFolds:
        _check_dialect(asked, "postgres")
        values, zone = [_argument(asked, 0), _argument(asked, 1)], asked.scope.dialect.timezone
        kinds = tuple(value.type for value in values)
        kind = SqlType("struct", items=kinds, names=("key", "value"))
        of = TypedValue(tuple_of(*map(as_optional, values)), kind)
        encoded: Any = [encoders.DataEncoder(each, zone) for each in kinds]
        function: Callable[..., Any] = encoders.CollectedObject(
            encoders.BuiltObject(tuple(encoded))
        )
        if result is JSON:
            encoded = [encoders.TextEncoder(each, zone) for each in kinds]
            function = encoders.CollectedObjectText(encoders.BuiltObjectText(tuple(encoded)))
        return fold_in_order(replace(asked), function, of, result, nulls=True)

    return make_folds


def _group_array(asked: AggregateCall) -> CallFolds:
    """Translate JSON_GROUP_ARRAY."""
    _check_dialect(asked, "duckdb")
    of = asked.value()
    function = conversions.GroupedArray(encoder_of(of.type, asked.scope))
    return fold_in_order(asked, function, of, JSON, nulls=True)


def _group_object(asked: AggregateCall) -> CallFolds:
    """Translate JSON_GROUP_OBJECT."""
    _check_dialect(asked, "duckdb")
    key, value = asked.value(), asked.value(1)
    kind = SqlType("struct", items=(key.type, value.type), names=("key", "value"))
    of = TypedValue(tuple_of(as_optional(key), as_optional(value)), kind)
    encoders_of = [encoder_of(each.type, asked.scope) for each in (key, value)]
    return fold_in_order(asked, conversions.GroupedObject(*encoders_of), of, JSON, nulls=True)


TABLE: dict[Any, Maker] = {
    "json_group_array": _group_array,
    "json_group_object": _group_object,
    "json_agg": _define_array(JSON),
    "jsonb_agg": _define_array(JSONB),
    "json_object_agg": _define_object(JSON),
    "jsonb_object_agg": _define_object(JSONB),
}
