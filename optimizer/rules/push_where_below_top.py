"""Filter rows before the first of each group are found, by a condition on the key of their group.

    where p(k(r))             top n by s of each k
      top n by s of each k  ->   where p(k(r))
        R                          R

Sound:  all rows of a group pass or fail together; what the key and the keys of the order may raise
        is evaluated before the condition, for dropped rows too. Values that have no order go
        unnoticed in a group that is dropped, as they do in an aggregate.
Needs:  the condition reads nothing but the key, or parts of one that is a tuple; keys make no
        iterator and cost no call twice; the condition is asked of each group anyway, which has a
        row in the window, or cannot raise.
Pays:   no group is kept that is not shown.
Source: as `push_where_below_aggregate`.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.compose import first, needs
from optimizer.expr import Display, Expr, Lifted, Parameter, parts, reads, surely
from optimizer.knowledge import is_value, total
from optimizer.properties import shapes


def push_where_below_top(node: plan.Node) -> plan.Node:
    match node:
        case plan.Where(plan.Top(source, Lifted() as key) as top, Lifted() as p) if _is_of_key(
            p.body, key.body
        ) and _is_asked(top, p):
            needed = _needs(top)
            if needed is None:
                return node
            asked = set(surely(p.body))
            body = first(tuple(need for need in needed if need not in asked), p.body)
            below = plan.Where(source, p.with_body(body))
            return plan.Top(below, key, top.keys, top.limit, top.offset)
        case _:
            return node


def _is_of_key(body: Expr, key: Expr) -> bool:
    """Whether a condition reads rows through the key of their group only."""
    items = key.items if isinstance(key, Display) and key.kind == "tuple" else ()
    return bool(reads(body)) and _reads_only({key, *items}, body)


def _reads_only(known: set[Expr], expr: Expr) -> bool:
    if expr in known:
        return True
    return not isinstance(expr, Parameter) and all(_reads_only(known, p) for p in parts(expr))


def _is_asked(top: plan.Top, p: Lifted) -> bool:
    shows_all = top.limit > 0 and not top.offset
    return shows_all or total(p.body, shapes(top))


def _needs(top: plan.Top) -> tuple[Expr, ...] | None:
    """What the keys may raise; None if evaluating them twice has a cost."""
    of = shapes(top.input)
    found: list[Expr] = []
    for function in (top.key, *(key.function for key in top.keys)):
        if not isinstance(function, Lifted) or not is_value(function.body, of):
            return None
        if not total(function.body, of):
            found.extend(needs(function.body, of))
    return tuple(dict.fromkeys(found))
