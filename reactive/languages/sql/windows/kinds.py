"""Window functions: values of a row among the rows of its partition.

    rank() over (partition by a order by b)

    extend                       the bindings of the row again, and the results
      reduce by a                rows of a partition in order, each with its results
        select                   (bindings, a, (b,), arguments)
          rows

Windows of the same partition and order are computed together.

State:  every row, by partition, and every row that is shown of it.
Cost:   O(log n) in a partition of n rows, plus the rows whose answers change.
Source: SQL:2003, window functions, by `reduce` per group with a function that keeps its groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from sqlglot import exp

from optimizer import plan
from optimizer.expr import (
    NONE,
    Call,
    Constant,
    Expr,
    Lifted,
    Parameter,
    all_parameters,
    constant,
    row_names,
    tuple_of,
)
from optimizer.expressions.knowledge import Shape, total
from optimizer.plans.properties import bindings, shapes
from reactive.engine.codegen.functions import callable_of
from reactive.engine.operators.windows.frames import (
    CURRENT,
    TO_PEERS,
    UNBOUNDED,
    WHOLE,
    Edge,
    Frame,
    shift_number,
)
from reactive.engine.operators.windows.function import Asked
from reactive.engine.operators.windows.packing import (
    WindowAnswers,
    WindowSort,
    answer,
    reduce_partitions,
)
from reactive.languages.sql.aggregates.calls import AggregateCall as AggregateCall
from reactive.languages.sql.aggregates.calls import directions_of, numeric_argument, parse_aggregate
from reactive.languages.sql.aggregates.kinds import folds_of_call, is_aggregate, type_of_sum
from reactive.languages.sql.expressions.casts import cast
from reactive.languages.sql.postgres import numerics as postgres
from reactive.languages.sql.runtime.arrays import CalendarShift
from reactive.languages.sql.runtime.intervals import interval_parts
from reactive.languages.sql.sqlite.comparisons import grouped_by, sorted_by
from reactive.languages.sql.terms.errors import take
from reactive.languages.sql.terms.folding import with_folded_constants
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.types import ANY, FLOAT, INT, SqlType
from reactive.languages.sql.terms.values import TypedValue, as_optional, nullable_value
from reactive.languages.sql.windows.totals import (
    GroupTotals,
    PartitionTotal,
    group_totals,
    join_totals,
    may_raise,
    whole_partition,
)

NEVER_NULL = frozenset(
    {"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "count"}
)
OF_PLACES: dict[type[exp.Expr], tuple[str, SqlType]] = {
    exp.RowNumber: ("row_number", INT),
    exp.Rank: ("rank", INT),
    exp.DenseRank: ("dense_rank", INT),
    exp.PercentRank: ("percent_rank", FLOAT),
    exp.CumeDist: ("cume_dist", FLOAT),
}


def append_windows(
    source: plan.Node, scope: Scope, nodes: Sequence[Any]
) -> tuple[plan.Node, list[TypedValue]]:
    """Return the plan with the answers of windows appended, and the value of each window.

    Raises
    ------
    PlanError: there is no such window function, or no such frame.
    """
    windows = [PartitionedWindow(scope, node) for node in nodes]
    found: dict[int, TypedValue] = {}
    groups: list[GroupTotals] = []
    done = set[int]()
    for window in windows:
        if id(window.node) in done:
            continue
        together = [each for each in windows if each.fits(window)]
        done |= {id(each.node) for each in together}
        totals = _totals(source, scope.wider(bindings(source)), together)
        if totals:
            source, group = group_totals(source, scope.wider(bindings(source)), totals)
            groups.append(group)
        names = {each.name for each in totals}
        in_order = [each for each in together if id(each.node) not in names]
        if in_order:
            source, values = _reduce_partitions(source, scope.wider(bindings(source)), in_order)
            found |= {id(each.node): value for each, value in zip(in_order, values, strict=True)}
    source, joined = join_totals(source, scope, groups)
    return source, [(found | joined)[id(node)] for node in nodes]


def _totals(
    source: plan.Node, scope: Scope, together: Sequence[PartitionedWindow]
) -> list[PartitionTotal]:
    """Return the aggregates of all rows of a partition among windows of one partition and order.

    Return none if a row may be left out of them because an expression of another window raises.
    """
    totals = [found for each in together if (found := _total(each, scope)) is not None]
    others = len(together) - len(totals)
    if not (totals and others):
        return totals
    places = sum(type(each.node.this) in OF_PLACES for each in together)
    is_safe = places == others and total(together[0].keys, shapes(source))
    return totals if is_safe and not may_raise(totals, source) else []


def _total(window: PartitionedWindow, scope: Scope) -> PartitionTotal | None:
    """Return an aggregate of all rows of its partition; None for other functions and frames."""
    node, over = window.node.this, window.node.args.get("over")
    is_plain = over in (None, "OVER") and not isinstance(node, exp.IgnoreNulls | exp.RespectNulls)
    if not (is_plain and is_aggregate(node) and _frame(window, scope).is_whole):
        return None
    asked = parse_aggregate(node, scope, grouped=True)
    return whole_partition(id(window.node), asked, window.partition_keys)


class PartitionedWindow:
    """A window with the keys of its partition and its order."""

    def __init__(self, scope: Scope, node: Any) -> None:
        self.node = node
        self.dialect = "sqlite" if scope.dialect.name == "sqlite" else None
        keys = [scope.value(each) for each in node.args.get("partition_by") or ()]
        keys = list(map(grouped_by, keys))
        self.partition_keys = tuple(keys)
        self.partition: Expr = tuple_of(*map(as_optional, keys))
        order = node.args.get("order")
        self.order = tuple(order.expressions) if order is not None else ()
        keys_of_order = [scope.value(each.this) for each in self.order]
        if scope.dialect.numeric_booleans and not _has_distances(node):
            keys_of_order = list(map(sorted_by, keys_of_order))
        elif not scope.dialect.numeric_booleans:
            keys_of_order = list(map(grouped_by, keys_of_order))
        self.keys: Expr = tuple_of(*map(as_optional, keys_of_order))
        self.directions = directions_of(self.order)

    def fits(self, other: PartitionedWindow) -> bool:
        """Return True if both can use one sort of the same partitions."""
        mine = (self.partition, self.keys, self.directions)
        return mine == (other.partition, other.keys, other.directions)


def _has_distances(window: Any) -> bool:
    """Return True if the frame of a window is by distances of values."""
    spec = window.args.get("spec")
    bounds = () if spec is None else (spec.args.get("start"), spec.args.get("end"))
    is_range = spec is not None and str(spec.args.get("kind")).lower() == "range"
    return is_range and any(isinstance(bound, exp.Expr) for bound in bounds)


def _reduce_partitions(
    source: plan.Node, scope: Scope, together: Sequence[PartitionedWindow]
) -> tuple[plan.Node, list[TypedValue]]:
    """Append windows of one partition and order to the rows; also return their values."""
    arguments: list[Expr] = []
    made = [_read_function(each, scope, arguments) for each in together]
    first, count = together[0], scope.bindings
    asked, kinds = zip(*made, strict=True)
    sort = WindowSort(first.partition, first.keys, first.directions)
    shown = tuple(map(_shape, kinds))
    answers = WindowAnswers(asked, tuple(arguments), shown, _window_names(together))
    reduced = reduce_partitions(source, sort, answers, range(count), scope.function)
    rows = plan.Extend(reduced, (), tuple(map(answer, range(count + len(made)))))
    places = (Parameter(count + place) for place in range(len(made)))
    return rows, [
        TypedValue(place, kind) if each.function in NEVER_NULL else nullable_value(place, kind)
        for place, kind, each in zip(places, kinds, asked, strict=True)
    ]


def _shape(kind: SqlType) -> Shape:
    return {"int": int, "float": float}.get(kind.kind)


def _window_names(together: Sequence[PartitionedWindow]) -> str:
    return ", ".join(each.node.this.sql(each.dialect) for each in together)


def _read_function(
    of: PartitionedWindow, scope: Scope, arguments: list[Expr]
) -> tuple[Asked, SqlType]:
    """Return the window function and its answers' type; append its arguments to `arguments`."""
    node, ignores = of.node.this, False
    while isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
        ignores, node = isinstance(node, exp.IgnoreNulls), node.this
    take(node)
    frame = _frame(of, scope)
    if of.node.args.get("over") not in (None, "OVER"):
        raise scope.error(of.node, f"{of.node.args['over']} is not supported")

    def place(value: TypedValue) -> int:
        expr = as_optional(value)
        if expr not in arguments:
            arguments.append(expr)
        return arguments.index(expr)

    if type(node) in OF_PLACES:
        name, kind = OF_PLACES[type(node)]
        return Asked(name, None, WHOLE), kind
    match node:
        case exp.Ntile():
            count = _constant_argument(node.this, scope)
            return Asked("ntile", None, WHOLE, (count,)), INT
        case exp.Lag() | exp.Lead():
            return _shift_call(node, scope, place, ignores=ignores)
        case exp.FirstValue() | exp.LastValue() | exp.NthValue():
            value = scope.value(node.this)
            nth = {exp.FirstValue: 1, exp.LastValue: -1}.get(type(node))
            nth = _constant_argument(node.args["offset"], scope) if nth is None else nth
            return Asked("nth", place(value), frame, (nth,), ignores), value.type
        case exp.First() | exp.Last() if ignores:
            value, nth = (scope.value(node.this), 1 if isinstance(node, exp.First) else -1)
            return Asked("nth", place(value), frame, (nth,), True), value.type
        case _ if is_aggregate(node):
            if node is not of.node.this and not isinstance(node, exp.AnyValue):
                raise scope.error(of.node, "IGNORE NULLS and RESPECT NULLS are not of aggregates")
            return _aggregate(node, scope, place, frame, in_order=bool(of.order))
    raise scope.error(of.node, f"there is no window function {node.sql()}")


