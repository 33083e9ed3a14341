"""A node of the operator graph: an operator, its inputs, its readers and its place in a commit.

Nodes below an operator whose output changes only at flushes are deferred: a commit appends its
deltas to the node's pending ones, and the node steps when a flush takes them.

    commit   inbox --> step of the operator --> inboxes of its readers
    commit   inbox --> pending                                       (a deferred node)
    flush    pending --> in flight --> step of the operator --> in flight of its readers

`Routes` finds the readers of an index by the rows they read: of one key, several keys, or a range.

    7                   the views of customer 7
    AnyOf((7, 8))       found by either
    Between(3, None)    found by every key above 3, and by keys that it cannot be compared with

A row without a key, or whose key may make the condition raise, is sent to all readers.

State:  a reference per reader and value; ranges in order.
Cost:   O(1) and the readers found; O(log ranges) more where there are any.

`Turns` checks captured variables round-robin, for readers that a commit may not reach.

    checked in this commit: 1, 2, 3, 4   in the next: 5, 6, 7, 8   ...   and 1 again

A variable that only its callable refers to cannot change: a reader without other variables is not
checked again.

State:  a reference per reader.
Cost:   O(1) per turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Container, Hashable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from typing import Any

from optimizer.callables.captures import Capture
from optimizer.callables.opaque import Opaque
from optimizer.expr import Function, origins
from optimizer.plan import Node as PlanNode
from optimizer.plan import Table
from optimizer.plans.field_values import NO_CONSTANT_TESTS, AnyOf, Between, ConstantTests
from optimizer.rewriting.optimize import Segment
from reactive.engine.collections import range_index
from reactive.engine.collections.index import Form, Mark, Range
from reactive.engine.collections.sampled_size import SampledSize
from reactive.engine.collections.zset import consolidate

Guard = tuple[Opaque, Capture]
NOWHERE: Any = object()
BESIDE = 8
"""Bytes that a list needs for a change."""
NO_SIZE = SampledSize()
"""The size of pending changes of a node that is not deferred."""
LeafDelta = tuple["Node", Sequence[Any]]
"""A leaf, and the net delta that it emitted."""


class Node:
    """An operator with its place in the graph; a source has no operator, but is fed by a table."""

    __slots__ = (
        *("blank", "consumers", "contents", "dirty", "functions", "graph", "guards", "inbox"),
        *(
            "inputs",
            "is_remote",
            "leaf",
            "operator",
            "order",
            "constant_tests",
            "plan",
            "rank",
            "run",
            "size",
        ),
        *(
            "at",
            "is_routed",
            "routes",
            "finalize",
            "signature",
            "stateful",
            "step",
            "compiled_step",
        ),
        *("forgets", "lost", "note", "query", "undo", "watched", "watchers", "__weakref__"),
        *(
            "_arrived",
            "_is_made_deferred",
            "pending",
            "pending_size",
            "deferred",
            "physical",
            "in_flight",
            "by_key",
            "partnered",
            "recomputed",
            "tracers",
            "wiring",
        ),
    )
    run: Callable[..., Any]
    """The operator's step; `step` is the function that a commit calls."""
    step: Callable[..., Any]
    finalize: Callable[[], None]
    undo: Callable[[], None]

    def __init__(
        self,
        graph: Any,
        operator: Any,
        inputs: tuple[Node, ...],
        *,
        rank: int,
        signature: Hashable = None,
        plan: PlanNode | None = None,
        functions: Iterable[Function | None] = (),
        blamed: Iterable[Function | None] = (),
        constant_tests: ConstantTests = NO_CONSTANT_TESTS,
        deferred: bool = False,
        at: Any = NOWHERE,
    ) -> None:
        self.graph = graph
        self._is_made_deferred = deferred
        self.operator = operator
        self.inputs = inputs
        self.rank = rank
        """The number of the node, in the order of creation."""
        self.order: float = rank
        """Its place in a commit, after its inputs; nodes of equal order step by rank."""
        self.signature = signature
        self.plan = plan
        called = [f for f in functions if f is not None]
        self.guards: tuple[Guard, ...] = tuple((o, c) for o in origins(*called) for c in o.captures)
        self.functions = (*called, *(f for f in blamed if f is not None))
        self.is_remote = hasattr(operator, "flush")
        """True if its output changes by `flush` only."""
        self.bind()
        self.size: Callable[[], int] | None = None
        """Counts the rows of a table; None for other nodes."""
        self.contents: Callable[[], Iterable[Any]] | None = getattr(operator, "contents", None)
        is_unstored = not inputs and isinstance(plan, Table) and not plan.stored
        self.forgets = is_unstored or (graph.forgets and _forgets(operator, inputs))
        """True if rows that it has emitted may be held nowhere, neither here nor below."""
        self.lost: Callable[[], Exception] | None = None
        """Return the error for rows below that are dropped (of a source whose log has all rows)."""
        self.leaf: Any = None
        self.query: Segment | None = None
        """The query of a leaf."""
        self.watched: list[tuple[Segment, tuple[Guard, ...]]] = []
        """The segments that a leaf watches, with captured variables that no operator reads."""
        self.constant_tests = constant_tests
        """Values of fields; the node needs no input row whose fields have other values."""
        self.at = at
        """The rows that it reads of its input, an index; all by default."""
        self.routes = Routes()
        """The readers found by the key of a row."""
        self.is_routed: bool = at is not NOWHERE or (
            bool(inputs) and all(source.is_routed for source in inputs)
        )
        """True if only routes reach it, so that no schedule contains it."""
        self.watchers: tuple[Node, ...] = ()
        """Leaves with captured variables that no operator reads (of a source)."""
        self.compiled_step: Callable[..., None] | None = None
        """The function that commits a delta of this node alone, once generated (of a source)."""
        self.note: Callable[[Sequence[Any], int], None] | None = None
        """Records a commit of only this node, if that is written later (of a source)."""
        self.tracers: dict[Any, None] = {}
        """Follow updates of a table from here to subscribers (of a source)."""
        self.physical: Any = None
        """The node of the physical plan that this node was built from."""
        self.by_key: Any = None
        """The readers found by the keys of other sides of joins (`key_readers.py`)."""
        self.partnered: tuple[int, ...] = ()
        """The ports whose rows change nothing without a partner at the other port."""
        self.wiring: tuple[Any, ...] = ()
        """The roles of its inputs, if the physical node does not tell them."""
        self.recomputed = 0
        """The number of commits that evaluated it anew (`recomputation.py`)."""
        self.consumers: list[tuple[Node, int]] = []
        self.blank: tuple[Sequence[Any], ...] = ((),) * len(inputs)
        self.inbox: list[Sequence[Any]]
        self.dirty: bool
        self.clear()

    def bind(self) -> None:
        """Set the functions that a commit calls: the operator's, or waiting ones if deferred."""
        self.deferred: bool = self._is_made_deferred or any(map(is_deferred, self.inputs))
        waiting = self.inputs if self.deferred else ()
        self.pending: list[list[Sequence[Any]]] = [[] for _ in waiting]
        self.in_flight: list[list[Sequence[Any]]] = [[] for _ in waiting]
        self._arrived: tuple[Sequence[Any], ...] = ()
        self.pending_size = NO_SIZE
        """Estimated bytes of the pending changes, also of deltas in flight."""
        operator = self.operator
        self.run = getattr(operator, "step", _no_step)
        if self.deferred:
            self.step, self.undo, self.finalize = self._arrive, self._depart, self._hold
            self.stateful = True
            self.pending_size = SampledSize(each=BESIDE)
            if hasattr(operator, "wait_for_flushes"):
                operator.wait_for_flushes()
        else:
            self.step = self.run
            self.undo = getattr(operator, "undo", _finalize_nothing)
            self.finalize = getattr(operator, "commit", _finalize_nothing)
            self.stateful = hasattr(operator, "undo")

    @property
    def drops(self) -> bool:
        """True if the operator has emitted rows that may be held neither here nor below."""
        if not (self.forgets and self.contents is not None and self.inputs):
            return False
        own = getattr(self.operator, "has_dropped", None)
        if own is not None:
            return bool(own)
        return any(getattr(source.operator, "has_dropped", False) for source in self.inputs)

    def replace(self, operator: Any) -> None:
        """Replace the operator by another operator that has the same state."""
        self.operator = operator
        self.contents = getattr(operator, "contents", None)
        self.bind()

    # Changes that wait for a flush.

    def _arrive(self, *inbox: Sequence[Any]) -> Sequence[Any]:
        """Keep the deltas of a commit until the commit is finalized; emit nothing."""
        self._arrived = inbox
        return ()

    def _depart(self) -> None:
        self._arrived = ()

    def _hold(self) -> None:
        """Append the arrived deltas to the pending ones, until a flush takes them."""
        for waiting, delta in zip(self.pending, self._arrived, strict=False):
            if delta:
                waiting.append(delta)
                self.pending_size.add(delta)
                self.graph.late[self] = None
        self._arrived = ()

    def set_barrier(self) -> None:
        """Move the pending deltas to `in_flight`, the deltas that the next flush applies."""
        for in_flight, pending in zip(self.in_flight, self.pending, strict=True):
            in_flight += pending
            pending.clear()

    def in_flight_deltas(self) -> list[Sequence[Any]]:
        """Return the deltas in flight, per input, without rows inserted and deleted meanwhile."""
        return [
            _join_deltas(deltas, keyed=source.gives_keys)
            for deltas, source in zip(self.in_flight, self.inputs, strict=True)
        ]

    def finish_flush(self) -> None:
        """Drop the deltas in flight, which the flush has applied."""
        self.in_flight = [[] for _ in self.in_flight]
        self.pending_size = SampledSize(each=BESIDE)
        for delta in chain.from_iterable(self.pending):
            self.pending_size.add(delta)
        if not any(self.pending):
            self.graph.late.pop(self, None)

    @property
    def gives_keys(self) -> bool:
        """True if its output has a key beside each pair."""
        return getattr(self.operator, "gives_keys", False)

    def connect(self, reader: Node, port: int) -> None:
        """Add a reader."""
        if reader.at is NOWHERE:
            self.consumers.append((reader, port))
        else:
            self.routes.add(reader)

    def disconnect(self, reader: Node) -> None:
        """Remove a reader."""
        if reader.at is NOWHERE:
            self.consumers = [c for c in self.consumers if c[0] is not reader]
        else:
            self.routes.remove(reader)

    def partner_of(self, port: int) -> Node | None:
        """Return the input that must have a partner for the rows of another; None if none must."""
        if port not in self.partnered or is_deferred(self):
            return None
        own, other = self.inputs[port], self.inputs[1 - port]
        return None if other is own else other

    def readers(self) -> Iterator[Node]:
        """Yield the nodes that read this one."""
        yield from self.routes.readers()
        for reader, _ in self.consumers:
            yield reader

    def send(self, delta: Sequence[Any]) -> None:
        """Send a delta of this node's output to all its readers, except by routes."""
        for consumer, port in self.consumers:
            consumer.inbox[port] = delta
            consumer.dirty = True

    def clear(self) -> None:
        """Empty the inbox."""
        self.inbox = [*self.blank]
        self.dirty = False

    def upstream(self, until: Container[Node | None] = ()) -> list[Node]:
        """Return this node and all nodes it depends on, each once.

        `until` and the nodes below it are left out.
        """
        seen: dict[Node, None] = {self: None}
        waiting = [self]
        while waiting:
            for source in waiting.pop().inputs:
                if source not in seen and source not in until:
                    seen[source] = None
                    waiting.append(source)
        return list(seen)

    def downstream(self) -> list[Node]:
        """Return this node and all nodes that depend on it, each once."""
        seen: dict[Node, None] = {self: None}
        waiting = [self]
        while waiting:
            for consumer in waiting.pop().readers():
                if consumer not in seen:
                    seen[consumer] = None
                    waiting.append(consumer)
        return list(seen)

    def leaves(self) -> list[Any]:
        """Return the channels of the leaves that depend on this node."""
        return [node.leaf for node in self.downstream() if node.leaf is not None]


