"""Merge several conditions into one where.

    where q                   where p and q
      where p         ->        A
        A

Sound:  `and` evaluates q for the rows for which p is true, as the upper where does.
Needs:  at most `MOST` conditions.
Pays:   one operator instead of two, and fields that both read are read once.
Source: [i3ql] F1.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Conjunction, Lifted, conjunction, conjuncts, origins

MOST = 50
"""Conditions of one where: fusing takes time for each condition that it already has."""


def fuse_wheres(node: plan.Node) -> plan.Node:
    """Merge two conditions, equal tests once; unchanged if there would be more than `MOST`
    tests."""
    match node:
        case plan.Where(plan.Where(source, Lifted() as p), Lifted() as q):
            tests = dict.fromkeys((*conjuncts(p.body), *conjuncts(q.body)))
            if len(tests) > MOST:
                return node
            body = conjunction(tuple(tests))
            both = Lifted(body, p.names, origins(p, q), p.parameters, Conjunction((p, q)))
            return plan.Where(source, both)
        case _:
            return node
