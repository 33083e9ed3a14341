"""Automatic moves: state that outgrows the process moves out, and returns when it shrinks.

After commits that changed many rows, the sizes of all operators are checked, as in `stats()`: rows
held, and bytes of their containers. This takes time proportional to the state, so it happens a few
times while a threshold is filled. Operators above the threshold move in the background, several of
a query as one fragment if possible, so that no deltas pass between them here; a part that was below
half the threshold at several checks returns.

grown: join          by town (aggregate)       as one fragment, though the aggregate is small:
                       join                    else all deltas of the join would pass through here
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from optimizer import plan
from optimizer.plans import explain as explaining
from optimizer.plans.properties import nodes, reads_stream
from optimizer.traverse import has_components
from reactive.borders.offload import remote_table
from reactive.engine.compiler.physical import PhysicalNest
from reactive.engine.compiler.placement import OffloadedNodes
from reactive.engine.dataflow.node import Node
from reactive.engine.operators.plain import LINEAR
from reactive.engine.remote import fragments
from reactive.engine.remote.fragments import Fragment
from reactive.engine.remote.remote import Remote
from reactive.engine.runtime.background import Background
from reactive.errors import OffloadError

if TYPE_CHECKING:
    from reactive.borders.offload.backend import Offload
    from reactive.borders.offload.offload import Offloading


FRACTION = 8
"""The number of checks of sizes while a threshold is filled."""
SOON = 10_000
"""The changed rows between two checks, if no number of rows is the threshold."""
CALM = 3
"""The number of successive checks that find a part small before it returns."""

Size = tuple[int, int]
"""Rows and bytes."""
log = logging.getLogger("reactive")


class OverflowWatch:
    """The watch over the sizes of the operators of a database."""

    def __init__(self, offloading: Offloading, offload: Offload) -> None:
        self._of = offloading
        self._offload = offload
        self._changed = 0
        rows = offload.threshold_rows
        self._often = SOON if rows is None else max(rows // FRACTION, 1)
        self._is_looking = False
        self._refused: dict[plan.Node, str] = {}
        self._moved: set[plan.Node] = set()
        self._moving: set[plan.Node] = set()
        self._calm: Counter[plan.Node] = Counter()
        self.background = Background(offloading, type(offloading).flush, offload.flush_interval)
        self.is_due = False
        """True if there is work to do after a commit."""

    def note(self, rows: int) -> None:
        """Record that a commit has changed `rows` rows."""
        self._changed += rows
        if self._changed >= self._often or self._is_too_late():
            self.is_due = True

    def look_after(self) -> None:
        """Wait for lagging parts, and move grown ones; called after a commit, outside the lock."""
        if self._is_looking:
            return
        self.is_due, self._is_looking = False, True
        try:
            if self._is_too_late():
                self._catch_up()
            if self._changed >= self._often:
                self._changed = 0
                self._weigh()
        finally:
            self._is_looking = False

    def stop(self) -> None:
        """Stop working in the background."""
        self.background.stop()

    def forget(self) -> None:
        """Forget all moves: nothing is remote any longer."""
        self._moved.clear()
        self._calm.clear()

    def _is_too_late(self) -> bool:
        """Return True if more changes wait than allowed."""
        rows, size = self._offload.max_waiting, self._offload.max_waiting_bytes
        return (rows is not None and self._lag() > rows) or (
            size is not None and self._lag_bytes() > size
        )

    def _lag(self) -> int:
        """Return the most changes that wait at one part or node."""
        late = [node.pending_size.count for node in self._of.late]
        return max((*late, *(node.operator.lag for node in self._of.remotes)), default=0)

    def _lag_bytes(self) -> int:
        """Return about how many bytes the waiting changes of all parts and nodes take."""
        late = (node.pending_size.bytes for node in self._of.late)
        return sum(late) + sum(int(node.operator.lag_bytes) for node in self._of.remotes)

    def _catch_up(self) -> None:
        """Flush while the writer waits. If the flush fails, the writer's commit stands."""
        try:
            with self._offload.progress("changes that wait", self._lag()):
                self._of.flush()
        except OffloadError as error:
            log.error("offloading: %s", error)
            self.background.error = error
            for node in self._of.remotes:
                node.operator.lose(error)

    def _weigh(self) -> None:
        """Queue the return of small parts, and the moves of grown nodes that are not queued yet."""
        if self._moved:
            self.background.do(self._bring_back)
        grown = [node for node in self._of.look(self._grown) if node not in self._moving]
        if grown:
            self._moving.update(grown)
            self.background.do(partial(self._move, grown=grown))

    def _move(self, of: Offloading, grown: list[plan.Node]) -> None:
        """Move grown nodes, in the background, and record the nodes that cannot move."""
        try:
            for node in nodes_to_move(of, grown):
                if not self._is_refused(node):
                    self._moved.add(node)
                    self.background.do(partial(type(of).hand_over, node=node))
        finally:
            self._moving.difference_update(grown)

    def _bring_back(self, of: Offloading) -> None:
        """Bring small parts back, in the background."""
        of.flush()
        shrunk = [node for node in self._moved if self._is_small(node)]
        if shrunk:
            self._moved.difference_update(shrunk)
            of.bring_back(shrunk)

    def _grown(self, nodes: list[Node]) -> list[plan.Node]:
        """Return the nodes of plans whose operators exceed the threshold in the process."""
        sizes: dict[plan.Node, Size] = defaultdict(lambda: (0, 0))
        for node in nodes:
            holder = getattr(node.operator, "holds_for", node.plan)
            if holder is not None and not node.is_remote and hasattr(node.operator, "footprint"):
                rows, size = node.operator.footprint()
                sizes[holder] = (sizes[holder][0] + rows, sizes[holder][1] + size)
        grown = [of for of, size in sizes.items() if self._exceeds(size, 1)]
        return [of for of in grown if of not in self._moved and of not in self._refused]

    def _is_refused(self, node: plan.Node) -> bool:
        """Return True if a node cannot move, and record the reason."""
        is_free = is_whole(self._of, node) and not reads_stream(node)
        refused = None if is_free else self._of.refused(node)
        if refused is not None:
            self._refused[node] = refused
        return refused is not None

    def _is_small(self, node: plan.Node) -> bool:
        """Return True if a part was below half the threshold at several successive checks."""
        sizes = [operator.remote.footprint() for operator in self._of.operators(node)]
        rows, size = sum(rows for rows, _ in sizes), sum(size for _, size in sizes)
        self._calm[node] = (
            self._calm[node] + 1 if sizes and not self._exceeds((rows, size), 2) else 0
        )
        return self._calm[node] >= CALM

    def _exceeds(self, size: Size, times: int) -> bool:
        """Return True if `times` times a size exceeds the threshold."""
        limits = (self._offload.threshold_rows, self._offload.threshold_bytes)
        return any(
            n * times > most for n, most in zip(size, limits, strict=True) if most is not None
        )

    @property
    def refused(self) -> list[tuple[plan.Node, str]]:
        """The nodes above the threshold that must stay, with the reasons."""
        return list(self._refused.items())


