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
    left_join: union_all of the split join, and the split anti_join with None beside its rows

If the predicate may raise, the rows with and without a partner follow from the pairs of the split
join, which raises what all pairs raise:

    semi_join: intersection_all of A and the left rows of the pairs
    anti_join: difference_all of A and the left rows of the pairs

A test `x in (a, b)` has the alternatives `x == a` and `x == b`, in tuples if they may be NaN, which
is in a list that has it; `any([k1, k2])` has k1 and k2 if neither can raise. Alternatives in a
guard are in guards each, and false only if they raise nothing.

Sound:  a pair is made by the first alternative that is true for it, and by no other, so that
        weights stay. Each join evaluates the alternatives before its own, in their order, but
        for those that a part of its own excludes, so it raises what they raise; a row whose
        operands make one raise meets all partners (`optimizer.plans.side_conditions`). A row of
        weight n is in at least n pairs if it has a partner, and in none if not. Split semi_joins
        and anti_joins raise nothing at all.
Needs:  in each alternative an equation of both sides, to be found as a key, or only conditions of
        one side, which all pairs of the rows pass; an equation in one, and none beside the
        disjunction; alternatives without effects. Except for joins both sides read stored tables,
        as weights of partners are added; and no recursive relation, which an anti_join would
        negate. Beside a parameter, comparisons are as good as equations.
Pays:   look-ups instead of all pairs, for an index of each side per alternative. A and B are
        computed once.
Source: OR expansion of SQL optimizers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from optimizer import plan
from optimizer.expr import (
    FALSE,
    NONE,
    Attempt,
    Call,
    Constant,
    Display,
    Expr,
    Guard,
    Lifted,
    Operation,
    Or,
    Parameter,
    conjunction,
    conjuncts,
    tuple_of,
)
from optimizer.expressions.knowledge import Shapes, hashable, is_value, total
from optimizer.expressions.simplification import holds_no_nan
from optimizer.expressions.text import first, needs
from optimizer.plans.properties import bindings, free, may_be_negative
from optimizer.plans.side_conditions import (
    AnyJoin,
    bounds_of,
    has_keys,
    of_left,
    of_right,
    pair_shapes,
    residual,
)
from optimizer.record import record
from optimizer.traverse import share_input

MOST = 16
"""Most alternatives: each has an index of each side, and asks the ones before it."""

Existential = plan.SemiJoin | plan.AntiJoin


@record
class Disjunction:
    """A disjunction among the conditions of a join, with the conditions before and after it.

    `failed` tests for each alternative but the last that it is false, and raises nothing.
    """

    before: tuple[Expr, ...]
    alternatives: tuple[Expr, ...]
    failed: tuple[Expr, ...]
    after: tuple[Expr, ...]

    def failed_before(self, place: int, of: Shapes) -> tuple[Expr, ...]:
        """Return the tests that the earlier alternatives are false.

        An alternative that excludes the one at `place` is not tested, unless its test guards one
        that may raise.
        """
        own = conjuncts(self.alternatives[place])
        kept: list[Expr] = []
        for other, failed in reversed([*zip(self.alternatives[:place], self.failed, strict=False)]):
            if not (_exclude(other, own, of) and all(total(each, of) for each in kept)):
                kept.append(failed)
        return tuple(reversed(kept))


def split_disjunction(node: plan.Node) -> plan.Node:
    """Split a join without keys by its first usable `or`; other nodes unchanged."""
    match node:
        case plan.Join(match=plan.Match(None, None, Lifted() as on)) if not has_keys(node):
            return _pairs(node, on, is_result=True) or node
        case (
            plan.SemiJoin(match=plan.Match(None, None, Lifted() as on))
            | plan.AntiJoin(match=plan.Match(None, None, Lifted() as on))
        ) if not has_keys(node) and _counts_partners(node):
            return _counted(node, on) or _compared(node, on) or node
        case plan.OuterJoin(match=plan.Match(None, None, Lifted() as on)) if not has_keys(
            node
        ) and _counts_partners(node):
            return _padded(node, on) or node
        case _:
            return node


def _counts_partners(node: plan.Node) -> bool:
    """Return True if a row has a partner exactly if the weights of its partners add up to more than
    0."""
    return not free(node) and not any(map(may_be_negative, node.inputs()))