def _shift_call(
    node: Any, scope: Scope, place: Callable[[TypedValue], int], *, ignores: bool
) -> tuple[Asked, SqlType]:
    """Return LAG or LEAD with its type; `place` stores an argument, and returns its place."""
    value = scope.value(node.this)
    offset = _constant_argument(node.args["offset"], scope) if node.args.get("offset") else 1
    default = node.args.get("default")
    other = None
    if default is not None:
        other = place(cast(scope.value(default), value.type, scope))
    by = -offset if isinstance(node, exp.Lag) else offset
    return Asked("shifted", place(value), WHOLE, (by, other), ignores), value.type


def _aggregate(
    node: Any, scope: Scope, place: Callable[[TypedValue], int], frame: Frame, *, in_order: bool
) -> tuple[Asked, SqlType]:
    """Return an aggregate of a frame with its type; `place` stores its argument."""
    asked = replace(parse_aggregate(node, scope, grouped=False), in_order=in_order)
    function, value, kind, keeps = of_frame(asked)
    argument = None if value is None else place(value)
    if function in ("sum", "avg", "min", "max"):
        return Asked(function, argument, frame, (function,)), kind
    more = (function,) if function == "count" else ()
    return Asked(function, argument, frame, more, False, keeps), kind


def _constant_argument(node: Any, scope: Scope) -> Any:
    """Return the value of a node; refuse one that is not constant."""
    expr = with_folded_constants(as_optional(scope.value(node)))
    if not isinstance(expr, Constant):
        raise scope.error(node, "this has to be a constant in a window function")
    return expr.value


