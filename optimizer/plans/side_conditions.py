"""Which parts of a join's predicate can be decided on one side, before any pair is seen.

    on  s.last_name == m.last_name and s.age > 30 and s.name < m.name

    left:   key s.last_name, test s.age > 30
    right:  key m.last_name
    rest:   s.name < m.name

The parts are taken in their order. One of both sides that is no equation of two sides is left for
the pairs. If it may raise, so are all that follow it: pairs that they drop would not be asked.

An equation in a guard, `unless_raises(x[0] == y[0])`, is a key too: a guard keeps a row of which
something raises, and such a row is paired with all rows anyway.

Of a join with keys of its own, and of what counts matches instead of making pairs, only those tests
are taken that cannot raise.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import (
    Expr,
    Function,
    Guard,
    Lifted,
    Operation,
    conjunction,
    conjuncts,
    reads,
)
from optimizer.expressions.compose import first, one_row
from optimizer.expressions.knowledge import Shapes, total
from optimizer.plans.properties import bindings, once, row_shape, shapes
from optimizer.record import record

AnyJoin = plan.Product | plan.Join | plan.OuterJoin | plan.SemiJoin | plan.AntiJoin


@record
class SideTerm:
    """A test of a row, or a part of its key. Nothing comes of it if a part of a guard raises."""

    function: Lifted
    is_key: bool
    is_guard: bool = False


@record
class SideConditions:
    """What a join can decide of a row on its own, before it sees pairs.

    Tests and keys of a side are evaluated in the order of the predicate that they came from. A row
    that fails a test is left out. One on which something raises is paired with all rows, and the
    whole predicate is asked of the pairs. Of other rows, those with equal keys are paired, and
    only the `residual` of the predicate is asked.
    """

    left: tuple[SideTerm, ...]
    right: tuple[SideTerm, ...]
    residual: Lifted | None


def match_of(node: AnyJoin) -> plan.Match:
    """What a join asks of pairs: a product nothing."""
    return plan.Match() if isinstance(node, plan.Product) else node.match


def residual(node: AnyJoin) -> Function | None:
    """What a join asks of pairs whose keys are equal."""
    found = side_conditions_of(node)
    return match_of(node).on if found is None else found.residual


def side_conditions_of(node: AnyJoin) -> SideConditions | None:
    """What the sides of a join can decide, found once; None of a predicate that has not been read,
    or that says nothing of one side."""
    return once(node, "side_conditions", _found)


def has_keys(node: AnyJoin) -> bool:
    """Whether pairs are looked up by a key, as written or found in the predicate."""
    found = side_conditions_of(node)
    is_found = found is not None and any(step.is_key for step in found.left)
    return is_found or match_of(node).left_key is not None


def side_of(expr: Expr, count: int) -> str | None:
    """The side of a join whose left has `count` bindings that an expression reads; None if it reads
    both, or neither."""
    read = reads(expr)
    if not read:
        return None
    if read == {count}:
        return "right"
    return "left" if count not in read else None


def equation_of(test: Expr, count: int) -> tuple[Expr, Expr] | None:
    """The left and the right side of an equation between the sides of a join."""
    if not isinstance(test, Operation) or test.operator != "==":
        return None
    a, b = test.operands
    match side_of(a, count), side_of(b, count):
        case "left", "right":
            return a, b
        case "right", "left":
            return b, a
        case _:
            return None


def of_left(on: Lifted, expr: Expr, count: int) -> Lifted:
    """A part of a predicate that reads the left side, as a callable of its bindings."""
    return Lifted(expr, on.names[:count], on.origins, count)


def of_right(on: Lifted, expr: Expr, count: int) -> Lifted:
    """A part of a predicate that reads the right side, as a callable of its row."""
    return Lifted(one_row(expr, count, 1), on.names[count:], on.origins, 1)


def _found(node: AnyJoin) -> SideConditions | None:
    on = match_of(node).on
    if not isinstance(on, Lifted):
        return None
    finder = _Finder(node, on)
    for test in conjuncts(on.body):
        finder.take(test)
    if not (finder.left or finder.right):
        return None
    rest = on.with_body(conjunction(tuple(finder.residual))) if finder.residual else None
    return SideConditions(tuple(finder.left), tuple(finder.right), rest)


def pair_shapes(node: AnyJoin) -> Shapes:
    """The shapes of the arguments of a join's predicate."""
    return (*shapes(node.left), row_shape(node.right))


def may_raise(side: tuple[SideTerm, ...], of: Shapes) -> bool:
    """Whether a side has steps that may raise."""
    return not all(step.is_guard or total(step.function.body, of) for step in side)


class _Finder:
    def __init__(self, node: AnyJoin, on: Lifted) -> None:
        self._node = node
        self._on = on
        self._count = bindings(node.left)
        self._shapes = pair_shapes(node)
        self._blocked = False
        self._is_strict = match_of(node).left_key is not None
        self.left: list[SideTerm] = []
        self.right: list[SideTerm] = []
        self.residual: list[Expr] = []

    def take(self, test: Expr) -> None:
        side = side_of(test, self._count)
        equation = None if self._blocked or self._is_strict else self._equation(test)
        if equation is not None:
            is_guard = isinstance(test, Guard)
            self.left.append(SideTerm(self._left(equation[0]), is_key=True, is_guard=is_guard))
            self.right.append(SideTerm(self._right(equation[1]), is_key=True, is_guard=is_guard))
        elif side == "left" and not self._blocked and self._drops("left", test):
            self.left.append(SideTerm(self._left(test), is_key=False))
        elif side == "right" and not self._blocked and self._drops("right", test):
            self.right.append(SideTerm(self._right(test), is_key=False))
        else:
            self.residual.append(test)
            self._blocked |= not total(test, self._shapes)

    def _equation(self, test: Expr) -> tuple[Expr, Expr] | None:
        if isinstance(test, Guard):
            return self._guarded(test)
        return equation_of(test, self._count)

    def _guarded(self, guard: Guard) -> tuple[Expr, Expr] | None:
        """The equation of a guard, each side after what the guard evaluates of it before."""
        equation, sides = self._equation(guard.test), ("left", "right")
        needs = [(side_of(need, self._count), need) for need in guard.needs]
        if equation is None or not all(side in sides for side, _ in needs):
            return None
        own = [tuple(need for place, need in needs if place == side) for side in sides]
        return first(own[0], equation[0]), first(own[1], equation[1])

    def _drops(self, side: str, test: Expr) -> bool:
        """Whether a row that fails the test of its side can be left out of the join."""
        if not total(test, self._shapes) and (
            self._is_strict or not isinstance(self._node, plan.Join)
        ):
            return False
        if isinstance(self._node, plan.Join):
            return True
        if isinstance(self._node, plan.OuterJoin):
            return side == "right" and self._node.kind == "left"
        return side == "right"

    def _left(self, expr: Expr) -> Lifted:
        return of_left(self._on, expr, self._count)

    def _right(self, expr: Expr) -> Lifted:
        return of_right(self._on, expr, self._count)


def strict(function: Function | None, of: Shapes) -> bool:
    """Whether a callable that may be absent may raise."""
    return function is not None and not (isinstance(function, Lifted) and total(function.body, of))
