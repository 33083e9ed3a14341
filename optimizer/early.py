"""Which parts of a join's predicate can be decided on one side, before any pair is seen.

    on  s.last_name == m.last_name and s.age > 30 and s.name < m.name

    left:   key s.last_name, test s.age > 30
    right:  key m.last_name
    rest:   s.name < m.name

The parts are taken in their order. One of both sides that is no equation of two sides is left for
the pairs. If it may raise, so are all that follow it: pairs that they drop would not be asked.

Of a join with keys of its own, and of what counts matches instead of making pairs, only those tests
are taken that cannot raise.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.compose import one_row
from optimizer.expr import Expr, Function, Lifted, Operation, conjunction, conjuncts, reads
from optimizer.knowledge import Shapes, total
from optimizer.properties import bindings, row_shape, shapes

AnyJoin = plan.Join | plan.OuterJoin | plan.SemiJoin | plan.AntiJoin


def early(node: AnyJoin) -> plan.Early | None:
    """What the sides of a join can decide; None without a predicate that has been read."""
    on = node.match.on
    if not isinstance(on, Lifted):
        return None
    finder = _Finder(node, on)
    for test in conjuncts(on.body):
        finder.take(test)
    rest = on.with_body(conjunction(tuple(finder.rest))) if finder.rest else None
    return plan.Early(tuple(finder.left), tuple(finder.right), rest)


def pair_shapes(node: AnyJoin) -> Shapes:
    """The shapes of the arguments of a join's predicate."""
    return (*shapes(node.left), row_shape(node.right))


def may_raise(side: tuple[plan.Step, ...], of: Shapes) -> bool:
    """Whether a side has steps that may raise."""
    return not all(total(step.function.body, of) for step in side)


class _Finder:
    def __init__(self, node: AnyJoin, on: Lifted) -> None:
        self._node = node
        self._on = on
        self._count = bindings(node.left)
        self._shapes = pair_shapes(node)
        self._blocked = False
        self._is_strict = node.match.left_key is not None
        self.left: list[plan.Step] = []
        self.right: list[plan.Step] = []
        self.rest: list[Expr] = []

    def take(self, test: Expr) -> None:
        side = self._side(test)
        equation = None if self._blocked or self._is_strict else self._equation(test)
        if equation is not None:
            self.left.append(self._left(equation[0], is_key=True))
            self.right.append(self._right(equation[1], is_key=True))
        elif side == "left" and not self._blocked and self._drops("left", test):
            self.left.append(self._left(test, is_key=False))
        elif side == "right" and not self._blocked and self._drops("right", test):
            self.right.append(self._right(test, is_key=False))
        else:
            self.rest.append(test)
            self._blocked |= not total(test, self._shapes)

    def _side(self, expr: Expr) -> str | None:
        read = reads(expr)
        if not read:
            return None
        if read == {self._count}:
            return "right"
        return "left" if self._count not in read else None

    def _equation(self, test: Expr) -> tuple[Expr, Expr] | None:
        if not isinstance(test, Operation) or test.operator != "==":
            return None
        a, b = test.operands
        match self._side(a), self._side(b):
            case "left", "right":
                return a, b
            case "right", "left":
                return b, a
            case _:
                return None

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

    def _left(self, expr: Expr, *, is_key: bool) -> plan.Step:
        names = self._on.names[: self._count]
        return plan.Step(Lifted(expr, names, self._on.origins, self._count), is_key)

    def _right(self, expr: Expr, *, is_key: bool) -> plan.Step:
        body = one_row(expr, self._count, 1)
        return plan.Step(Lifted(body, self._on.names[self._count :], self._on.origins, 1), is_key)


def strict(function: Function | None, of: Shapes) -> bool:
    """Whether a callable that may be absent may raise."""
    return function is not None and not (isinstance(function, Lifted) and total(function.body, of))
