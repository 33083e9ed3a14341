"""Filter before removing duplicates.

    where p                   distinct
      distinct        ->        where p
        A                         A

Sound:  copies of a row pass or fail together.
Needs:  nothing.
Pays:   distinct holds only rows that pass, and the condition can go further down.
Source: [dbsp] section 4, commuting filter and distinct.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Lifted


def push_where_below_distinct(node: plan.Node) -> plan.Node:
    match node:
        case plan.Where(plan.Distinct(source), Lifted() as p):
            return plan.Distinct(plan.Where(source, p))
        case _:
            return node
