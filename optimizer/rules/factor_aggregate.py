"""Keep sums by key in the place of rows, where an aggregate over a join needs no more of a side.

    aggregate Sum(o.amount) by c.region         orders:     customer -> number, sum of amounts
      join on o.customer == c.id          ->    customers:  id -> rows
        orders                                  a customer moves: one step, not one per order
        customers

A side is kept as sums if the group has no part of it. A side that is a join itself is kept as sums
in any case, by its part of the group, so that its pairs are never held.

Sound:  sums and counts are bilinear: of pairs, they are products of those of the sides. A value is
        of one side, so that nothing is multiplied but by counts, which is exact; or a product of
        integers. Where there are other numbers in a product, or anything raises that is asked of
        a row without a partner, the engine goes back to the plan without factors. Min, Max and the
        like look at different values, with how often they occur: their values are kept as if they
        were parts of the group. A sum that leaves out None is one in which it counts 0.
Needs:  no aggregates of the user's own; keys found; no predicate of both sides beside them; stored
        tables.
Pays:   a change of one side takes work by groups, not by partners; sums are smaller than rows.
Source: [slender] recursive IVM; F-IVM: Nikolic, Olteanu, *Incremental View Maintenance with Triple
        Lock Factorization Benefits*, 2018; eager aggregation: Yan, Larson, 1995.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from optimizer import plan
from optimizer.compose import needs, projected
from optimizer.expr import (
    NONE,
    Conditional,
    Expr,
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
    surely,
    transform,
)
from optimizer.knowledge import Shapes, is_value
from optimizer.properties import bindings, may_be_negative, shapes

LEFT, RIGHT = 0, 1
Factored = tuple[Expr | None, Expr | None]
LINEAR = frozenset({"Count", "Sum", "Avg"})
OVER_VALUES = frozenset({"Min", "Max", "CountDistinct", "Collect"})
KNOWN = LINEAR | OVER_VALUES
INNER = plan.Join | plan.Product


def factor_aggregate(node: plan.Node) -> plan.Node:
    if not isinstance(node, plan.Aggregate) or node.factors is not None:
        return node
    if may_be_negative(node):
        return node
    over = _over_join(node)
    if over is None:
        return node
    join, keys, values = over
    as_parts = [a.name in OVER_VALUES for a in node.aggregates]
    whole = [v for v, is_part in zip(values, as_parts, strict=True) if is_part and v is not None]
    summed = [None if is_part else v for v, is_part in zip(values, as_parts, strict=True)]
    found = _factors(join, (*keys, *whole), summed)
    if found is None or not _pays(found):
        return node
    parts = iter(found.parts[len(keys) :])
    read = [
        next(parts) if is_part else value
        for value, is_part in zip(found.values, as_parts, strict=True)
    ]
    found = replace(found, parts=found.parts[: len(keys)], values=tuple(read))
    return replace(node, factors=found)


def _pays(factors: plan.Factors) -> bool:
    return factors.left is not None or factors.right is not None


def _over_join(
    node: plan.Aggregate,
) -> tuple[INNER, tuple[Expr, ...], tuple[Expr | None, ...]] | None:
    """The join below, and the key and the values in terms of its pairs."""
    called = [] if node.key is None else [node.key]
    for folded in node.aggregates:
        if folded.name not in KNOWN or folded.functions:
            return None
        if folded.name != "Count" and folded.value is None:
            return None
    values = [None if a.name == "Count" else a.value for a in node.aggregates]
    read = [f for f in (*called, *values) if f is not None]
    if not all(isinstance(f, Lifted) for f in read):
        return None
    bodies = [f.body for f in called if isinstance(f, Lifted)]
    summands = [_summand(a, shapes(node.input)) for a in node.aggregates if a.name != "Count"]
    found = _through(node.input, [*bodies, *(s for s in summands if s is not None)])
    if found is None or None in summands:
        return None
    join, left = found[0], iter(found[1])
    keys = tuple(next(left) for _ in called)
    return join, keys, tuple(None if value is None else next(left) for value in values)


def _summand(folded: plan.Folded, of: Shapes) -> Expr | None:
    """What an aggregate reads of a row, 0 for a None that a sum skips; None if it is not linear."""
    assert isinstance(folded.value, Lifted)
    body = folded.value.body
    if not folded.skip_none or folded.name in OVER_VALUES:
        return body
    if folded.name == "Avg" or not is_value(body, of):  # which counts values, not rows; is slow
        return None
    return Conditional(Operation("is", (body, NONE)), constant(0), body)


def _through(node: plan.Node, bodies: Sequence[Expr]) -> tuple[INNER, Sequence[Expr]] | None:
    """The join that a node is, or selects from, and expressions in terms of its pairs."""
    match node:
        case plan.Join() | plan.Product():
            return node, bodies
        case plan.Select(plan.Join() | plan.Product() as join, Lifted(made)):
            of = shapes(join)
            composed = [transform(substitute(body, (made,)), projected) for body in bodies]
            asked = {part for body in composed for part in surely(body)}
            sound = is_value(made, of) and asked.issuperset(needs(made, of))
            return (join, composed) if sound else None
        case _:
            return None


def _factors(
    join: INNER,
    wanted: Sequence[Expr],
    values: Sequence[Expr | None],
    above: Sequence[Expr] = (),
) -> plan.Factors | None:
    """How these parts of a group, and these values, split over the sides of a join; `above` are
    tests of its pairs."""
    match = plan.Match() if isinstance(join, plan.Product) else join.match
    is_wide = isinstance(join, plan.Join) and join.wide is not None and join.wide.is_cyclic
    of_pairs = _Pairs(bindings(join.left))
    tests = _tests(match)
    if is_wide or tests is None:
        return None
    tested = of_pairs.tests([*tests, *above])
    if tested is None:
        return None
    groups = of_pairs.parts(wanted)
    factors = [None if value is None else of_pairs.factors(value) for value in values]
    if any(f is None and value is not None for f, value in zip(factors, values, strict=True)):
        return None
    summed = [list(dict.fromkeys(_of(factors, side))) for side in (LEFT, RIGHT)]
    sums: list[plan.Sums | None] = [None, None]
    if not groups[0] or _through(join.left, ()) is not None:
        sums[0] = _left(join.left, match, groups[0], summed[0], tested[0])
    if not groups[1]:
        right, asked = map(of_pairs.of_right, (summed[1], tested[1]))
        sums[1] = plan.Sums((), right, asked)
    parts_of: dict[Expr, Expr] = {}
    sums_of: dict[Expr, Expr] = {}
    for side, kept in enumerate(sums):
        if kept is not None:
            name = ("left", "right")[side]
            parts_of |= {e: Local(f"{name}_group{i}") for i, e in enumerate(groups[side])}
            sums_of |= {e: Local(f"{name}_sum{i}") for i, e in enumerate(summed[side])}
    return plan.Factors(
        sums[0],
        sums[1],
        tuple(_named(part, parts_of) for part in wanted),
        tuple(None if f is None else _summed(f, sums_of) for f in factors),
        tuple(t for kept, of in zip(sums, tested, strict=True) if kept is None for t in of),
    )


def _of(factors: Sequence[Factored | None], side: int) -> list[Expr]:
    """What a side has of the values."""
    found = [f[side] for f in factors if f is not None]
    return [expr for expr in found if expr is not None]


def _summed(factors: Factored, sums_of: Mapping[Expr, Expr]) -> Expr | tuple[Expr, Expr]:
    """What is summed of pairs, in terms of what is kept."""
    left, right = (None if f is None else sums_of.get(f, f) for f in factors)
    if left is not None and right is not None:
        return left, right
    found = right if left is None else left
    assert found is not None
    return found


def _left(
    node: plan.Node,
    match: plan.Match,
    groups: Sequence[Expr],
    values: Sequence[Expr],
    tests: Sequence[Expr],
) -> plan.Sums:
    """What is kept of a left side; of one that is a join by what is kept of its sides."""
    keys = _left_keys(match)
    found = None if keys is None else _through(node, [*keys, *groups, *values, *tests])
    if found is not None and keys is not None:
        inner, exprs = found
        values_at, tests_at = len(keys) + len(groups), len(exprs) - len(tests)
        below = _factors(inner, exprs[:values_at], exprs[values_at:tests_at], exprs[tests_at:])
        if below is not None and _pays(below):
            return plan.Sums(tuple(groups), tuple(values), (), below)
    return plan.Sums(tuple(groups), tuple(values), tuple(tests))


def _left_keys(match: plan.Match) -> list[Expr] | None:
    """The parts of the key of the left side; None if it has conditions too."""
    steps = () if match.early is None else match.early.left
    if not all(step.is_key for step in steps):
        return None
    written = [match.left_key.body] if isinstance(match.left_key, Lifted) else []
    return [*written, *(step.function.body for step in steps)]


def _tests(match: plan.Match) -> tuple[Expr, ...] | None:
    """What is asked of pairs with equal keys; None if it is not known."""
    if not all(f is None or isinstance(f, Lifted) for f in (match.left_key, match.right_key)):
        return None
    asked = match.on if match.early is None else match.early.rest
    if asked is None:
        return ()
    return tuple(conjuncts(asked.body)) if isinstance(asked, Lifted) else None


class _Pairs:
    """The pairs of a join, whose left row has so many bindings."""

    def __init__(self, count: int) -> None:
        self._right = frozenset([count])
        self._as_right = (*map(Parameter, range(count)), Parameter(0))

    def parts(self, exprs: Sequence[Expr]) -> tuple[list[Expr], list[Expr]]:
        """The largest parts of expressions that read one side only, of the left and the right."""
        found: tuple[dict[Expr, None], dict[Expr, None]] = ({}, {})
        waiting = list(exprs)[::-1]
        while waiting:
            expr = waiting.pop()
            side = self._side(expr)
            if side is not None:
                found[side][expr] = None
            else:
                waiting += parts(expr)[::-1]
        return list(found[0]), list(found[1])

    def tests(self, exprs: Sequence[Expr]) -> tuple[list[Expr], list[Expr]] | None:
        """The tests of the left and those of the right; None if one is of both, or of neither."""
        found: tuple[list[Expr], list[Expr]] = ([], [])
        for expr in exprs:
            side = self._side(expr)
            if side is None:
                return None
            found[side].append(expr)
        return found

    def of_right(self, exprs: Sequence[Expr]) -> tuple[Expr, ...]:
        """Expressions over pairs that read the right only, as ones over its row."""
        return tuple(substitute(expr, self._as_right) for expr in exprs)

    def factors(self, expr: Expr) -> Factored | None:
        """What the left and the right have of a value, which is one of them or their product."""
        if not reads(expr):
            return expr, None
        side = self._side(expr)
        if side is not None:
            return (expr, None) if side == LEFT else (None, expr)
        found: list[Expr | None] = [None, None]
        for factor in _factors_of(expr):
            place = self._side(factor) if reads(factor) else LEFT
            if place is None:
                return None
            before = found[place]
            found[place] = factor if before is None else Operation("*", (before, factor))
        return found[LEFT], found[RIGHT]

    def _side(self, expr: Expr) -> int | None:
        """The side that an expression reads, if it is one."""
        read = reads(expr)
        if not read or (read & self._right and read - self._right):
            return None
        return RIGHT if read & self._right else LEFT


def _factors_of(expr: Expr) -> list[Expr]:
    if isinstance(expr, Operation) and expr.operator == "*":
        return [factor for operand in expr.operands for factor in _factors_of(operand)]
    return [expr]


def _named(expr: Expr, names: dict[Expr, Expr]) -> Expr:
    """The expression with names for its parts that have one, outer ones first."""
    if expr in names:
        return names[expr]
    inner = parts(expr)
    return rebuilt(expr, tuple(_named(part, names) for part in inner)) if inner else expr
