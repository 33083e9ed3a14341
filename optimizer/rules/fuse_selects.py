"""Compute what a select, an extend or an aggregate makes of the rows of a select or an extend from
the rows below.

    select g                  select g(f(s))
      select f        ->        S
        S

    extend total=g(c, o, d)           extend d=f(c, o), total=g(c, o, f(c, o))
      extend d=f(c, o)          ->      R
        R

    aggregate Sum(v(r)) by k(r)               aggregate Sum(v(f(s))) by k(f(s))
      select f                        ->        S
        S

Sound:  what f may raise is evaluated first.
Needs:  f makes no iterator and costs no call that would be made twice; an extend may keep what
        does, in its place. No aggregate takes the row itself.
Pays:   the row between is not made; what nobody reads of it is not computed unless it may raise.
Source: [i3ql] F1; deforestation.
"""

from __future__ import annotations

from dataclasses import replace

from optimizer import plan
from optimizer.expr import Function, Lifted
from optimizer.expressions.compose import compose
from optimizer.plans.extended import composed_over, fused
from optimizer.plans.properties import shapes


def fuse_selects(node: plan.Node) -> plan.Node:
    match node:
        case plan.Select(plan.Select(source, Lifted() as f), Lifted() as g):
            body = compose(g, f, shapes(source))
            return node if body is None else plan.Select(source, body)
        case plan.Select(plan.Extend() as below, Lifted() as g):
            body = composed_over(g, below)
            return node if body is None else plan.Select(below.input, body)
        case plan.Extend(plan.Select() | plan.Extend() as below):
            return fused(node, below) or node
        case plan.Aggregate(plan.Select() | plan.Extend() as below, key, aggregates):
            return _grouped(below, key, aggregates) or node
        case _:
            return node


def _grouped(
    below: plan.Select | plan.Extend, key: Function | None, aggregates: tuple[plan.Folded, ...]
) -> plan.Node | None:
    if any(a.value is None and a.name != "Count" for a in aggregates):
        return None
    if key is None and all(a.value is None for a in aggregates):
        return None  # nothing is left to evaluate f for
    values = [None if a.value is None else _composed(a.value, below) for a in aggregates]
    by = None if key is None else _composed(key, below)
    missing = any(
        a.value is not None and v is None for a, v in zip(aggregates, values, strict=True)
    )
    if missing or (key is not None and by is None):
        return None
    new = tuple(replace(a, value=v) for a, v in zip(aggregates, values, strict=True))
    return plan.Aggregate(below.input, by, new)


def _composed(outer: Function, below: plan.Select | plan.Extend) -> Lifted | None:
    return composed_over(outer, below) if isinstance(outer, Lifted) else None
