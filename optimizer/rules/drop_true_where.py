"""Drop a condition that is always true.

    where True                A
      A               ->

Sound:  it keeps every row.
Needs:  the condition is a constant.
Pays:   one operator less.
Source: [i3ql] S1 and constant predicates, which it lacks.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Constant, Lifted


def drop_true_where(node: plan.Node) -> plan.Node:
    """Return the input of a `where` that is always true; other nodes unchanged."""
    match node:
        case plan.Where(source, Lifted(Constant(value))) if value:
            return source
        case _:
            return node