def begin_remote(of: Offloading, part: Fragment, node: plan.Node) -> Remote:
    """Create the remote for the part of a node."""
    views = remote_table.named_views_of(of._engine, node, of.plan_of)
    return of.need().begin(part, query_name(node), views, of._engine)


def query_name(node: plan.Node) -> str:
    """Return a name that is the same for the same query."""
    return str(explaining.explain(node))


def nodes_to_move(of: Offloading, grown: Sequence[plan.Node]) -> list[plan.Node]:
    """Return the nodes to move for nodes that have grown.

    If one whole fragment can hold several of them, its upper node; else the nodes themselves. Nodes
    that read their results stay: they have not grown, and each operator in a fragment costs more
    per flush than the few deltas that it saves here.
    """
    away = of.offloaded_nodes(of.moved)
    assert away is not None
    found: dict[plan.Node, None] = {}
    left = dict.fromkeys(grown)
    for root in of.roots():
        whole = filter(away.is_whole, nodes(root))
        within = {node: left.keys() & away.fragment(node).of for node in whole}
        most = max(map(len, within.values()), default=0)
        if most > 1:
            found[next(node for node, some in within.items() if len(some) == most)] = None
    gone = {node for top in found for node in away.fragment(top).of}
    return [*found, *(node for node in left if node not in gone)]


