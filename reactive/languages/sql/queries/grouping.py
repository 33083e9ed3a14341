"""GROUP BY: groups and their aggregates, by one list of keys or by several sets of them.

    group by a, b                aggregate by (a, b)
    (no GROUP BY)                one row, also of no rows
    group by rollup (a, b)       the aggregates by (a, b), by a, and of all, one after the other

Keys are recognized by the computed expression: wherever the same columns and functions are written,
in any spelling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from itertools import product
from typing import Any, Literal

from sqlglot import exp

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.errors import PlanError
from optimizer.expr import (
    NONE,
    TRUE,
    Call,
    Constant,
    Expr,
    Item,
    Lifted,
    Parameter,
    all_parameters,
    constant,
    has_subquery,
    tuple_of,
)
from optimizer.expressions.text import Naming
from optimizer.plans.nodes import sources as written_out
from optimizer.record import record
from optimizer.subqueries import decorrelation as subqueries
from reactive.api.aggregates import Count, Min
from reactive.engine.codegen.functions import callable_of
from reactive.engine.collections.zset import canonical
from reactive.errors import ReactiveError
from reactive.languages.sql.aggregates.calls import CallFolds
from reactive.languages.sql.aggregates.kinds import fold, is_aggregate, make_aggregate
from reactive.languages.sql.expressions.casts import convert_for_column
from reactive.languages.sql.functions.arrays import element_type
from reactive.languages.sql.functions.lists import flattened
from reactive.languages.sql.runtime.arrays import elements, elements_or_none
from reactive.languages.sql.sqlite.comparisons import (
    grouped_by,
    has_collation,
    rank_by_collation,
    unrank_value,
)
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.types import INT, SqlType, fields_of
from reactive.languages.sql.terms.values import (
    BindingSchema,
    TypedValue,
    as_optional,
    construct_row,
    schema_of_values,
)


class GroupScope(Scope):
    """The names of grouped rows: a column is one that the rows are grouped by."""

    rows: Scope
    keys: list[tuple[TypedValue, TypedValue]]
    """The keys, as values of the rows and as values of the groups."""
    kinds: tuple[type, ...]
    """The classes of nodes that keys other than columns have."""

    def known_value(self, node: exp.Expr) -> TypedValue | None:
        """Return a computed value or a key; None for others. Refuse a column that is no key."""
        found = super().known_value(node)
        if found is not None:
            return found
        row = self.rows.values.get(id(node))
        if row is not None:
            return self._key_of(node, row)
        if isinstance(node, self.kinds) and not has_aggregate(node):
            return self._key(node)
        return None

    def _key(self, node: exp.Expr) -> TypedValue | None:
        """Return the key that equals a node; None if no key does, or the node has no value."""
        try:
            return self._find_key(self.rows.value(node))
        except PlanError:
            return None

    def _find_key(self, value: TypedValue) -> TypedValue | None:
        """Return the key of the groups that a value of the rows is; None if it is no key."""
        return next((group for row, group in self.keys if row.expr == value.expr), None)

    def of_sources(self, node: Any) -> TypedValue | None:
        """Return the key that a column is; None for an unknown column. Refuse other columns."""
        found = self.rows.of_sources(node)
        if found is not None and self._find_key(found) is None:
            return self.field_of_sources(node) or self._key_of(node, found)
        return None if found is None else self._key_of(node, found)

    def whole_row(self, node: Any) -> TypedValue | None:
        """Return the key that a whole row of a table is; None if no table has the name."""
        found = self.rows.whole_row(node)
        return None if found is None else self._key_of(node, found)

    def _key_of(self, node: Any, row: TypedValue) -> TypedValue:
        """Return the key that equals the value `row`; refuse a value that no key equals."""
        key = self._find_key(row)
        if key is None:
            raise self.error(
                node,
                f"column {node.sql()!r} is neither in GROUP BY nor inside an aggregate",
                f"group by it, or take any_value({node.sql()})",
            )
        return key


@record
class GroupingKeys:
    """The keys of a grouping, and which of them each of several sets has; None: one set of all."""

    nodes: tuple[exp.Expr, ...] = field(compare=False)
    sets: tuple[frozenset[int], ...] | None = None
    repeated: tuple[exp.Expr, ...] = field(default=(), compare=False)
    """Keys that are written again."""


def has_aggregate(node: exp.Expr) -> bool:
    """Return True if a node's own query has an aggregate in it."""
    return next(aggregates_in(node), None) is not None


