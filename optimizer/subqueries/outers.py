"""What a correlated query reads of the row around it.

    where o.customer == outer[0].id and o.paid       arguments (c,)
    ->
    where o.customer == outer[0] and o.paid          arguments (c.id,)

The fewer and smaller the values that a query depends on, the fewer of them there are, and a value
that stands alone on a side of an equation can be a key.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import is_

from optimizer import plan
from optimizer.expr import (
    Apply,
    Constant,
    Expr,
    Function,
    Lifted,
    Local,
    Outer,
    Parameter,
    parts,
    rebuilt,
    transform,
    walk,
)
from optimizer.expressions.compose import projected
from optimizer.expressions.knowledge import is_container
from optimizer.plans.properties import fact
from optimizer.traverse import functions, with_functions
from optimizer.traverse import rebuilt as rebuilt_plan


def outers(node: plan.Node) -> frozenset[int]:
    """The arguments that a plan reads."""
    found: frozenset[int] = fact(node, "outers", _outers)
    return found


def _outers(node: plan.Node) -> frozenset[int]:
    below = [source.known["outers"] for source in node.inputs()]
    own = [read_by(f.body) for f in functions(node) if isinstance(f, Lifted)]
    return frozenset[int]().union(*below, *own)


def read_by(expr: Expr) -> frozenset[int]:
    """The arguments that an expression reads."""
    return frozenset(part.index for part in walk(expr) if isinstance(part, Outer))


def with_values(expr: Expr, values: tuple[Expr, ...]) -> Expr:
    """An expression with others in the place of the arguments."""
    if not read_by(expr):
        return expr
    found = transform(expr, lambda e: values[e.index] if isinstance(e, Outer) else e)
    return transform(found, projected)


def narrowed(
    query: plan.Node,
    arguments: tuple[Expr, ...],
    is_calm: Callable[[Expr], bool],
) -> tuple[plan.Node, tuple[Expr, ...]]:
    """A query that reads no more of the row around it than it needs, and what that is.

    `is_calm` says whether something raises for no row around it. What is not is left where the
    query asks it, behind the tests that the query has.
    """
    if not outers(query):
        return query, ()
    narrowing = _Narrowing(arguments, is_calm)
    made = rebuilt_plan(query, lambda node: with_functions(node, narrowing.function))
    return made, tuple(narrowing.values)


class _Narrowing:
    def __init__(
        self,
        arguments: tuple[Expr, ...],
        is_calm: Callable[[Expr], bool],
    ) -> None:
        self._arguments = arguments
        self._is_calm = is_calm
        self.values: dict[Expr, Outer] = {}

    def function(self, function: Function) -> Function:
        if not isinstance(function, Lifted) or not read_by(function.body):
            return function
        return function.with_body(self._changed(function.body))

    def _changed(self, expr: Expr) -> Expr:
        if not read_by(expr):
            return expr
        if _reads_nothing_else(expr):
            value = with_values(expr, self._arguments)
            if isinstance(value, Constant):
                return value
            if isinstance(expr, Outer) or (self._is_calm(value) and not is_container(value)):
                return self.values.setdefault(value, Outer(len(self.values)))
        old = parts(expr)
        new = tuple([self._changed(part) for part in old])
        return expr if all(map(is_, old, new)) else rebuilt(expr, new)


def _reads_nothing_else(expr: Expr) -> bool:
    return not is_container(expr) and not any(
        isinstance(part, Parameter | Local | Apply) for part in walk(expr)
    )