def is_whole(of: Offloading, node: plan.Node) -> bool:
    """Return True if a node can move together with everything below it."""
    away = of.offloaded_nodes(of.moved)
    return away is not None and away.is_whole(node)


# The end of a move: the last node of the chain of row-by-row operators above a node, as long as
# each has a single reader.


def top_of(of: Offloading, node: plan.Node) -> plan.Node:
    """Return the end of the chain above a node; a recursion itself if its chain cannot move."""
    top = _chain_end(of, node)
    is_recursion = isinstance(node, RECURSIONS)
    if is_recursion and not goes_with(of, node, top):
        return node
    return top


def _chain_end(of: Offloading, node: plan.Node) -> plan.Node:
    """Return the last node of the chain of linear nodes above `node`, each read by one other."""
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


# Recursions that can move, and should: for moves, and for `explain`.

RECURSIONS = (plan.Fixpoint, plan.Iterate, plan.Component)


def why_recursion_stays(of: Offloading, node: plan.Node) -> str | None:
    """Return the reason why a recursion, with everything below it, must stay.

    None if it may move.
    """
    away = _offloaded_nodes(of)
    found = fragments.why_not(node, away.holds)
    if found is None and not away.is_whole(node):
        return "it, or what it reads, cannot be done in columns; its inputs may be moved"
    return found


def why_stream_stays(of: Offloading, node: plan.Node) -> str | None:
    """Return the reason why a node over a stream, with everything below it, must stay.

    None if it may move.
    """
    away = _offloaded_nodes(of)
    if away.is_whole(node):
        return None
    return away.stays(node) or "over a stream, it would have to move with all that it reads"


def goes_with(of: Offloading, node: plan.Node, top: plan.Node) -> bool:
    """Return True if the chain from a recursion to a node can move with it."""
    return top is node or _offloaded_nodes(of).is_whole(top)


def describe_place(of: Offloading, node: plan.Node) -> str | None:
    """Describe a recursion that is not remote as a whole: whether it can move, and should.

    Return None for relations that are defined together: they are described one by one. The
    offload is not queried.
    """
    if has_components(node):
        return None
    why = fragments.why_not(node, _offloaded_nodes(of).holds)
    if why is not None:
        return f"in the process: {why}"
    return f"in the process, {fragments.advice(node, _held_rows(of, node))}"


def nodes_inside(node: plan.Node) -> list[plan.Node]:
    """Return the nodes of a recursion, which move with it."""
    match node:
        case plan.Component(source):
            return [source]
        case plan.Fixpoint() | plan.Iterate():
            return [n for body in node.bodies for n in nodes(body)]
        case _:
            return []


def _held_rows(of: Offloading, node: plan.Node) -> int | None:
    """Return the rows that a node's operator holds in the process; None if it is not computed."""

    def rows(every: list[Node]) -> list[int]:
        own = [each for each in every if each.plan == node and not each.is_remote]
        return [n.operator.footprint()[0] for n in own if hasattr(n.operator, "footprint")]

    return max(of.look(rows), default=None)


def _offloaded_nodes(of: Offloading) -> OffloadedNodes:
    away = of.offloaded_nodes(of.moved)
    assert away is not None
    return away


# The remote levels of nests, as text.


def nest_level_of(part: Node) -> str | None:
    """Return the name of a part that has the rows of a level; None for others."""
    for reader, _ in part.consumers:
        nest = reader.physical
        if isinstance(nest, PhysicalNest) and nest.elsewhere is not None:
            return f"level {nest.elsewhere.names[reader.inputs.index(part)]}"
    return None


def levels_elsewhere(of: Offloading, written: plan.Node) -> dict[str, str]:
    """Return where the remotely kept levels of a query's nests are: name -> description."""
    root = of.plan_of(written)
    found: dict[str, str] = {}
    for node in of.remotes:
        readers = [reader for reader, _ in node.consumers if reader.plan == root]
        name = nest_level_of(node) if readers else None
        if name is not None:
            found[name] = of.describe(node.operator)
    return found
