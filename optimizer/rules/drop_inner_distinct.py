"""Remove duplicates once, at the end.

    distinct                  distinct
      select f                  select f
        distinct      ->          A
          A

The same below union, difference, intersection and the right side of a semi_join or anti_join, and
through where, select, join, product and union_all.

Sound:  these operators turn positive weights into positive weights, and only the sign counts above.
Needs:  no node between reads the weight of a row, and no weight is negative: sums of positive and
        negative weights may have either sign.
Pays:   the inner distinct would hold every row.
Source: [dbsp] propositions 4.4 and 4.5, consolidation of distinct.
"""

from __future__ import annotations

from dataclasses import replace

from optimizer import plan
from optimizer.plans.properties import may_be_negative, with_present

DEEPEST = 50


def drop_inner_distinct(node: plan.Node) -> plan.Node:
    return node if may_be_negative(node) else with_present(node, _strip_distinct)


def _strip_distinct(node: plan.Node, depth: int = 0) -> plan.Node:
    """Return the same rows, perhaps with higher weights.

    Return `node` itself if no `distinct` can be dropped in it, or at more than `DEEPEST` nodes.
    """
    if depth > DEEPEST:
        return node
    match node:
        case plan.Distinct(source):
            return _strip_distinct(source, depth + 1)
        case plan.Where(source) | plan.Select(source) | plan.Extend(source):
            inner = _strip_distinct(source, depth + 1)
            return node if inner is source else replace(node, input=inner)
        case plan.UnionAll(left, right) | plan.Product(left, right) | plan.Join(left, right):
            a, b = _strip_distinct(left, depth + 1), _strip_distinct(right, depth + 1)
            return node if a is left and b is right else replace(node, left=a, right=b)
        case _:
            return node
