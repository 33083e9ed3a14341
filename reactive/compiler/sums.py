"""Aggregates over joins of which sums are kept: the nodes of the sides, and what reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optimizer import plan
from optimizer.properties import bindings
from reactive.dataflow.node import Node
from reactive.operators.fuse import NO_FACTORS, factored, sums_of_pairs, sums_of_rows
from reactive.operators.generated.grouped import is_in_line
from reactive.operators.loops import INNER, Inner, called, pins_of
from reactive.operators.plain import Side, side_functions, sides, signature

if TYPE_CHECKING:
    from reactive.compiler.compile import Compiler


def split(compiler: Compiler, node: plan.Node) -> tuple[Inner, plan.Factors] | None:
    """The join that an aggregate has the factors of, and these; None if it has none."""
    if not compiler.generates or not isinstance(node, plan.Aggregate) or node.factors is None:
        return None
    if not is_in_line(a.fold for a in node.aggregates):
        return None
    below = compiler.below(node.input)
    if compiler.depends(node) or not compiler.takes_join(node, below):
        return None
    return _inner(below.base), node.factors


def bases(compiler: Compiler, join: Inner, factors: plan.Factors) -> tuple[plan.Node, ...]:
    """What the sides of a join are made from."""
    found: list[plan.Node] = []
    for side, sums in ((join.left, factors.left), (join.right, factors.right)):
        below = compiler.below(side)
        if sums is not None and compiler.takes_join(side, below):
            found += bases(compiler, _inner(below.base), sums.below or NO_FACTORS)
        else:
            found.append(below.base)
    return tuple(found)


def over_sides(compiler: Compiler, node: plan.Node, join: Inner, factors: plan.Factors) -> Node:
    """An aggregate over a join of which sums are kept."""
    assert isinstance(node, plan.Aggregate)
    left, right = _sides(compiler, node, join, factors)
    parts = [node, join, *[node.input] * (node.input is not join)]
    return compiler.graph.node(
        ("factored", *map(signature, parts)),
        (left, right),
        factored(node, join, (left.operator, right.operator)),
        plan=node,
        functions=called(parts),
    )


def _sides(
    compiler: Compiler, owner: plan.Node, join: Inner, factors: plan.Factors
) -> tuple[Node, Node]:
    match = plan.Match() if isinstance(join, plan.Product) else join.match
    left, right = sides(match)
    return (
        _side(compiler, (owner, join), join.left, left, bindings(join.left), factors.left),
        _side(compiler, (owner, join), join.right, right, 1, factors.right),
    )


def _side(
    compiler: Compiler,
    of: tuple[plan.Node, Inner],
    node: plan.Node,
    side: Side,
    arguments: int,
    sums: plan.Sums | None,
) -> Node:
    """A side of a join, as an index or as sums; `of` are the aggregate and the join."""
    below, (owner, above) = compiler.below(node), of
    if sums is None:
        return compiler.index(above, below, side, arguments, late=False)
    if not compiler.takes_join(node, below):
        return compiler.graph.node(
            ("sums", side, arguments, sums, *map(signature, below.chain)),
            (compiler.made[id(below.base)],),
            sums_of_rows(below, side, arguments, sums, owner),
            plan=above,
            functions=(*called(below.chain), *side_functions(side)),
            pins=pins_of(below),
        )
    join = _inner(below.base)
    left, right = _sides(compiler, owner, join, sums.below or NO_FACTORS)
    return compiler.graph.node(
        ("sums", side, arguments, sums, *map(signature, [join, *below.chain])),
        (left, right),
        sums_of_pairs(join, below.chain, side, sums, (left.operator, right.operator), owner),
        plan=above,
        functions=(*called([join, *below.chain]), *side_functions(side)),
    )


def _inner(node: plan.Node) -> Inner:
    assert isinstance(node, INNER)
    return node
