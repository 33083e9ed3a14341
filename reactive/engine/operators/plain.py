"""The plain operator of a plan node: it calls one callable after the other.

These are the operators of `reactive/engine/operators`, one per node of the plan. The compiler puts
generated loops in their place where it can, and keeps them for what the loops cannot do.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import fields
from functools import lru_cache
from typing import Any

from optimizer import plan
from optimizer.expr import Function
from optimizer.expressions.knowledge import hashable, total
from optimizer.plans import bounds
from optimizer.plans.extended import row_of
from optimizer.plans.nodes.reduce import keeper
from optimizer.plans.properties import (
    bindings,
    keeps_identity,
    may_be_negative,
    once,
    row_shape,
    shapes,
)
from optimizer.plans.side_conditions import (
    AnyJoin,
    SideTerm,
    match_of,
    residual,
    side_conditions_of,
)
from optimizer.plans.tree import Hashed
from optimizer.rewriting import lookups
from reactive.engine.codegen.functions import callable_of
from reactive.engine.collections import sorting
from reactive.engine.collections.index import Key, itself
from reactive.engine.collections.zset import Pairs, Row
from reactive.engine.operators import (
    anti_join,
    bound_matching,
    difference,
    difference_all,
    distinct,
    hash_matching,
    intersection,
    intersection_all,
    kept_groups,
    matching,
    negate,
    order_by,
    outer_join,
    previous,
    product,
    reduce,
    select,
    select_many,
    semi_join,
    tolerate,
    top,
    union,
    union_all,
    unnest,
    where,
)
from reactive.engine.operators import join as joins
from reactive.engine.operators import keys as join_keys
from reactive.engine.operators.accumulators import CountAccumulator
from reactive.engine.operators.aggregate import Aggregate, shared_accumulators_of

Make = Callable[[], Any]
LINEAR = (plan.Where, plan.Select, plan.Extend, plan.SelectMany, plan.Unnest)
"""Nodes that look at one row after the other."""


def chain_over(node: plan.Node) -> tuple[tuple[plan.Node, ...], plan.Node]:
    """A chain of linear nodes, the first to see a row first, and what it is over."""
    chain: list[plan.Node] = []
    while isinstance(node, LINEAR):
        chain.append(node)
        node = node.input
    return tuple(chain[::-1]), node


def plain_operator(node: plan.Node) -> tuple[Make, tuple[Function | None, ...]]:
    """How to make the operator of a node that is no join, and the callables in it."""
    match node:
        case plan.Where(source, f):
            return lambda: where.Where(spread(f, bindings(source))), (f,)
        case plan.Select(source, f):
            return lambda: select.Select(spread(f, bindings(source))), (f,)
        case plan.Extend(source, _, columns):
            made = row_of(node)
            return lambda: select.Select(spread(made, bindings(source))), columns
        case plan.SelectMany(source, f):
            return lambda: select_many.SelectMany(spread(f, bindings(source))), (f,)
        case plan.Unnest(source, f):
            count = bindings(source)
            return lambda: unnest.Unnest(spread(f, count), pair_with(count)), (f,)
        case plan.Tolerate(source, tolerance):
            count = bindings(source)
            by, value = spread(tolerance.by, count), spread(tolerance.value, count)
            return lambda: tolerate.Tolerate(by, value, tolerance.least), (
                tolerance.by,
                tolerance.value,
            )
        case plan.Distinct():
            return distinct.Distinct, ()
        case plan.Union():
            return union.Union, ()
        case plan.UnionAll():
            return union_all.UnionAll, ()
        case plan.Negate():
            return negate.Negate, ()
        case plan.Previous(_, moment):
            return lambda: previous.Previous(moment), ()
        case plan.Difference():
            return difference.difference, ()
        case plan.DifferenceAll():
            return difference_all.difference_all, ()
        case plan.Intersection():
            return intersection.intersection, ()
        case plan.IntersectionAll():
            return intersection_all.intersection_all, ()
        case plan.Aggregate(_, key, aggregates):
            functions = (f for a in aggregates for f in (a.value, *a.functions))
            return lambda: plain_aggregate(node), (key, *functions)
        case plan.Reduce(_, key, function):
            return lambda: _reducing(node), (key, function)
        case plan.Top(source, key, keys, limit, offset):
            return lambda: top.Top(
                spread(key, bindings(source)),
                order_key(node.order),
                descending=node.order.descending,
                limit=limit,
                offset=offset,
            ), (key, *(k.function for k in keys))
        case plan.OrderBy(source, keys, limit, offset):
            return lambda: order_by.OrderBy(
                order_key(node),
                descending=node.descending,
                limit=limit,
                offset=offset,
                show=node.show,
                are_hashable=keeps_identity(source),
            ), tuple(key.function for key in keys)
        case _:
            raise TypeError(f"no operator for plan node {type(node).__name__}")


def _reducing(node: plan.Reduce) -> reduce.Reduce | kept_groups.KeptGroups:
    key, kept = spread(node.key, bindings(node.input)), keeper(node.function)
    if kept is not None:
        return kept_groups.KeptGroups(key, kept.kept())
    return reduce.Reduce(key, callable_of(node.function))


def order_key(node: plan.OrderBy) -> Callable[[Row], Any]:
    """What the rows of an order are sorted by."""
    count = bindings(node.input)
    return sorting.sorted_by(node.keys, [spread(key.function, count) for key in node.keys])


def plain_aggregate(node: plan.Aggregate) -> Aggregate:
    count = bindings(node.input)
    known: dict[Function | None, Any] = {}
    accumulators = [
        (
            a.accumulator,
            known.setdefault(a.value, _value(a, count)) if a.value else _value(a, count),
        )
        for a in node.aggregates
    ]
    keeps_negative = may_be_negative(node.input)
    return Aggregate(
        maybe(node.key, count), accumulators, keeps_negative=keeps_negative, row=node.row
    )


def group_of_row(node: plan.Aggregate) -> Callable[[Row, Pairs], list[Row]]:
    """What makes the row of a group of a left row and its partners, where the groups are these."""
    join = node.input
    assert isinstance(join, plan.Join | plan.Product | plan.OuterJoin)
    pair = pair_with(bindings(join.left))
    keeps_alone = isinstance(join, plan.OuterJoin)

    def group(row: Row, partners: Pairs) -> list[Row]:
        pairs = [(pair(row, other), weight) for other, weight in partners]
        if not pairs and keeps_alone:
            pairs = [(pair(row, None), 1)]
        return [made for made, _ in plain_aggregate(node).step(pairs)]

    return group


def shared_accumulators(node: plan.Aggregate) -> list[int]:
    """Where each accumulator of an aggregate has its state, as in its operator."""
    return shared_accumulators_of([(a.accumulator, a.value or itself) for a in node.aggregates])


def _value(folded: plan.Folded, count: int) -> Callable[[Row], Any] | None:
    """What an accumulator reads of a row: the user's callable, the row itself, or nothing."""
    if isinstance(folded.accumulator, CountAccumulator):
        return None
    return itself if folded.value is None else spread(folded.value, count)


