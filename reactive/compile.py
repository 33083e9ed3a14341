"""From a plan to nodes of the graph: the one module that knows both plans and operators.

Each plan node becomes the operator of its name. Joins read indexes, which are nodes of their
own, so that all joins of an input by the same key share one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import fields
from typing import Any

from optimizer import plan
from optimizer.expr import Function
from optimizer.knowledge import hashable, total
from optimizer.properties import bindings, keeps_identity, nodes, row_shape, shapes
from reactive.codegen import callable_of
from reactive.folds import CountFold
from reactive.graph import Graph, Node
from reactive.index import Key, itself
from reactive.keys import found_key, written_key
from reactive.operators.aggregate import Aggregate
from reactive.operators.anti_join import anti_join
from reactive.operators.difference import difference
from reactive.operators.difference_all import difference_all
from reactive.operators.distinct import Distinct
from reactive.operators.index_by import IndexBy
from reactive.operators.intersection import intersection
from reactive.operators.intersection_all import intersection_all
from reactive.operators.join import Join
from reactive.operators.key_by import KeyBy
from reactive.operators.nothing import Nothing
from reactive.operators.matching import KeyMatching, Matching, PredicateMatching
from reactive.operators.order_by import OrderBy
from reactive.operators.outer_join import Kept, OuterJoin
from reactive.operators.product import product
from reactive.operators.select import Select
from reactive.operators.select_many import SelectMany
from reactive.operators.semi_join import semi_join
from reactive.operators.union import Union
from reactive.operators.union_all import UnionAll
from reactive.operators.unnest import Unnest
from reactive.operators.where import Where
from reactive.zset import Row

Make = Callable[[], Any]


def compile_plan(root: plan.Node, graph: Graph, source: Callable[[plan.Table], Node]) -> Node:
    """The node of the graph that gives the rows of `root`, made where there is none yet."""
    compiler = _Compiler(graph, source)
    for node in nodes(root):  # inputs first
        compiler.made[id(node)] = compiler.make(node)
    return compiler.made[id(root)]


def spread(function: Function, count: int) -> Callable[[Row], Any]:
    """A callable of one row, for one that takes an argument per binding."""
    call = callable_of(function)
    return call if count == 1 else lambda row: call(*row)


def _maybe(function: Function | None, count: int) -> Callable[[Row], Any] | None:
    return None if function is None else spread(function, count)


class _Compiler:
    def __init__(self, graph: Graph, source: Callable[[plan.Table], Node]) -> None:
        self._graph = graph
        self._source = source
        self.made: dict[int, Node] = {}

    def make(self, node: plan.Node) -> Node:
        """The node of the graph for a plan node whose inputs are made."""
        match node:
            case plan.Table():
                return self._source(node)
            case plan.Empty():
                return self._graph.node(("empty",), (), Nothing, plan=node)
            case (
                plan.Product() | plan.Join() | plan.OuterJoin() | plan.SemiJoin() | plan.AntiJoin()
            ):
                return self._join(node)
            case _:
                make, functions = _made(node)
                inputs = tuple(self.made[id(source)] for source in node.inputs())
                signature = _signature(node)
                return self._graph.node(signature, inputs, make, plan=node, functions=functions)

    def _join(
        self, node: plan.Product | plan.Join | plan.OuterJoin | plan.SemiJoin | plan.AntiJoin
    ) -> Node:
        match = plan.Match() if isinstance(node, plan.Product) else node.match
        left_side, right_side = _sides(match)
        left = self._index(node, node.left, left_side, bindings(node.left))
        if isinstance(node, plan.SemiJoin | plan.AntiJoin) and _by_key_alone(node):
            right = self._keyed(node, node.right, right_side)
        else:
            right = self._index(node, node.right, right_side, 1)
            _introduce(left, left_side, right, right_side)
        return self._graph.node(
            _signature(node),
            (left, right),
            lambda: _joined(node, match, left.operator, right.operator),
            plan=node,
            functions=(match.on,),
            blamed=(match.right_key,) if isinstance(right.operator, KeyBy) else (),
        )

    def _index(self, owner: plan.Node, source: plan.Node, side: Side, arguments: int) -> Node:
        key = _key(side, arguments)
        handle = id if keeps_identity(source) else itself
        made, graph = self.made[id(source)], self._graph
        return graph.node(
            ("index", side, arguments),
            (made,),
            lambda: IndexBy(key, handle, lambda: graph.contents(made)),
            plan=owner,
            functions=_functions(side),
        )

    def _keyed(self, owner: plan.Node, source: plan.Node, side: Side) -> Node:
        key = _key(side, 1)
        return self._graph.node(
            ("key", side),
            (self.made[id(source)],),
            lambda: KeyBy(key),
            plan=owner,
            functions=_functions(side),
        )


Side = tuple[Function | None, tuple[plan.Step, ...]]
"""The key of a side as written, and the tests and keys that were found in the predicate."""


def _sides(match: plan.Match) -> tuple[Side, Side]:
    early = match.early
    found = ((), ()) if early is None else (early.left, early.right)
    return (match.left_key, found[0]), (match.right_key, found[1])


def _functions(side: Side) -> tuple[Function | None, ...]:
    return (side[0], *(step.function for step in side[1]))


def _key(side: Side, count: int) -> Callable[[Row], Key] | None:
    written, steps = side
    key = _maybe(written, count)
    if steps:
        return found_key(key, [(s.is_key, spread(s.function, count)) for s in steps])
    return None if key is None else written_key(key)


def _introduce(left: Node, left_side: Side, right: Node, right_side: Side) -> None:
    """Tell an index that leaves rows out whom it has to tell of them."""
    for index, (_, steps), other in (
        (left.operator, left_side, right.operator),
        (right.operator, right_side, left.operator),
    ):
        if not all(step.is_key for step in steps):
            index.meets(other)


def _by_key_alone(node: plan.SemiJoin | plan.AntiJoin) -> bool:
    """Whether a key tells all, and none can fail to be computed."""
    match = node.match
    if match.early is None:
        return match.on is None
    sides = ((match.early.left, shapes(node.left)), (match.early.right, (row_shape(node.right),)))
    certain = all(
        total(step.function.body, of) and (not step.is_key or hashable(step.function.body, of))
        for steps, of in sides
        for step in steps
    )
    return certain and match.early.rest is None


def _signature(node: plan.Node) -> Hashable:
    """What a node does, without what it does it to."""
    values = (getattr(node, field.name) for field in fields(node) if field.init)
    return (type(node), *(v for v in values if not isinstance(v, plan.Node)))


def _made(node: plan.Node) -> tuple[Make, tuple[Function | None, ...]]:
    """How to make the operator of a node that is no join, and the callables in it."""
    match node:
        case plan.Where(source, f):
            return lambda: Where(spread(f, bindings(source))), (f,)
        case plan.Select(source, f):
            return lambda: Select(spread(f, bindings(source))), (f,)
        case plan.SelectMany(source, f):
            return lambda: SelectMany(spread(f, bindings(source))), (f,)
        case plan.Unnest(source, f):
            count = bindings(source)
            return lambda: Unnest(spread(f, count), _pair(count)), (f,)
        case plan.Distinct():
            return Distinct, ()
        case plan.Union():
            return Union, ()
        case plan.UnionAll():
            return UnionAll, ()
        case plan.Difference():
            return difference, ()
        case plan.DifferenceAll():
            return difference_all, ()
        case plan.Intersection():
            return intersection, ()
        case plan.IntersectionAll():
            return intersection_all, ()
        case plan.Aggregate(_, key, aggregates):
            functions = (f for a in aggregates for f in (a.value, *a.functions))
            return lambda: _aggregate(node), (key, *functions)
        case plan.OrderBy(source, key, descending, limit, offset):
            return lambda: OrderBy(
                spread(key, bindings(source)), descending=descending, limit=limit, offset=offset
            ), (key,)
        case _:
            raise TypeError(f"no operator for plan node {type(node).__name__}")


def _aggregate(node: plan.Aggregate) -> Aggregate:
    count = bindings(node.input)
    folds = [(a.fold, _value(a, count)) for a in node.aggregates]
    return Aggregate(_maybe(node.key, count), folds)


def _value(folded: plan.Folded, count: int) -> Callable[[Row], Any] | None:
    """What a fold reads of a row: the user's callable, the row itself, or nothing."""
    if isinstance(folded.fold, CountFold):
        return None
    return itself if folded.value is None else spread(folded.value, count)


