"""Filter before removing duplicates.

    where p                   where p again, if it may raise and rows may be negative
      distinct        ->        distinct
        A                         where p, or it raises
                                    A

Sound:  copies of a row pass or fail together. A guard is also evaluated for rows that distinct
        drops, because their weight is negative; if it raises it keeps the row.
Needs:  nothing.
Pays:   distinct holds only rows that pass, and the condition can go further down.
Source: [dbsp] section 4, commuting filter and distinct.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Lifted
from optimizer.expressions.knowledge import total
from optimizer.plans.forms import asked_again, condition, guard
from optimizer.plans.properties import may_be_negative, shapes


def push_where_below_distinct(node: plan.Node) -> plan.Node:
    """Push a condition below a distinct; other nodes unchanged."""
    match node:
        case plan.Where(plan.Distinct(source), Lifted() as p):
            if total(p.body, shapes(source)) or not may_be_negative(source):
                return plan.Distinct(plan.Where(source, p))
            if condition(node) is None:
                return node
            return asked_again(plan.Distinct(plan.Where(source, guard(p))), p)
        case _:
            return node
