"""Push a condition on computed bindings to the row that they are computed of.

    where p(c, o, total)                extend total=f(c, o)
      extend total=f(c, o)      ->        where p(c, o, f(c, o))
        R                                   R

Sound:  parts of the columns that may raise are evaluated before the condition, for dropped rows,
        too.
Needs:  no column makes an iterator or a costly call that would be made twice.
Pays:   columns of dropped rows are not computed, and the condition can go further down.
Source: as `push_where_below_select`.
"""

from __future__ import annotations

from dataclasses import replace

from optimizer import plan
from optimizer.expr import Lifted
from optimizer.plans.join_lists import composed_over


def push_where_below_extend(node: plan.Node) -> plan.Node:
    """Push a condition below an extend, with its columns written out; unchanged if that is
    impossible."""
    match node:
        case plan.Where(plan.Extend() as below, Lifted() as p):
            asked = composed_over(p, below)
            return node if asked is None else replace(below, input=plan.Where(below.input, asked))
        case _:
            return node
