"""Split a join by the alternatives of a disjunction, so that each finds its pairs by look-up.

    join on p and (k1 or k2)          union_all
      A                                 join on p and k1
      B                       ->          A
                                          B
                                        join on p and not k1 and k2
                                          A
                                          B

    anti_join: on p and k2 of the rows of anti_join on p and k1
    semi_join: union_all of semi_join on p and k1, and semi_join on p and k2 of the rows of
               anti_join on p and k1

Sound:  a pair is made by the first alternative that is true for it, and by no other, so that
        weights stay. The alternatives before it raise nothing; it, and the parts after, are
        evaluated for the same pairs as before; a row whose operands make p raise meets all partners
        (`optimizer.plans.side_conditions`). Semi_joins and anti_joins raise nothing at all.
Needs:  in each alternative an equation of both sides, to be found as a key, and none beside the
        disjunction; all alternatives but the last are total. For semi_join and anti_join the whole
        predicate is; the right reads stored tables, as weights of partners are added; and there is
        no recursive relation, which an anti_join would negate.
Pays:   look-ups instead of all pairs, for an index of each side per alternative. A and B are
        computed once.
Source: OR expansion of SQL optimizers.
"""

from __future__ import annotations

from collections.abc import Sequence

from optimizer import plan
from optimizer.expr import Expr, Lifted, Operation, Or, conjunction, conjuncts, disjuncts
from optimizer.expressions.knowledge import total
from optimizer.plans.properties import free, may_be_negative
from optimizer.plans.side_conditions import has_keys, pair_shapes
from optimizer.traverse import has_components

MOST = 4
"""Most alternatives: each has an index of each side."""

Split = plan.Join | plan.SemiJoin | plan.AntiJoin


def split_disjunction(node: plan.Node) -> plan.Node:
    """Split a join without keys by its first usable `or`; other nodes unchanged."""
    match node:
        case plan.Join(match=plan.Match(None, None, Lifted() as on)) if not has_keys(node):
            return _first_found(node, on)
        case (
            plan.SemiJoin(match=plan.Match(None, None, Lifted() as on))
            | plan.AntiJoin(match=plan.Match(None, None, Lifted() as on))
        ) if not has_keys(node) and _can_halve(node, on):
            return _first_found(node, on)
        case _:
            return node


def _can_halve(node: plan.SemiJoin | plan.AntiJoin, on: Lifted) -> bool:
    """Return True if the alternatives may be asked one after another: none raises, no weight is
    negative."""
    is_total = total(on.body, pair_shapes(node))
    return is_total and not may_be_negative(node.right) and not free(node)


def _first_found(node: Split, on: Lifted) -> plan.Node:
    """Return the node, split by the first disjunction with keys; itself without one."""
    tests = conjuncts(on.body)
    for place, test in enumerate(tests):
        if not isinstance(test, Or):
            continue
        alternatives = disjuncts(test)
        *others, _ = alternatives
        of = pair_shapes(node)
        if len(alternatives) > MOST or not all(total(other, of) for other in others):
            continue
        split = _joins if isinstance(node, plan.Join) else _halves
        found = split(node, on, tests[:place], alternatives, tests[place + 1 :])
        if found is not None:
            return found
    return node


def _joins(
    node: Split,
    on: Lifted,
    before: Sequence[Expr],
    alternatives: Sequence[Expr],
    after: Sequence[Expr],
) -> plan.Node | None:
    """Return a join per alternative, without pairs of earlier alternatives; None if one has no
    keys."""
    left, right = map(_share_input, node.inputs())
    made: plan.Node | None = None
    failed: list[Expr] = []
    for alternative in alternatives:
        join = plan.Join(
            left, right, _match_of_alternative(on, (*before, *failed), alternative, after)
        )
        if not has_keys(join):
            return None
        made = join if made is None else plan.UnionAll(made, join)
        failed.append(Operation("not", (alternative,)))
    return made


def _halves(
    node: Split,
    on: Lifted,
    before: Sequence[Expr],
    alternatives: Sequence[Expr],
    after: Sequence[Expr],
) -> plan.Node | None:
    """Return semi- or anti-joins, each of the rows without partner by the earlier alternatives.

    Return None if an alternative has no keys.
    """
    alone, right = map(_share_input, node.inputs())
    made: plan.Node | None = None
    for alternative in alternatives:
        match = _match_of_alternative(on, before, alternative, after)
        partnered = plan.SemiJoin(alone, right, match)
        if not has_keys(partnered):
            return None
        made = partnered if made is None else plan.UnionAll(made, partnered)
        alone = plan.AntiJoin(alone, right, match)
        if isinstance(node, plan.SemiJoin):
            alone = plan.Shared(alone)
    return made if isinstance(node, plan.SemiJoin) else alone


def _match_of_alternative(
    on: Lifted, before: Sequence[Expr], alternative: Expr, after: Sequence[Expr]
) -> plan.Match:
    """Return the match with one alternative in place of the disjunction."""
    asked = (*before, *conjuncts(alternative), *after)
    return plan.Match(on=on.with_body(conjunction(asked)))


def _share_input(node: plan.Node) -> plan.Node:
    """Return an input that several joins read from now on."""
    is_one = isinstance(node, plan.Shared) or not node.inputs() or has_components(node)
    return node if is_one else plan.Shared(node)
