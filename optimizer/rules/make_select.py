"""Turn an extend with one binding into a select.

    bind total=f(c, o)          select f(c, o)
      R                   ->      R

Sound:  a row of one binding is its value.
Needs:  nothing.
Pays:   other rules look for selects.
Source: none; two ways to write the same.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.plans.join_lists import callable_of_row
from optimizer.plans.properties import bindings


def make_select(node: plan.Node) -> plan.Node:
    """Turn an extend with one binding into a select; other nodes unchanged."""
    if not isinstance(node, plan.Extend) or bindings(node) != 1:
        return node
    return plan.Select(node.input, node.columns[0] if node.columns else callable_of_row(node))