def _forgets(operator: Any, inputs: Sequence[Node]) -> bool:
    """Return True if rows that an operator emits may be held neither by it nor below it."""
    if getattr(operator, "forgets", False):
        return True
    return not hasattr(operator, "contents") and any(source.forgets for source in inputs)


def is_deferred(node: Node) -> bool:
    """Return True if its output changes at flushes, and not at commits."""
    return node.deferred or node.is_remote


def takes_part(node: Node) -> bool:
    """Return True if a flush must wait for it: unless it is still being filled."""
    return not node.is_remote or bool(node.operator.is_filled)


def _join_deltas(deltas: Sequence[Sequence[Any]], *, keyed: bool) -> Sequence[Any]:
    """Join the deltas of several commits."""
    if len(deltas) == 1:
        return deltas[0]
    pairs = [pair for delta in deltas for pair in delta]
    return pairs if keyed else consolidate(pairs)


def _finalize_nothing() -> None: ...


def _no_step(*deltas: object) -> None:
    raise AssertionError("a source has no inputs and is never stepped")


def fill_node(graph: Any, node: Node) -> None:
    """Compute or restore the state of the operator of a new node."""

    def inputs() -> list[Any]:
        return [graph.contents(source) for source in node.inputs]

    def compute() -> None:
        compute_state(graph, node, inputs())

    if graph.restoration is None:
        compute()
    else:
        graph.restoration.fill(node, inputs, compute)


