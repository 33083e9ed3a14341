"""Fuse a select or extend into the select, extend, aggregate, semi_join or anti_join above it.

    select g                  select g(f(s))
      select f        ->        S
        S

    extend total=g(c, o, d)           extend d=f(c, o), total=g(c, o, f(c, o))
      extend d=f(c, o)          ->      R
        R

    aggregate Sum(v(r)) by k(r)               aggregate Sum(v(f(s))) by k(f(s))
      select f                        ->        S
        S

    anti_join on s.id == k          anti_join on s.id == r.k
      S                               S
      select r.k              ->      R
        R

Sound:  the parts of f that may raise are evaluated first.
Needs:  f makes no iterator and no costly call that would be made twice; an extend may keep such a
        column, in its place. No aggregate takes the row itself. The expressions of partners cannot
        raise, and partners are looked up by a key alone.
Pays:   the row between is not made; its unread parts are not computed unless they may raise.
Source: [i3ql] F1; deforestation.
"""

from __future__ import annotations

from dataclasses import replace

from optimizer import plan
from optimizer.expr import Function, Lifted, Parameter, all_parameters, items_of, origins
from optimizer.expressions import attempts
from optimizer.expressions.knowledge import is_value
from optimizer.expressions.text import compose, is_too_long, over
from optimizer.plans.join_lists import composed_over, fuse_extend
from optimizer.plans.properties import bindings, may_be_negative, shapes
from optimizer.plans.side_conditions import residual


def fuse_selects(node: plan.Node) -> plan.Node:
    """Fuse a select or extend into the node above; unchanged if their callables do not compose."""
    match node:
        case plan.Select(plan.Select(source, Lifted() as f), Lifted() as g):
            body = compose(g, f, shapes(source))
            return node if body is None else plan.Select(source, body)
        case plan.Select(plan.Extend() as below, Lifted() as g):
            body = composed_over(g, below)
            return node if body is None else plan.Select(below.input, body)
        case plan.Extend(plan.Select() | plan.Extend() as below):
            return fuse_extend(node, below) or node
        case plan.Aggregate(plan.Select() | plan.Extend() as below, key, aggregates):
            return _fuse_into_aggregate(below, key, aggregates) or node
        case plan.SemiJoin(_, plan.Select() as below) | plan.AntiJoin(_, plan.Select() as below):
            return _fuse_into_semi_join(node, below) or node
        case _:
            return node


def _fuse_into_aggregate(
    below: plan.Select | plan.Extend, key: Function | None, aggregates: tuple[plan.Folded, ...]
) -> plan.Node | None:
    """Return an aggregate over the input of `below`; None if it reads whole rows, or does not
    compose."""
    if any(a.value is None and a.name != "Count" for a in aggregates):
        return None
    if key is None and all(a.value is None for a in aggregates):
        return None  # no expression would evaluate f
    values = [None if a.value is None else _compose_over(a.value, below) for a in aggregates]
    by = None if key is None else _compose_over(key, below)
    missing = any(
        a.value is not None and v is None for a, v in zip(aggregates, values, strict=True)
    )
    if missing or (key is not None and by is None):
        return None
    new = tuple(replace(a, value=v) for a, v in zip(aggregates, values, strict=True))
    return plan.Aggregate(below.input, by, new)


def _fuse_into_semi_join(
    node: plan.SemiJoin | plan.AntiJoin, below: plan.Select
) -> plan.SemiJoin | plan.AntiJoin | None:
    """Return the join with the input of `below` on its right; None if `below` may raise."""
    f, of, match = below.function, shapes(below.input), node.match
    if not isinstance(f, Lifted) or not is_value(f.body, of) or attempts.hash_needs(f.body, of):
        return None
    if residual(node) is not None or may_be_negative(node):
        return None
    on, key = match.on, match.right_key
    if on is not None:
        on = _over_partner(on, f, bindings(node.left), len(of))
    if key is not None:
        key = _over_partner(key, f, 0, len(of))
    if (on is None) is not (match.on is None) or (key is None) is not (match.right_key is None):
        return None
    return replace(node, right=below.input, match=replace(match, right_key=key, on=on))


def _over_partner(function: Function, f: Lifted, start: int, count: int) -> Lifted | None:
    """Rewrite a callable of a partner that f makes to the row that it is made of, of `count`
    bindings.

    Return None if the callable is not lifted, or the result is too long.
    """
    if not isinstance(function, Lifted):
        return None
    row = Parameter(start)
    of = (row,) if count == 1 else items_of(row, count)
    body = over(function.body, (*all_parameters(start), over(f.body, of)))
    last = f.names if count == 1 else function.names[start:]
    names = (*function.names[:start], *last)
    made = Lifted(body, names, origins(function, f), start + 1)
    return None if is_too_long(body) else made


def _compose_over(outer: Function, below: plan.Select | plan.Extend) -> Lifted | None:
    return composed_over(outer, below) if isinstance(outer, Lifted) else None
