"""Find the keys of a join in its predicate, and the conditions that one side decides.

    join on s.k == m.k and s.age > 30           join s.k == m.k
      S                                 ->        S   where s.age > 30
      M                                           M

The same for semi_join, anti_join and the outer joins, where a side whose rows are kept has no
conditions of its own.

Sound:  equal values have equal hashes. A row on which a key or condition raises, or whose key has
        no hash, is paired with all rows of the other side, and the whole predicate is asked.
Needs:  what comes before a condition in the predicate is decided by one side, or cannot raise.
Pays:   a look-up instead of a comparison with every row; the index holds only rows that pass.
Source: [i3ql] equi-joins and filtered indices.
"""

from __future__ import annotations

from dataclasses import replace

from optimizer import plan
from optimizer.early import early


def find_join_keys(node: plan.Node) -> plan.Node:
    if not isinstance(node, plan.Join | plan.OuterJoin | plan.SemiJoin | plan.AntiJoin):
        return node
    if node.match.early is not None:
        return node
    found = early(node)
    if found is None or not (found.left or found.right):
        return node
    return replace(node, match=replace(node.match, early=found))
