"""The last commit, for what reads rows as they were before it.

    commit v      input changes by d        pending: d
    commit v + 1  previous changes by d     pending: how the input changes now

What is pending is fed to the graph along with the next commit, as if a table had changed. So only
what has changed in the last commit costs anything in this one.

State:  one delta, in the graph.
Source: [dbsp] the delay operator, z^-1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from reactive.collections.zset import Pair
from reactive.dataflow.schedule import rank_of
from reactive.errors import OffloadError

if TYPE_CHECKING:
    from reactive.dataflow.graph import Graph
    from reactive.dataflow.node import Node
    from reactive.dataflow.schedule import Fed


class Moment:
    """How some rows changed in the last commit; equal relations share it.

    `node` is the node of the graph that has the rows as they were.
    """

    __slots__ = ("__weakref__", "graph", "node")

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.node: Node | None = None

    @property
    def pending(self) -> Sequence[Pair]:
        """What changed in the last commit."""
        return self.graph.past.get(self, ())

    def set(self, delta: Sequence[Pair]) -> None:
        """The commit that changes this stands."""
        self.graph.past[self] = delta


def with_past(graph: Graph, changes: Sequence[Fed]) -> Sequence[Fed]:
    """The changes of a commit, and what the one before makes of rows as they were, by rank."""
    if graph.past:
        found = [(moment.node, delta) for moment, delta in graph.past.items()]
        changes = [*changes, *((n, delta) for n, delta in found if n is not None and graph.has(n))]
    return sorted(changes, key=rank_of) if len(changes) > 1 else changes


def step_at_once(
    graph: Graph, step: Callable[..., None], deltas: Sequence[Sequence[Any]], version: int
) -> None:
    """Commit by a generated function, in which operators say what will have changed.

    What is pending stays so if the commit does not stand.
    """
    past = graph.past
    try:
        graph.past = {}
        step(*deltas, version)
    except BaseException:
        if graph.version != version:
            graph.past = past
        raise


def check_prompt(node: Node) -> None:
    """Raise if the rows of a node come at flushes, so that it has none of each commit."""
    if node.deferred:
        raise OffloadError(
            "previous() reads what is not in the process, which changes at flushes and not at"
            " commits\n  view.recall() brings a part back; previous() of a table of the process"
        )
