"""SELECT, clause after clause, as the standard has them evaluated.

from   where   group by   having   windows   qualify   select   distinct   order by   limit
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from optimizer import plan
from optimizer.expr import Parameter
from optimizer.plans.properties import bindings
from reactive.languages.sql.postgres.functions import array_of_set, is_set_returning
from reactive.languages.sql.queries.grouping import (
    GroupingKeys,
    columns_before,
    filter_rows,
    group_with_aggregates,
    has_aggregate,
    keys_in,
    one_row,
    reads_query,
    select_values,
    unnest_arrays,
    unnested_value,
)
from reactive.languages.sql.queries.ordering import (
    SelectColumn,
    distinct_on,
    limits,
    order_of,
    plan_sort_keys,
    position_of,
)
from reactive.languages.sql.queries.query import PlannedRows, SelectQuery, query_of_rows
from reactive.languages.sql.queries.select_columns import (
    expand_columns,
    expand_condition,
    expand_order,
)
from reactive.languages.sql.queries.sources import from_
from reactive.languages.sql.queries.time_windows import append_group_windows
from reactive.languages.sql.sqlite.comparisons import grouped_by, has_collation, output_value
from reactive.languages.sql.terms.errors import put, take
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.values import TypedValue, as_optional
from reactive.languages.sql.windows.kinds import append_windows

UNSUPPORTED = ("into", "sample", "cluster", "distribute", "connect", "match", "locks", "prewhere")

_WRITES = {"into": "SELECT INTO", "locks": "FOR UPDATE"}


def select(node: Any, around: Scope) -> SelectQuery:
    """Return the query of a SELECT.

    Raises
    ------
    PlanError: it names something unknown, or has an unsupported clause.
    """
    for name in UNSUPPORTED:
        if node.args.get(name):
            given = node.args[name]
            at = (given[0] if isinstance(given, list) else given) or node
            if name in ("into", "locks"):
                raise around.error(at, f"a query cannot write: {_WRITES[name]} is not supported")
            raise around.error(at, f"{name.upper()} is not supported")
    distinct = node.args.get("distinct") or exp.Distinct()
    if not isinstance(distinct, exp.Distinct):
        raise around.error(distinct, f"{distinct.sql()} stands where only DISTINCT may stand")
    chosen = distinct.args.get("on")
    if chosen is not None and not node.expressions:
        reason = "SELECT DISTINCT ON (...) names no columns"
        raise around.error(chosen, reason, "write DISTINCT ON (a) a, b")
    rows = from_(node, around) or PlannedRows(one_row(), 1, ())
    scope = rows.scope(around)
    columns = expand_columns(node, rows, scope)
    if not columns:
        raise around.error(node, "SELECT names no columns", "write SELECT * for all of them")
    if scope.dialect.name == "duckdb":
        expand_order(node.args.get("order"), rows, scope)
        expand_order(chosen, rows, scope)
    scope.aliases = {c.name.casefold(): c.node for c in columns if c.is_alias}
    name_windows(node, scope)
    made, is_one = rows.node, not node.args.get("from_")
    where = node.args.get("where")
    if where is not None:
        test = expand_condition(where, rows, scope)
        made, is_one = filter_rows(made, scope.reading(where), scope.true(test)), False
    asked = _evaluated_expressions(node, scope, columns)
    group = node.args.get("group")
    if group is not None and any(isinstance(key, exp.Anonymous) for key in group.expressions):
        made, scope = append_group_windows(
            node, made, scope, asked, lambda key: _resolve_key(key, scope, columns)
        )
    keys = _grouping_keys(node, scope, columns)
    if keys is not None or node.args.get("having") or any(map(has_aggregate, asked)):
        made, scope = group_with_aggregates(made, scope, keys, asked)
        is_one = keys is None
    having = node.args.get("having")
    if having is not None:
        made, is_one = (filter_rows(made, scope.reading(having), scope.true(having.this)), False)
    made, scope = _add_windows(made, scope, asked)
    qualify = node.args.get("qualify")
    if qualify is not None:
        made, is_one = (filter_rows(made, scope.reading(qualify), scope.true(qualify.this)), False)
    made, scope, grows = _with_elements(made, scope, asked)
    values = tuple(scope.value(column.node) for column in columns)
    if scope.dialect.numeric_booleans:
        values = tuple(map(output_value, values))
    names = tuple(column.name for column in columns)
    scope.reading(*node.expressions)
    query = SelectQuery(made, scope, names, values, is_one_row=is_one and not grows)
    return _apply_order_and_limit(query, node, columns)


def _evaluated_expressions(node: Any, scope: Scope, columns: Sequence[SelectColumn]) -> list[Any]:
    """Return the expressions of SELECT, HAVING, QUALIFY, ORDER BY and DISTINCT ON.

    An ORDER BY of the number or the name of a column of SELECT is left out.
    """
    asked = [column.node for column in columns]
    for name in ("having", "qualify"):
        if node.args.get(name) is not None:
            asked.append(node.args[name].this)
    if node.args.get("order") is not None:
        orders = [each.this for each in node.args["order"].expressions]
        asked += [each for each in orders if position_of(each, scope, columns) is None]
    distinct = node.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is not None:
        asked += distinct.args["on"].expressions
    return asked


# Groups.


def _grouping_keys(node: Any, scope: Scope, columns: Sequence[SelectColumn]) -> GroupingKeys | None:
    """Return the keys of GROUP BY, for ALL the columns without an aggregate; None without it."""
    group = node.args.get("group")
    if group is not None and group.args.get("all"):
        keys = tuple(c.node for c in columns if not has_aggregate(c.node))
        return GroupingKeys(keys, None if keys else (frozenset(),))
    return keys_in(group, lambda key: _resolve_key(key, scope, columns))


def _resolve_key(key: Any, scope: Scope, columns: Sequence[SelectColumn]) -> Any:
    """Return the grouping key that a number, or a SELECT name that is no column, denotes."""
    if isinstance(key, exp.Column) and (key.table or scope.of_sources(key) is not None):
        return key
    place = position_of(key, scope, columns)
    return key if place is None else columns[place].node


# Windows, and arrays in SELECT.


def name_windows(node: Any, scope: Scope) -> None:
    """Replace names of the WINDOW clause by their definitions.

    Raises
    ------
    PlanError: a window function stands in the definition of a window.
    """
    named = {w.name.casefold(): w for w in node.args.get("windows") or ()}
    if not named:
        return
    for definition in named.values():
        inner = [each for each in definition.find_all(exp.Window) if each is not definition]
        if inner:
            raise scope.error(inner[0], "a window is defined by values of rows, not of windows")
    for window in list(node.find_all(exp.Window)):
        definition = named.get(window.alias.casefold()) if window.alias else None
        if definition is not None and window is not definition:
            for part in ("partition_by", "order", "spec"):
                if definition.args.get(part) and not window.args.get(part):
                    put(window, part, definition.args[part])
            put(window, "alias", None)


def _of_kind(node: Any, is_wanted: Callable[[Any], bool]) -> Iterator[Any]:
    """Yield the outermost nodes of a kind in a node's own query."""
    if is_wanted(node):
        yield node
    elif not isinstance(node, exp.Query | exp.Subquery):
        for part in node.iter_expressions():
            yield from _of_kind(part, is_wanted)


