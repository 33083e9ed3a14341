"""Ask for the existence of a partner where pairs are made for nothing else.

    distinct                        distinct
      select f(s)                     select f(s)
        join on p           ->          semi_join on p
          S                               S
          M                               M

Sound:  after distinct only the presence of a row counts, and an s is there if it has a partner.
Needs:  f reads bindings of the left side only; stored tables, since two negative weights make a
        positive one.
Pays:   no pair is made; by key alone, the right side is a number per key.
Source: [i3ql] P11; EXISTS of SQL.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Lifted, reads
from optimizer.plans.properties import bindings, may_be_negative


def make_semi_join(node: plan.Node) -> plan.Node:
    match node:
        case plan.Distinct(plan.Select(plan.Join(left, right, match), Lifted() as f)):
            count = bindings(left)
            if count in reads(f.body) or may_be_negative(node):
                return node
            semi = plan.SemiJoin(left, right, match)
            read = Lifted(f.body, f.names[:count], f.origins, count)
            return plan.Distinct(plan.Select(semi, read))
        case _:
            return node
