"""Aggregates of whole partitions: each row beside the aggregates of its group.

    sum(x) over (partition by a)

    join on a == a
      rows
      aggregate Sum(x), Count() by a
        rows

A row holds no answer of its own: it is stored once, and all rows of a partition change as partners
of a join do. Without PARTITION BY it is a product with one row.

Sound:  every row has the group of its key, once. NULL equals NULL, and NaN equals NaN. Arguments
        that may raise are evaluated before, once for both inputs.
Needs:  an aggregate whose result no order of the rows changes, and whose folds raise nothing.
Cost:   O(1) for a change of a group, and O(1) for each row of it if the aggregate changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from optimizer import plan
from optimizer.expr import Expr, Item, Lifted, Parameter, constant, tuple_of
from optimizer.expressions.knowledge import total
from optimizer.expressions.text import same
from optimizer.plans.properties import bindings, shapes
from optimizer.record import record
from optimizer.subqueries.keyed_rows import items
from reactive.languages.sql.aggregates.calls import AggregateCall, CallFolds
from reactive.languages.sql.aggregates.kinds import ORDERLESS, folds_of_call
from reactive.languages.sql.queries.grouping import columns_before
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.values import TypedValue, as_optional, nullable_value

WITHOUT_NAN = frozenset(
    {"null", "bool", "int", "text", "bytes", "date", "time", "timestamp", "timestamptz", "uuid"}
)
"""Kinds of types none of whose values is NaN, or has one inside."""
ADDED = frozenset({"int", "float"})
"""Kinds of types whose mean is rounded once, in groups as in frames."""
COMPARED = WITHOUT_NAN | {"float", "decimal", "interval"}
"""Kinds of types of which no two values fail to be compared."""

KEY_OF_GROUP = Lifted(Item(Parameter(0), constant(0)), ("group",), (), 1)


@record
class PartitionTotal:
    """An aggregate of all rows of a partition: the name of its window, the keys, and its folds."""

    name: int
    keys: tuple[TypedValue, ...]
    call: CallFolds
    never_null: bool
    """True if it counts rows or values."""


@record
class GroupTotals:
    """Aggregates that share a partition: their groups, and the key of a row's group."""

    node: plan.Node
    key: Expr | None
    folds: tuple[plan.Folded, ...]
    totals: tuple[PartitionTotal, ...]


def whole_partition(
    name: int, asked: AggregateCall, keys: Sequence[TypedValue]
) -> PartitionTotal | None:
    """Return an aggregate of whole partitions; None if it needs their rows in order, or may raise.

    Raises
    ------
    PlanError: there is no such aggregate.
    """
    kinds = [asked.scope.value(each).type.kind for each in asked.arguments]
    if type(asked.node) not in ORDERLESS or not COMPARED.issuperset(kinds):
        return None
    call = folds_of_call(asked)
    names = {each.name for each in call.folds}
    if "Collect" in names or ("Avg" in names and not ADDED.issuperset(kinds)):
        return None
    counts = type(asked.node) is exp.Count and not asked.distinct
    return PartitionTotal(name, tuple(keys), call, counts)


def may_raise(totals: Sequence[PartitionTotal], source: plan.Node) -> bool:
    """Return True if a key or an argument may raise, so that a row is left out."""
    return not all(total(expr, shapes(source)) for expr in _expressions(totals))


def group_totals(
    source: plan.Node, scope: Scope, totals: Sequence[PartitionTotal]
) -> tuple[plan.Node, GroupTotals]:
    """Return the groups of aggregates with equal keys, and the rows that they are of.

    Keys and arguments that may raise are bindings of these rows.
    """
    unsafe = [e for e in dict.fromkeys(_expressions(totals)) if not total(e, shapes(source))]
    known = {e: Parameter(scope.bindings + place) for place, e in enumerate(unsafe)}
    if unsafe:
        source = columns_before(source, scope, unsafe)
        scope = scope.wider(scope.bindings + len(unsafe))
    return source, _group(source, scope, tuple(totals), known)


def join_totals(
    rows: plan.Node, scope: Scope, groups: Sequence[GroupTotals]
) -> tuple[plan.Node, dict[int, TypedValue]]:
    """Append groups to their rows; return the values of the aggregates by name."""
    values: dict[int, TypedValue] = {}
    for each in groups:
        count = bindings(rows)
        if each.key is None:
            rows = plan.Product(rows, each.node)
        else:
            match = plan.Match(scope.wider(count).function(each.key), KEY_OF_GROUP)
            rows = plan.Join(rows, each.node, match)
        found = items(Parameter(count), bindings(each.node))
        results = dict(zip(each.folds, found[-len(each.folds) :], strict=True))
        values |= {of.name: _value(of, results) for of in each.totals}
    return rows, values


def _expressions(totals: Sequence[PartitionTotal]) -> Iterator[Expr]:
    """Yield the keys and arguments of aggregates."""
    for each in totals:
        yield from map(as_optional, each.keys)
        yield from (_body(fold) for fold in each.call.folds if fold.value is not None)


def _body(fold: plan.Folded) -> Expr:
    assert isinstance(fold.value, Lifted)
    return fold.value.body


def _group(
    source: plan.Node, scope: Scope, totals: tuple[PartitionTotal, ...], known: Mapping[Expr, Expr]
) -> GroupTotals:
    """Return the groups of aggregates with equal keys; `known` are expressions in bindings."""
    keys = [_key_part(each, known) for each in totals[0].keys]
    folds = tuple(dict.fromkeys(fold for each in totals for fold in each.call.folds))
    read = tuple(_reading(fold, scope, known) for fold in folds)
    if not keys:
        return GroupTotals(plan.Aggregate(source, None, read), None, folds, totals)
    key = keys[0] if len(keys) == 1 else tuple_of(*keys)
    return GroupTotals(plan.Aggregate(source, scope.function(key), read), key, folds, totals)


def _key_part(value: TypedValue, known: Mapping[Expr, Expr]) -> Expr:
    """Return a key that equals itself, also if it is NaN."""
    expr = as_optional(value)
    expr = known.get(expr, expr)
    return expr if value.type.kind in WITHOUT_NAN else same(expr)


def _reading(fold: plan.Folded, scope: Scope, known: Mapping[Expr, Expr]) -> plan.Folded:
    """Return a fold of the rows of `scope`."""
    if fold.value is None:
        return fold
    body = _body(fold)
    return replace(fold, value=scope.function(known.get(body, body)))


def _value(of: PartitionTotal, results: Mapping[plan.Folded, Expr]) -> TypedValue:
    """Return the value of an aggregate, which may be NULL unless it counts."""
    found = of.call.result(tuple(results[fold] for fold in of.call.folds))
    return found if of.never_null else nullable_value(as_optional(found), found.type)