def compute_state(graph: Any, node: Node, rows: Sequence[Sequence[Any]]) -> None:
    """Compute the state of an empty operator from all rows of its inputs."""
    with graph.running(node), ExitStack() as filled:
        for source in node.inputs:
            if hasattr(source.operator, "as_filled"):
                filled.enter_context(source.operator.as_filled())
        node.run(*rows)
    node.operator.commit()


Kind = tuple[Form, tuple[bool, bool]]
FEW = 64
"""Readers without captured variables that `Turns` may still hold."""


class Routes:
    """The readers of an index, found by the key of a row."""

    __slots__ = ("_exactly", "_ranges", "_readers", "turns")

    def __init__(self) -> None:
        self.turns = Turns()
        """Their captured variables, checked in turns."""
        self._readers: dict[Node, None] = {}
        self._exactly: dict[Any, list[Node]] = {}
        self._ranges: dict[Kind, range_index.RangeIndex] = {}

    def __len__(self) -> int:
        return len(self._readers)

    def readers(self) -> Collection[Node]:
        """Return all readers."""
        return self._readers.keys()

    def add(self, reader: Node) -> None:
        """Add a reader, by the keys it reads."""
        self._readers[reader] = None
        self.turns.add(reader)
        wanted = reader.at
        if isinstance(wanted, Between):
            self._range(wanted).add(_range_key(wanted), reader, 1)
            return
        for value in wanted.values if isinstance(wanted, AnyOf) else (wanted,):
            self._exactly.setdefault(value, []).append(reader)

    def remove(self, reader: Node) -> None:
        """Remove a reader, if it is there."""
        if reader not in self._readers:
            return
        del self._readers[reader]
        if len(self.turns) > 2 * len(self._readers) + FEW:
            self.turns.drop_idle()
        wanted = reader.at
        if isinstance(wanted, Between):
            self._range(wanted).add(_range_key(wanted), reader, -1)
            return
        for value in wanted.values if isinstance(wanted, AnyOf) else (wanted,):
            readers = self._exactly[value]
            readers.remove(reader)
            if not readers:
                del self._exactly[value]

    def find(self, key: Any) -> Sequence[Node]:
        """Return the readers of the rows of a key."""
        if key.__class__ is Mark:
            return list(self._readers)
        found = self._exactly.get(key, ())
        if not self._ranges:
            return found
        ranges = self._ranges.values()
        return [*found, *(reader for index in ranges for reader, _ in index.pairs(key))]

    def _range(self, wanted: Between) -> range_index.RangeIndex:
        """Return the index of all ranges with the same kind of ends, created if new."""
        low, high = wanted.low is not None, wanted.high is not None
        own: Form = "interval" if low and high else "point"
        other: Form = "point" if low and high else "high" if low else "low"
        kind = (other, wanted.closed)
        if kind not in self._ranges:
            self._ranges[kind] = range_index.RangeIndex(Range(own, other, wanted.closed), id)
        return self._ranges[kind]


