"""Filter rows below the top of each group, by a condition on the key of their group.

    where p(k(r))                where p(k(r)) again, if it may raise and groups show nothing
      top n by s of each k  ->     top n by s of each k
        R                            where p(k(r)), or it raises
                                       R

Sound:  all rows of a group pass or fail together; parts of the key and the sort keys that may raise
        are evaluated before the condition, for dropped rows too. A guard is also evaluated for
        groups without a row in the window; if it raises it keeps the row. Values without order are
        not noticed in a dropped group, as in an aggregate.
Needs:  the condition reads only the key, or parts of one that is a tuple; keys make no iterator and
        no costly call twice.
Pays:   no group is kept that is not shown.
Source: as `push_where_below_aggregate`.
"""

from __future__ import annotations

from dataclasses import replace

from optimizer import plan
from optimizer.expr import Display, Expr, Lifted, Parameter, parts, reads
from optimizer.expressions.knowledge import is_value, total
from optimizer.expressions.text import first, needs, surely
from optimizer.plans.forms import asked_again, condition, guard
from optimizer.plans.properties import may_be_negative, shapes


def push_where_below_top(node: plan.Node) -> plan.Node:
    """Push a condition on the key below a top of groups; other nodes unchanged."""
    match node:
        case plan.Where(plan.Top(source, Lifted() as key) as top, Lifted() as p) if _is_of_key(
            p.body, key.body
        ):
            needed = _needs_of_keys(top)
            if needed is None:
                return node
            if _is_asked(top, p):
                asked = set(surely(p.body))
                body = first(tuple(need for need in needed if need not in asked), p.body)
                return replace(top, input=plan.Where(source, p.with_body(body)))
            if condition(node) is None:
                return node
            return asked_again(replace(top, input=plan.Where(source, guard(p, needed))), p)
        case _:
            return node


def _is_of_key(body: Expr, key: Expr) -> bool:
    """Return True if a condition reads rows through the key of their group only."""
    items = key.items if isinstance(key, Display) and key.kind == "tuple" else ()
    return bool(reads(body)) and _reads_only({key, *items}, body)


def _reads_only(known: set[Expr], expr: Expr) -> bool:
    if expr in known:
        return True
    return not isinstance(expr, Parameter) and all(_reads_only(known, p) for p in parts(expr))


def _is_asked(top: plan.Top, p: Lifted) -> bool:
    """Return True if the condition is evaluated for each group anyway, or cannot raise."""
    shows_all = top.limit > 0 and not top.offset and not may_be_negative(top)
    return shows_all or total(p.body, shapes(top))


def _needs_of_keys(top: plan.Top) -> tuple[Expr, ...] | None:
    """Return the parts of the keys that may raise; None if evaluating them twice has a cost."""
    of = shapes(top.input)
    found: list[Expr] = []
    for function in (top.key, *(key.function for key in top.keys)):
        if not isinstance(function, Lifted) or not is_value(function.body, of):
            return None
        if not total(function.body, of):
            found.extend(needs(function.body, of))
    return tuple(dict.fromkeys(found))
