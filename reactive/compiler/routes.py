"""Readers of a table that want the rows of one value of a field: found through an index.

where o.customer == 7                   at 7 --+
where o.customer == 8           ->      at 8 --+--  index of orders by customer
where o.customer == 9                   at 9 --+
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optimizer import plan
from optimizer.expr import Constant, Lifted, Operation
from optimizer.knowledge import hashable
from optimizer.pinned import pinned
from optimizer.properties import shapes
from reactive.dataflow.node import Node
from reactive.operators.at import At
from reactive.operators.loops import Below, called, index_signature, pins_of
from reactive.operators.plain import Side

if TYPE_CHECKING:
    from reactive.compiler.compile import Compiler

ROUTED = 16
"""Readers of a table that want rows of one value of a field, from which on it gets an index."""


def routed(compiler: Compiler, below: Below) -> tuple[Below, Node] | None:
    """The rest of a chain, over the rows of the value that it wants of a field.

    Only where there is an index by that field for it, or so many others want rows of their
    values that it is worth one.
    """
    wanted = _wanted(below)
    if wanted is None:
        return None
    value, key, rest = wanted
    table = compiler.made[id(below.base)]
    side: Side = (None, (plan.Step(key, is_key=True),))
    whole = Below((), below.base)
    if compiler.graph.find(index_signature(whole, side, 1), (table,)) is None:
        field = next(iter(pins_of(below)))
        if sum(field in reader.pins for reader, _ in table.consumers) < ROUTED:
            return None
    index = compiler.index(below.chain[0], whole, side, 1, late=False)
    source = compiler.graph.node(
        ("at", value),
        (index,),
        lambda: At(index.operator, value),
        plan=below.chain[0],
        functions=called(below.chain[:1]),
        at=value,
    )
    return Below(rest, below.base if rest else below.chain[0]), source


def _wanted(below: Below) -> tuple[Any, Lifted, tuple[plan.Node, ...]] | None:
    """The value that a chain over a stored table wants of a field, the field as a key, and what is
    left of the chain; None where that is not all that its first condition is sure to ask."""
    base, chain = below.base, below.chain
    if not (isinstance(base, plan.Table) and base.stored and chain):
        return None
    match chain[0]:
        case plan.Where(_, Lifted(Operation("==", (field, Constant(value))) as body) as test):
            found = pinned([body], shapes(base))
        case _:
            return None
    if len(found) != 1 or not hashable(field, shapes(base)):
        return None
    return value, test.with_body(field), chain[1:]
