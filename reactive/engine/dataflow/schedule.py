"""Schedules: the nodes that a commit steps, in two phases; generated code for frequent commits.

`Schedule` holds the nodes that some sources reach, in topological order. Once it is in frequent
use, `compiled_step` generates a function that unrolls `Graph.commit` and `Schedule.step`:

    out_4 = step_4(in_0)
    if out_4:
        out_5 = step_5(out_4)
    if out_5 and channel_5.subscribers: told += ...
    if between is not None: between()
    finalize_4()
    delivery_queue.extend(told)

Facts of the nodes are decided when the function is generated. If anything raises, the stepped nodes
are undone. Nodes stand in blocks, so that many nodes without input are skipped by one test:

    if out_3 or out_17:
        if out_3: out_25 = step_25(out_3)
        ...

State:  the inboxes of the nodes while a commit is in progress.
Cost:   a fraction of a microsecond per node that the changes may reach; generated, a tenth of a
        microsecond per reached node, beside its step, and a fiftieth per block of others.

`CommitStep` is one step of the graph in two phases: it is prepared, then published or undone.

    prepare   the nodes that the changes reach step; views are read only inside the lock
    publish   operators finalize, and the deltas of leaves are queued for delivery
    undo      operators get back their state from before, the last one first

A commit is such a step (`Graph.prepare`), and so is each part of a flush (`remote/flush.py`). A
commit with nothing between its phases may be one generated function instead.

State:  the stepped nodes, until the step is published or undone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from reactive.engine.codegen.functions import BoundValues, build
from reactive.engine.dataflow.delta import Delta, with_columns, with_tick
from reactive.engine.dataflow.error_notes import annotate, stepped_in
from reactive.engine.dataflow.leaves import BorrowedLeaf
from reactive.engine.dataflow.node import is_deferred
from reactive.engine.operators.operator import BailOut, CannotUndo
from reactive.engine.runtime.interrupts import is_asynchronous, surely

if TYPE_CHECKING:
    from reactive.engine.dataflow.delivery_queue import DeliveryQueue
    from reactive.engine.dataflow.discrimination import Delivery
    from reactive.engine.dataflow.node import LeafDelta, Node
    from reactive.engine.dataflow.recomputation import Recomputation
    from reactive.engine.dataflow.routing import Routing
    from reactive.engine.operators.operator import InLine
    from reactive.engine.operators.order_by import OrderBy


BLOCK = 24
"""Nodes of a block."""
CompiledStep = Callable[..., None]
"""Commits a delta of each source; the version is the last argument.

