"""ORDER BY, LIMIT and DISTINCT ON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from optimizer import plan
from reactive.languages.sql.expressions.comparisons import by_parts
from reactive.languages.sql.queries.nodes import evaluated_constant, freed, key_of
from reactive.languages.sql.queries.stars import Column
from reactive.languages.sql.sqlite.comparisons import bare, sorted_by
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.values import Value, whole


def order_of(
    node: Any, scope: Scope, columns: Sequence[Column], values: Sequence[Value]
) -> list[tuple[Any, Value]]:
    """What ORDER BY orders by: each part of it, with its value."""
    order = node.args.get("order")
    if order is None:
        return []
    found = []
    for each in order.expressions:
        if isinstance(each.this, exp.Column | exp.Var) and each.this.name.upper() == "ALL":
            found += [(each, value) for value in values]
        else:
            place = position_of(each.this, scope, columns)
            found.append((each, scope.value(each.this) if place is None else values[place]))
    return found


def position_of(node: Any, scope: Scope, columns: Sequence[Column]) -> int | None:
    """Which column of the SELECT a number or a name stands for; None of another expression."""
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
        place = int(node.this)
        if not 1 <= place <= len(columns):
            raise scope.error(node, f"there is no column {place}", f"SELECT has {len(columns)}")
        return place - 1
    if isinstance(node, exp.Column) and not node.table:
        named = [n for n, c in enumerate(columns) if c.name.casefold() == node.name.casefold()]
        aliases = [n for n in named if columns[n].is_alias]
        if aliases or named:
            return (aliases or named)[0]
    return None


def sort_keys(order: Sequence[tuple[Any, Value]], scope: Scope) -> tuple[plan.SortKey, ...]:
    """The keys as the plan has them."""
    return tuple(sort_key(each, value, scope) for each, value in order)


def sort_key(node: Any, value: Value, scope: Scope) -> plan.SortKey:
    """One key: `node` says its direction, and where NULL stands."""
    descending = bool(node.args.get("desc"))
    nulls_first = node.args.get("nulls_first")
    nulls: Any = None if not value.nullable else "first" if nulls_first else "last"
    if scope.dialect.numeric_booleans:
        value = sorted_by(value)
    value = by_parts(value)
    return plan.SortKey(scope.function(whole(value), node), descending, nulls)


def limits(node: Any, scope: Scope) -> tuple[int | None, int]:
    """How many rows are wanted, None for all, and how many are left out before them."""
    limit, offset = node.args.get("limit"), node.args.get("offset")
    wanted = None
    if isinstance(limit, exp.Fetch):
        options = limit.args.get("limit_options")
        if options is not None and (options.args.get("with_ties") or options.args.get("percent")):
            raise scope.error(limit, "FETCH can neither have PERCENT nor WITH TIES")
        if options is not None:
            options.args.get("rows")  # a word without a meaning
        limit.args.get("direction")  # FIRST and NEXT mean the same
        wanted = _count(limit.args.get("count"), scope)
    elif limit is not None:
        options = limit.args.get("limit_options")
        if options is not None and options.args.get("percent"):
            raise scope.error(limit, "LIMIT cannot be a percentage", "give a number of rows")
        if limit.args.get("expressions"):
            raise scope.error(limit, "LIMIT BY is not supported", "number the rows: row_number()")
        wanted = _count(limit.expression, scope)
    return wanted, (_count(offset.expression, scope) or 0) if offset is not None else 0


def _count(node: Any, scope: Scope) -> int | None:
    """A number of rows, which may be computed of parameters; NULL is no limit."""
    if node is None:
        return 1
    if node.find(exp.Table) is not None:
        raise scope.error(
            node,
            "the number of rows depends on tables",
            "number the rows: qualify row_number() over (order by ...) <= (select ...)",
        )
    empty = scope.around()
    found = evaluated_constant(_of_constant_query(node), empty)
    if found is None or (found == -1 and scope.dialect.name == "sqlite"):
        return None
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise scope.error(node, f"a number of rows cannot be {found!r}")
    return found


def _of_constant_query(node: Any) -> Any:
    """Return what a query without FROM computes, in the place of the query."""
    while isinstance(node, exp.Subquery | exp.Paren):
        node = node.this
    known = {"kind", "hint", "expressions"}
    plain = isinstance(node, exp.Select) and not {n for n, v in node.args.items() if v} - known
    return _of_constant_query(node.expressions[0]) if plain and len(node.expressions) == 1 else node


def distinct_on(
    node: plan.Node,
    scope: Scope,
    on: Sequence[Value],
    keys: tuple[plan.SortKey, ...],
    values: Sequence[Value],
) -> plan.Node:
    """The first row of each group, in the order of keys; without an order, by its columns."""
    if not keys:
        if scope.dialect.numeric_booleans:  # the same texts by a collation stand in an order
            values = [bare(value) for value in values]
        keys = tuple(sort_key(exp.Ordered(), v, scope) for v in values)
    return freed(plan.Top(node, scope.function(key_of(on)), keys, 1))
