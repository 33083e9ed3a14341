"""How far up from a node what moves goes: to the end of the chain that looks at one row after the
other, of which nobody reads the middle."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from optimizer import plan
from optimizer.plans.properties import nodes
from reactive.borders.offload import moving_recursions
from reactive.engine.operators.plain import LINEAR
from reactive.engine.remote import fragments

if TYPE_CHECKING:
    from reactive.borders.offload.offload import Offloading


def top_of(of: Offloading, node: plan.Node) -> plan.Node:
    """The end of the chain on a node; of a recursion, the node itself if the chain cannot go."""
    top = _end(of, node)
    is_recursion = isinstance(node, moving_recursions.RECURSIONS)
    if is_recursion and not moving_recursions.goes_with(of, node, top):
        return node
    return top


def _end(of: Offloading, node: plan.Node) -> plan.Node:
    roots = of.roots()
    orders = [n for root in roots for n in nodes(root) if isinstance(n, plan.OrderBy)]
    readers: dict[plan.Node, set[plan.Node]] = defaultdict(set)
    for reader in {n for root in roots for n in nodes(root)}:
        for source in reader.inputs():
            readers[source].add(reader)
    while len(readers[node]) == 1 and node not in (*roots, *orders):
        (reader,) = readers[node]
        if not (isinstance(reader, LINEAR) and fragments.raises_nothing(reader)):
            break
        node = reader
    return node
