"""Compute what a select, or an aggregate, makes of a select's rows from the rows below.

    select g                  select g(f(s))
      select f        ->        S
        S

    aggregate Sum(v(r)) by k(r)               aggregate Sum(v(f(s))) by k(f(s))
      select f                        ->        S
        S

Sound:  what f may raise is evaluated first.
Needs:  f makes no iterator and costs no call that would be made twice; no aggregate takes the row
        itself.
Pays:   the row between is not made; what nobody reads of it is not computed unless it may raise.
Source: [i3ql] F1; deforestation.
"""

from __future__ import annotations

from dataclasses import replace

from optimizer import plan
from optimizer.expr import Function, Lifted
from optimizer.expressions.compose import compose
from optimizer.expressions.knowledge import Shapes
from optimizer.plans.properties import shapes


def fuse_selects(node: plan.Node) -> plan.Node:
    match node:
        case plan.Select(plan.Select(source, Lifted() as f), Lifted() as g):
            body = compose(g, f, shapes(source))
            return node if body is None else plan.Select(source, body)
        case plan.Aggregate(plan.Select(source, Lifted() as f), key, aggregates):
            return _grouped(source, f, key, aggregates) or node
        case _:
            return node


def _grouped(
    source: plan.Node, f: Lifted, key: Function | None, aggregates: tuple[plan.Folded, ...]
) -> plan.Node | None:
    if any(a.value is None and a.name != "Count" for a in aggregates):
        return None
    of = shapes(source)
    if key is None and all(a.value is None for a in aggregates):
        return None  # nothing is left to evaluate f for
    values = [None if a.value is None else _composed(a.value, f, of) for a in aggregates]
    by = None if key is None else _composed(key, f, of)
    missing = any(
        a.value is not None and v is None for a, v in zip(aggregates, values, strict=True)
    )
    if missing or (key is not None and by is None):
        return None
    new = tuple(replace(a, value=v) for a, v in zip(aggregates, values, strict=True))
    return plan.Aggregate(source, by, new)


def _composed(outer: Function, f: Lifted, of: Shapes) -> Lifted | None:
    return compose(outer, f, of) if isinstance(outer, Lifted) else None
