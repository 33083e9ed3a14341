"""TUMBLE, HOP and SESSION: windows of time, as tables and as keys of GROUP BY.

    from tumble(table clicks, descriptor(at), interval '1' minute)    and window_start, window_end
    from hop(clicks, at, slide, size)                                 a row for each of its windows
    from session(table clicks partition by user, descriptor(at), gap)
    group by page, tumble(at, interval '1' minute)                    and tumble_start(at, ...)

They are the windows of `reactive/api/windows.py`: `clicks.window(tumbling(minutes=1), at="at")`. So
a row without a time is left out, and over a stream the state of closed windows is dropped. A
session that is a key of GROUP BY is of the rows with the same other keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from sqlglot import exp

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.expr import Attribute, Call, Parameter, constant, has_subquery, tuple_of
from optimizer.plans.properties import bindings
from reactive.api import windows as api
from reactive.engine.collections.time_windows import DAY, TimeWindows
from reactive.languages.sql.queries.grouping import evaluated_constant, freed
from reactive.languages.sql.queries.query import PlannedRows
from reactive.languages.sql.runtime.intervals import months_of
from reactive.languages.sql.sqlite.comparisons import grouped_by
from reactive.languages.sql.terms.errors import put
from reactive.languages.sql.terms.scope import Scope, ScopeSource
from reactive.languages.sql.terms.types import INTERVAL, NUMBERS, sql_name
from reactive.languages.sql.terms.values import TypedValue, as_optional
from reactive.languages.sql.text.window_tables import PARTITION, is_window_call

SPANS = {"tumble": ("size", "offset"), "hop": ("slide", "size", "offset"), "session": ("gap",)}
"""The distances that each call takes behind the time, in their order."""
OF_DATES = frozenset({"date", "timestamp", "timestamptz"})
Arguments = Mapping[str, Any]
Windows = TimeWindows | api.SessionWindows
Read = Callable[[Any, Scope, Any], PlannedRows]


def windowed_rows(call: Any, item: Any, around: Scope, read: Read) -> PlannedRows:
    """Return the rows of a table, each with the start and the end of its windows.

    `read` plans a source of FROM.
    """
    given = _arguments(call, ("data", "timecol", *SPANS[_kind(call)]), around)
    if not isinstance(given["data"], exp.Table | exp.Query):
        raise around.error(
            given["data"], f"{_kind(call)}() reads a table", f"{_kind(call)}(table t, ...)"
        )
    rows = read(given["data"], around, None)
    scope = rows.scope(around)
    time, windows = _windows_of(call, given, scope.reading(call))
    keys = [scope.value(each) for each in _parts_of_key(given.get(PARTITION))]
    node, ends = _append_windows(rows.node, scope, windows, time, keys)
    columns = [(name, value) for _, name, value in rows.columns()]
    columns += zip(("window_start", "window_end"), ends, strict=True)
    alias = item.args.get("alias")
    given_names = [each.name for each in (alias.args.get("columns") or ())] if alias else []
    names = around.replace_names(given_names, [name for name, _ in columns], item)
    values = (value for _, value in columns)
    source = ScopeSource(item.alias or _kind(call), tuple(zip(names, values, strict=True)))
    return PlannedRows(node, rows.bindings + 1, (source,))


def append_group_windows(
    select: Any, made: plan.Node, scope: Scope, asked: Sequence[Any], resolve: Callable[[Any], Any]
) -> tuple[plan.Node, Scope]:
    """Append the windows of a call in GROUP BY; return the node, and the scope that knows them.

    The call is replaced by its start and end, in GROUP BY and in the expressions `asked`.
    `resolve` returns the expression that a number or an alias in GROUP BY stands for.
    """
    group = select.args.get("group")
    keys = [] if group is None else list(group.expressions)
    calls = [each for each in keys if is_window_call(each)]
    if not calls:
        return made, scope
    call, *others = calls
    if others:
        raise scope.error(others[0], "GROUP BY has two calls of windows", "use one of them in FROM")
    kind = _kind(call)
    given = _arguments(call, ("timecol", *SPANS[kind]), scope)
    time, windows = _windows_of(call, given, scope.reading(call))
    same: list[TypedValue] = []
    if kind == "session":
        _refuse_sets(group, keys, scope)
        same = [scope.value(resolve(each)) for each in keys if each is not call]
    node, ends = _append_windows(made, scope, windows, time, same)
    wider = scope.wider(bindings(node))
    table = exp.to_identifier(call.sql(), quoted=True)
    parts = [exp.Column(this=exp.to_identifier(name), table=table.copy()) for name in _ENDS]
    pair = exp.Tuple(expressions=parts)
    put(group, "expressions", [pair if each is call else each for each in keys])
    wider.values |= {id(part): value for part, value in zip(parts, ends, strict=True)}
    for each in (found for node in asked for found in _ends_in(node)):
        name, _, end = str(each.this).lower().rpartition("_")
        of = _arguments(each, ("timecol", *SPANS[name]), scope)
        if name != kind or _windows_of(each, of, scope) != (time, windows):
            raise scope.error(
                each,
                f"{name}_{end}() has other arguments than {kind}() in GROUP BY",
                f"GROUP BY {name}({', '.join(map(str, each.expressions))})",
            )
        wider.values[id(each)] = ends[_ENDS.index(end)]
    return node, wider


_ENDS = ("start", "end")


def _refuse_sets(group: Any, keys: Sequence[Any], scope: Scope) -> None:
    """Refuse sets of keys beside a session: they would have sessions of their own."""
    others = (each for name in _SETS for each in (group.args.get(name) or ()))
    for each in (*keys, *others):
        if isinstance(each, exp.Rollup | exp.Cube | exp.GroupingSets):
            raise scope.error(each, "session() stands beside plain keys of GROUP BY")


_SETS = ("rollup", "cube", "grouping_sets")


def _ends_in(node: Any) -> Any:
    """Yield the calls of a node's own query that ask for the start or end of a window."""
    if isinstance(node, exp.Anonymous):
        name, _, end = str(node.this).lower().rpartition("_")
        if name in SPANS and end in _ENDS:
            yield node
            return
    if not isinstance(node, exp.Query | exp.Subquery):
        for part in node.iter_expressions():
            yield from _ends_in(part)


