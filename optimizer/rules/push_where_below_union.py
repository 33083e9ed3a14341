"""Filter both sides of a union.

    where p                   union
      union           ->        where p
        A                         A
        B                       where p
                                  B

The rule also applies to union_all. A guard of the callables above (`succeeds`) stays beside them:
one loop then calls each once for both.

Sound:  a row of the union is a row of A or of B.
Needs:  nothing.
Pays:   the union holds only rows that pass, and the condition can go further down.
Source: [i3ql] P7; union_all is beyond it.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Attempt, First, Lifted, conjuncts


def push_where_below_union(node: plan.Node) -> plan.Node:
    """Push a condition to both sides of a union; other nodes, and guards, are unchanged."""
    match node:
        case plan.Where(_, Lifted() as p) if any(map(_is_guard, conjuncts(p.body))):
            return node
        case plan.Where(plan.Union(left, right), Lifted() as p):
            return plan.Union(plan.Where(left, p), plan.Where(right, p))
        case plan.Where(plan.UnionAll(left, right), Lifted() as p):
            return plan.UnionAll(plan.Where(left, p), plan.Where(right, p))
        case _:
            return node


def _is_guard(test: object) -> bool:
    return isinstance(test, Attempt) and isinstance(test.of, First)