# Frames.


def _frame(of: PartitionedWindow, scope: Scope) -> Frame:
    """Return the frame of a window; without one, up to the row's peers, or all without an order."""
    spec = of.node.args.get("spec")
    if spec is None:
        return TO_PEERS if of.order else WHOLE
    kind = str(spec.args.get("kind") or "rows").lower()
    start = _edge(spec, "start", scope)
    end = _edge(spec, "end", scope) if spec.args.get("end") else CURRENT
    given = spec.args.get("exclude")
    exclude = (given.name if isinstance(given, exp.Expr) else str(given or "")).lower()
    names = {"current row": "current", "group": "group", "ties": "ties", "no others": ""}
    if kind == "range" and (start, end) != (UNBOUNDED, UNBOUNDED) and not of.order:
        return WHOLE
    edges = {"start": start, "end": end}
    of_time = [side for side, (_, offset) in edges.items() if isinstance(offset, timedelta)]
    is_by_calendar = any(interval_parts(edges[side][1])[:2] != (0, 0) for side in of_time)
    zone = scope.dialect.timezone if is_by_calendar else "UTC"
    shift = CalendarShift(zone) if of_time else shift_number
    return Frame(kind, start, end, names.get(exclude, ""), shift)  # type: ignore[arg-type]


def _edge(spec: Any, side: str, scope: Scope) -> Edge:
    """Return an edge of a frame; refuse UNBOUNDED on the wrong side."""
    bound, where = spec.args.get(side), str(spec.args.get(f"{side}_side")).lower()
    if isinstance(bound, str):
        if where == ("following" if side == "start" else "preceding"):
            raise scope.error(spec, f"a frame cannot {side} with UNBOUNDED {where.upper()}")
        return CURRENT if bound.upper() == "CURRENT ROW" else UNBOUNDED
    return (where, _constant_argument(bound, scope))  # type: ignore[return-value]


