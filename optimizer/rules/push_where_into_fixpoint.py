"""Ask a condition of the rows that a recursion starts from, if it forwards what decides it.

    where r.src == "a"                    fixpoint r
      fixpoint r                            union
        union                                 where e.src == "a"
          table edges                ->         table edges
          select Edge(r.src, e.dst)           select Edge(r.src, e.dst)
            join r.dst == e.src                 join r.dst == e.src
              recursive r                         recursive r
              table edges                         table edges

Sound:  every derived row passes if and only if the one recursive row that it is derived from does.
Needs:  each way to derive rows reads one recursive row; nothing in the recursion can raise.
Pays:   what can be reached from one place instead of from all: often a thousandth of the rows.
Source: pushing selections through linear recursion: Aho, Ullman, *Universality of Data Retrieval
        Languages*, 1979.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from optimizer import plan
from optimizer.expr import Expr, Lifted, Parameter, substitute, transform
from optimizer.expressions.compose import projected
from optimizer.expressions.knowledge import total
from optimizer.plans import clauses
from optimizer.plans.properties import bindings, free, shapes
from optimizer.plans.raising import calls_may_raise


def push_where_into_fixpoint(node: plan.Node) -> plan.Node:
    match node:
        case plan.Where(plan.Fixpoint(best=(None,)) as fixpoint, Lifted() as p):
            pass
        case _:
            return node
    if free(fixpoint) or not total(p.body, shapes(fixpoint)):
        return node
    ways = _ways(fixpoint.bodies[0])
    if not all(_hands_on(way, p.body) for way in ways):
        return node
    ways = [plan.Where(way, p) if clauses.is_closed(way) else way for way in ways]
    return replace(fixpoint, bodies=(reduce(plan.Union, ways),))


def _ways(body: plan.Node) -> list[plan.Node]:
    """The ways to derive rows; a body is their union."""
    match body:
        case plan.Union(left, right) | plan.UnionAll(left, right) if not clauses.is_closed(body):
            return [*_ways(left), *_ways(right)]
        case plan.Distinct(source) if not clauses.is_closed(body):
            return _ways(source)
        case _:
            return [body]


def _hands_on(body: plan.Node, asked: Expr) -> bool:
    """Whether a derived row passes exactly if the recursive row that it comes from does."""
    expr = asked
    while not clauses.is_closed(body):
        if calls_may_raise(body):
            return False
        match body:
            case plan.Select(source, Lifted(made)):
                expr = transform(substitute(expr, (made,)), projected)
                body = source
            case plan.Where(source):
                body = source
            case plan.Recursive():
                return expr == asked
            case plan.Join() | plan.Product() | plan.AntiJoin():
                return _through_join(body, expr, asked)
            case _:
                return False
    return True


def _through_join(join: plan.Join | plan.Product | plan.AntiJoin, expr: Expr, asked: Expr) -> bool:
    """The same where one side of a join is recursive, below wheres that cannot raise."""
    left, right = join.inputs()
    if not (clauses.is_closed(left) or clauses.is_closed(right)):
        return False
    place, side = (bindings(left), right) if clauses.is_closed(left) else (0, left)
    while isinstance(side, plan.Where):
        if calls_may_raise(side):
            return False
        side = side.input
    return isinstance(side, plan.Recursive) and expr == substitute(asked, (Parameter(place),))