def _range_key(wanted: Between) -> Any:
    """Return the key of a range: both ends, or the only one."""
    if wanted.low is None or wanted.high is None:
        return wanted.high if wanted.low is None else wanted.low
    return (wanted.low, wanted.high)


LOOKED_AT = 4
"""Readers of a node whose captured variables are checked in a commit."""


class Turns:
    """The readers of a node, queued to have their captured variables checked."""

    __slots__ = ("_waiting",)

    def __init__(self, readers: Iterable[Node] = ()) -> None:
        self._waiting: deque[Node] | None = None
        """None without readers, as in most nodes."""
        for reader in readers:
            self.add(reader)

    def __len__(self) -> int:
        return 0 if self._waiting is None else len(self._waiting)

    def add(self, reader: Node) -> None:
        """Append a reader, if it captured any variables."""
        if reader.guards:
            if self._waiting is None:
                self._waiting = deque()
            self._waiting.append(reader)

    def look(self, check: Callable[[Node], None]) -> None:
        """Check the captured variables of the next few readers, and put them last in the queue.

        A reader without variables to check leaves the queue.
        """
        waiting = self._waiting
        if waiting is None:
            return
        for _ in range(min(LOOKED_AT, len(waiting))):
            reader = waiting.popleft()
            if reader.guards:
                check(reader)
                reader.guards = tuple([guard for guard in reader.guards if not guard[1].is_final])
            if reader.guards:
                waiting.append(reader)

    def drop_idle(self) -> None:
        """Remove readers without variables to check."""
        self._waiting = deque(reader for reader in self._waiting or () if reader.guards)
