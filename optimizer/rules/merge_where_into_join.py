"""Merge the predicate of a where into the join below it, after the join's own.

    where q                   join on p and q
      join on p       ->        A
        A                       B
        B

Sound:  both evaluate q for the pairs for which p is true.
Needs:  nothing.
Pays:   no pair is made that q drops; keys and tests of a side can be found in q too.
Source: [i3ql] J2, P5.
"""

from __future__ import annotations

from dataclasses import replace

from optimizer import plan
from optimizer.expr import Conjunction, Lifted, conjunction, conjuncts, origins


def merge_where_into_join(node: plan.Node) -> plan.Node:
    """Append a condition to the predicate of the join below; other nodes unchanged."""
    match node:
        case plan.Where(plan.Join(left, right, plan.Match(on=None) as match), Lifted() as q):
            return plan.Join(left, right, replace(match, on=q))
        case plan.Where(
            plan.Join(left, right, plan.Match(on=Lifted() as p) as match), Lifted() as q
        ):
            body = conjunction((*conjuncts(p.body), *conjuncts(q.body)))
            names = p.names if len(p.names) >= len(q.names) else q.names
            on = Lifted(body, names, origins(p, q), p.parameters, Conjunction((p, q)))
            return plan.Join(left, right, replace(match, on=on))
        case _:
            return node
