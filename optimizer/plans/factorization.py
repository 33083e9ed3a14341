"""Store sums by key in place of the rows of a side, if an aggregate over a join needs only those.

    aggregate Sum(o.amount) by c.region         orders:     customer -> number, sum of amounts
      join on o.customer == c.id          ->    customers:  id -> rows
        orders                                  a customer moves: one step, not one per order
        customers

A side is stored as sums if the group has no part of it. A side that is a join itself is always
stored as sums, by its part of the group, so that its pairs are never stored.

An outer join is the inner join of its sides after padding: a key without rows on one side has the
row None there. So its sides are split in the same way. A side whose rows stay without partners has
sums of the rows whose key equals nothing, too.

Sound:  sums and counts are bilinear: over pairs, they are products of the sums and counts of the
        sides. A value reads one side, so that it is multiplied by counts only, which is exact; or
        is a product of integers. With other numbers in a product, or if a callable raises for a
        row without a partner, the engine runs the plan without factors. The least value of a group
        is the least of the least values of its keys, which a side stores beside its sums; Max
        alike. Other aggregates of distinct values with counts treat these values as parts of the
        group, as do Min and Max of a value of both sides. A sum that skips None counts it as 0; a
        mean divides by the sum of 1 for each other value.
Needs:  no aggregates of the user; keys; no residual predicate over both sides; stored tables.
Pays:   a change of one side takes work by groups, not by partners; sums are smaller than rows.
Source: [slender] recursive IVM; F-IVM: Nikolic, Olteanu, *Incremental View Maintenance with Triple
        Lock Factorization Benefits*, 2018; eager aggregation: Yan, Larson, 1995.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from optimizer import plan
from optimizer.expr import (
    NONE,
    TRUE,
    Attempt,
    Call,
    Conditional,
    Constant,
    Expr,
    First,
    Lifted,
    Local,
    Operation,
    Parameter,
    conjuncts,
    constant,
    parts,
    reads,
    rebuilt,
    substitute,
)
from optimizer.expressions.knowledge import Pure, Shapes, is_value
from optimizer.expressions.text import needs, over, separate_needs, surely
from optimizer.plans import multiway
from optimizer.plans.join_lists import outputs
from optimizer.plans.properties import bindings, may_be_negative, once, shapes
from optimizer.plans.side_conditions import join_match, pair_shapes, residual, side_conditions_of
from optimizer.record import record

LEFT, RIGHT = 0, 1
Tests = tuple[Expr, ...]
Factored = tuple[Expr | None, Expr | None]
LINEAR = frozenset({"Count", "Sum", "Avg"})
EXTREMES = frozenset({"Min", "Max"})
OVER_VALUES = EXTREMES | {"CountDistinct", "Collect"}
KNOWN = LINEAR | OVER_VALUES
KEYED = plan.Join | plan.Product | plan.OuterJoin


@record
class Extreme:
    """The least or the greatest value of an expression, by the `name` of the aggregate."""

    value: Expr
    name: str
    skip_none: bool


@record
class Sums:
    """Sums by the key of a join, which replace the rows of one of its sides.

    `groups` are the parts of the group that the side has, `values` the summed expressions; both are
    expressions over the side's rows, or, if the side is a split join, over `below`. Rows that fail
    one of the `tests` are left out. A side that `is_kept` also sums the rows whose key equals
    nothing: an outer join keeps its rows without partners. Beside the sums of a key there are the
    `extremes` of its rows.
    """

    groups: tuple[Expr, ...]
    values: tuple[Expr, ...]
    tests: tuple[Expr, ...] = ()
    below: Factorization | None = None
    is_kept: bool = False
    extremes: tuple[Extreme, ...] = ()


@record
class Factorization:
    """Groups and sums over the pairs of a join, split over its sides.

    A side is stored as `Sums`, or as rows (None). `parts` and `values` are over the pair, where
    `left_group0` and `left_sum0` stand for the stored groups and sums of a side. A value reads one
    side, or is the product of a value of the left and one of the right. `tests` are the tests of
    sides that are stored as rows. `kept` names the sides whose rows stay without partners. In
    `extremes`, `left_extreme0` stands for a stored extreme of a side. `counts` are the numbers of
    values of means that skip None; other means count rows (None).
    """

    left: Sums | None
    right: Sums | None
    parts: tuple[Expr, ...]
    values: tuple[Expr | tuple[Expr, Expr] | None, ...]
    tests: tuple[Expr, ...] = ()
    kept: frozenset[str] = frozenset()
    extremes: tuple[Expr, ...] = ()
    counts: tuple[Expr | tuple[Expr, Expr] | None, ...] = ()


NO_FACTORIZATION = Factorization(None, None, (), ())
"""The factorization of a join with both sides stored as rows."""


def factorization_of(node: plan.Aggregate) -> Factorization | None:
    """Return the factorization of an aggregate over the sides of its join, cached; None without
    one."""
    return once(node, "factors", _find_factorization)


def _find_factorization(node: plan.Aggregate) -> Factorization | None:
    """Return the factorization of an aggregate over a join.

    Return None if no side can be stored as sums, or if weights may be negative.
    """
    if may_be_negative(node):
        return None
    over = _over_join(node)
    if over is None:
        return None
    join, keys, values, tests = over
    given = list(zip(node.aggregates, values, strict=True))
    whole, extremes = _split_values(given)
    summed = [None if a.name in OVER_VALUES else value for a, value in given]
    counts = [_count_of_values(*each) for each in given]
    found = _factors(join, (*keys, *whole), [*summed, *counts], tests, extremes)
    if found is None or not _has_sums(found):
        return None
    read = dict(zip(whole, found.parts[len(keys) :], strict=True))
    ends = dict(zip(extremes, found.extremes, strict=True))
    shown: list[Expr | tuple[Expr, Expr] | None] = []
    for (a, value), factor in zip(given, found.values[: len(given)], strict=True):
        if value is None or a.name not in OVER_VALUES:
            shown.append(factor)
        else:
            shown.append(read[value] if value in read else ends[_extreme(a, value)])
    own, counted = found.parts[: len(keys)], found.values[len(given) :]
    return replace(found, parts=own, values=tuple(shown), counts=counted)


def _count_of_values(folded: plan.Folded, value: Expr | None) -> Expr | None:
    """Return 1 for a value that a mean counts, and 0 for None that it skips; None for others."""
    if folded.name != "Avg" or not folded.skip_none:
        return None
    assert isinstance(value, Conditional)
    return Conditional(value.test, constant(0), constant(1))


def _split_values(
    given: Sequence[tuple[plan.Folded, Expr | None]],
) -> tuple[list[Expr], list[Extreme]]:
    """Return the values that are parts of the group, and the extremes.

    If other aggregates need all values of an expression, Min and Max read these.
    """
    over = [(a, value) for a, value in given if a.name in OVER_VALUES and value is not None]
    whole = dict.fromkeys(value for a, value in over if a.name not in EXTREMES)
    ends = dict.fromkeys(_extreme(a, value) for a, value in over if value not in whole)
    return list(whole), list(ends)


def _extreme(folded: plan.Folded, value: Expr) -> Extreme:
    return Extreme(value, folded.name, folded.skip_none)


def _has_sums(factors: Factorization) -> bool:
    return factors.left is not None or factors.right is not None


def _over_join(
    node: plan.Aggregate,
) -> tuple[KEYED, tuple[Expr, ...], tuple[Expr | None, ...], Tests] | None:
    """Return the join below an aggregate, with the key, the values and the tests of its pairs.

    The key is a tuple of one expression, or none; the value of a `Count` is None. Return None in
    place of all four if there is no join, a callable is not lifted, or an aggregate cannot be
    computed from sums, counts and distinct values.
    """
    called = [] if node.key is None else [node.key]
    for folded in node.aggregates:
        if (folded.name not in KNOWN and not is_of_ring(folded)) or folded.functions:
            return None
        if folded.name != "Count" and folded.value is None:
            return None
    values = [None if a.name == "Count" else a.value for a in node.aggregates]
    read = [f for f in (*called, *values) if f is not None]
    if not all(isinstance(f, Lifted) for f in read):
        return None
    bodies = [f.body for f in called if isinstance(f, Lifted)]
    shown = _present_shapes(node.input)
    summands = [_summand(a, shown) for a in node.aggregates if a.name != "Count"]
    found = _keyed_through_select(node.input, [*bodies, *(s for s in summands if s is not None)])
    if found is None or None in summands:
        return None
    join, left = found[0], iter(found[1])
    keys = tuple(next(left) for _ in called)
    return join, keys, tuple(None if value is None else next(left) for value in values), found[2]


def _present_shapes(node: plan.Node) -> Shapes:
    """Return the shapes of rows; of an outer join, those of its rows with partners.

    A row in whose place there is None raises where its fields are read, any number of times.
    """
    base = _below_tests(node)
    return pair_shapes(base) if isinstance(base, plan.OuterJoin) else shapes(node)


def _summand(folded: plan.Folded, of: Shapes) -> Expr | None:
    """Return the expression that an aggregate reads; where a sum skips None, it is 0 instead.

    Return None if the expression must be evaluated once.
    """
    assert isinstance(folded.value, Lifted)
    body = folded.value.body
    if not folded.skip_none or folded.name in OVER_VALUES:
        return body
    if not is_value(body, of):
        return None
    return Conditional(Operation("is", (body, NONE)), constant(0), body)


def _join_through_select(
    node: plan.Node, bodies: Sequence[Expr]
) -> tuple[KEYED, Sequence[Expr]] | None:
    """Return the join that a node is, or projects, if it has no tests above."""
    found = _keyed_through_select(node, bodies)
    return None if found is None or found[2] else found[:2]


def _keyed_through_select(
    node: plan.Node, bodies: Sequence[Expr]
) -> tuple[KEYED, Sequence[Expr], Tests] | None:
    """Return the join that a node is, or projects, `bodies` as expressions over its pairs, and
    their tests: the conditions above an outer join.

    Return None for other nodes, and if the projection makes iterators or containers, or may raise
    where the bodies do not.
    """
    if not isinstance(node, plan.Select | plan.Extend):
        join = _below_tests(node)
        return (join, bodies, _tests_above(node)) if isinstance(join, KEYED) else None
    join = _below_tests(node.input)
    if not isinstance(join, KEYED):
        return None
    of, row = shapes(join), outputs(node)
    composed = [over(body, row) for body in bodies]
    asked = {part for body in composed for part in surely(body)}
    sound = all(is_value(e, of) and asked.issuperset(needs(e, of)) for e in row)
    return (join, composed, _tests_above(node.input)) if sound else None


def _below_tests(node: plan.Node) -> plan.Node:
    """Return the outer join below conditions; other nodes unchanged."""
    below = node
    while isinstance(below, plan.Where) and isinstance(below.predicate, Lifted):
        below = below.input
    return below if isinstance(below, plan.OuterJoin) else node


def _tests_above(node: plan.Node) -> Tests:
    """Return the conditions above an outer join, the lowest first; () for other nodes."""
    tests: Tests = ()
    while isinstance(node, plan.Where) and isinstance(node.predicate, Lifted):
        own = [part for test in conjuncts(node.predicate.body) for part in separate_needs(test)]
        tests, node = (*own, *tests), node.input
    return tests


def _factors(
    join: KEYED,
    wanted: Sequence[Expr],
    values: Sequence[Expr | None],
    above: Sequence[Expr] = (),
    extremes: Sequence[Extreme] = (),
) -> Factorization | None:
    """Split parts of a group, and values, over the sides of a join; `above` tests its pairs.

    Return None if a test or a value cannot be split.
    """
    wide = multiway.multiway_of(join) if isinstance(join, plan.Join) else None
    of_pairs = _Pairs(bindings(join.left))
    tests, kept = _tests_of_pairs(join), _kept_sides(join)
    if tests is None or (wide is not None and wide.is_cyclic):
        return None
    tested = of_pairs.tests([*tests, *above])
    if tested is None or (kept and tests):
        return None
    ends = [[e for e in extremes if of_pairs.side(e.value) == side] for side in (LEFT, RIGHT)]
    groups = of_pairs.parts([*wanted, *(e.value for e in extremes if e not in chain(*ends))])
    factors = [None if value is None else of_pairs.factors(value) for value in values]
    if any(f is None and value is not None for f, value in zip(factors, values, strict=True)):
        return None
    summed = [list(dict.fromkeys(_factors_of_side(factors, side))) for side in (LEFT, RIGHT)]
    sums: list[Sums | None] = [None, None]
    asked = [
        other in kept and not all(map(_is_of_errors, tested[side]))
        for side, other in ((LEFT, "right"), (RIGHT, "left"))
    ]
    if not asked[0] and (not groups[0] or _join_through_select(join.left, ()) is not None):
        left = _left(join, groups[0], summed[0], _of_padded(tested[0], "right" in kept), ends[0])
        sums[0] = replace(left, is_kept="left" in kept)
    if not asked[1] and not groups[1]:
        required = _of_padded(tested[1], "left" in kept)
        right, required = map(of_pairs.of_right, (summed[1], required))
        ended = tuple(replace(e, value=of_pairs.of_right((e.value,))[0]) for e in ends[1])
        sums[1] = Sums((), right, required, None, "right" in kept, ended)
    parts_of: dict[Expr, Expr] = {}
    sums_of: dict[Expr, Expr] = {}
    ends_of: dict[Extreme, Expr] = {}
    for side, stored in enumerate(sums):
        if stored is not None:
            name = ("left", "right")[side]
            parts_of |= {e: Local(f"{name}_group{i}") for i, e in enumerate(groups[side])}
            sums_of |= {e: Local(f"{name}_sum{i}") for i, e in enumerate(summed[side])}
            ends_of |= {e: Local(f"{name}_extreme{i}") for i, e in enumerate(ends[side])}
    return Factorization(
        sums[0],
        sums[1],
        tuple(_replace_by_names(part, parts_of) for part in wanted),
        tuple(None if f is None else _stored_sum(f, sums_of) for f in factors),
        tuple(t for stored, of in zip(sums, tested, strict=True) if stored is None for t in of),
        kept,
        tuple(
            ends_of[e] if e in ends_of else _replace_by_names(e.value, parts_of) for e in extremes
        ),
    )


def _is_of_errors(test: Expr) -> bool:
    """Return True for a test that expressions do not raise, which few rows fail."""
    return isinstance(test, Attempt) and isinstance(test.of, First) and test.of.then == TRUE


def _of_padded(tests: Sequence[Expr], is_padded: bool) -> Sequence[Expr]:
    """Return the tests of the rows of a side; a padded side has no sums if a row fails one.

    Its rows are partners, even if no pair of them passes.
    """
    return [Call(REQUIRE, (test,)) for test in tests] if is_padded else tests


class _Require(Pure):
    """A callable of expressions: True, or an exception in place of False."""

    def __call__(self, test: Any) -> bool:
        if not test:
            raise ArithmeticError("a row that is a partner is in no group")
        return True


REQUIRE = constant(_Require())


def _kept_sides(join: KEYED) -> frozenset[str]:
    """Return the sides of a join whose rows stay without partners."""
    if not isinstance(join, plan.OuterJoin):
        return frozenset()
    return frozenset({"left", "right"} if join.kind == "full" else {join.kind})


def _factors_of_side(factors: Sequence[Factored | None], side: int) -> list[Expr]:
    """Return the factors of one side."""
    found = [f[side] for f in factors if f is not None]
    return [expr for expr in found if expr is not None]


def _stored_sum(factors: Factored, sums_of: Mapping[Expr, Expr]) -> Expr | tuple[Expr, Expr]:
    """Return a summed expression over pairs, in terms of the stored sums."""
    left, right = (None if f is None else sums_of.get(f, f) for f in factors)
    if left is not None and right is not None:
        return left, right
    found = right if left is None else left
    assert found is not None
    return found


def _left(
    join: KEYED,
    groups: Sequence[Expr],
    values: Sequence[Expr],
    tests: Sequence[Expr],
    ends: Sequence[Extreme],
) -> Sums:
    """Return the sums of a left side; the sums of a join are split over its own sides."""
    keys, asked = _left_key_and_tests(join)
    sums = Sums(tuple(groups), tuple(values), tuple(tests), extremes=tuple(ends))
    ended = [e.value for e in ends]
    found = _join_through_select(join.left, [*keys, *groups, *values, *asked, *tests, *ended])
    if found is None:
        return sums
    inner, exprs = found[0], iter(found[1])
    wanted, summed, tested = (
        [next(exprs) for _ in of] for of in ((*keys, *groups), values, (*asked, *tests))
    )
    below_ends = [replace(e, value=value) for e, value in zip(ends, exprs, strict=True)]
    below = _factors(inner, wanted, summed, tested, below_ends)
    if below is None or not _has_sums(below):
        return sums
    return replace(sums, below=below)


def _left_key_and_tests(join: KEYED) -> tuple[list[Expr], list[Expr]]:
    """Return the parts of the key of the left side, and the other conditions on its rows."""
    found, written = side_conditions_of(join), join_match(join).left_key
    steps = () if found is None else found.left
    keys = [written.body] if isinstance(written, Lifted) else []
    keys += [step.function.body for step in steps if step.is_key]
    return keys, [step.function.body for step in steps if not step.is_key]


def _tests_of_pairs(join: KEYED) -> tuple[Expr, ...] | None:
    """Return the conditions on pairs with equal keys; None if they were not lifted."""
    match = join_match(join)
    if not all(f is None or isinstance(f, Lifted) for f in (match.left_key, match.right_key)):
        return None
    asked = residual(join)
    if asked is None:
        return ()
    return tuple(conjuncts(asked.body)) if isinstance(asked, Lifted) else None


class InRing(Pure):
    """Base of callables of expressions that return values of a ring of the user's."""

    __slots__ = ()
    is_commutative: bool
    """False if the order of the factors of a product matters."""


