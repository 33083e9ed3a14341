"""Make a join of a product with a predicate on its pairs.

    where p                   join on p
      product         ->        A
        A                       B
        B

Sound:  the join evaluates p for the same pairs.
Needs:  nothing.
Pays:   keys and tests of a side can be found in the predicate (`optimizer.plans.side_conditions`).
Source: [i3ql] J1, the decisive rule.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Lifted


def make_join(node: plan.Node) -> plan.Node:
    """Turn a `where` over a product into a join; other nodes unchanged."""
    match node:
        case plan.Where(plan.Product(left, right), Lifted() as predicate):
            return plan.Join(left, right, plan.Match(on=predicate))
        case _:
            return node