`between` is called when all nodes have stepped, before anything is published.
"""


def compiled_step(
    sources: Sequence[Node], nodes: Sequence[Node], calls: Mapping[str, Any]
) -> CompiledStep:
    """Generate the commit function of sources that reach these nodes, in this order.

    Parameters
    ----------
    calls: functions that the code calls, by name. `graph` and `delivery_queue`; `check` checks the
        variables that a node captured, `watch` the variables that leaves of a source captured;
        `undo_failed_commit` receives an exception and the nodes that were stepped.
    """
    values = BoundValues()
    values.by_name |= {
        "Delta": Delta,
        "new": Delta.__new__,
        "note_moves": note_moves,
        "nothing": (),
    }
    values.by_name |= calls
    values.by_name |= {f"source_{number}": source for number, source in enumerate(sources)}
    names = {source: f"in_{number}" for number, source in enumerate(sources)}
    begin = [*names.values()]
    steps: list[str] = []
    settles: list[str] = []
    tells: list[str] = []
    forgets: list[str] = []  # after all tells: leaves may have the same edits
    fed: list[str] = []
    asks: dict[str, str] = {}  # tests for deltas that are costly to compute
    blocks = _Blocks((steps, settles, tells), begin)
    for number, node in enumerate(nodes, 1):
        blocks.begin(number)
        given = [names.get(each, "()") for each in node.inputs]
        some = list(dict.fromkeys(name for name in given if name != "()"))
        is_some = " or ".join([asks.get(name, name) for name in some])
        is_given = f"if {is_some}: " if set(some).isdisjoint(begin) else ""
        if node not in names:  # else the commit feeds it, and its delta is its output
            names[node] = given[0] if _is_bare(node) else f"out_{number}"
        if hasattr(node.operator, "settle"):
            asks[names[node]] = f"{names[node]} is not nothing"
        values.by_name |= {f"node_{number}": node, f"step_{number}": node.step}
        in_line = _in_line(node)
        if in_line is not None:
            values.by_name |= {f"{name}_{number}": it for name, it in in_line.by_name.items()}
        steps += _step(number, node, given, is_given, in_line)
        fed.append(f"(node_{number}, {' or '.join(some)})")
        if node.stateful:
            values.by_name[f"finalize_{number}"] = node.finalize
            settles += _finalize(number, is_given, in_line)
        if node.leaf is not None and not node.deferred:
            values.by_name[f"channel_{number}"] = node.leaf
            values.by_name[f"key_{number}"] = node.leaf.key
            values.by_name[f"columns_{number}"] = columns = node.leaf.columns
            tells.append(
                _delivery_lines(number, names[node], node.operator, has_names=columns is not None)
            )
            if _find_leaf_order(node.operator) is not None:
                values.by_name[f"order_{number}"] = node.operator.order
                forgets.append(f"        order_{number}.edits = []")
        blocks.add(some, f"out_{number}")
    blocks.begin(1)
    text = _TEXT.format(
        begin=", ".join(begin),
        reads="\n    graph.trees.settle()"
        * any(hasattr(node.operator, "settle") for node in nodes),
        outs=" = ".join([*dict.fromkeys(n for n in names.values() if n not in begin), "()"]),
        watches="\n".join(_WATCH.format(number=number) for number in range(len(sources))),
        steps="\n".join(steps),
        settles="\n".join(settles),
        tells="\n".join([*tells, *forgets]),
        fed=", ".join(fed),
        end=len(fed) + 1,
    )
    return build("commit", text, values)


class _Blocks:
    """Lines of code in blocks, each run only if one of its nodes has input."""

    def __init__(self, lines: Sequence[list[str]], begin: Sequence[str]) -> None:
        self._lines = lines
        self._first = frozenset(begin)
        self._begin()

    def _begin(self) -> None:
        self._starts = [len(lines) for lines in self._lines]
        self._given: dict[str, None] = {}
        self._own: set[str] = set()

    def add(self, given: Sequence[str], out: str) -> None:
        """Add a node, by the names of its inputs and of its output."""
        self._given.update(dict.fromkeys(given))
        self._own.add(out)

    def begin(self, number: int) -> None:
        """At every `BLOCK`-th node, end the block and begin the next."""
        if (number - 1) % BLOCK:
            return
        given = [name for name in self._given if name not in self._own]
        for lines, start in zip(self._lines, self._starts, strict=True):
            if given and self._first.isdisjoint(given) and len(lines) > start + 1:
                first = lines[start]
                indent = first[: len(first) - len(first.lstrip())]
                body = [f"    {line}".replace("\n", "\n    ") for line in lines[start:]]
                lines[start:] = [f"{indent}if {' or '.join(given)}:", *body]
        self._begin()


def _in_line(node: Node) -> InLine | None:
    """Return the code that inlines the operator's step over a single row.

    Return None if the operator has no such code, or the node steps at flushes.
    """
    write: Callable[[], InLine | None] | None = getattr(node.operator, "in_line", None)
    return None if write is None or node.deferred else write()


def _step(
    number: int, node: Node, given: Sequence[str], is_given: str, in_line: InLine | None
) -> list[str]:
    """Return the lines that step a node; [] of a leaf that emits its input unchanged.

    `given` are the names of its inputs. `is_given` is the line with the condition, '' to step
    always; `in_line` has the text of the operator, None to call it.
    """
    if _is_bare(node):
        return []
    lines = [f"at = {number}"]
    lines += [f"if node_{number}.guards: check(node_{number})"] * bool(node.guards)
    if in_line is None:
        lines.append(f"out_{number} = step_{number}({', '.join(given)})")
    else:
        named = dict(zip(("left", "right"), given, strict=False))
        text = in_line.step.format(n=number, out=f"out_{number}", given=given[0], **named)
        lines += text.split("\n")
    if not is_given:
        return [f"        {line}" for line in lines]
    return [f"        {is_given.strip()}", *(f"            {line}" for line in lines)]


def _finalize(number: int, is_given: str, in_line: InLine | None) -> list[str]:
    """Return the lines that finalize a node."""
    if in_line is None:
        return [f"    {is_given}finalize_{number}()"]
    lines = in_line.finalize.format(n=number).split("\n")
    if not is_given:
        return [f"    {line}" for line in lines]
    return [f"    {is_given.strip()}", *(f"        {line}" for line in lines)]


def _is_bare(node: Node) -> bool:
    """Return True if the node is a leaf that emits its input unchanged."""
    operator = node.operator
    is_shown = isinstance(operator, BorrowedLeaf) and type(operator).step is BorrowedLeaf.step
    return is_shown and not node.deferred and not node.guards


def _delivery_lines(number: int, out: str, operator: Any, *, has_names: bool) -> str:
    """Return the lines that queue the output of a leaf for delivery."""
    edits = "()" if _find_leaf_order(operator) is None else f"tuple(order_{number}.edits)"
    columns = f"            delta._columns = columns_{number}\n" if has_names else ""
    return _TELL.format(number=number, out=out, edits=edits, columns=columns)


def _find_leaf_order(leaf: Any) -> OrderBy | None:
    """Return the order that a leaf follows; None if its rows are in no order."""
    order: OrderBy | None = getattr(leaf, "order", None)
    return order


_TELL = """\
        if channel_{number}.subscribers and {out}:
            delta = new(Delta)
            delta.version, delta._pairs, delta._key = version, {out}, key_{number}
            delta._edits, delta._by_path, delta.is_snapshot = {edits}, None, False
            delta._parts = None
            if graph.moved is not None: note_moves(delta, node_{number})
{columns}\
            told += ((channel_{number}.subscribers, delta),)"""
"""`Delta(...)` inlined, whose call would take half as long again."""

_WATCH = "        if source_{number}.watchers: watch(source_{number})"

_TEXT = """\
def commit({begin}, version, between=None):
    at, told = 0, ()
    {outs}{reads}
    graph.stepping = True
    try:
{watches}
{steps}
{tells}
        if between is not None:
            at = {end}
            between()
    except BaseException as error:
        begun = [{fed}][:at]
        node = begun[-1][0] if 0 < at < {end} else None  # by this name, messages find what raised
        take_back(error, [each for each, given in begun if given])
        raise
    graph.version = version
{settles}
    if told: delivery_queue.extend(told)
    graph.stepping = False