# Arguments.


def _kind(call: Any) -> str:
    return str(call.this).lower()


def _arguments(call: Any, names: Sequence[str], scope: Scope) -> Arguments:
    """Return the arguments by their names; `offset` may be left out, and `zone` is never needed.

    Raises
    ------
    PlanError: an argument is missing, given twice, or unknown.
    """
    found: dict[str, Any] = {}
    kind = _kind(call).partition("_")[0]
    known = [*names, "zone"] if kind != "session" else list(names)
    if "data" in names and kind == "session":
        known.append(PARTITION)
    free = iter(names)
    for each in call.expressions:
        is_named = isinstance(each, exp.Kwarg)
        name = each.this.name.lower() if is_named else next(free, "")
        if name in found or name not in known:
            what = f"{name!r} a second time" if name in found else f"no {name!r}" if name else ""
            what = what or f"at most {len(names)} arguments"
            raise scope.error(each, f"{_kind(call)}() takes {what}", _usage(call, names))
        found[name] = each.expression if is_named else each
    missing = [name for name in names if name not in found and name != "offset"]
    if missing:
        raise scope.error(call, f"{_kind(call)}() lacks its {missing[0]}", _usage(call, names))
    return found


def _usage(call: Any, names: Sequence[str]) -> str:
    """Return how a call is written."""
    shown = {"data": "table t", "timecol": "descriptor(at)" if "data" in names else "at"}
    written = [shown.get(name, name) for name in names if name != "offset"]
    return f"{_kind(call)}({', '.join(written)})"


