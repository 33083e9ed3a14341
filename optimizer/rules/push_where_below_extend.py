"""Ask a condition on bindings of the row that they are made of.

    where p(c, o, total)                extend total=f(c, o)
      extend total=f(c, o)      ->        where p(c, o, f(c, o))
        R                                   R

Sound:  what the columns may raise is evaluated before the condition, for dropped rows too.
Needs:  no column makes an iterator or costs a call that would be made twice.
Pays:   columns of dropped rows are not computed, and the condition can go further down.
Source: that of `push_where_below_select`.
"""

from __future__ import annotations

from dataclasses import replace

from optimizer import plan
from optimizer.expr import Lifted
from optimizer.plans.join_lists import composed_over


def push_where_below_extend(node: plan.Node) -> plan.Node:
    match node:
        case plan.Where(plan.Extend() as below, Lifted() as p):
            asked = composed_over(p, below)
            return node if asked is None else replace(below, input=plan.Where(below.input, asked))
        case _:
            return node