def _disjunctions(on: Lifted, of: Shapes) -> Iterator[Disjunction]:
    """Iterate over the disjunctions among the conditions of a join, also those in guards."""
    tests = conjuncts(on.body)
    for place, test in enumerate(tests):
        guard = test if isinstance(test, Guard) else None
        alternatives = alternatives_of(test if guard is None else guard.test, of)
        *others, _ = alternatives
        if not 1 < len(alternatives) <= MOST or not all(is_value(other, of) for other in others):
            continue
        failed: tuple[Expr, ...] = tuple(map(_negated, others))
        if guard is not None:
            alternatives = tuple(_guarded(each, guard.needs, of) for each in alternatives)
            failed = tuple(Attempt(first(guard.needs, each), FALSE) for each in failed)
        yield Disjunction(tests[:place], alternatives, failed, tests[place + 1 :])


def _negated(test: Expr) -> Expr:
    """Return a test that is true where another is false."""
    match test:
        case Operation("not", (of,)):
            return of
        case _:
            return Operation("not", (test,))


def _guarded(alternative: Expr, needs: tuple[Expr, ...], of: Shapes) -> Expr:
    """Return guards of the conditions of an alternative; each needs that those before it do not
    raise."""
    made: list[Expr] = []
    for test in conjuncts(alternative):
        made.append(Guard(test, needs))
        if not total(test, of):
            needs = (*needs, test)
    return conjunction(tuple(made))


def _pairs(node: plan.Join, on: Lifted, *, is_result: bool) -> plan.Node | None:
    """Return the pairs of a join, by its first disjunction with keys; None without one.

    If the pairs are the result, an alternative that the sides decide needs no key.
    """
    found = (
        _joins(node, on, parts, is_result=is_result)
        for parts in _disjunctions(on, pair_shapes(node))
    )
    return next((each for each in found if each is not None), None)


def _counted(node: Existential, on: Lifted) -> plan.Node | None:
    """Return the rows of a semi-join or anti-join by their partners of each alternative.

    Return None if the predicate may raise, or has no disjunction with keys.
    """
    of = pair_shapes(node)
    found = (
        _halves(node, on, parts)
        for parts in _disjunctions(on, of)
        if all(total(test, of) for test in (*parts.before, *parts.alternatives, *parts.after))
    )
    return next((each for each in found if each is not None), None)


def _compared(node: Existential, on: Lifted) -> plan.Node | None:
    """Return the rows of a semi-join or anti-join by comparison with the pairs of a join."""
    left, right = map(share_input, node.inputs())
    pairs = _pairs(plan.Join(left, right, node.match), on, is_result=False)
    if pairs is None:
        return None
    kind = plan.IntersectionAll if isinstance(node, plan.SemiJoin) else plan.DifferenceAll
    return kind(left, plan.Extend(pairs, tuple(range(bindings(left))), ()))


def _padded(node: plan.OuterJoin, on: Lifted) -> plan.Node | None:
    """Return the pairs of an outer join, and its rows without a partner beside None.

    Return None without a disjunction with keys.
    """
    left, right = map(share_input, node.inputs())
    count = bindings(left)
    pairs = _pairs(plan.Join(left, right, node.match), on, is_result=True)
    if pairs is None or (node.kind != "left" and bindings(right) > 1):
        return None
    alone = _counted(plan.AntiJoin(left, right, node.match), on) if node.kind == "left" else None
    if alone is not None:
        return plan.UnionAll(pairs, _beside_none(on, alone, count, is_left=True))
    pairs = plan.Shared(pairs)
    made: plan.Node = pairs
    if node.kind != "right":
        alone = plan.DifferenceAll(left, plan.Extend(pairs, tuple(range(count)), ()))
        made = plan.UnionAll(made, _beside_none(on, alone, count, is_left=True))
    if node.kind != "left":
        alone = plan.DifferenceAll(right, plan.Extend(pairs, (count,), ()))
        made = plan.UnionAll(made, _beside_none(on, alone, count, is_left=False))
    return made


def _beside_none(on: Lifted, alone: plan.Node, count: int, *, is_left: bool) -> plan.Node:
    """Return rows of one side, with None for the other; the left side has `count` bindings."""
    if is_left:
        return plan.Extend(alone, tuple(range(count)), (of_left(on, NONE, count),))
    row = of_right(on, Parameter(count), count)
    return plan.Extend(alone, (), (*[row.with_body(NONE)] * count, row))