# Aggregates of window frames: the function of the values of each frame.

OF_FRAMES: dict[type[exp.Expr], str] = {
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.Count: "count",
}


def of_frame(asked: AggregateCall) -> tuple[Any, TypedValue | None, SqlType, bool]:
    """Return the function of a frame's values, the values, and the type of the result.

    The last item is True if NULL is among the values.

    Raises
    ------
    PlanError: the aggregate cannot be computed for frames.
    """
    kind = type(asked.node)
    if kind is exp.Count and not asked.distinct:
        of = asked.value() if asked.arguments else asked.only(TypedValue(constant(1), INT))
        return "count", of, INT, False
    name = OF_FRAMES.get(kind)
    if name in ("min", "max") and asked.scope.dialect.numeric_booleans:
        name = None
    if name is not None and name != "count" and not asked.distinct:
        of = numeric_argument(asked) if name in ("sum", "avg") else asked.value()
        types = {"sum": type_of_sum(of.type, asked.scope), "avg": FLOAT}
        if not (_is_numeric(name, of, asked.scope) or _is_of_times(name, of)):
            return name, of, types.get(name, of.type), False
    aggregated = folds_of_call(asked)
    folds_, values = aggregated.folds, aggregated.result
    if len(folds_) == 1 and folds_[0].name == "Collect":
        value = folds_[0].value
        assert isinstance(value, Lifted)
        found = values((Parameter(0),))
        assert isinstance(found.expr, Call) and isinstance(found.expr.function, Constant)
        return (
            found.expr.function.value,
            TypedValue(value.body, ANY, (value.body,)),
            found.type,
            False,
        )
    function = _FoldsOf(tuple(folds_), values)
    packed = tuple_of(*(f.value.body if isinstance(f.value, Lifted) else NONE for f in folds_))
    return (function, TypedValue(packed, ANY), values(all_parameters(len(folds_))).type, True)


def _is_numeric(name: str, of: TypedValue, scope: Scope) -> bool:
    """Return True if Postgres adds the values up as numeric."""
    if scope.dialect.name != "postgres" or of.type.kind not in postgres.EXACT_KINDS:
        return False
    return name == "avg" or (name == "sum" and of.type.size == 8)


def _is_of_times(name: str, of: TypedValue) -> bool:
    """Return True for AVG of moments, which have no sum, and for sums of intervals."""
    if of.type.kind == "interval":
        return name in ("sum", "avg")
    return name == "avg" and of.type.kind in ("date", "time", "timestamp", "timestamptz")


class _FoldsOf:
    """The aggregates of a frame by their accumulators: values are tuples, one item for each."""

    def __init__(self, of: tuple[plan.Folded, ...], result: Callable[..., TypedValue]) -> None:
        self._of = of
        self._finish = callable_of(
            Lifted(as_optional(result(all_parameters(len(of)))), row_names(len(of)), (), len(of))
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