def is_of_ring(folded: plan.Folded) -> bool:
    """Return True for an aggregate that sums values of a ring of the user's."""
    return hasattr(folded.accumulator, "ring")


class _Pairs:
    """The pairs of a join, whose left row has `count` bindings."""

    def __init__(self, count: int) -> None:
        self._right = frozenset([count])
        self._as_right = (*map(Parameter, range(count)), Parameter(0))

    def parts(self, exprs: Sequence[Expr]) -> tuple[list[Expr], list[Expr]]:
        """Return the largest parts of expressions that read the left side alone, and the largest
        that read the right alone."""
        found: tuple[dict[Expr, None], dict[Expr, None]] = ({}, {})
        waiting = list(exprs)[::-1]
        while waiting:
            expr = waiting.pop()
            side = self.side(expr)
            if side is not None:
                found[side][expr] = None
            else:
                waiting += parts(expr)[::-1]
        return list(found[0]), list(found[1])

    def tests(self, exprs: Sequence[Expr]) -> tuple[list[Expr], list[Expr]] | None:
        """Return the tests of the left and the tests of the right; None if one reads both, or
        neither."""
        found: tuple[list[Expr], list[Expr]] = ([], [])
        for expr in exprs:
            side = self.side(expr)
            if side is None:
                return None
            found[side].append(expr)
        return found

    def of_right(self, exprs: Sequence[Expr]) -> tuple[Expr, ...]:
        """Rewrite expressions over pairs that read the right only to expressions over its row."""
        return tuple(substitute(expr, self._as_right) for expr in exprs)

    def factors(self, expr: Expr) -> Factored | None:
        """Split a value into a factor of the left and a factor of the right; None if it is no
        product."""
        if not reads(expr):
            return expr, None
        side = self.side(expr)
        if side is not None:
            return (expr, None) if side == LEFT else (None, expr)
        found: list[Expr | None] = [None, None]
        for factor in _factors_of(expr):
            place = self.side(factor) if reads(factor) else LEFT
            if place is None or (place == LEFT and found[RIGHT] and not _commutes(factor)):
                return None
            before = found[place]
            found[place] = factor if before is None else Operation("*", (before, factor))
        return found[LEFT], found[RIGHT]

    def side(self, expr: Expr) -> int | None:
        """Return the only side that an expression reads, or None."""
        read = reads(expr)
        if not read or (read & self._right and read - self._right):
            return None
        return RIGHT if read & self._right else LEFT


def _commutes(factor: Expr) -> bool:
    """Return False for a value of a ring whose products depend on their order."""
    match factor:
        case Call(Constant(InRing() as of)):
            return of.is_commutative
        case _:
            return True


def _factors_of(expr: Expr) -> list[Expr]:
    """Return the factors of a product, left to right; other expressions alone."""
    if isinstance(expr, Operation) and expr.operator == "*":
        return [factor for operand in expr.operands for factor in _factors_of(operand)]
    return [expr]


def _replace_by_names(expr: Expr, names: dict[Expr, Expr]) -> Expr:
    """Replace each part of an expression that is in `names` by its name, outer parts first."""
    if expr in names:
        return names[expr]
    inner = parts(expr)
    return rebuilt(expr, tuple(_replace_by_names(part, names) for part in inner)) if inner else expr
