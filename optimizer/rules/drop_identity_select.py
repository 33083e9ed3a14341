"""Drop a select that returns the row itself.

    select s                  S
      S               ->

Sound:  the rows are the same.
Needs:  one binding: several would become a tuple, which is one.
Pays:   one operator less.
Source: [i3ql] S2.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Lifted, Parameter


def drop_identity_select(node: plan.Node) -> plan.Node:
    """Return the input of a select that returns its row; other nodes unchanged."""
    match node:
        case plan.Select(source, Lifted(Parameter(0)) as f) if f.parameters == 1:
            return source
        case _:
            return node