def _add_windows(made: plan.Node, scope: Scope, asked: Sequence[Any]) -> tuple[plan.Node, Scope]:
    """Append the answers of the windows in `asked`; return the node, and the scope with them."""
    windows = [w for e in asked for w in _of_kind(e, lambda n: isinstance(n, exp.Window))]
    windows = list({id(each): each for each in windows}.values())
    if not windows:
        return made, scope
    made, scope = _with_answers(made, scope, windows)
    node, values = append_windows(made, scope, windows)
    wider = scope.wider(bindings(node))
    wider.values |= {id(w): value for w, value in zip(windows, values, strict=True)}
    return node, wider


def _with_answers(made: plan.Node, scope: Scope, windows: Sequence[Any]) -> tuple[plan.Node, Scope]:
    """Append a binding for each sub-query in the windows; return the node and the wider scope."""
    inside = [part for window in windows for part in _queries_in(window)]
    values = [scope.value(part) for part in inside]
    found = [(part, v) for part, v in zip(inside, values, strict=True) if reads_query(v)]
    if not found:
        return made, scope
    count = scope.bindings
    node = columns_before(made, scope, [as_optional(value) for _, value in found])
    wider = scope.wider(count + len(found))
    for place, (part, value) in enumerate(found, count):
        read = Parameter(place)
        wider.values[id(part)] = TypedValue(read, value.type, (read,) if value.nullable else ())
    return node, wider


def _queries_in(node: Any) -> Iterator[Any]:
    """Yield the outermost expressions inside a node that a query answers."""
    for part in node.iter_expressions():
        if isinstance(part, exp.Query | exp.Exists) or (
            isinstance(part, exp.Predicate)
            and any(isinstance(p, exp.Query | exp.Any | exp.All) for p in part.iter_expressions())
        ):
            yield part
        else:
            yield from _queries_in(part)


