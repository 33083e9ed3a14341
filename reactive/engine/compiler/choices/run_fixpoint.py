"""Run a recursion as one operator; nodes that read only its inputs are part of the graph.

    reach <- edges                              edges
    reach <- select(join(reach, edges))         index of edges

Needs:  clauses that are unions of joins of recursive relations with each other, or with inputs.
Pays:   an index of an input is shared with other queries that have the same.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.plans import clauses
from optimizer.plans.properties import bindings
from optimizer.rules.strengthen_outer_join import strengthen_recursion
from reactive.engine.compiler.chooser import Asking, Chooser
from reactive.engine.compiler.physical import Ops, Physical, PhysicalFixpoint, PhysicalRelation, ops
from reactive.engine.operators.plain import chain_over, sides


def run_fixpoint(chooser: Chooser, node: plan.Node) -> Asking[Physical] | None:
    """Return how to plan a recursion, or one of its relations; None for other nodes."""
    is_ours = isinstance(node.input if isinstance(node, plan.Component) else node, plan.Fixpoint)
    return _plan_recursive_relation(chooser, node) if is_ours else None  # type: ignore[arg-type]


def _plan_recursive_relation(
    chooser: Chooser, node: plan.Fixpoint | plan.Component
) -> Asking[Physical]:
    """Return the plan of one relation of a recursion; the recursion itself is planned once."""
    defining, index = (node, 0) if isinstance(node, plan.Fixpoint) else (node.input, node.index)
    assert isinstance(defining, plan.Fixpoint)
    if id(defining) not in chooser.fixpoints:
        chooser.fixpoints[id(defining)] = yield from _plan_fixpoint(chooser, defining)
    return PhysicalRelation(node, chooser.fixpoints[id(defining)], index)


def _plan_fixpoint(chooser: Chooser, node: plan.Fixpoint) -> Asking[PhysicalFixpoint]:
    """Yield what the clauses of a recursion read outside it; return the plan of the recursion."""
    program, sources = clauses.clauses(strengthen_recursion(node)), list[Physical]()
    deferred = chooser.depends(node)
    for clause in program.clauses:
        if clauses.is_closed(clause.body):
            sources.append((yield clause.body))
            continue
        _, base = chain_over(clause.body)
        join = clauses.sides_of(base)
        if join is None:
            continue
        left, right = sides(join)
        for source, side, count in (
            (join.left, left, bindings(join.left)),
            (join.right, right, 1),
        ):
            if clauses.is_closed(source):
                below = chooser.below(source)
                index = yield from chooser.index(join, below, side, count, deferred=deferred)
                sources.append(index)
    rules = tuple(map(_rule, program.clauses))
    return PhysicalFixpoint(
        node, tuple(sources), rules, node.names, node.max_rounds, tuple(program.best), program
    )


def _rule(clause: clauses.Clause) -> Ops:
    """Return the operations of a clause, except nodes that only read inputs; () of a closed one."""
    if clauses.is_closed(clause.body):
        return ()
    chain, base = chain_over(clause.body)
    below = base.inputs()[0] if isinstance(base, plan.Aggregate) else base
    read = [part for source in below.inputs() for part in _open_parts(source)]
    return ops((*chain, *dict.fromkeys([base, below]), *read))


def _open_parts(source: plan.Node) -> tuple[plan.Node, ...]:
    """Return the nodes of `source` that depend on the recursion; none if it is closed."""
    if clauses.is_closed(source):
        return ()
    chain, base = chain_over(source)
    return (*chain, base)
