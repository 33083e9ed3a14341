"""Turn columns that are bindings into kept bindings, and drop an extend that keeps the row.

    bind (c, o) -> c, (c, o) -> o         R
      R                             ->

    bind (c, o) -> c, (c, o) -> f(o)      bind c, f(o)
      R                             ->      R

Sound:  the rows are the same.
Needs:  columns that are plain bindings come first.
Pays:   one operator less.
Source: [i3ql] S2.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Lifted, Parameter
from optimizer.plans.properties import bindings


def drop_identity_extend(node: plan.Node) -> plan.Node:
    """Turn leading columns that are bindings into kept ones; drop the extend if it keeps the
    row."""
    if not isinstance(node, plan.Extend):
        return node
    match node.columns:
        case (Lifted(Parameter(place)), *rest):
            keep = (*node.keep, place)
            return drop_identity_extend(plan.Extend(node.input, keep, tuple(rest), node.names))
        case ():
            is_identity = node.keep == tuple(range(bindings(node.input)))
            return node.input if is_identity else node
        case _:
            return node
