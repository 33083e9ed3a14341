"""Which way to derive rows forwards a value of the recursive row that it reads.

    select Edge(r.src, e.dst)
      join r.dst == e.src            a derived row has the `src` of the recursive row below it
        recursive r
        table edges

Sound:  whatever the rows of inputs are, what is asked of a derived row gives what it gives of the
        one recursive row that it was derived from.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Expr, Parameter, reads, substitute
from optimizer.expressions.compose import over
from optimizer.plans import clauses
from optimizer.plans.extended import outputs
from optimizer.plans.properties import bindings
from optimizer.plans.raising import calls_may_raise


def ways_of(body: plan.Node) -> list[plan.Node]:
    """The ways to derive rows; a body is their union."""
    match body:
        case plan.Union(left, right) | plan.UnionAll(left, right) if not clauses.is_closed(body):
            return [*ways_of(left), *ways_of(right)]
        case plan.Distinct(source) if not clauses.is_closed(body):
            return ways_of(source)
        case _:
            return [body]


def forwards(body: plan.Node, asked: Expr, *, may_raise: bool = False) -> bool:
    """Whether each derived row has the value of the recursive row that it comes from; and nothing
    on the way raises, unless it `may_raise`. What is derived of no recursive row does."""
    return clauses.is_closed(body) or origin(body, asked, may_raise=may_raise) == asked


def origin(body: plan.Node, asked: Expr, *, may_raise: bool = False) -> Expr | None:
    """What is asked of a derived row, in terms of the recursive row that it comes from; None if it
    is not made of that row alone, or if something on the way raises that may not."""
    expr = asked
    while not clauses.is_closed(body):
        if not may_raise and calls_may_raise(body):
            return None
        match body:
            case plan.Select(source) | plan.Extend(source):
                expr = over(expr, outputs(body))
                body = source
            case plan.Where(source):
                body = source
            case plan.Recursive():
                return expr
            case plan.Join() | plan.Product() | plan.AntiJoin() | plan.SemiJoin():
                found = _below_join(body, expr)
                if found is None:
                    return None
                body, expr = found
            case _:
                return None
    return None


def _below_join(
    join: plan.Join | plan.Product | plan.AntiJoin | plan.SemiJoin, expr: Expr
) -> tuple[plan.Node, Expr] | None:
    """The recursive side, and the same value in terms of its rows; None if it reads the other, or
    both are recursive."""
    left, right = join.inputs()
    if not (clauses.is_closed(left) or clauses.is_closed(right)):
        return None
    first = bindings(left)
    side, places = (
        (right, range(first, first + 1)) if clauses.is_closed(left) else (left, range(first))
    )
    if not reads(expr) <= set(places):
        return None
    rows = tuple(Parameter(max(0, place - places.start)) for place in range(places.stop))
    return side, substitute(expr, rows)
