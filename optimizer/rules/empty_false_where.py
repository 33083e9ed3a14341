"""Replace a condition that is always false by no rows.

    where False               empty
      A               ->

Sound:  no row is kept.
Needs:  nothing in A may raise: it would no longer be evaluated.
Pays:   nothing is computed or kept.
Source: empty relations of SQL optimizers.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Constant, Lifted
from optimizer.plans.properties import bindings
from optimizer.plans.side_conditions import plan_may_raise


def empty_false_where(node: plan.Node) -> plan.Node:
    """Replace a `where` that is always false by no rows, unless its input may raise.

    Any other node is unchanged.
    """
    match node:
        case plan.Where(source, Lifted(Constant(value))) if not value and not plan_may_raise(
            source
        ):
            return plan.Empty(bindings(source))
        case _:
            return node
