"""Store sums by key of the sides of a join, in place of rows.

Needs:  an aggregate that splits over the sides of its join (`optimizer.plans.factorization`).
Pays:   1.56 times pairs into groups with ten partners a row, and more with more.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.plans.factorization import NO_FACTORIZATION, Factorization, Sums
from optimizer.plans.properties import bindings
from reactive.engine.compiler.choices.join_intervals import usable_ranges
from reactive.engine.compiler.chooser import Asking, Chooser
from reactive.engine.compiler.physical import (
    FactorizedGroups,
    Op,
    PairSums,
    PartialSums,
    Physical,
    PhysicalIndex,
    ops,
)
from reactive.engine.operators.plain import INNER, Inner, PipelineSource, Side, sides

Summable = Inner | plan.OuterJoin
OfSide = PhysicalIndex | PartialSums | PairSums


def sum_sides(chooser: Chooser, node: plan.Node) -> Asking[Physical] | None:
    """Return how to plan an aggregate over sums of join sides; None if it does not split."""
    found = chooser.join_of(node) or chooser.outer_join_of(node)
    if found is None or not isinstance(node, plan.Aggregate) or chooser.depends(node):
        return None
    factors = chooser.factors(node)
    return None if factors is None else _plan_factorized_sums(chooser, node, found, factors)


def _plan_factorized_sums(
    chooser: Chooser,
    node: plan.Aggregate,
    found: tuple[Summable, PipelineSource],
    factors: Factorization,
) -> Asking[Physical]:
    """Yield the sides of the join, and return the aggregate over their sums."""
    join, below = found
    left, right = yield from _plan_summed_sides(chooser, node, join, factors)
    return FactorizedGroups(node, left, right, Op(join), ops(below.chain), Op(node), factors)


def _plan_summed_sides(
    chooser: Chooser, owner: plan.Node, join: Summable, factors: Factorization
) -> Asking[tuple[OfSide, OfSide]]:
    """Yield the two sides of the join, and return the plans of their sums."""
    left, right = sides(join)
    of, count = (owner, join), bindings(join.left)
    return (
        (yield from _side(chooser, of, join.left, left, count, factors.left)),
        (yield from _side(chooser, of, join.right, right, 1, factors.right)),
    )


def _side(
    chooser: Chooser,
    of: tuple[plan.Node, Summable],
    node: plan.Node,
    side: Side,
    arguments: int,
    sums: Sums | None,
) -> Asking[OfSide]:
    """Return a side of a join, as an index or as sums; `of` are the aggregate and the join."""
    below, (owner, above) = chooser.below(node), of
    if sums is None:
        return (yield from chooser.index(above, below, side, arguments))
    join = below.base
    pairs_by_ranges = isinstance(join, INNER) and usable_ranges(chooser, join) is not None
    is_split = sums.below is not None and chooser.takes_outer_join(below)
    if pairs_by_ranges or not (is_split or chooser.takes_join(below)):  # such pairs are no sums
        below, summed = yield from chooser.source(below)
        return PartialSums(above, summed, below, side, arguments, sums, owner)
    assert isinstance(join, (*INNER, plan.OuterJoin))
    left, right = yield from _plan_summed_sides(
        chooser, owner, join, sums.below or NO_FACTORIZATION
    )
    return PairSums(above, left, right, Op(join), ops(below.chain), side, arguments, sums, owner)
