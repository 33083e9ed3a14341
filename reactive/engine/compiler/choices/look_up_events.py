"""Look up each event in an index of the rows of the right, with the chains below and above.

Needs:  nothing; a chain above must be lifted, and the pairs must not be in a log.
Pays:   3 to 4 times an operator between two loops, for events in commits of 100.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Display, Expr, Item, Lifted, Parameter, constant
from optimizer.plans.properties import bindings
from reactive.engine.compiler.chooser import Asking, Chooser
from reactive.engine.compiler.physical import EventProbe, Op, Physical, ops
from reactive.engine.operators.plain import LINEAR, PipelineSource, count_nested, is_logged

ROW = Parameter(0)


def look_up_events(chooser: Chooser, node: plan.Node) -> Asking[Physical] | None:
    """Return how to plan `node` with the look-up in its loop; None if it has no look-up there."""
    below = PipelineSource((), node) if isinstance(node, plan.Lookup) else None
    if isinstance(node, LINEAR):
        below = chooser.chain_of(node)
    if below is None or not isinstance(below.base, plan.Lookup):
        return None
    lookup = below.base
    is_shared = chooser.readers[id(lookup)] > 1 or chooser.is_elsewhere(lookup)
    stands_alone = is_shared or is_logged(lookup)
    return None if below.chain and stands_alone else _plan_probe(chooser, node, lookup, below)


def _plan_probe(
    chooser: Chooser, node: plan.Node, lookup: plan.Lookup, above: PipelineSource
) -> Asking[Physical]:
    """Yield the events and the rows of the right, and return the look-up of the events."""
    events = chooser.below(lookup.left)
    while count_nested(events.chain):
        events = PipelineSource(events.chain[1:], events.chain[0])
    held, key, row = _keyed(lookup.right)
    deferred = chooser.depends(lookup)
    source = yield events.base
    right = yield from chooser.index(lookup, chooser.below(held), (key, ()), 1, deferred=deferred)
    return EventProbe(node, source, events, right, row, Op(lookup), ops(above.chain))


def _keyed(right: plan.Node) -> tuple[plan.Node, Lifted, Lifted]:
    """Return the node whose rows are stored by key, the key, and the row of the right over them.

    The rows `(row, key)` are not stored if they are made beside the rows below.
    """
    if isinstance(right, plan.Select) and bindings(right.input) == 1:
        match right.function:
            case Lifted(Display("tuple", (row, key))) as function if row == ROW:
                return right.input, function.with_body(key), _of_row(ROW)
    return right, _of_row(Item(ROW, constant(1))), _of_row(Item(ROW, constant(0)))


def _of_row(body: Expr) -> Lifted:
    return Lifted(body, ("row",), (), 1)