def plain_join(node: AnyJoin, left: Any, right: Any) -> Any:
    """The operator of a join; `left` and `right` are the operators of its inputs."""
    count = bindings(node.inputs()[0])
    pair = pair_with(count)
    whole, on = maybe(match_of(node).on, count + 1), maybe(residual(node), count + 1)
    match node:
        case plan.Product():
            return product.product(left, right, pair)
        case plan.Join():
            return joins.Join(left, right, pair, on, whole)
        case plan.SemiJoin():
            return semi_join.semi_join(_matching(node, left, right, on, whole, pair))
        case plan.AntiJoin():
            return anti_join.anti_join(_matching(node, left, right, on, whole, pair))
        case plan.OuterJoin(kind=kind):
            join = joins.Join(left, right, pair, on, whole)
            keep_left: outer_join.Kept | None = None
            keep_right: outer_join.Kept | None = None
            if kind != "right":
                ours = _matching(node, left, right, on, whole, pair)
                keep_left = (ours, lambda row: pair(row, None))
            if kind != "left":
                nothing = None if count == 1 else (None,) * count
                back = _matching(node, right, left, on, whole, lambda row, other: pair(other, row))
                keep_right = (back, lambda row: pair(nothing, row))
            return outer_join.OuterJoin(join, left=keep_left, right=keep_right)
        case _:
            raise TypeError(f"{type(node).__name__} is no join")