def aggregates_in(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the aggregates of a node's own query; in a window, those of its arguments and order."""
    if isinstance(node, exp.Query | exp.Subquery):
        return
    if is_aggregate(node):
        yield node
        return
    for part in _parts_of_window(node) if isinstance(node, exp.Window) else node.iter_expressions():
        yield from aggregates_in(part)


def _parts_of_window(window: Any) -> Iterator[exp.Expr]:
    """Yield the arguments and clauses of a window; its function is no aggregate of rows."""
    function = window.this
    while isinstance(function, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        yield from (e for name, e in function.args.items() if name != "this" and e is not None)
        function = function.this
    yield from function.iter_expressions()
    for name, part in window.args.items():
        if name != "this" and part:
            parts = part if isinstance(part, list) else [part]
            yield from (each for each in parts if isinstance(each, exp.Expr))


def keys_in(group: exp.Expr | None, target: Callable[[exp.Expr], exp.Expr]) -> GroupingKeys | None:
    """Return the keys of GROUP BY, None without it; `target` resolves a number or an alias."""
    if group is None:
        return None
    nodes: list[exp.Expr] = []
    repeated: list[exp.Expr] = []

    def place(node: exp.Expr) -> int:
        found = target(node)
        at = next((n for n, known in enumerate(nodes) if known == found), len(nodes))
        (nodes if at == len(nodes) else repeated).append(found)
        return at

    parts = [_sets(each, place) for each in (*group.expressions, *_other_sets(group))]
    every = [frozenset().union(*chosen) for chosen in product(*parts)]
    plain = bool(nodes) and not any(
        isinstance(e, _SETS) for e in (*group.expressions, *_other_sets(group))
    )
    return GroupingKeys(tuple(nodes), None if plain else tuple(every), tuple(repeated))


GROUPING = (exp.Grouping, exp.GroupingId)
_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)


def _other_sets(group: exp.Expr) -> list[exp.Expr]:
    names = ("rollup", "cube", "grouping_sets")
    return [each for name in names for each in (group.args.get(name) or ())]


def _sets(node: Any, place: Callable[[exp.Expr], int]) -> list[frozenset[int]]:
    """Return the sets of keys that one part of GROUP BY stands for.

    `place` returns the position of a key.
    """
    match node:
        case exp.Rollup():
            parts = [_key_positions(each, place) for each in node.expressions]
            return [frozenset().union(*parts[:n]) for n in range(len(parts), -1, -1)]
        case exp.Cube():
            parts = [_key_positions(each, place) for each in node.expressions]
            chosen = product((True, False), repeat=len(parts))
            return [
                frozenset().union(*(p for p, wanted in zip(parts, each, strict=True) if wanted))
                for each in chosen
            ]
        case exp.GroupingSets():
            return [found for each in node.expressions for found in _sets(each, place)]
        case _:
            return [_key_positions(node, place)]


def _key_positions(node: Any, place: Callable[[exp.Expr], int]) -> frozenset[int]:
    """Return the positions of the keys of a tuple or of one node, by `place`."""
    if isinstance(node, exp.Tuple):
        return frozenset(place(each) for each in node.expressions)
    return frozenset({place(node.this if isinstance(node, exp.Paren) else node)})


def group_with_aggregates(
    source: plan.Node, scope: Scope, keys: GroupingKeys | None, asked: Sequence[exp.Expr]
) -> tuple[plan.Node, GroupScope]:
    """Return the groups of some rows, with the aggregates that `asked` contains."""
    calls = [call for node in asked for call in aggregates_in(node)]
    wanted = keys or GroupingKeys(())
    is_grouped = keys is not None and all(keys.sets if keys.sets is not None else (True,))
    found = [
        (call, make_aggregate(call, scope.reading(call), grouped=is_grouped))
        for call in calls
        if not isinstance(call, GROUPING)
    ]
    folds = tuple(dict.fromkeys(each for _, aggregated in found for each in aggregated.folds))
    values = [scope.value(node) for node in wanted.nodes]
    for again in wanted.repeated:
        scope.value(again)
    shown = {n: _least(v, scope) for n, v in enumerate(values) if has_collation(v.type)}
    folds = tuple(dict.fromkeys((*folds, *shown.values())))
    scope.reading(*wanted.nodes)
    if wanted.sets is None:
        node, key_values, results = _one_set(
            source, scope, list(map(grouped_by, values)), folds, is_grouped=keys is not None
        )
        for n, each in shown.items():
            result = results[folds.index(each)]
            key_values[n] = unrank_value(TypedValue(result, values[n].type, (result,)))
    else:
        node, key_values, results = _several(source, scope, values, folds, wanted.sets)
    groups = _scope(scope, wanted, values, key_values, len(results) + (1 if keys else 0))
    for call, aggregated in found:
        groups.values[id(call)] = _result(aggregated, folds, results)
    for call in calls:
        if isinstance(call, GROUPING):
            groups.values[id(call)] = _grouping(call, scope, values, wanted.sets, len(results))
    return node, groups


def _least(value: TypedValue, scope: Scope) -> plan.Folded:
    """Return the fold of the value that represents equal values of a collation."""
    return fold(Min(_stands_in, skip_none=value.nullable), rank_by_collation(value), scope)


def _stands_in(*row: Any) -> Any:
    """Stands where the plan has an expression."""


def _grouping(
    call: Any,
    scope: Scope,
    values: list[TypedValue],
    sets: tuple[frozenset[int], ...] | None,
    place: int,
) -> TypedValue:
    """Return GROUPING: a bit per key, set if the group's set lacks it; refuse what is no key."""
    exprs = [value.expr for value in values]
    asked = [scope.value(each).expr for each in call.expressions]
    for each, node in zip(asked, call.expressions, strict=True):
        if each not in exprs:
            raise scope.error(node, f"{node.sql()} is not grouped by")
    if sets is None:
        return TypedValue(constant(0), INT)
    masks = tuple(
        sum((exprs.index(e) not in chosen) << n for n, e in enumerate(reversed(asked)))
        for chosen in sets
    )
    return TypedValue(Item(constant(masks), Item(Parameter(place), constant(len(values)))), INT)


def _scope(
    scope: Scope,
    keys: GroupingKeys,
    values: list[TypedValue],
    of_groups: list[TypedValue],
    bindings: int,
) -> GroupScope:
    """Return the scope of groups: `values` are the keys in the rows, `of_groups` in the groups."""
    groups = GroupScope(scope._text, (), bindings, scope.correlation, scope.environment)
    groups.rows, groups.aliases = scope, scope.aliases
    groups.keys = list(zip(values, of_groups, strict=False))
    groups.kinds = tuple({type(n) for n in keys.nodes if not isinstance(n, exp.Column)})
    groups.sources = []
    return groups


def _result(
    aggregated: CallFolds, folds: tuple[plan.Folded, ...], results: Sequence[Expr]
) -> TypedValue:
    """Return the value of an aggregate, from the results of the folds that it shares."""
    return aggregated.result(tuple(results[folds.index(each)] for each in aggregated.folds))


def _one_set(
    source: plan.Node,
    scope: Scope,
    values: list[TypedValue],
    folds: tuple[plan.Folded, ...],
    *,
    is_grouped: bool,
) -> tuple[plan.Node, list[TypedValue], list[Expr]]:
    """Return the groups of one list of keys: their plan, the keys and the results."""
    if not is_grouped:
        folds = folds or (fold(Count(), None, scope),)
        return freed(plan.Aggregate(source, None, folds)), [], list(all_parameters(len(folds)))
    key = scope.function(grouping_key(values))
    if not folds:
        node: plan.Node = plan.Distinct(freed(plan.Select(source, key)))
    else:
        node = freed(plan.Aggregate(source, key, folds))
    return node, keys_of(values, Parameter(0)), list(all_parameters(len(folds) + 1)[1:])


def _several(
    source: plan.Node,
    scope: Scope,
    values: list[TypedValue],
    folds: tuple[plan.Folded, ...],
    sets: tuple[frozenset[int], ...],
) -> tuple[plan.Node, list[TypedValue], list[Expr]]:
    """Return the groups of several sets of keys: their plan, the keys and the results.

    A key that the set does not have is NULL; the last value is the number of the set.
    """
    folds = folds or (fold(Count(), None, scope),)
    node: plan.Node | None = None
    for number, chosen in enumerate(sets):
        mine = [value for place, value in enumerate(values) if place in chosen]
        part, places, results = _one_set(source, scope, mine, folds, is_grouped=bool(mine))
        left = iter(places)
        keys = [as_optional(next(left)) if p in chosen else NONE for p in range(len(values))]
        keep = tuple(each.index for each in results if isinstance(each, Parameter))
        column = Scope(scope._text, (), len(folds) + bool(mine)).function(
            tuple_of(*keys, constant(number))
        )
        part = plan.Extend(part, keep, (column,))
        node = part if node is None else plan.UnionAll(node, part)
    assert node is not None
    key = Parameter(len(folds))
    found = [Item(key, constant(place)) for place in range(len(values))]
    return (
        node,
        [TypedValue(i, v.type, (i,)) for i, v in zip(found, values, strict=True)],
        list(all_parameters(len(folds))),
    )


# Plan nodes of expressions, without the sub-queries in these.


def filter_rows(node: plan.Node, scope: Scope, test: Expr) -> plan.Node:
    """Return the rows that satisfy a condition."""
    return node if test == TRUE else freed(plan.Where(node, scope.function(test)))


def freed(node: plan.Node) -> plan.Node:
    """Return an equivalent node whose callables have no sub-queries."""
    return subqueries.remove_subqueries(
        node, of_no_rows=_result_without_rows, canonical=canonical, in_order=False
    )


def _result_without_rows(folded: plan.Folded) -> Any:
    """Return the value of an aggregate without rows."""
    return folded.accumulator.result(folded.accumulator.zero())


def reads_query(value: TypedValue) -> bool:
    """Return True if a value contains a subquery."""
    return has_subquery(value.expr)


def columns_before(node: plan.Node, scope: Scope, columns: Sequence[Expr]) -> plan.Node:
    """Return a plan with `columns` appended to its bindings, without sub-queries."""
    functions = tuple(map(scope.function, columns))
    return freed(plan.Extend(node, tuple(range(scope.bindings)), functions))


def lateral(
    left: plan.Node,
    query: plan.Node,
    scope: Scope,
    arguments: tuple[Expr, ...],
    kind: Literal["inner", "left"],
) -> plan.Node:
    """Return each row with the rows that a query has for it."""
    return subqueries.lateral(
        left,
        query,
        arguments,
        kind,
        of_no_rows=_result_without_rows,
        canonical=canonical,
        in_order=False,
        names=scope.names,
    )


def select_values(
    node: plan.Node, scope: Scope, names: Sequence[str], values: Sequence[TypedValue]
) -> tuple[plan.Node, BindingSchema]:
    """Return the rows of a SELECT."""
    schema, kind = schema_of_values(names, values)
    columns = tuple(as_optional(value) for value in values)
    function = scope.function(construct_row(kind, columns))
    if columns == all_parameters(scope.bindings):
        function = _naming(function, kind)
    return freed(plan.Select(node, function)), schema


def _naming(function: Lifted, kind: Any) -> Lifted:
    """Mark a row of all bindings, so that an aggregate can make it directly."""
    naming = Naming(kind, kind._fields, True)
    name, place = f"Row({', '.join(kind._fields)})", function.place
    identity = ("named", function.body)
    maker = Opaque(naming, function.parameters, name, place, (), identity, "select")
    return replace(function, made=maker)


def unnest_arrays(
    node: plan.Node,
    scope: Scope,
    arrays: Sequence[TypedValue],
    kinds: Sequence[SqlType],
    place: int,
    *,
    offset: bool,
    outer: bool,
) -> tuple[plan.Node, list[TypedValue]]:
    """Append a binding for each element of an array; of several arrays, side by side, a tuple.

    With `offset` the number of the element comes last, from 1 on. An `outer` one gives NULL where
    there are no elements.
    """
    function = elements_or_none if outer else elements
    call = Call(constant(function), (constant(offset), *(as_optional(array) for array in arrays)))
    unnested_rows = freed(plan.Unnest(node, scope.function(call)))
    element = Parameter(place)
    if len(arrays) == 1 and not offset:
        return unnested_rows, [TypedValue(element, kinds[0], (element,))]
    kinds = [*kinds, *([INT] if offset else [])]
    items = [Item(element, constant(n)) for n in range(len(kinds))]
    return unnested_rows, [TypedValue(i, kind, (i,)) for i, kind in zip(items, kinds, strict=True)]


def unnested_value(argument: Any, scope: Scope) -> TypedValue:
    """Return the argument of UNNEST.

    Raises
    ------
    PlanError: it is a struct or an object, which has fields and no elements.
    """
    value = scope.value(argument)
    if fields_of(value.type):
        raise scope.error(argument, "a struct has no elements to unnest", "name its fields")
    if value.type.kind == "map":
        raise scope.error(argument, "a map has no elements to unnest", "unnest(map_entries(m))")
    while scope.dialect.name == "postgres" and element_type(value).kind == "array":
        value = flattened(value, argument, scope)  # it gives the elements of all dimensions
    return value


def one_row() -> plan.Node:
    """Return a row without columns: what a SELECT without FROM reads."""
    return literal_rows([()])


def literal_rows(rows: Sequence[tuple[Any, ...]]) -> plan.Node:
    """Return rows that are written out, which are tuples."""
    return written_out.values(rows)


def evaluated_constant(node: Any, scope: Scope, kind: SqlType | None = None) -> Any:
    """Return what an expression without columns gives, as a value of a type.

    Raises
    ------
    PlanError: it reads a query, or cannot be evaluated.
    """
    value = (
        scope.value(node) if kind is None else convert_for_column(scope.value(node), kind, scope)
    )
    if reads_query(value):
        raise scope.error(node, "a sub-query stands where a constant is needed")
    with failures_told(node, scope):
        return constant_of(value)


@contextmanager
def failures_told(node: Any, scope: Scope) -> Iterator[None]:
    """Raise a failure inside the block as a `PlanError` that shows the place of a node."""
    try:
        yield
    except ReactiveError:
        raise
    except Exception as error:
        raise scope.error(node, f"this cannot be evaluated: {error}") from error


@contextmanager
def misreadings_told(node: Any, scope: Scope) -> Iterator[None]:
    """Raise a failure inside the block as a `PlanError` about a node with unexpected parts."""
    try:
        yield
    except ReactiveError:
        raise
    except Exception as error:
        raise scope.misread(node, error) from error


def constant_of(value: TypedValue) -> Any:
    """Return the value that an expression without columns has when evaluated now."""
    expr = as_optional(value)
    return expr.value if isinstance(expr, Constant) else callable_of(Lifted(expr, (), (), 0))()


def grouping_key(values: Sequence[TypedValue]) -> Expr:
    """Return the grouping key: a value, or a tuple of several."""
    wholes = [as_optional(value) for value in values]
    return wholes[0] if len(wholes) == 1 else tuple_of(*wholes)


def keys_of(values: Sequence[TypedValue], key: Expr) -> list[TypedValue]:
    """Return the values as parts of the grouping key that `grouping_key` made of them."""
    places = [key] if len(values) == 1 else [Item(key, constant(n)) for n in range(len(values))]
    return [
        TypedValue(place, value.type, (place,) if value.nullable else ())
        for place, value in zip(places, values, strict=True)
    ]
