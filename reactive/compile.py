"""From a plan to nodes of the graph: the one module that knows both plans and operators.

Each plan node becomes the operator of its name. Joins read indexes, which are nodes of their
own, so that all joins of an input by the same key share one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import fields
from typing import Any

from optimizer import plan
from optimizer.expr import Opaque
from optimizer.properties import bindings, keeps_identity, nodes
from reactive.folds import CountFold
from reactive.graph import Graph, Node
from reactive.index import itself
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


def spread(function: Opaque, count: int) -> Callable[[Row], Any]:
    """A callable of one row, for one that takes an argument per binding."""
    call = function.function
    return call if count == 1 else lambda row: call(*row)


def _maybe(function: Opaque | None, count: int) -> Callable[[Row], Any] | None:
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
        left = self._index(node, node.left, match.left_key, bindings(node.left))
        if isinstance(node, plan.SemiJoin | plan.AntiJoin) and match.on is None:
            right = self._keyed(node, node.right, match.right_key)
        else:
            right = self._index(node, node.right, match.right_key, 1)
        return self._graph.node(
            _signature(node),
            (left, right),
            lambda: _joined(node, match, left.operator, right.operator),
            plan=node,
            functions=(match.on,),
            blamed=(match.right_key,) if isinstance(right.operator, KeyBy) else (),
        )

    def _index(
        self, owner: plan.Node, source: plan.Node, key: Opaque | None, arguments: int
    ) -> Node:
        function = _maybe(key, arguments)
        handle = id if keeps_identity(source) else itself
        return self._graph.node(
            ("index", key, arguments),
            (self.made[id(source)],),
            lambda: IndexBy(function, handle),
            plan=owner,
            functions=(key,),
        )

    def _keyed(self, owner: plan.Node, source: plan.Node, key: Opaque | None) -> Node:
        function = _maybe(key, 1)
        return self._graph.node(
            ("key", key),
            (self.made[id(source)],),
            lambda: KeyBy(function),
            plan=owner,
            functions=(key,),
        )


def _signature(node: plan.Node) -> Hashable:
    """What a node does, without what it does it to."""
    values = (getattr(node, field.name) for field in fields(node))
    return (type(node), *(v for v in values if not isinstance(v, plan.Node)))


def _made(node: plan.Node) -> tuple[Make, tuple[Opaque | None, ...]]:
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
    on = _maybe(match.on, count + 1)
    match node:
        case plan.Product():
            return product(left.index, right.index, pair)
        case plan.Join():
            return Join(left.index, right.index, pair, on)
        case plan.SemiJoin():
            return semi_join(_matching(left, right, on, pair))
        case plan.AntiJoin():
            return anti_join(_matching(left, right, on, pair))
        case plan.OuterJoin(kind=kind):
            join = Join(left.index, right.index, pair, on)
            back = _matching(right, left, on, lambda row, other: pair(other, row))
            nothing = None if count == 1 else (None,) * count
            keep_left: Kept = (_matching(left, right, on, pair), lambda row: pair(row, None))
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
    pair: Callable[[Row, Row], Row],
) -> Matching:
    if on is None:
        return KeyMatching(left.index)
    return PredicateMatching(left.index, right.index, lambda row, other: on(pair(row, other)))


def _pair(count: int) -> Callable[[Row, Any], Row]:
    """Append a binding to a row that has `count`."""
    if count == 1:
        return lambda row, other: (row, other)
    return lambda row, other: (*row, other)