def _joined(node: plan.Node, match: plan.Match, left: Any, right: Any) -> Any:
    """The operator of a join; `left` and `right` are the operators of its inputs."""
    count = bindings(node.inputs()[0])
    pair = _pair(count)
    whole = _maybe(match.on, count + 1)
    on = whole if match.early is None else _maybe(match.early.rest, count + 1)
    match node:
        case plan.Product():
            return product(left, right, pair)
        case plan.Join():
            return Join(left, right, pair, on, whole)
        case plan.SemiJoin():
            return semi_join(_matching(left, right, on, whole, pair))
        case plan.AntiJoin():
            return anti_join(_matching(left, right, on, whole, pair))
        case plan.OuterJoin(kind=kind):
            join = Join(left, right, pair, on, whole)
            back = _matching(right, left, on, whole, lambda row, other: pair(other, row))
            nothing = None if count == 1 else (None,) * count
            keep_left: Kept = (
                _matching(left, right, on, whole, pair),
                lambda row: pair(row, None),
            )
            keep_right: Kept = (back, lambda row: pair(nothing, row))
            return OuterJoin(
                join,
                left=keep_left if kind != "right" else None,
                right=keep_right if kind != "left" else None,
            )
        case _:
            raise TypeError(f"{type(node).__name__} is no join")


def _matching(
    left: Any,
    right: Any,
    on: Callable[[Row], object] | None,
    whole: Callable[[Row], object] | None,
    pair: Callable[[Row, Row], Row],
) -> Matching:
    if whole is None or isinstance(right, KeyBy):
        return KeyMatching(left.index)
    asked = whole
    return PredicateMatching(
        left,
        right,
        _always if on is None else lambda row, other: on(pair(row, other)),
        lambda row, other: asked(pair(row, other)),
    )


def _always(row: Row, other: Row) -> bool:
    return True


def _pair(count: int) -> Callable[[Row, Any], Row]:
    """Append a binding to a row that has `count`."""
    if count == 1:
        return lambda row, other: (row, other)
    return lambda row, other: (*row, other)
