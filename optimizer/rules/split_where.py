"""Split a conjunction into one where per condition, in the order of evaluation.

    where p and q             where q
      A               ->        where p
                                  A

Sound:  neither `and` nor the upper where evaluates q for rows for which p is false.
Needs:  nothing.
Pays:   each condition can be pushed as far as possible.
Source: [i3ql] split conjunctions.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Lifted, conjuncts


def split_where(node: plan.Node) -> plan.Node:
    """Split a conjunction into one `where` for each test, the first test lowest.

    A single test, or one that was not lifted, is unchanged.
    """
    if not isinstance(node, plan.Where) or not isinstance(node.predicate, Lifted):
        return node
    tests = conjuncts(node.predicate.body)
    if len(tests) == 1:
        return node
    source = node.input
    for test in tests:
        source = plan.Where(source, node.predicate.with_body(test))
    return source