def _with_elements(
    made: plan.Node, scope: Scope, asked: Sequence[Any]
) -> tuple[plan.Node, Scope, bool]:
    """Append elements that SELECT unnests: a row for each; True if it unnests arrays."""
    calls = [c for e in asked for c in _of_kind(e, lambda n: _is_unnesting(n, scope))]
    if not calls:
        return made, scope, False
    arrays = [
        array_of_set(c, scope)
        if isinstance(c, exp.Anonymous)
        else unnested_value(c.this if isinstance(c, exp.Explode) else c.expressions[0], scope)
        for c in calls
    ]
    kinds = [array.type.items[0] if array.type.items else array.type for array in arrays]
    place = scope.bindings
    node, values = unnest_arrays(made, scope, arrays, kinds, place, offset=False, outer=False)
    wider = scope.wider(place + 1)
    wider.values |= {id(call): value for call, value in zip(calls, values, strict=True)}
    return node, wider, True


def _is_unnesting(node: Any, scope: Scope) -> bool:
    """Return True for a call that gives rows in SELECT; refuse one inside of CASE."""
    found = isinstance(node, exp.Explode | exp.Unnest)
    if scope.dialect.name != "postgres":
        return found
    if found or is_set_returning(node, scope):
        around = node.parent
        while around is not None and not isinstance(around, exp.Query):
            if isinstance(around, exp.Case | exp.Coalesce | exp.AggFunc):
                raise scope.error(node, f"no function that gives rows may stand in {around.key}")
            around = around.parent
        return True
    return False


# The end.


def _apply_order_and_limit(
    query: SelectQuery, node: Any, columns: Sequence[SelectColumn]
) -> SelectQuery:
    """Return the query with its DISTINCT, ORDER BY, LIMIT and OFFSET."""
    order = order_of(node, query.scope, columns, query.values)
    limit, offset = limits(node, query.scope)
    distinct = node.args.get("distinct")
    take(distinct)
    if order or limit is not None or distinct is not None:
        query, order = _asked_before(query, order)
    scope = query.scope
    if distinct is not None:
        query = replace(query, is_one_row=False)
        if distinct.args.get("on") is not None:
            on = [
                _on(each, scope, columns, query.values) for each in distinct.args["on"].expressions
            ]
            keys, same = plan_sort_keys(order, scope), list(map(grouped_by, on))
            query = replace(query, node=distinct_on(query.node, scope, same, keys, query.values))
        elif any(has_collation(value.type) for value in query.values):
            same = [grouped_by(value) for value in query.values]
            one = distinct_on(query.node, scope, same, (), query.values)
            query = replace(query, node=one)
        else:
            query, order = _distinct(query, order)
    keys = plan_sort_keys(order, query.scope)
    return replace(query, sort=keys, limit=limit, offset=offset)


def _asked_before(
    query: SelectQuery, order: list[tuple[Any, TypedValue]]
) -> tuple[SelectQuery, list[tuple[Any, TypedValue]]]:
    """Return the query and order with their sub-queries answered in bindings appended before."""
    every = [*query.values, *(value for _, value in order)]
    places = [n for n, value in enumerate(every) if reads_query(value)]
    if not places:
        return query, order
    count = query.scope.bindings
    node = columns_before(query.node, query.scope, [as_optional(every[n]) for n in places])
    scope = query.scope.wider(count + len(places))
    for at, n in enumerate(places):
        read = Parameter(count + at)
        every[n] = TypedValue(read, every[n].type, (read,) if every[n].nullable else ())
    values, keys = every[: len(query.values)], every[len(query.values) :]
    moved = [(each, value) for (each, _), value in zip(order, keys, strict=True)]
    return replace(query, node=node, scope=scope, values=tuple(values)), moved


def _on(
    node: Any, scope: Scope, columns: Sequence[SelectColumn], values: Sequence[TypedValue]
) -> TypedValue:
    """Return the value of a key of DISTINCT ON: a column by number or name, or an expression."""
    place = position_of(node, scope, columns)
    return scope.value(node) if place is None else values[place]


def _distinct(
    query: SelectQuery, order: list[tuple[Any, TypedValue]]
) -> tuple[SelectQuery, list[tuple[Any, TypedValue]]]:
    """Keep one copy of each row; refuse an ORDER BY that is no column of them."""
    node, schema = select_values(query.node, query.scope, query.names, query.values)
    made = query_of_rows(plan.Distinct(node), schema, query.scope.around())
    moved = []
    for each, value in order:
        place = next((n for n, v in enumerate(query.values) if v == value), None)
        if place is None:
            raise query.scope.error(
                each, "SELECT DISTINCT is ordered by what is no column of it", "select it too"
            )
        moved.append((each, made.values[place]))
    return made, moved