def _parts_of_key(node: Any) -> list[Any]:
    """Return the expressions of PARTITION BY; none without it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return [] if node is None else node.expressions if isinstance(node, exp.Tuple) else [node]


def _windows_of(call: Any, given: Arguments, scope: Scope) -> tuple[TypedValue, Windows]:
    """Return the time of the rows and the windows that a call asks for.

    Raises
    ------
    PlanError: the time is no time or number, or a distance is none of such times.
    """
    node = given["timecol"]
    if isinstance(node, exp.Anonymous) and str(node.this).lower() == "descriptor":
        if len(node.expressions) != 1:
            raise scope.error(node, "a descriptor names one column, that of the time")
        (node,) = node.expressions
    time = scope.value(node)
    if time.type.kind not in (*OF_DATES, *NUMBERS, "any"):
        raise scope.error(
            node,
            f"windows are of dates, timestamps and numbers, not {sql_name(time.type)}",
            "cast it",
        )
    if has_subquery(as_optional(time)):
        raise scope.error(node, "the time of a window is a value of its row, not of a query")
    spans = {
        name: _distance(name, given[name], time, scope) for name in given if name in SPAN_NAMES
    }
    zone = given.get("zone")
    try:
        return time, _made(call, spans, zone and evaluated_constant(zone, scope))
    except PlanError as error:
        raise scope.error(call, *str(error).split("\n  ")) from None


SPAN_NAMES = frozenset({"size", "slide", "gap", "offset"})


def _made(call: Any, spans: Mapping[str, Any], zone: str | None) -> Windows:
    match _kind(call).partition("_")[0]:
        case "session":
            return api.session(spans["gap"])
        case "tumble":
            return api.tumbling(spans["size"], origin=spans.get("offset"), zone=zone)
        case _:
            size, slide = spans["size"], spans["slide"]
            return api.hopping(size, slide, origin=spans.get("offset"), zone=zone)


def _distance(name: str, node: Any, time: TypedValue, scope: Scope) -> Any:
    """Return a distance of times as a number, or as a timedelta without months."""
    kind = time.type.kind
    value = evaluated_constant(node, scope, INTERVAL if kind in OF_DATES else None)
    if isinstance(value, timedelta) and kind in (*OF_DATES, "any"):
        if months_of(value):
            raise scope.error(
                node,
                f"the {name} of a window is of days, hours and less: months differ",
                "group by date_trunc('month', at)",
            )
        value = timedelta(value.days, value.seconds, value.microseconds)
        if kind == "date" and value % DAY:
            raise scope.error(node, "windows of dates are whole days", "cast it to timestamp")
    else:
        value = _number(value, time, node, scope)
    if name != "offset" and not value > value - value:
        raise scope.error(node, f"the {name} of a window is above zero, not {value}")
    return value


def _number(value: Any, time: TypedValue, node: Any, scope: Scope) -> Any:
    """Return a distance of numbers, as a number of their class."""
    kind = time.type.kind
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    if not is_number or kind in OF_DATES or (kind == "int" and value != int(value)):
        what = (
            "a whole number" if kind == "int" else "a number" if kind in NUMBERS else "an interval"
        )
        raise scope.error(node, f"a distance of windows of {sql_name(time.type)} is {what}")
    classes: dict[str, Any] = {"int": int, "float": float, "decimal": Decimal}
    return classes[kind](value) if kind in classes else value


# Plans.


def _append_windows(
    node: plan.Node, scope: Scope, windows: Windows, time: TypedValue, keys: Sequence[TypedValue]
) -> tuple[plan.Node, tuple[TypedValue, TypedValue]]:
    """Append a binding for the window of each row; return the node, and its start and end."""
    of_time = as_optional(time)
    if isinstance(windows, TimeWindows):
        made: plan.Node = plan.Unnest(node, scope.function(Call(constant(windows), (of_time,))))
    else:
        if scope.dialect.numeric_booleans:
            keys = list(map(grouped_by, keys))
        key = scope.function(tuple_of(*map(as_optional, keys)))
        made = api.plan_sessions(freed(node), windows, key, scope.function(of_time))
    window = Parameter(bindings(node))
    kind = replace(time.type, size=None, affinity=None, precision=None, scale=None)
    start, end = (TypedValue(Attribute(window, name), kind) for name in _ENDS)
    return made, (start, end)
