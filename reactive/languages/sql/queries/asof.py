"""ASOF JOIN, as DuckDB has it: equations, and one inequality of times.

    t asof join q on t.id = q.id and t.at >= q.at      the last row of q before or at the time
    <=                                                 the first one at or after it
    >, <                                               not at the same time
    using (id, at)                                     the last column is the time: >=
    t asof join q match_condition (t.at >= q.at) on t.id = q.id        as in Snowflake

A row has no partner if one of its values is NULL; ASOF LEFT JOIN keeps it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sqlglot import exp

from optimizer import plan
from optimizer.expr import (
    NONE,
    Conditional,
    Expr,
    all_parameters,
    conjunction,
    one_value,
    reads,
    substitute,
    tuple_of,
)
from reactive.languages.sql.expressions.casts import align
from reactive.languages.sql.queries.join_columns import merge_columns, shared_columns, side_by_side
from reactive.languages.sql.queries.query import PlannedRows
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.values import TypedValue, present

_FLIPPED = {exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE}
Sides = tuple[TypedValue, TypedValue]


def join_asof(left: PlannedRows, right: PlannedRows, join: Any, around: Scope) -> PlannedRows:
    """Return the rows of an ASOF JOIN.

    Raises
    ------
    PlanError: the dialect has none, it is RIGHT or FULL, or there is not one inequality.
    """
    half = (join.side or "").upper()
    if around.dialect.name != "duckdb":
        raise around.error(join, f"{around.dialect.name} has no ASOF JOIN", 'dialect="duckdb" has')
    if half not in ("", "LEFT"):
        raise around.error(join, f"ASOF {half} JOIN is not supported", "write ASOF LEFT JOIN")
    kind = "left" if half else None
    _, shared = shared_columns(left, right, join, around)
    keys, times, symbol = _conditions(left, right, join, around, shared)
    made = side_by_side(left, right, kind)
    made = replace(made, merged={**made.merged, **merge_columns(made, shared, kind, join, around)})
    count = left.bindings
    sides = [
        _timed(
            rows,
            [pair[side] for pair in keys],
            times[side],
            place,
            rows.scope(around).reading(join),
        )
        for side, (rows, place) in enumerate(((left, 0), (right, count)))
    ]
    is_back = symbol in (exp.GT, exp.GTE)
    return made.with_node(
        plan.AsofJoin(
            sides[0],
            sides[1],
            count,
            "backward" if is_back else "forward",
            is_strict=symbol in (exp.GT, exp.LT),
            is_left=bool(half),
        )
    )


def _conditions(
    left: PlannedRows,
    right: PlannedRows,
    join: Any,
    around: Scope,
    shared: list[tuple[str, TypedValue, TypedValue]],
) -> tuple[list[Sides], Sides, Any]:
    """Return the pairs of equal values, the pair of times, and the class of the inequality."""
    given = join.args.get("match_condition")
    equal = shared if given is not None else shared[:-1]
    keys: list[Sides] = [(one, other) for _, one, other in equal]
    times: list[tuple[Any, Sides]] = [(exp.GTE, shared[-1][1:])] if len(equal) < len(shared) else []
    scope = side_by_side(left, right, None).scope(around)
    for test in (each for on in (join.args.get("on"), given) if on for each in tests_in(on)):
        kind, sides = _comparison(test, scope, left.bindings, around)
        if kind is exp.EQ:
            keys.append(sides)
        else:
            times.append((kind, sides))
    if len(times) != 1:
        raise around.error(
            join,
            f"ASOF JOIN has one inequality, and got {len(times)}",
            "such as ON a.id = b.id AND a.at >= b.at",
        )
    ((symbol, pair),) = times
    return keys, pair, symbol


def tests_in(on: Any) -> Iterator[Any]:
    """Return the conditions that AND joins."""
    if isinstance(on, exp.Paren):
        yield from tests_in(on.this)
    elif isinstance(on, exp.And):
        yield from tests_in(on.this)
        yield from tests_in(on.expression)
    else:
        yield on


def _comparison(test: Any, scope: Scope, place: int, around: Scope) -> tuple[Any, Sides]:
    """Return the class of a comparison, and its values of the left and of the right."""
    found = compared_sides(test, scope, place, around)
    if found is None:
        raise around.error(
            test,
            f"ASOF JOIN cannot be on {test.sql()}",
            "compare a value of the left with one of the right; other conditions go to WHERE",
        )
    return found


def compared_sides(test: Any, scope: Scope, place: int, around: Scope) -> tuple[Any, Sides] | None:
    """Return the class of a comparison, and its values of the left and of the right.

    Return None for a condition that is no comparison of both sides. `place` is the first binding
    of the right.
    """
    kind: Any = type(test)
    if kind is not exp.EQ and kind not in _FLIPPED:
        return None
    one, other = align(test, around, scope.value(test.this), scope.value(test.expression))
    first, second = (reads(value.expr) for value in (one, other))
    if place not in first and second == {place}:
        return kind, (one, other)
    if place not in second and first == {place}:
        return _FLIPPED.get(kind, kind), (other, one)
    return None


def _timed(
    rows: PlannedRows, keys: list[TypedValue], time: TypedValue, place: int, scope: Scope
) -> plan.Node:
    """Return the rows of a side, each beside its key and its time: None if a value is NULL.

    `place` is the first parameter of the values that is a binding of this side.
    """
    missing = present(*keys, time)
    at: Expr = Conditional(conjunction(missing), time.expr, NONE) if missing else time.expr
    own = all_parameters(rows.bindings)
    moved = (*all_parameters(place), *own)
    values = [substitute(expr, moved) for expr in (tuple_of(*(key.expr for key in keys)), at)]
    return plan.Select(rows.node, scope.function(tuple_of(one_value(own), *values)))
