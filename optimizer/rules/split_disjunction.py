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

A test `x in (a, b)` has the alternatives `x == a` and `x == b`, in tuples if they may be NaN, which
is in a list that has it; `any([k1, k2])` has k1 and k2 if neither can raise.

Sound:  a pair is made by the first alternative that is true for it, and by no other, so that
        weights stay. Each join evaluates the alternatives before its own, in their order, so it
        raises what they raise; a row whose operands make one raise meets all partners
        (`optimizer.plans.side_conditions`). Semi_joins and anti_joins raise nothing at all.
Needs:  in each alternative an equation of both sides, to be found as a key, and none beside the
        disjunction; alternatives without effects. For semi_join and anti_join the whole predicate
        is total; the right reads stored tables, as weights of partners are added; and there is
        no recursive relation, which an anti_join would negate.
Pays:   look-ups instead of all pairs, for an index of each side per alternative. A and B are
        computed once.
Source: OR expansion of SQL optimizers.
"""

from __future__ import annotations

from collections.abc import Sequence

from optimizer import plan
from optimizer.expr import (
    Call,
    Constant,
    Display,
    Expr,
    Lifted,
    Operation,
    Or,
    conjunction,
    conjuncts,
    tuple_of,
)
from optimizer.expressions.knowledge import Shapes, hashable, is_value, total
from optimizer.expressions.simplification import holds_no_nan
from optimizer.expressions.text import first, needs
from optimizer.plans.properties import free, may_be_negative
from optimizer.plans.side_conditions import has_keys, pair_shapes
from optimizer.traverse import share_input

MOST = 16
"""Most alternatives: each has an index of each side, and asks the ones before it."""

Split = plan.Join | plan.SemiJoin | plan.AntiJoin


def split_disjunction(node: plan.Node) -> plan.Node:
    """Split a join without keys by its first usable `or`; other nodes unchanged."""
    match node:
        case plan.Join(match=plan.Match(None, None, Lifted() as on)) if not has_keys(node):
            return _first_found(node, on)
        case (
            plan.SemiJoin(match=plan.Match(None, None, Lifted() as on))
            | plan.AntiJoin(match=plan.Match(None, None, Lifted() as on))
        ) if not has_keys(node) and not may_be_negative(node.right) and not free(node):
            return _first_found(node, on)
        case _:
            return node


def _first_found(node: Split, on: Lifted) -> plan.Node:
    """Return the node, split by the first disjunction with keys; itself without one."""
    tests, of = conjuncts(on.body), pair_shapes(node)
    for place, test in enumerate(tests):
        alternatives = _alternatives(test, of)
        *others, _ = alternatives
        if not 1 < len(alternatives) <= MOST or not all(is_value(other, of) for other in others):
            continue
        before, after = tests[:place], tests[place + 1 :]
        is_join = isinstance(node, plan.Join)
        if not is_join and not all(total(t, of) for t in (*before, *alternatives, *after)):
            continue
        found = (_joins if is_join else _halves)(node, on, before, alternatives, after)
        if found is not None:
            return found
    return node


def _alternatives(test: Expr, of: Shapes) -> tuple[Expr, ...]:
    """Return the alternatives of a test, in the order of evaluation; the test itself if it has
    none."""
    match test:
        case Or(tests):
            return tuple(inner for part in tests for inner in _alternatives(part, of))
        case Operation("in", (value, Display(kind, items))) if kind in ("tuple", "list") or (
            kind == "set" and all(hashable(each, of) for each in (value, *items))
        ):
            needed = tuple(dict.fromkeys(need for item in items for need in needs(item, of)))
            every = tuple(_equation(value, first(needed, item), of) for item in items)
            return every or (test,)
        case Call(Constant(function), (Display("tuple" | "list", items),), ()) if (
            function is any and items and all(total(item, of) for item in items)
        ):
            return tuple(inner for item in items for inner in _alternatives(item, of))
        case _:
            return (test,)


def _equation(value: Expr, item: Expr, of: Shapes) -> Expr:
    """Return an equation that is true where `value` is in a list with `item`, by `==` or `is`."""
    if holds_no_nan(value, of) or holds_no_nan(item, of):
        return Operation("==", (value, item))
    return Operation("==", (tuple_of(value), tuple_of(item)))


def _joins(
    node: Split,
    on: Lifted,
    before: Sequence[Expr],
    alternatives: Sequence[Expr],
    after: Sequence[Expr],
) -> plan.Node | None:
    """Return a join per alternative, without pairs of earlier alternatives; None if one has no
    keys."""
    left, right = map(share_input, node.inputs())
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
    alone, right = map(share_input, node.inputs())
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
