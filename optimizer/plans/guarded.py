"""A condition asked further down, also of rows that the plain plan would not ask of.

A row that a condition raises for must not make a commit fail if the row never comes out of what is
between: a group that reduces to nothing, a copy that another takes away. The guard below keeps such
a row, and the condition stays where it was for it.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Again, Expr, Guard, Lifted


def condition(node: plan.Node) -> Lifted | None:
    """The condition of a `where` that has been read, and is not a guard's second time."""
    if not isinstance(node, plan.Where) or not isinstance(node.predicate, Lifted):
        return None
    return None if isinstance(node.predicate.body, Again) else node.predicate


def guard(p: Lifted, needs: tuple[Expr, ...] = ()) -> Lifted:
    """Drops a row only where nothing raises."""
    return p.with_body(Guard(p.body, needs))


def asked_again(below: plan.Node, p: Lifted) -> plan.Where:
    """`where p` of what a guard has filtered."""
    return plan.Where(below, p.with_body(Again(p.body)))
