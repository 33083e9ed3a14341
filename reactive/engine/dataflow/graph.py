"""The operator graph: one step per commit, in topological order, atomically.

    table --> where --> index_by --+
                                   join --> aggregate --> contents of a view
    table ------------> index_by --+

Nodes are found by their signature (their operation and inputs), so equal subplans of all views are
one node. A node is created after its inputs, so the order of creation is topological.

Invariants
----------
1. Between commits every inbox is empty and no operator can be undone.
2. Every node leads to an attached leaf; the others have been dropped with their state.
3. After a commit that raised, every operator has the state from before the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakValueDictionary

from optimizer.expr import Function
from optimizer.plan import Node as PlanNode
from optimizer.plans.field_values import NO_CONSTANT_TESTS, ConstantTests
from reactive.engine.collections.zset import Pair
from reactive.engine.dataflow import schedule as scheduling
from reactive.engine.dataflow import snapshot
from reactive.engine.dataflow.delivery_queue import DeliveryQueue
from reactive.engine.dataflow.delta import Delta, MovesBySource
from reactive.engine.dataflow.discrimination import Subscribers, as_delta, view_rows_of
from reactive.engine.dataflow.error_notes import annotate
from reactive.engine.dataflow.moment import EvaluatedVersions, Moment, drop_old_changes, with_past
from reactive.engine.dataflow.node import (
    NOWHERE,
    Guard,
    LeafDelta,
    Node,
    Routes,
    fill_node,
    is_deferred,
    takes_part,
)
from reactive.engine.dataflow.routing import Routing
from reactive.engine.dataflow.schedule import (
    CommitStep,
    Fed,
    Schedule,
    Trees,
    UndoableStep,
    compiled_step,
    deliveries,
    find_reached_nodes,
    has_many_rows,
    rank_of_node,
    undo_failed_commit,
)
from reactive.engine.dataflow.watch import OnStale, Watch
from reactive.engine.runtime.interrupts import reraise_asynchronous

if TYPE_CHECKING:
    from reactive.engine.dataflow.walk import Walk

MANY_SCHEDULES = 256
Between: TypeAlias = Callable[[], object] | None
"""Called when all nodes have stepped, before anything is published."""


def _check_that_nothing_flowed(node: Node) -> None:
    """Raise the error of a table without its rows if a node has dropped what came of them."""
    seen, waiting = {node}, [node]
    while waiting:
        current = waiting.pop()
        if not current.inputs and current.forgets and current.contents is not None:
            if current.lost is not None:
                raise current.lost()
            current.contents()
        waiting += [source for source in current.inputs if source not in seen]
        seen.update(current.inputs)


class Graph:
    """All nodes of a database.

    The graph calls `on_stale` when a callable is about to run whose captured variable has changed.
    Deltas of leaves go to the delivery queue.
    """

    def __init__(self, on_stale: OnStale, delivery_queue: DeliveryQueue) -> None:
        self.watch = Watch(on_stale, lambda: [*self._nodes.values(), *self._leaves.values()])
        self.delivery_queue = delivery_queue
        self._nodes: dict[Hashable, Node] = {}
        self.remotes: tuple[Node, ...] = ()
        """The nodes whose operators run elsewhere; replaced, never mutated."""
        self.trees = Trees()
        self.late: dict[Node, None] = {}
        """The deferred nodes that have pending changes."""
        self._schedules: dict[tuple[Node, ...], Schedule | Walk] = {}
        self._routing = Routing()
        self._leaves: dict[int, Node] = {}
        self.strict = False
        """True if what user callables return is checked, as `Database(strict=True)` says."""
        self.version = 0
        """The version of the last commit that stands."""
        self.made = 0
        """The number of nodes created so far."""
        self._sources: list[Node] = []
        self.stepping = False
        """True while user callables run, which may not change anything.

        Stays True after a commit that raised and could not be undone.
        """
        self.is_changing = False
        """True while a node is connected or removed; stays True if that is interrupted."""
        self.pinned: set[Node] = set()
        """Nodes kept although they have no reader yet."""
        self.dropped: dict[Node, tuple[Guard, ...]] | None = None
        """The nodes that are dropped, with their guards, while they may come back."""
        self.restoration: Any = None
        """The states that restore new nodes, in place of computing them."""
        self.making: Any = None
        """The view whose nodes are being created, for messages."""
        self.moved: MovesBySource | None = None
        """The moves of the current commit, if a subscriber reads them."""
        self.past: dict[int, dict[Moment, Sequence[Pair]]] = {}
        """Deltas for `previous()`, by version: of the last commit, and of the one in progress."""
        self.kept: dict[Moment, EvaluatedVersions] = {}
        """Rows of `previous()` that checks have evaluated."""
        self.forgets = False
        """True if a table does not store its rows."""
        self.loops: WeakValueDictionary[Hashable, Callable[..., Any]] = WeakValueDictionary()
        """The generated loops in use by operators, by content."""

    def source(
        self,
        contents: Callable[[], Iterable[Pair]],
        plan: PlanNode,
        size: Callable[[], int] | None = None,
    ) -> Node:
        """Create a node without inputs, fed by a table; `size` counts the rows of the table."""
        node = Node(self, None, (), rank=self._next_rank(), plan=plan)
        node.contents, node.size = contents, size
        self.forgets |= node.forgets
        self._sources.append(node)
        return node

    def drop_source(self, node: Node) -> None:
        """Remove a table that no leaf reads."""
        self._sources = [source for source in self._sources if source is not node]
        self._forget_schedules()

    def node(
        self,
        signature: Hashable,
        inputs: tuple[Node, ...],
        make: Callable[[], Any],
        *,
        plan: PlanNode | None = None,
        functions: Iterable[Function | None] = (),
        blamed: Iterable[Function | None] = (),
        constant_tests: ConstantTests = NO_CONSTANT_TESTS,
        deferred: bool = False,
        at: Any = NOWHERE,
    ) -> Node:
        """Return the node of this signature over the given inputs; create and fill it if it is new.

        `functions` are the callables that its operator calls; `blamed` are those whose results it
        reads first. `at` selects the rows that it reads of an index.
        """
        full = (signature, inputs)
        found = self._nodes.get(full)
        if found is not None:
            return found
        rank = self._next_rank()
        node = Node(
            self,
            make(),
            inputs,
            rank=rank,
            signature=full,
            plan=plan,
            functions=functions,
            blamed=blamed,
            constant_tests=constant_tests,
            deferred=deferred,
            at=at,
        )
        self._connect(node)
        self._nodes[full] = node
        if node.is_remote:
            self.remotes = (*self.remotes, node)
        self.trees.add(node)
        self.is_changing = False
        return node

    def attach(self, operator: Any, source: Node, leaf: Any, *, fill: bool = True) -> Node:
        """Add a leaf: an operator whose deltas leave the graph. `leaf` is the channel that owns it.

        With `fill`, the leaf first receives all that the source has emitted so far.
        """
        node = Node(self, operator, (source,), rank=self._next_rank(), plan=source.plan)
        node.leaf = leaf
        self._connect(node, fill=fill)
        if operator.edits:
            operator.forget()
        self._leaves[node.rank] = node
        self.is_changing = False
        return node

    def drop_leaf(self, rank: int) -> None:
        """Detach the leaf of this rank, if it exists."""
        node = self._leaves.get(rank)
        if node is not None:
            self.is_changing = True
            del self._leaves[rank]
            self.watch.end(node, self._leaves.values(), self._sources)
            self.detach(node)

    def detach(self, node: Node) -> None:
        """Drop a node without readers, and then each of its inputs that has no other reader."""
        self.is_changing = True
        waiting, dropped, is_scheduled = [node], set[Node](), False
        while waiting:
            unread = waiting.pop()
            is_table = not unread.inputs and unread.signature is None
            if unread.consumers or unread.routes or is_table or unread in self.pinned:
                continue
            if unread in dropped:  # several of the dropped nodes read it
                continue
            dropped.add(unread)
            is_scheduled |= not unread.is_routed or any(map(self._routing.concerns, unread.inputs))
            if unread.is_remote:
                self.remotes = tuple(node for node in self.remotes if node is not unread)
                unread.operator.stop()
            self.trees.discard(unread)
            if self.has(unread):  # or a node created by a repair has replaced it
                del self._nodes[unread.signature]
            self.late.pop(unread, None)
            if self.dropped is not None:
                self.dropped[unread] = unread.guards
            unread.guards = ()
            for source in dict.fromkeys(unread.inputs):
                source.disconnect(unread)
                waiting.append(source)
        if is_scheduled:
            self._forget_schedules()
        self.is_changing = False

    def sweep(self) -> None:
        """Drop nodes that lead to no leaf, as after a view could not be created."""
        for node in list(self._nodes.values()):
            self.detach(node)

    def contents(self, node: Node, *, shown: bool = True) -> Sequence[Any]:
        """Return all that the node has emitted so far, as one delta.

        Nodes without state are stepped over the contents of their inputs, each once, unless a view
        holds their output. In the middle of a commit the view may be behind: pass `shown=False`
        then.
        """
        known: dict[Node, Sequence[Any]] = {}
        waiting = [node]
        while waiting:
            current = waiting[-1]
            found = view_rows_of(current) if shown and current not in known else None
            if found is not None:
                known[current] = as_delta(found)
            has_all = current in known or current.contents is not None
            sources = () if has_all else current.inputs
            missing = [source for source in sources if source not in known]
            if missing:
                waiting.extend(missing)
                continue
            waiting.pop()
            if current not in known:
                known[current] = self._all_of(current, [known[source] for source in sources])
        return known[node]

    def _all_of(self, node: Node, inputs: list[Sequence[Any]]) -> Sequence[Any]:
        """Return all that a node emits for all rows of its inputs, or its stored contents.

        A node without state has emitted nothing if its inputs have not: it is not stepped.
        """
        if node.contents is None and inputs and not any(map(len, inputs)):
            return ()
        if self.forgets and node.drops:
            _check_that_nothing_flowed(node)
        with self.running(node):
            return as_delta(node.run(*inputs) if node.contents is None else node.contents())

    @contextmanager
    def running(self, node: Node | None = None) -> Iterator[None]:
        """Mark that callables run outside a commit; they may not change anything either."""
        outer, self.stepping = self.stepping, True
        try:
            yield
        except Exception as error:
            if node is not None:
                annotate(error, node, rolled_back=False)
            raise
        finally:
            self.stepping = outer

    def commit(self, changes: Sequence[Fed], version: int, between: Between = None) -> None:
        """Run both phases of a step, by the generated function of these sources if there is one.

        If `between` raises, the step is undone.
        """
        changes = with_past(self, changes)
        schedule = self._schedules.get(tuple([source for source, _ in changes]))
        if schedule is None or schedule.compiled_step is None or has_many_rows(changes):
            self.publish(self._prepare_step(changes, version, between))
            return
        schedule.compiled_step(*[delta for _, delta in changes], version, between=between)
        drop_old_changes(self)

    def prepare(self, changes: Sequence[Fed], version: int) -> CommitStep:
        """Step all nodes that the changes reach; the caller publishes or undoes the result.

        If anything raises, all stepped nodes are undone.
        """
        return self._prepare_step(with_past(self, changes), version)

    def _prepare_step(
        self, changes: Sequence[Fed], version: int, between: Between = None
    ) -> CommitStep:
        """Step all nodes that the changes reach, and then call `between`.

        If anything raises, the steps are undone.
        """
        key = tuple([source for source, _ in changes])
        schedule = self._schedules.get(key) or self._schedule(key)
        if schedule.is_in_use and schedule.compiled_step is None:
            self._compile_step(schedule)
        step = CommitStep(self.delivery_queue, version)
        self.trees.settle()
        self.stepping = True
        try:
            has_many = False  # `has_many_rows`, without its call
            for source, delta in changes:
                self.watch.look(source)
                has_many = has_many or len(delta) >= scheduling.MANY
            if has_many:
                self._step_many(schedule, changes, step)
            else:
                schedule.step(changes, step.stepped, step.leaf_deltas, self.watch.check)
            step.address()
            if between is not None:
                between()
        except BaseException as error:
            schedule.clear()
            self._take_back(error, step.stepped)
            raise
        return step

    def _step_many(
        self, schedule: Schedule | Walk, changes: Sequence[Fed], step: CommitStep
    ) -> None:
        """Step what many changes reach, or evaluate it anew."""
        from reactive.engine.dataflow.recomputation import listed_inbox, with_pairs

        check = self.watch.check
        if not isinstance(schedule, Schedule):
            schedule.step(with_pairs(changes), step.stepped, step.leaf_deltas, check)
        elif not self._recompute(schedule, changes, step):
            schedule.step(changes, step.stepped, step.leaf_deltas, check, listed_inbox=listed_inbox)

    def _recompute(self, schedule: Schedule, changes: Sequence[Fed], step: CommitStep) -> bool:
        """Step what the changes reach, and evaluate nodes anew for which that takes less time.

        Return False, with nothing done, if there are none, or if one raises: then the changes
        decide if the commit raises.
        """
        if self.past:
            return False
        from reactive.engine.dataflow.recomputation import find_recomputation, listed_inbox

        anew = find_recomputation(self, schedule, changes)
        if anew is None:
            return False
        try:
            schedule.step(
                changes, step.stepped, step.leaf_deltas, self.watch.check, anew, listed_inbox
            )
        except Exception as error:
            reraise_asynchronous(error)
            schedule.clear()
            if not step.undo():
                raise
            step.stepped.clear()
            step.leaf_deltas.clear()
            return False
        return True

    def publish(self, step: CommitStep) -> None:
        """Publish a prepared step as its version."""
        self.version = step.version
        step.publish()
        drop_old_changes(self)
        self.stepping = False

    def undo(self, step: CommitStep, error: BaseException) -> None:
        """Undo a prepared step, because of a later error, if possible."""
        self._take_back(error, step.stepped)

    def _take_back(self, error: BaseException, stepped: Sequence[UndoableStep]) -> None:
        """Undo the stepped nodes of a commit, if possible."""
        if undo_failed_commit(error, stepped):
            self.stepping = False

    def send(self, subscribers: Subscribers, delta: Delta[Any]) -> None:
        """Queue a delta for some subscribers."""
        self.delivery_queue.append((subscribers, delta))

    def announce(self, leaf_deltas: Sequence[LeafDelta], version: int) -> None:
        """Queue the deltas that leaves emitted in a commit."""
        self.delivery_queue.extend(deliveries(leaf_deltas, version))

    def _compile_step(self, schedule: Schedule | Walk) -> None:
        """Generate the function that commits the sources of this schedule, for later commits."""
        if not isinstance(schedule, Schedule):
            schedule.compiled_step = schedule.commit(self, self._take_back)
        else:
            calls = {
                "graph": self,
                "delivery_queue": self.delivery_queue,
                "check": self.watch.check,
                "watch": self.watch.look,
                "take_back": self._take_back,
            }
            schedule.compiled_step = compiled_step(schedule.sources, schedule.nodes, calls)
        if len(schedule.sources) == 1:
            schedule.sources[0].compiled_step = schedule.compiled_step

    def deferred_nodes(self) -> list[Node]:
        """Return the nodes that step at flushes, in topological order; leaves last."""
        inner = sorted(filter(is_deferred, self._nodes.values()), key=rank_of_node)
        return [node for node in inner if takes_part(node)] + [
            *filter(is_deferred, self._leaves.values())
        ]

    def fill(self) -> None:
        """Send initial contents to new remote parts that are in use."""
        for node in self.remotes:
            if node not in self.pinned:
                node.operator.fill()

    def leaves(self) -> list[Node]:
        """All leaves."""
        return list(self._leaves.values())

    def nodes(self) -> list[Node]:
        """Return all nodes except tables and leaves, in the order of creation."""
        return list(self._nodes.values())

    def reattach(self, leaf: Node, source: Node, operator: Any) -> None:
        """Connect a leaf to another node that emits the same rows, by an operator over it."""
        self.is_changing = True
        (old,) = leaf.inputs
        old.disconnect(leaf)
        leaf.inputs = (source,)
        leaf.order = self._next_rank()
        leaf.is_routed = source.is_routed
        leaf.replace(operator)
        source.connect(leaf, 0)
        self._forget_schedules()
        self.is_changing = False
        if leaf.leaf.lineage is not None:
            leaf.leaf.lineage.renew()
        if old is not source:
            self.detach(old)

    def connect_again(self, node: Node, guards: tuple[Guard, ...]) -> None:
        """Take a node back that was dropped in the current commit, with its state."""
        self.is_changing = True
        node.guards = guards
        node.clear()
        for port, source in enumerate(node.inputs):
            source.connect(node, port)
        self._nodes[node.signature] = node
        self.trees.add(node)
        self._forget_schedules()
        self.is_changing = False

    def reset(self) -> None:
        """Drop all nodes except tables and leaves; `reattach` then connects the leaves again."""
        for node in self.remotes:
            node.operator.stop()
        for source in self._sources:
            source.consumers, source.routes = [], Routes()
            source.clear()
        for leaf in self._leaves.values():
            leaf.clear()
        self.watch.reset(self._leaves.values(), self._sources)
        self._nodes, self.remotes, self.trees, self.late = {}, (), Trees(self.trees.inside), {}
        self.pinned.clear()
        self._forget_schedules()
        self.stepping = self.is_changing = False

    def _connect(self, node: Node, *, fill: bool = True) -> None:
        """Fill the operator from its inputs, and connect it to them."""
        if node.is_remote:
            snapshot.begin_remote_node(self, node)
        elif hasattr(node.operator, "undo") and fill and not hasattr(node.operator, "drop_lookups"):
            fill_node(self, node)
        is_scheduled = not node.is_routed
        self.is_changing = True
        for port, source in enumerate(node.inputs):
            is_scheduled |= node.at is not NOWHERE and not source.routes
            is_scheduled |= self._routing.concerns(source)
            source.connect(node, port)
        if is_scheduled:
            self._forget_schedules()

    def _forget_schedules(self) -> None:
        self._schedules.clear()
        self._routing = Routing()
        for source in self._sources:
            source.compiled_step = None

    def _schedule(self, sources: tuple[Node, ...]) -> Schedule | Walk:
        """Create the schedule that steps the readers of the given sources in topological order."""
        if len(self._schedules) > MANY_SCHEDULES:
            self._forget_schedules()
        nodes = find_reached_nodes(sources, self._routing)
        if nodes is not None:
            found: Schedule | Walk = Schedule(sources, nodes)
        else:
            from reactive.engine.dataflow.walk import Walk

            found = Walk(sources, self._routing)
        self._schedules[sources] = found
        return found

    def find(self, signature: Hashable, inputs: tuple[Node, ...]) -> Node | None:
        """Return the node of this signature over the given inputs, or None."""
        return self._nodes.get((signature, inputs))

    def has(self, node: Node) -> bool:
        """Return True if `node` is still in the graph, and neither a table nor a leaf."""
        return self._nodes.get(node.signature) is node

    def _next_rank(self) -> int:
        """Count a created node, and return its rank."""
        self.made += 1
        return self.made