"""


log = logging.getLogger("reactive")


class UndoableStep(Protocol):
    """A stepped operator, which holds both states until it is finalized or undone."""

    @property
    def finalize(self) -> Callable[[], object]: ...

    @property
    def undo(self) -> Callable[[], object]: ...


class CommitStep:
    """The stepped nodes of a commit, and the deltas that its publication delivers."""

    __slots__ = ("_deliveries", "_queue", "leaf_deltas", "stepped", "version")

    def __init__(self, delivery_queue: DeliveryQueue, version: int) -> None:
        self._queue = delivery_queue
        self._deliveries: Sequence[Delivery] = ()
        self.version = version
        self.stepped: list[UndoableStep] = []
        """Each stateful node, added before it steps."""
        self.leaf_deltas: list[LeafDelta] = []
        """The deltas that the leaves have emitted."""

    def address(self) -> None:
        """Choose the subscribers of each delta, while the commit may still fail."""
        self._deliveries = deliveries(self.leaf_deltas, self.version)

    def publish(self) -> None:
        """Finalize all nodes, and queue the deltas."""
        for done in self.stepped:
            done.finalize()
        self._queue.extend(self._deliveries)

    def undo(self) -> bool:
        """Undo all nodes; return True if every operator could."""
        return undo(self.stepped)


class Trees:
    """The nodes that emit lazy changes, which are read later, but before the next commit."""

    __slots__ = ("_nodes", "inside")

    def __init__(self, inside: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self._nodes: tuple[Node, ...] = ()
        self.inside = inside
        """The context manager for reading lazy changes."""

    def add(self, node: Node) -> None:
        """Add the node, if it emits lazy changes."""
        if hasattr(node.operator, "settle") and not node.deferred:
            self._nodes = (*self._nodes, node)

    def discard(self, node: Node) -> None:
        """Remove a node; read its lazy changes now."""
        if hasattr(node.operator, "settle"):
            node.operator.settle()
            self._nodes = tuple(other for other in self._nodes if other is not node)

    def settle(self) -> None:
        """Read the lazy changes of the last commit now, before the next commit."""
        for node in self._nodes:
            node.operator.settle()


def undo_failed_commit(error: BaseException, stepped: Sequence[UndoableStep]) -> bool:
    """Undo the stepped nodes of a commit, and note where it failed; return True if all were undone.

    Nothing is undone if the error is asynchronous: then a step may be half done.
    """
    if is_asynchronous(error.__cause__ if isinstance(error, BailOut) else error):
        return False
    is_undone = undo(stepped)
    node = stepped_in(error)
    if node is not None and isinstance(error, Exception):
        annotate(error, node, rolled_back=True)
    return is_undone


def undo(stepped: Sequence[UndoableStep]) -> bool:
    """Undo stepped nodes, the last one first; return True if every operator could."""
    stuck: list[UndoableStep] = []
    surely(partial(_undo, stepped, stuck))
    return not stuck


def _undo(stepped: Sequence[UndoableStep], stuck: list[UndoableStep]) -> None:
    """Undo the steps, the last first; append those whose undo raises to `stuck`."""
    for done in reversed(stepped):
        try:
            done.undo()
        except CannotUndo:
            stuck.append(done)
        except Exception:  # the others must still be undone
            log.exception("an operator could not take a commit back; all views are computed again")
            stuck.append(done)


def deliveries(leaf_deltas: Sequence[LeafDelta], version: int) -> list[Delivery]:
    """Return the deltas that leaves emitted, with their subscribers."""
    found: list[Delivery] = []
    for node, changes in leaf_deltas:
        channel = node.leaf
        if channel.subscribers and changes:
            delta = Delta(version, changes, channel.key, node.operator.edits)
            if node.graph.moved is not None:
                note_moves(delta, node)
            found.append((channel.subscribers, with_columns(delta, channel.columns)))
    for node, _ in leaf_deltas:
        if node.operator.edits:
            node.operator.forget()
    return found


def note_moves(delta: Delta[Any], leaf: Node) -> None:
    """Set the function that finds the updates in the delta of a leaf, and the tick of its commit.

    Call it in a commit that has moves.
    """
    moved, lineage = leaf.graph.moved, leaf.leaf.lineage
    assert moved is not None
    if lineage is not None:
        delta._parts = lineage.find_moves(moved)
    with_tick(delta, moved.tick)


MANY = 512
"""Least number of changed rows for which operators may be evaluated anew."""
OFTEN = 8
"""Walks after which generated code replaces a schedule of up to this number of nodes."""
LATEST = 64
"""Walks after which it replaces any schedule; in between, one walk for each node is enough."""
MOST = 1000
"""Maximum number of nodes of a schedule; above it, a `Walk` finds the reached nodes."""

Check = Callable[["Node"], None]
Fed = tuple["Node", Sequence[Any]]
"""A source, and a delta of it."""


def has_many_rows(changes: Sequence[Fed]) -> bool:
    """Return True if a delta has so many rows that operators may be evaluated anew."""
    for _, delta in changes:  # noqa: SIM110 (half the time of `any`)
        if len(delta) >= MANY:
            return True
    return False


class Schedule:
    """The nodes that some sources reach, in topological order."""

    __slots__ = ("_walks", "compiled_step", "nodes", "sources")

    def __init__(self, sources: tuple[Node, ...], nodes: tuple[Node, ...]) -> None:
        self.sources = sources
        self.nodes = nodes
        self.compiled_step: CompiledStep | None = None
        """The generated function that replaces `step`."""
        self._walks = 0

    def step(
        self,
        changes: Sequence[Fed],
        stepped: list[UndoableStep],
        leaf_deltas: list[LeafDelta],
        check: Check,
        anew: Recomputation | None = None,
        listed_inbox: Callable[[Node], Sequence[Any]] | None = None,
    ) -> None:
        """Step what the changes reach.

        The call appends each stateful node to `stepped`, before it steps, and the output of each
        leaf to `leaf_deltas`. The nodes of `anew` are evaluated anew. If a delta is large,
        `listed_inbox` returns the deltas as the operator of a node takes them.
        """
        self._walks += 1
        for source, delta in changes:
            source.send(delta)
        for node in self.nodes:
            is_anew = anew is not None and node in anew.nodes
            if node.dirty or is_anew:
                if node.guards:
                    check(node)
                if anew is not None and is_anew:
                    out = anew.evaluate(node, stepped)
                else:
                    if node.stateful:
                        stepped.append(node)
                    inbox = node.inbox if listed_inbox is None else listed_inbox(node)
                    out = node.step(*inbox)
                node.clear()
                if out:
                    node.send(out)
                    if node.leaf is not None:
                        leaf_deltas.append((node, out))

    @property
    def is_in_use(self) -> bool:
        """True after enough walks for generated code to pay off: its cost grows with the nodes."""
        return self._walks >= min(max(OFTEN, len(self.nodes)), LATEST)

    def clear(self) -> None:
        """Empty the inboxes of an interrupted walk."""
        for node in self.nodes:
            node.clear()


def find_reached_nodes(sources: tuple[Node, ...], routing: Routing) -> tuple[Node, ...] | None:
    """Return all nodes that these sources reach, in their order; None if too many, or if routed."""
    if any(routing[source] is not None for source in sources):
        return None
    found: dict[Node, None] = {}
    waiting = list(sources)
    while waiting:
        for consumer, _ in waiting.pop().consumers:
            if consumer not in found:
                found[consumer] = None
                if consumer.routes or len(found) > MOST or routing[consumer] is not None:
                    return None
                if not is_deferred(consumer):
                    waiting.append(consumer)
    return tuple(sorted(found, key=_step_order))


def _step_order(node: Node) -> tuple[float, int]:
    return node.order, node.rank


def rank_of_node(node: Node) -> int:
    """Return the rank of a node."""
    return node.rank


def source_rank(change: Fed) -> int:
    """Return the rank of the source of a change."""
    return change[0].rank
