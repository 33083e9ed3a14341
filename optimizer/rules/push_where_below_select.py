"""Push a condition below a select.

    where p(r)                select f
      select f        ->        where p(f(s))
        S                         S

Sound:  parts of f that may raise are evaluated before the condition, for dropped rows too.
Needs:  f makes no iterator and no costly call that would be made twice.
Pays:   dropped rows are not made, and the condition can go further down.
Source: [i3ql] P1.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Lifted
from optimizer.expressions.text import compose
from optimizer.plans.properties import shapes


def push_where_below_select(node: plan.Node) -> plan.Node:
    """Push a condition below a select, whose body it then contains; unchanged if that is
    impossible."""
    match node:
        case plan.Where(plan.Select(source, Lifted() as f), Lifted() as p):
            asked = compose(p, f, shapes(source))
            return node if asked is None else plan.Select(plan.Where(source, asked), f)
        case _:
            return node
