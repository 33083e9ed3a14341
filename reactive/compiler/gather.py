"""Which queries may use an index that came after them, and when their nodes step.

    where o.customer == 1     asked of every row           look up 1 --+
    ...                                               ->   ...         +-- index by customer
    where o.customer == 17    the first with an index      look up 17 -+

The first queries that want values of a field are asked one after the other; once there is an index
of the field they are run anew. Their new nodes step when the old ones did, so that views hear of a
commit, and raise, in the order in which they were made.

Cost: once per index, that of making the few queries again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from reactive.dataflow.graph import Graph
from reactive.dataflow.node import Node


def early_leaves(indexes: Iterable[tuple[Node, str]]) -> list[Node]:
    """The leaves of queries that want values of fields by which there are indexes, and read the
    table instead, in their order. The indexes step before all else from now on."""
    found: dict[Node, None] = {}
    for index, field in indexes:
        (table,) = index.inputs
        index.order = table.order + 1 - 1 / index.rank
        for reader, _ in table.consumers:
            if field in reader.constant_tests.wants:
                found.update(dict.fromkeys(reader.downstream()))
    return sorted((node for node in found if node.leaf is not None), key=lambda node: node.order)


def in_place(graph: Graph, leaf: Node, act: Callable[[], object]) -> None:
    """Have a leaf read others by `act`: of these the new ones step when the old ones did, if what
    they read has stepped by then."""
    order, since = leaf.order, graph.made
    act()
    new = sorted((n for n in leaf.upstream() if n.rank > since), key=lambda node: node.rank)
    read = [source for node in (leaf, *new) for source in node.inputs if source.rank <= since]
    if all(source.order <= order - 1 for source in read):
        for place, node in enumerate(new, 1):
            node.order = order - 1 + place / (len(new) + 1)
        leaf.order = order
