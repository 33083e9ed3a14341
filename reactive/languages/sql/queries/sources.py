"""FROM: tables, queries and lists of values, joined as they are written.

from a, b                   product; the conditions of WHERE make a join of it
a left join b on p          outer join: the columns of b are NULL where there is no row of it
a join b using (id)         one column id: of the left, of the right, or the one that is not NULL
a, lateral (select ...)     the rows that a query has for each row of a
a, unnest(a.items) x        one row for each element
tumble(a, at, size)         one row for each window of time (`time_windows.py`)
a asof join b on ...        the one row of b that is nearest in time (`asof.py`)
a join b for system_time as of proctime()    rows as of the commit of a (`temporal_join.py`)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from sqlglot import exp

from optimizer import plan
from optimizer.expr import (
    TRUE,
    Expr,
    Parameter,
    all_parameters,
    conjunction,
    conjuncts,
    has_subquery,
    reads,
    substitute,
    tuple_of,
)
from reactive.api import clock as clocks
from reactive.languages.sql.functions.arrays import series_of
from reactive.languages.sql.json import rows as rows_of_calls
from reactive.languages.sql.postgres.functions import array_of_set, is_set_returning
from reactive.languages.sql.queries.asof import join_asof
from reactive.languages.sql.queries.grouping import (
    filter_rows,
    freed,
    lateral,
    one_row,
    unnest_arrays,
    unnested_value,
)
from reactive.languages.sql.queries.join_columns import merge_columns, shared_columns, side_by_side
from reactive.languages.sql.queries.json_records import record_query
from reactive.languages.sql.queries.ordering import limits
from reactive.languages.sql.queries.pivots import pivot_rows
from reactive.languages.sql.queries.query import PlannedRows, rows_of_plan
from reactive.languages.sql.queries.temporal_join import join_as_of_commit
from reactive.languages.sql.queries.time_windows import windowed_rows
from reactive.languages.sql.terms.calls import function_name
from reactive.languages.sql.terms.common_types import OF_SYSTEM
from reactive.languages.sql.terms.errors import nearest, peek, put
from reactive.languages.sql.terms.scope import Correlation, Scope, ScopeSource
from reactive.languages.sql.terms.types import NULL, TEXT, SqlType
from reactive.languages.sql.terms.values import TypedValue, as_optional, plan_with_columns
from reactive.languages.sql.text.window_tables import is_window_call

KINDS = {"LEFT": "left", "RIGHT": "right", "FULL": "full"}


def from_(select: exp.Expr, around: Scope) -> PlannedRows | None:
    """Return the rows that a SELECT reads; None if it has no FROM."""
    first = select.args.get("from_")
    if first is None:
        return None
    rows = source(first.this, around, None)
    for item, joins in _split_items(select.args.get("joins") or (), around):
        if any((join.side or "").upper() in ("RIGHT", "FULL") for join in joins):
            rows = _cross_item(rows, item, joins, around)
            continue
        for join in (item, *joins) if item is not None else joins:
            rows = _join_item(rows, join, around)
    for each in select.args.get("laterals") or ():
        rows = _join_item(rows, exp.Join(this=each), around)
    return rows


def _split_items(joins: Sequence[Any], around: Scope) -> list[tuple[Any, list[Any]]]:
    """Return the items behind commas, each with the joins that it starts.

    A comma binds less than JOIN, other than in SQLite; the joins of the first item of FROM are
    paired with None.
    """
    if around.dialect.name == "sqlite":
        return [(join, []) for join in joins]
    items: list[tuple[Any, list[Any]]] = [(None, [])]
    for join in joins:
        if any(join.args.get(part) for part in ("method", "side", "kind", "on", "using")):
            items[-1][1].append(join)
        else:
            items.append((join, []))
    return items


def _cross_item(rows: PlannedRows, item: Any, joins: Sequence[Any], around: Scope) -> PlannedRows:
    """Return the rows joined with an item and its own joins; for None, the rows with `joins`."""
    made = rows if item is None else source(item.this, around, None)
    for join in joins:
        made = _join_item(made, join, around)
    if item is None:
        return made
    known = {name.casefold() for _, name, _ in rows.columns()}
    for name in made.merged:
        if name in known:
            raise around.error(
                joins[0],
                f"{around.dialect.name} cannot read column {name!r}: an item before the comma "
                "has it too",
                "join with ON in place of USING",
            )
    return _join_two(rows, made, item, None, around)


def pair_with_item(rows: PlannedRows, item: Any, around: Scope) -> PlannedRows:
    """Return rows paired with those of an item of FROM or USING in UPDATE or DELETE."""
    return _join_item(rows, exp.Join(this=item), around)


def source(node: Any, around: Scope, left: PlannedRows | None) -> PlannedRows:
    """Plan one item of FROM; `left` are the items before it, which some can read.

    Raises
    ------
    PlanError: there is no table of the name, or no such kind of item.
    """
    if isinstance(node.this, exp.Anonymous):
        node = record_query(node, around, is_first=True)
    match node:
        case exp.Table(this=exp.Anonymous() as call) if is_window_call(call):
            return _with_joins(windowed_rows(call, node, around, source), node, around)
        case exp.Table(this=exp.Func() | exp.Anonymous() as call):
            return _unnest_item(call, node, around, left)
        case exp.Table() if peek(node, "rows_from"):
            return _unnest_item(node, node, around, left)
        case exp.Table():
            if peek(node, "version") is not None:
                raise around.error(
                    node,
                    "FOR SYSTEM_TIME is of the right side of a join",
                    "FROM events e JOIN prices FOR SYSTEM_TIME AS OF PROCTIME() p ON ...",
                )
            return _with_joins(_rows_of_table(node, around), node, around)
        case exp.Subquery(this=exp.Table() | exp.Subquery() as inner) if not node.alias:
            return _with_joins(source(inner, around, None), node, around)
        case exp.Subquery() | exp.Values():
            return _with_joins(_rows_of_query(node, around), node, around)
        case exp.Unnest():
            return _unnest_item(node, node, around, left)
        case exp.Lateral():
            raise around.error(node, "LATERAL needs something before it in FROM")
        case _:
            raise around.error(node, f"FROM cannot read {node.sql()}")


def _with_joins(rows: PlannedRows, node: Any, around: Scope) -> PlannedRows:
    """Return rows with what stands behind them: the joins in parentheses, PIVOT; refuse samples."""
    for join in node.args.get("joins") or ():
        rows = _join_item(rows, join, around)
    pivots = node.args.get("pivots")
    if pivots:
        if around.dialect.name != "duckdb":
            raise around.error(pivots[0], f"{around.dialect.name} has no PIVOT")
        rows = pivot_rows(rows, pivots, around)
    for unsupported in ("sample", "ordinality"):
        if node.args.get(unsupported):
            raise around.error(node, f"{unsupported.upper()} in FROM is not supported")
    return rows


def _rows_of_table(node: Any, around: Scope) -> PlannedRows:
    """Return the rows of a table or view by its name; refuse an unknown name."""
    name = node.name
    is_usual = not peek(node, "db") and not name.casefold().startswith(OF_SYSTEM)
    found = None if is_usual else around.environment.catalog.system_table(node, around)
    if found is None:
        around.check_schema(node)
        found = around.environment.find(name)
    if found is None:
        names = around.environment.names()
        raise around.error(
            node,
            f"there is no table or view {name!r}{nearest(name, names)}",
            f"the database has {', '.join(sorted({*names} - {clocks.NAME})) or 'no tables'}",
        )
    names = around.replace_names(_alias_columns(node), [name for name, _ in found.columns], node)
    return rows_of_plan(found, node.alias_or_name, names)


def _alias_columns(node: Any) -> tuple[str, ...]:
    """Return the names that an alias gives to columns."""
    alias = node.args.get("alias")
    return tuple(c.name for c in (alias.args.get("columns") or ())) if alias is not None else ()


def _rows_of_query(node: Any, around: Scope) -> PlannedRows:
    """Return a query in FROM."""
    query = around.query(node if isinstance(node, exp.Values) else node.this)
    if around.dialect.name == "postgres":  # a column of NULL has texts
        values = [replace(v, type=TEXT) if v.type is NULL else v for v in query.values]
        query = replace(query, values=tuple(values))
    return rows_of_plan(
        query.as_source(), node.alias, around.replace_names(_alias_columns(node), query.names, node)
    )


# Joins.


def _join_item(left: PlannedRows, join: Any, around: Scope) -> PlannedRows:
    """Return `left` joined with one item of FROM; refuse POSITIONAL and unknown joins."""
    item, method = join.this, (join.method or "").upper()
    side, kind = (join.side or "").upper(), (join.kind or "").upper()
    if method == "POSITIONAL" or kind not in ("", "INNER", "CROSS", "OUTER", *_HALVES):
        raise around.error(join, f"{method or kind} JOIN is not supported")
    if isinstance(item.this, exp.Anonymous):
        item = record_query(item, around, is_first=False)
    item = _without_lateral(item)
    is_unnested = isinstance(item, exp.Unnest) or _is_call(item) or _has_rows_from(item)
    inner = _lateral_query(item, left, around)
    if is_unnested or inner is not None:
        _check_lateral(join, around)
    if is_unnested and side == "LEFT" and _has_condition(join):
        return _lateral(left, _some_of(item, join), item.alias, (), join, around)
    if inner is not None and _has_condition(join):
        alias = peek(inner, "alias")
        made = _some_of(exp.Subquery(this=_query_of(inner), alias=alias), join)
        return _lateral(left, made, inner.alias, (), join, around)
    if inner is not None:
        names = _alias_columns(inner)
        return _lateral(left, _query_of(inner), inner.alias, names, join, around)
    if is_unnested:
        return _filtered_join(_unnest_item(_call_of(item), item, around, left, side), join, around)
    if isinstance(item, exp.Table) and peek(item, "version") is not None and not method:
        right = _with_joins(_rows_of_table(item, around), item, around)
        return join_as_of_commit(left, right, join, around)
    right = source(item, around, left)
    if method == "ASOF":
        return join_asof(left, right, join, around)
    if kind in _HALVES:
        return _half(left, right, join, around)
    return _join_two(left, right, join, KINDS.get(side), around)


_HALVES = {"SEMI": plan.SemiJoin, "ANTI": plan.AntiJoin}


def _is_call(item: Any) -> bool:
    is_call = isinstance(item, exp.Table) and isinstance(item.this, exp.Func | exp.Anonymous)
    return is_call and not is_window_call(item.this)


def _has_rows_from(item: Any) -> bool:
    """Return True for `rows from (f(x), g(x))`, several calls side by side."""
    return isinstance(item, exp.Table) and bool(peek(item, "rows_from"))


def _call_of(item: Any) -> Any:
    return item if isinstance(item, exp.Unnest) or _has_rows_from(item) else item.this


def _join_two(
    left: PlannedRows, right: PlannedRows, join: Any, kind: Any, around: Scope
) -> PlannedRows:
    """Return a join of two, inner if it has no kind."""
    matched = side_by_side(left, right, None)
    tests, shared = shared_columns(left, right, join, around)
    on = join.args.get("on")
    if on is not None:
        tests.append(matched.scope(around).true(on))
    test = conjunction(tuple(t for t in tests if t != TRUE))
    made = side_by_side(left, right, kind)
    made = replace(made, merged={**made.merged, **merge_columns(made, shared, kind, join, around)})
    if kind is None and test == TRUE:
        return made.with_node(plan.Product(left.node, right.node))
    if kind == "left" and right.bindings == 1:
        right, test = _narrow_right_side(right, test, left.bindings, join, around)
    match = plan.Match(None, None, matched.scope(around).function(test, join))
    if kind is None:
        return made.with_node(freed(plan.Join(left.node, right.node, match)))
    return made.with_node(freed(plan.OuterJoin(left.node, right.node, match, kind)))


def _narrow_right_side(
    right: PlannedRows, test: Expr, place: int, join: Any, around: Scope
) -> tuple[PlannedRows, Expr]:
    """Return the right side of a left join, filtered by its own tests, and the other tests.

    Errors are no reason to test later: SQL does not define when a condition is evaluated.
    """
    parts = conjuncts(test)
    own = tuple(p for p in parts if reads(p) == {place} and not has_subquery(p))
    if not own or len(own) == len(parts):
        return right, test
    rest = tuple(part for part in parts if part not in own)
    inside = substitute(conjunction(own), (*all_parameters(place), Parameter(0)))
    narrow = filter_rows(right.node, right.scope(around).reading(join), inside)
    return right.with_node(narrow), conjunction(rest)


def _half(left: PlannedRows, right: PlannedRows, join: Any, around: Scope) -> PlannedRows:
    """Return the left rows of a SEMI or ANTI join: with a match on the right, or without."""
    both = side_by_side(left, right, None)
    tests, _ = shared_columns(left, right, join, around)
    on = join.args.get("on")
    if on is not None:
        tests.append(both.scope(around).true(on))
    match = plan.Match(None, None, both.scope(around).function(conjunction(tuple(tests)), join))
    return left.with_node(freed(_HALVES[join.kind.upper()](left.node, right.node, match)))


# What reads the items before it.


def _lateral_query(item: Any, left: PlannedRows, around: Scope) -> Any:
    """Return an item if it is a query that reads the items before it, else None."""
    if isinstance(item, exp.Lateral):
        if not isinstance(item.this, exp.Subquery):
            return None
        return item
    if not isinstance(item, exp.Subquery) or around.dialect.name != "duckdb":
        return None
    if not isinstance(item.this, exp.Query):
        return None
    own = {t.alias_or_name.casefold() for t in item.find_all(exp.Table, exp.Subquery)}
    before = {s.name.casefold() for s in left.sources if s.name} - own
    reads = any(c.table.casefold() in before for c in item.this.find_all(exp.Column) if c.table)
    return item if reads else None


def _check_lateral(join: Any, around: Scope) -> None:
    """Refuse joins with what reads the items before it, but for inner and left ones by ON."""
    words = [(word or "").upper() for word in (join.method, join.side, join.kind)]
    found = [word for word in words if word in ("NATURAL", "ASOF", "RIGHT", "FULL", *_HALVES)]
    found += ["USING"] if join.args.get("using") else []
    if found:
        raise around.error(
            join,
            f"what reads the items before it, and UNNEST, cannot be joined by {found[0]}",
            "JOIN or LEFT JOIN it, with ON; EXISTS tells whether there is a row",
        )


def _query_of(item: Any) -> Any:
    """Return the query of a lateral item."""
    return item.this.this if isinstance(item, exp.Lateral) else item.this


def _without_lateral(item: Any) -> Any:
    """Return an item without the word LATERAL unless it is a query: others need no such word."""
    if not isinstance(item, exp.Lateral) or isinstance(item.this, exp.Subquery):
        return item
    inner, alias = item.this, item.args.get("alias")
    ordinality = item.args.get("ordinality")
    if isinstance(inner, exp.Unnest):
        put(inner, "alias", alias)
        return inner
    return exp.Table(this=inner, alias=alias, ordinality=ordinality)


def _has_condition(join: Any) -> bool:
    """Return True if a join has an ON that is not TRUE."""
    on = join.args.get("on")
    return on is not None and not (isinstance(on, exp.Boolean) and on.this)


def _some_of(item: Any, join: Any) -> Any:
    """Return the query of the rows of an item that fulfil the ON of its join."""
    query = exp.select(exp.Star()).from_(item, copy=False)
    return query.where(exp.Paren(this=join.args["on"]), copy=False)


def _lateral(
    left: PlannedRows, node: Any, alias: str, names: tuple[str, ...], join: Any, around: Scope
) -> PlannedRows:
    """Return `left` joined with a query that reads it."""
    side = KINDS.get((join.side or "").upper())
    scope = left.scope(around)
    correlation = Correlation(scope)
    made, schema = scope.around(correlation).query(node).rows()
    right = rows_of_plan(plan_with_columns(made, schema), alias, names)
    kind: Literal["inner", "left"] = "left" if side == "left" else "inner"
    both = side_by_side(left, right, side)
    return both.with_node(lateral(left.node, made, scope, tuple(correlation.arguments), kind))


def _unnest_item(
    call: Any, item: Any, around: Scope, left: PlannedRows | None, side: str = ""
) -> PlannedRows:
    """Add a binding for each element of an array, or of several side by side."""
    before = left if left is not None else PlannedRows(one_row(), 1, ())
    scope = before.scope(around)
    calls = _calls_from(item) if _has_rows_from(item) else [call]
    arrays, usual = list[TypedValue](), list[str]()
    for each in calls:
        is_unnest = isinstance(each, exp.Unnest)
        found = (
            [unnested_value(e, scope) for e in each.expressions]
            if is_unnest
            else [_array_of_call(each, item, scope)]
        )
        usual += ["unnest" if is_unnest else _name_of_rows(each)] * len(found)
        arrays += found
    offset = bool(item.args.get("offset") or item.args.get("ordinality"))
    kinds = [array.type.items[0] if array.type.items else array.type for array in arrays]
    node, values = unnest_arrays(
        before.node, scope, arrays, kinds, before.bindings, offset=offset, outer=side == "LEFT"
    )
    names = _alias_columns(item) or ((item.alias,) if item.alias else ())
    own = rows_of_calls.columns_of(call, values, scope)
    if own is not None:
        return _rows_of_call(node, before, own, names, item, call, around)
    last = item.args.get("offset")
    if isinstance(last, exp.Identifier):  # the last name of `as u(element, place)`
        names = (*names, last.name)
    every = around.replace_names(names, [*usual, *(["ordinality"] if offset else [])], item)
    made = ScopeSource(item.alias or every[0], tuple(zip(every, values, strict=False)))
    return PlannedRows(node, before.bindings + 1, (*before.sources, made), before.merged)


def _name_of_rows(call: Any) -> str:
    """Return the name of the column of a call: of RANGE, too, the name that is written."""
    is_range = isinstance(call, exp.GenerateSeries) and call.args.get("is_end_exclusive")
    return "range" if is_range else function_name(call)


def _calls_from(item: Any) -> list[Any]:
    """Return the calls of ROWS FROM."""
    return [e if isinstance(e, exp.Unnest) else e.this for e in item.args["rows_from"]]


def _rows_of_call(
    node: plan.Node,
    before: PlannedRows,
    own: list[tuple[str, TypedValue]],
    names: tuple[str, ...],
    item: Any,
    call: Any,
    around: Scope,
) -> PlannedRows:
    """Return the rows of a call that names its columns; an alias alone names the table."""
    given = _alias_columns(item)
    every = around.replace_names(given, [name for name, _ in own], item)
    name = item.alias or function_name(call)
    columns = tuple(zip(every, [value for _, value in own], strict=True))
    whole = own[0][1] if len(own) == 1 and not given else None
    made = rows_of_calls.CallSource(name, columns, whole)
    return PlannedRows(node, before.bindings + 1, (*before.sources, made), before.merged)


def _array_of_call(call: Any, item: Any, scope: Scope) -> TypedValue:
    """Return the array of a call in FROM, cut to a LIMIT; refuse a series with step 0.

    In Postgres a call of any other function is one row with its value.
    """
    if scope.dialect.name == "postgres" and not is_set_returning(call, scope):
        value = scope.value(call)
        return TypedValue(tuple_of(as_optional(value)), SqlType("array", items=(value.type,)))
    if not isinstance(call, exp.GenerateSeries) or scope.dialect.name != "duckdb":
        return array_of_set(call, scope)
    step = call.args.get("step")
    if isinstance(step, exp.Literal) and not step.is_string and not float(step.this):
        raise scope.error(step, "the step of a series in FROM cannot be 0")
    return series_of(call, scope, _most(item, scope))


def _most(item: Any, scope: Scope) -> int | None:
    """Return how many rows of the only item of FROM the SELECT around it can show; None for all."""
    select = getattr(item.parent, "parent", None)
    if not isinstance(item.parent, exp.From) or not isinstance(select, exp.Select):
        return None
    if any(peek(select, part) for part in _READ_ALL) or not peek(select, "limit"):
        return None
    if any(each.find(exp.AggFunc, exp.Window, *_MORE) for each in select.expressions):
        return None
    if any(isinstance(part, exp.Anonymous) for e in select.expressions for part in e.walk()):
        return None
    wanted, left_out = limits(select, scope)
    return wanted + left_out if isinstance(wanted, int) else None


_READ_ALL = ("joins", "laterals", "where", "group", "having", "qualify", "distinct", "order")
"""The parts of a SELECT that may need more rows than a LIMIT shows."""
_MORE = (exp.Query, exp.Explode, exp.Unnest)


def _filtered_join(rows: PlannedRows, join: Any, around: Scope) -> PlannedRows:
    """Return the rows that satisfy ON; refuse a condition of an outer join."""
    on = join.args.get("on")
    if on is None or (isinstance(on, exp.Boolean) and on.this):
        return rows
    if join.side:
        raise around.error(on, "what is unnested is joined ON TRUE", "put the condition into WHERE")
    scope = rows.scope(around)
    return rows.with_node(filter_rows(rows.node, scope, scope.true(on)))
