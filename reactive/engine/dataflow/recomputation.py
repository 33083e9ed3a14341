"""Evaluate operators anew in a commit that changes a large part of their rows.

An operator that is emptied and filled again takes a row of its inputs in a fraction of the time
that it takes for a changed row. So beyond a share of the table it is evaluated anew:

    table --> index --> join --> rows of a view
              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ detach the state, fill from all rows

An operator that stores its output emits the difference, which its readers step over as usual; none
without subscribers. The readers of one that stores no output, as an index or a join, are evaluated
anew as well. No pairs of rows are made for them: a large delta stays batches (`JoinedDelta`) until
an operator steps over it.

Sound:  functions are called for all rows, so all must be lifted. If anything raises, the detached
        states are restored, and the nodes step over the changes, which decide what is raised. So
        does an order in which the keys alone do not decide which row is first.
State:  while the commit lasts, the detached states, which `undo` restores.
Cost:   O(rows of the inputs), as for a new view, in place of O(changed rows).
Source: the choice between incremental and whole evaluation of each node; [dbsp] section 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from optimizer.expr import Apply, Call, Constant, Expr, Function, Lifted, walk
from optimizer.plan import Previous
from reactive.engine.collections.whole_rows import listed
from reactive.engine.dataflow.discrimination import view_rows_of
from reactive.engine.dataflow.leaves import BorrowedLeaf
from reactive.engine.dataflow.node import NOWHERE, Node, compute_state, is_deferred
from reactive.engine.dataflow.schedule import Fed, Schedule, UndoableStep, has_many_rows
from reactive.engine.operators.operator import can_be_emptied

if TYPE_CHECKING:
    from reactive.engine.dataflow.graph import Graph
    from reactive.engine.operators.operator import DetachedState


class Recomputation:
    """The nodes to evaluate anew in a commit."""

    def __init__(self, graph: Graph, nodes: Mapping[Node, None]) -> None:
        self._graph = graph
        self.nodes = nodes

    def evaluate(self, node: Node, stepped: list[UndoableStep]) -> Sequence[Any]:
        """Evaluate a node anew, and return its changes, if it stores its output.

        Appends what can be undone to `stepped`.
        """
        node.recomputed += 1
        if not node.stateful:
            return ()
        detached: DetachedState | None = node.operator.detach_state()
        if detached is None:  # nothing to fill
            stepped.append(node)
            node.step(*listed_inbox(node))
            return ()
        stepped.append(RecomputedNode(node, detached))
        rows = [self._graph.contents(source, shown=False) for source in node.inputs]
        fill = getattr(node.operator, "fill", None)
        if fill is None:
            compute_state(self._graph, node, rows)
        else:
            with self._graph.running(node):
                fill(*rows)
        if detached.check is not None:
            detached.check()
        if detached.changes is None or not _has_reader(node):
            return ()
        return detached.changes()


class RecomputedNode:
    """A node that was evaluated anew, with the state that it had before."""

    __slots__ = ("_detached", "_node")

    def __init__(self, node: Node, detached: DetachedState) -> None:
        self._node = node
        self._detached = detached

    def finalize(self) -> None:
        """Do nothing: the detached state is dropped."""

    def undo(self) -> None:
        self._detached.restore()


def _has_reader(node: Node) -> bool:
    """Return True if the changes of a node are delivered, or change the state of another node."""
    if node.leaf is not None:
        return bool(node.leaf.subscribers)
    return any(
        reader.leaf is None
        or reader.deferred
        or not isinstance(reader.operator, BorrowedLeaf)
        or reader.leaf.subscribers
        for reader in node.readers()
    )


def listed_inbox(node: Node) -> Sequence[Sequence[Any]]:
    """Return the deltas of the inputs as the operator takes them: pairs, or batches."""
    if getattr(node.operator, "takes_joined", False) and not node.deferred:
        return node.inbox
    return [listed(delta) for delta in node.inbox]


def with_pairs(changes: Sequence[Fed]) -> list[Fed]:
    """Return the changes of sources with the pairs of each delta."""
    return [(source, listed(delta)) for source, delta in changes]


def find_recomputation(
    graph: Graph, schedule: Schedule, changes: Sequence[Fed]
) -> Recomputation | None:
    """Return the nodes for which an evaluation takes less time than the changes; None if none."""
    sizes: dict[Node, int] = {}
    shares: dict[Node, float] = {}
    for source, delta in changes:
        if has_many_rows([(source, delta)]) and not source.forgets:
            sizes[source] = count_rows(graph, source, sizes)
            shares[source] = len(delta) / max(sizes[source], 1)
    nodes: dict[Node, None] = {}
    for node in schedule.nodes if shares else ():
        share = max([shares.get(source, 0.0) for source in node.inputs])
        if share and not node.stateful:
            shares[node] = share
        cost = share * getattr(node.operator, "change_cost", 0)
        if cost > 1 and node not in nodes:
            found = _recomputed_with(node)
            if found is None or (graph.moved is not None and _finds_moves(found, schedule)):
                continue
            if _pays(graph, found, cost, sizes):
                nodes.update(found)
    if not nodes:
        return None
    for node in reversed(schedule.nodes):
        readers = {reader for reader, _ in node.consumers}
        if not node.stateful and readers <= nodes.keys() and _can_be_recomputed(node):
            nodes[node] = None  # no reader needs its changes
    return Recomputation(graph, nodes)


def count_rows(graph: Graph, node: Node, sizes: dict[Node, int]) -> int:
    """Return the number of rows that a node has emitted, and note it in `sizes`.

    Equal rows of a view are counted once: the number is an estimate.
    """
    if node not in sizes:
        held: int | None = getattr(node.operator, "held_rows", None)
        if held is None and hasattr(node.operator, "held_rows"):
            held = count_rows(graph, node.inputs[0], sizes)
        if held is None and node.size is not None:
            held = node.size()
        if held is None and (shown := view_rows_of(node)) is not None:
            held = len(shown)
        sizes[node] = len(graph.contents(node, shown=False)) if held is None else held
    return sizes[node]


def _recomputed_with(node: Node) -> dict[Node, None] | None:
    """Return a node and the readers that must be evaluated anew with it; None if one cannot be."""
    found: dict[Node, None] = {}
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if each in found:
            continue
        if not _can_be_recomputed(each):
            return None
        found[each] = None
        if not getattr(each.operator, "emits_changes", False):
            waiting += [reader for reader, _ in each.consumers]
    return found


def _finds_moves(nodes: Mapping[Node, None], schedule: Schedule) -> bool:
    """Return True if moves may be looked up in an index as it was before the commit.

    They are for a join with several inputs that change.
    """
    if not any(node.gives_keys for node in nodes):
        return False
    reached = {*schedule.sources, *schedule.nodes}
    return any(len([each for each in node.inputs if each in reached]) > 1 for node in nodes)


def _can_be_recomputed(node: Node) -> bool:
    """Return True if a node can be filled within a commit, without a call of unknown code."""
    if is_deferred(node) or node.routes or node.at is not NOWHERE:
        return False
    if any(source.forgets for source in node.inputs):
        return False
    if not all(map(_is_known, node.functions)):
        return False
    if node.stateful:
        is_built = getattr(node.operator, "held_rows", 0) is not None
        return can_be_emptied(node.operator) and (is_built or not node.inputs[0].inputs)
    return node.leaf is None and bool(node.inputs) and not isinstance(node.plan, Previous)


def _is_known(function: Function) -> bool:
    """Return True if a function is lifted, and calls no function or method of a user."""
    return isinstance(function, Lifted) and not any(map(_calls_unknown, walk(function.body)))


def _calls_unknown(expr: Expr) -> bool:
    match expr:
        case Call(Constant(value)):
            return isinstance(value, FunctionType | MethodType)
        case _:
            return isinstance(expr, Apply | Call)


def _pays(graph: Graph, nodes: Iterable[Node], cost: float, sizes: dict[Node, int]) -> bool:
    """Return True if the nodes are filled in less time than they take the changes.

    `cost` is the time of the changes, as a multiple of that of loading the changed input.
    """
    inside = dict.fromkeys(nodes)
    held = max([len(node.operator) for node in inside if node.leaf is not None], default=0)
    inputs = {source for node in inside for source in node.inputs if source not in inside}
    changed = sum([count_rows(graph, source, sizes) for source in inputs if source in sizes])
    if not changed + held:
        return False
    others = sum([count_rows(graph, source, sizes) for source in inputs if source not in sizes])
    return cost * (changed + held) > changed + held + others
