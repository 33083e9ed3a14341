"""What a sub-query is given of the row around it: the parts that it reads, in the place of all.

    o.cid == Outer(0).id, of the arguments (c,)     ->     o.cid == Outer(0), of (c.id,)

Sound:  what is evaluated before the sub-query then, for all rows, raises nothing.
Pays:   a sub-query is evaluated for each different value of its arguments.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.comprehensions.scope import Scope
from optimizer.expr import Expr, Function, Lifted, Outer, Parameter, parts, rebuilt, transform, walk
from optimizer.expressions.knowledge import is_container
from optimizer.traverse import rebuilt as rebuilt_plan
from optimizer.traverse import with_functions


def narrowed(
    node: plan.Node, row: tuple[Expr, ...], arguments: tuple[Expr, ...], scope: Scope
) -> tuple[plan.Node, tuple[Expr, ...], tuple[Expr, ...]]:
    """A plan, expressions over its rows and its arguments in a scope, with arguments that have no
    more than what is read."""
    if not arguments:
        return node, row, arguments
    narrow = _Narrow(arguments, scope)
    changed = rebuilt_plan(node, lambda each: with_functions(each, narrow.function))
    exprs = tuple(map(narrow.expr, row))
    return changed, exprs, tuple(narrow.arguments)


def renumbered(
    node: plan.Node, row: tuple[Expr, ...], arguments: tuple[Expr, ...]
) -> tuple[plan.Node, tuple[Expr, ...]]:
    """The same with other expressions in the place of the outer values."""
    if not arguments or all(e == Outer(place) for place, e in enumerate(arguments)):
        return node, row

    def change(expr: Expr) -> Expr:
        return arguments[expr.index] if isinstance(expr, Outer) else expr

    def function(f: Function) -> Function:
        return f.with_body(transform(f.body, change)) if isinstance(f, Lifted) else f

    changed = rebuilt_plan(node, lambda each: with_functions(each, function))
    return changed, tuple(transform(e, change) for e in row)


class _Narrow:
    def __init__(self, given: tuple[Expr, ...], scope: Scope) -> None:
        self._given = given
        self._scope = scope
        self.arguments: list[Expr] = []

    def function(self, f: Function) -> Function:
        return f.with_body(self.expr(f.body)) if isinstance(f, Lifted) else f

    def expr(self, expr: Expr) -> Expr:
        outside = self._outside(expr)
        if outside is not None and (isinstance(expr, Outer) or self._may_be_given(outside)):
            return self._argument(outside)
        old = parts(expr)
        new = tuple(map(self.expr, old))
        return expr if new == old else rebuilt(expr, new)

    def _may_be_given(self, expr: Expr) -> bool:
        """Whether an expression of the scope around it raises nothing, and makes no list."""
        return self._scope.never_raises(expr) and not is_container(expr)

    def _outside(self, expr: Expr) -> Expr | None:
        """The expression in the scope around it, if it reads that and nothing else."""
        every = list(walk(expr))
        if not any(isinstance(e, Outer) for e in every):
            return None
        if is_container(expr) or any(isinstance(e, Parameter) for e in every):
            return None
        return transform(expr, lambda e: self._given[e.index] if isinstance(e, Outer) else e)

    def _argument(self, expr: Expr) -> Outer:
        if expr not in self.arguments:
            self.arguments.append(expr)
        return Outer(self.arguments.index(expr))