def alternatives_of(test: Expr, of: Shapes) -> tuple[Expr, ...]:
    """Return the alternatives of a test, in the order of evaluation; the test itself if it has
    none."""
    match test:
        case Or(tests):
            return tuple(inner for part in tests for inner in alternatives_of(part, of))
        case Operation("in", (value, Display(kind, items))) if kind in ("tuple", "list") or (
            kind == "set" and all(hashable(each, of) for each in (value, *items))
        ):
            needed = tuple(dict.fromkeys(need for item in items for need in needs(item, of)))
            every = tuple(_equation(value, first(needed, item), of) for item in items)
            return every or (test,)
        case Call(Constant(function), (Display("tuple" | "list", items),), ()) if (
            function is any and items and all(total(item, of) for item in items)
        ):
            return tuple(inner for item in items for inner in alternatives_of(item, of))
        case _:
            return (test,)


def _exclude(other: Expr, own: Sequence[Expr], of: Shapes) -> bool:
    """Return True if a condition is the opposite of one of the other alternative, and is asked
    before any that may raise."""
    known = {each.test if isinstance(each, Guard) else each for each in conjuncts(other)}
    for each in own:
        test = each.test if isinstance(each, Guard) else each
        if _opposite(test) in known:
            return True
        if not total(each, of):
            return False
    return False


def _opposite(test: Expr) -> Expr:
    match test:
        case Operation("not", (inner,)):
            return inner
        case Operation("is" | "is not" as symbol, operands):
            return Operation("is not" if symbol == "is" else "is", operands)
        case _:
            return Operation("not", (test,))


def _is_looked_up(part: AnyJoin, node: AnyJoin) -> bool:
    """Return True if a part of a split join finds pairs by a key; or, beside a parameter, by a
    range that the join as a whole does not have."""
    if has_keys(part):
        return True
    is_range = bounds_of(part) is not None and bounds_of(node) is None
    return is_range and isinstance(node.right, plan.Table) and node.right.is_value


def _equation(value: Expr, item: Expr, of: Shapes) -> Expr:
    """Return an equation that is true where `value` is in a list with `item`, by `==` or `is`."""
    if holds_no_nan(value, of) or holds_no_nan(item, of):
        return Operation("==", (value, item))
    return Operation("==", (tuple_of(value), tuple_of(item)))


def _joins(node: plan.Join, on: Lifted, parts: Disjunction, *, is_result: bool) -> plan.Node | None:
    """Return a join per alternative, without pairs of earlier alternatives; None if one has no
    keys."""
    left, right = map(share_input, node.inputs())
    made: plan.Node | None = None
    keys = 0
    for place, alternative in enumerate(parts.alternatives):
        own = plan.Join(
            left, right, _match_of_alternative(on, parts.before, alternative, parts.after)
        )
        keys += _is_looked_up(own, node)
        if not _is_looked_up(own, node) and not (is_result and residual(own) is None):
            return None
        failed = parts.failed_before(place, pair_shapes(node))
        match = _match_of_alternative(on, (*parts.before, *failed), alternative, parts.after)
        join = plan.Join(left, right, match)
        if _is_looked_up(own, node) and not _is_looked_up(join, node):
            return None
        made = join if made is None else plan.UnionAll(made, join)
    return made if keys else None


def _halves(node: Existential, on: Lifted, parts: Disjunction) -> plan.Node | None:
    """Return semi- or anti-joins, each of the rows without partner by the earlier alternatives.

    Return None if an alternative has no keys.
    """
    alone, right = map(share_input, node.inputs())
    made: plan.Node | None = None
    keys = 0
    for alternative in parts.alternatives:
        match = _match_of_alternative(on, parts.before, alternative, parts.after)
        partnered = plan.SemiJoin(alone, right, match)
        keys += _is_looked_up(partnered, node)
        if not _is_looked_up(partnered, node) and residual(partnered) is not None:
            return None
        made = partnered if made is None else plan.UnionAll(made, partnered)
        alone = plan.AntiJoin(alone, right, match)
        if isinstance(node, plan.SemiJoin):
            alone = plan.Shared(alone)
    if not keys:
        return None
    return made if isinstance(node, plan.SemiJoin) else alone


def _match_of_alternative(
    on: Lifted, before: Sequence[Expr], alternative: Expr, after: Sequence[Expr]
) -> plan.Match:
    """Return the match with one alternative in place of the disjunction."""
    asked = (*before, *conjuncts(alternative), *after)
    return plan.Match(on=on.with_body(conjunction(asked)))
