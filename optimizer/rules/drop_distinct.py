"""Drop a distinct of rows that cannot occur twice.

    distinct                  T
      T (keyed)       ->

Sound:  every weight is 0 or 1 already.
Needs:  the input is a set: a keyed table, a union, groups, a join of sets, ...
Pays:   distinct would hold every row.
Source: [dbsp] section 4, distinct elimination; [i3ql] D8.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.plans.properties import is_set


def drop_distinct(node: plan.Node) -> plan.Node:
    """Return the input of a distinct whose rows are a set already; other nodes unchanged."""
    if isinstance(node, plan.Distinct) and is_set(node.input):
        return node.input
    return node
