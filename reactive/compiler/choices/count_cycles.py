"""Count the rows of a circle of joins of one input with itself.

Needs:  an aggregate that reads nothing of the joined rows; one input, below its selections.
Pays:   3.4 times the general way: sets of neighbours in the place of indexes of rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from optimizer import plan
from optimizer.plans.multiway import Wide
from reactive.compiler.choices.join_multiway import wide_in
from reactive.compiler.chooser import Asking, Chooser
from reactive.compiler.physical import CyclicCount, Op, Physical, ops
from reactive.operators.fuse import around
from reactive.operators.loops import Below, inputs_of_wide, is_read, within
from reactive.operators.plain import LINEAR


def count_cycles(chooser: Chooser, node: plan.Node) -> Asking[Physical] | None:
    found = wide_in(chooser, node)
    if found is None or not isinstance(node, plan.Aggregate):
        return None
    join, below, wide = found
    inputs = list(map(_all_below, inputs_of_wide(join, wide)))
    base = inputs[0].base
    if any(each.base is not base for each in inputs):
        return None
    if around(join, wide, node, below.chain, inputs) is None:
        return None
    return _count(node, (join, wide), below, inputs)


def _count(
    node: plan.Aggregate, of: tuple[plan.Join, Wide], below: Below, inputs: Sequence[Below]
) -> Asking[Physical]:
    source = yield inputs[0].base
    joins, wide = ops(tuple(within(*of))), of[1]
    return CyclicCount(node, source, tuple(inputs), joins, ops(below.chain), Op(node), wide)


def _all_below(node: plan.Node) -> Below:
    """A chain down to its base, whoever else reads what is between."""
    chain: list[plan.Node] = []
    while isinstance(node, LINEAR) and is_read(node):
        chain.append(node)
        node = node.input
    return Below(tuple(chain[::-1]), node)
