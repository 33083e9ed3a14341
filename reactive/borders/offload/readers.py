"""Which leaves read nodes of the plans: those are compiled again when these move, and no others.

State:  the nodes of the query of each leaf, as long as it is run as it was.
Cost:   O(leaves) a look, and O(its plan) once for each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from optimizer import plan
from optimizer.plans.properties import nodes
from reactive.engine.dataflow.node import Node

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine

Known = tuple[plan.Node, frozenset[plan.Node]]


class Readers:
    """The leaves of a database, by the nodes that their queries read.

    Parameters
    ----------
    run: the plan that is run for a plan as written.
    """

    def __init__(self, engine: Engine, run: Callable[[plan.Node], plan.Node]) -> None:
        self._engine, self._run = engine, run
        self._known = WeakKeyDictionary[Node, Known]()

    def of(self, some: Collection[plan.Node]) -> list[Node]:
        """The leaves that read one of some nodes. Inside the lock."""
        leaves = self._engine.graph.leaves()
        return [leaf for leaf in leaves if not self._inside(leaf).isdisjoint(some)]

    def _inside(self, leaf: Node) -> frozenset[plan.Node]:
        found = self._engine.queries.optimized(leaf.leaf.plan).plan
        known = self._known.get(leaf)
        if known is None or known[0] is not found:
            known = self._known[leaf] = found, frozenset(nodes(self._run(leaf.leaf.plan)))
        return known[1]
