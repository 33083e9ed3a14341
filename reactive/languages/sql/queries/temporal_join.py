"""FOR SYSTEM_TIME AS OF: each event with the rows of a table as of the commit of the event.

    from sales s join prices for system_time as of proctime() p on s.item = p.item

is `sales.lookup(prices, ...)`: a change of a price changes no pair that was made before, and no
event is kept. LEFT JOIN keeps events without a row. Rows of the past are not kept, so that the only
time there is to ask for is that of the commit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlglot import exp

from optimizer import plan
from optimizer.expr import Expr, all_parameters, conjunction, one_value, substitute, tuple_of
from reactive.engine.operators.frontiers import only_comes
from reactive.languages.sql.queries.asof import compared_sides, tests_in
from reactive.languages.sql.queries.grouping import filter_rows, freed
from reactive.languages.sql.queries.join_columns import merge_columns, shared_columns, side_by_side
from reactive.languages.sql.queries.query import PlannedRows
from reactive.languages.sql.terms.errors import nearest, take
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.values import TypedValue, as_optional, present

Sides = tuple[TypedValue, TypedValue]
WORDS = frozenset({"proctime", "proc_time", "now"})
"""Functions, and columns, that are the time at which an event is processed."""


def join_as_of_commit(
    left: PlannedRows, right: PlannedRows, join: Any, around: Scope
) -> PlannedRows:
    """Return the pairs of a join with `FOR SYSTEM_TIME AS OF PROCTIME()`.

    Raises
    ------
    PlanError: the left is no stream, the time is another one, or ON has no equation.
    """
    _check_time(join.this.args["version"], left, around)
    side = (join.side or "").upper()
    if side not in ("", "LEFT") or (join.kind or "").upper() not in ("", "INNER", "OUTER"):
        words = " ".join(filter(None, (side, (join.kind or "").upper())))
        raise around.error(
            join,
            f"{words} JOIN has no FOR SYSTEM_TIME AS OF",
            "write JOIN or LEFT JOIN, with the events on the left",
        )
    if not only_comes(left.node):
        raise around.error(
            join,
            "FOR SYSTEM_TIME AS OF joins events, and rows of the left side may be removed",
            "read a db.stream(...) there; a join without it follows both sides",
        )
    kind = "left" if side else None
    _, shared = shared_columns(left, right, join, around)
    both = side_by_side(left, right, None).scope(around)
    keys, tests = _equations(left, join, around, both, [pair for _, *pair in shared])
    if kind and tests:
        raise around.error(
            join,
            "LEFT JOIN with FOR SYSTEM_TIME AS OF is ON equations of both sides",
            "put conditions of one side into a query in FROM",
        )
    count = left.bindings
    made = side_by_side(left, right, kind)
    made = replace(made, merged={**made.merged, **merge_columns(made, shared, kind, join, around)})
    of_left = left.scope(around).reading(join)
    of_right = right.scope(around).reading(join)
    moved = (*all_parameters(count), *all_parameters(right.bindings))
    known = [substitute(test, moved) for test in present(*(one for _, one in keys))]
    rows = filter_rows(right.node, of_right, conjunction(tuple(known)))
    node = plan.Lookup(
        _beside(left.node, left.bindings, [one for one, _ in keys], of_left),
        _beside(rows, right.bindings, [_moved(one, moved) for _, one in keys], of_right),
        count,
        bool(kind),
    )
    scope = both.reading(join)
    return made.with_node(filter_rows(node, scope, conjunction(tuple(map(scope.true, tests)))))


def _check_time(version: Any, left: PlannedRows, around: Scope) -> None:
    """Check that a join asks for the time at which events are processed."""
    time = version.expression
    if version.args["kind"] == "AS OF" and version.this == "TIMESTAMP" and _is_of_commit(time):
        take(time)
        if isinstance(time, exp.Column) and time.table:
            names = [source.name for source in left.sources]
            if time.table.casefold() not in map(str.casefold, names):
                raise around.error(
                    time, f"the left side has no table {time.table!r}{nearest(time.table, names)}"
                )
        return
    raise around.error(
        version,
        "rows of the past are not kept: FOR SYSTEM_TIME reads them as of the commit of the event",
        "write FOR SYSTEM_TIME AS OF PROCTIME(); ASOF JOIN finds the row of another time",
    )


def _is_of_commit(time: Any) -> bool:
    """Return True for a function or a column that is the time of processing."""
    if isinstance(time, exp.Anonymous) and time.expressions:
        return False
    is_named = isinstance(time, exp.Column | exp.Anonymous) and time.name.casefold() in WORDS
    return is_named or isinstance(time, exp.CurrentTimestamp)


def _equations(
    left: PlannedRows, join: Any, around: Scope, scope: Scope, keys: list[Any]
) -> tuple[list[Sides], list[Any]]:
    """Return the pairs of equal values, of USING and of ON, and the other conditions of ON."""
    on, tests = join.args.get("on"), list[Any]()
    for test in tests_in(on) if on is not None else ():
        found = compared_sides(test, scope, left.bindings, around)
        if found is not None and found[0] is exp.EQ:
            keys.append(found[1])
        else:
            tests.append(test)
    if not keys:
        raise around.error(
            join, "FOR SYSTEM_TIME AS OF has no equation of both sides", "ON s.item = p.item"
        )
    return keys, tests


def _moved(value: TypedValue, moved: tuple[Expr, ...]) -> TypedValue:
    """Return a value with other parameters."""
    nulls = tuple(substitute(leaf, moved) for leaf in value.nulls)
    return TypedValue(substitute(value.expr, moved), value.type, nulls)


def _beside(node: plan.Node, count: int, keys: list[TypedValue], scope: Scope) -> plan.Node:
    """Return the rows of a side, each beside its key."""
    key = tuple_of(*map(as_optional, keys))
    row = one_value(all_parameters(count))
    return freed(plan.Select(node, scope.function(tuple_of(row, key))))