def _matching(
    node: plan.SemiJoin | plan.AntiJoin | plan.OuterJoin,
    left: Any,
    right: Any,
    on: Callable[[Row], object] | None,
    whole: Callable[[Row], object] | None,
    pair: Callable[[Row, Row], Row],
) -> matching.Matching:
    if (found := lookups.looked_up(node.match)) is not None:
        value, memory = found
        return hash_matching.HashMatching(left, spread(value, bindings(node.inputs()[0])), memory)
    if whole is None or by_key_alone(node):
        return matching.KeyMatching(left.index)
    fits = _of_two(on, pair), _of_two(whole, pair)
    bound = None if isinstance(node, plan.OuterJoin) else bounds.bound_of(node)
    if bound is None:
        return matching.PredicateMatching(left, right, *fits)
    sides = _bound_side(bound.left, bindings(node.left)), _bound_side(bound.right, 1)
    return bound_matching.BoundMatching(
        *(left, right, sides),
        lambda: matching.PredicateMatching(left, right, *fits),
        is_upper=bound.is_upper,
        closed=bound.closed,
    )


def _bound_side(side: bounds.BoundSide, count: int) -> bound_matching.BoundSide:
    before, after = ([spread(t, count) for t in tests] for tests in (side.before, side.after))
    return bound_matching.BoundSide(before, spread(side.value, count), after)


def fitting(node: plan.AntiJoin) -> tuple[matching.Fits, matching.Fits]:
    """What to ask of a row and another of the same key, and of two rows of any keys."""
    count = bindings(node.left)
    whole, on = maybe(node.match.on, count + 1), maybe(residual(node), count + 1)
    return _of_two(on, pair_with(count)), _of_two(whole, pair_with(count))


def _of_two(on: Callable[[Row], object] | None, pair: Callable[[Row, Row], Row]) -> matching.Fits:
    return _always if on is None else lambda row, other: on(pair(row, other))


def _always(row: Row, other: Row) -> bool:
    return True


def pair_with(count: int) -> Callable[[Row, Any], Row]:
    """Append a binding to a row that has `count`."""
    if count == 1:
        return lambda row, other: (row, other)
    return lambda row, other: (*row, other)


def spread(
    function: Function, count: int, made: Callable[[Function], Callable[..., Any]] = callable_of
) -> Callable[[Row], Any]:
    """A callable of one row, for one that takes an argument per binding."""
    call = made(function)
    return call if count == 1 else lambda row: call(*row)


def maybe(function: Function | None, count: int) -> Callable[[Row], Any] | None:
    return None if function is None else spread(function, count)


Side = tuple[Function | None, tuple[SideTerm, ...]]
"""The key of a side as written, and the tests and keys that were found in the predicate."""


def keys_of(side: Side) -> list[Function]:
    """All that rows of a side are looked up by, as written and as found."""
    key, steps = side
    written = [] if key is None else [key]
    return [*written, *(step.function for step in steps if step.is_key)]


def sides(node: AnyJoin) -> tuple[Side, Side]:
    """The keys of both sides of a join."""
    conditions, match = side_conditions_of(node), match_of(node)
    found = ((), ()) if conditions is None else (conditions.left, conditions.right)
    return (match.left_key, found[0]), (match.right_key, found[1])


def side_functions(side: Side) -> tuple[Function | None, ...]:
    return (side[0], *(step.function for step in side[1]))


def side_key(side: Side, count: int) -> Callable[[Row], Key] | None:
    written, steps = side
    key = maybe(written, count)
    if steps:
        return join_keys.found_key(key, [(s.is_key, spread(s.function, count)) for s in steps])
    return None if key is None else join_keys.written_key(key)


def by_key_alone(node: plan.SemiJoin | plan.AntiJoin | plan.OuterJoin) -> bool:
    """Whether a key tells all, and none can fail to be computed."""
    conditions = side_conditions_of(node)
    if conditions is None:
        return node.match.on is None
    both = ((conditions.left, shapes(node.left)), (conditions.right, (row_shape(node.right),)))
    certain = all(
        total(step.function.body, of) and (not step.is_key or hashable(step.function.body, of))
        for steps, of in both
        for step in steps
    )
    return certain and conditions.residual is None


def signature(node: plan.Node) -> Hashable:
    """What a node does, without what it does it to."""
    return once(node, "signature", _signature)


def _signature(node: plan.Node) -> Hashable:
    kind: Any = type(node)
    values = [getattr(node, name) for name in _names(kind)]
    return Hashed((kind, *[v for v in values if not isinstance(v, plan.Node)]))


@lru_cache(maxsize=64)
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind) if each.init)
