"""Try a commit that a way to run a query gave up, by operators over rows, on the rows it reads.

    orders + O(5, None)      sums by customer          `BailOut`: None is no number
                             orders of customer 5      the new order, which is not there yet
                             customers of id 5         one row: a join raises what the commit raises

A query returns to its rows only for a commit that stands, since that takes as long as making the
view. A commit that its rows refuse too raises here, in a graph of its own, which is dropped: the
query keeps its plan.

The rows that the commit reads are found by the equations between the joined tables, beginning at
the changed ones. Groups are copied from the operator in use: they decide what a sum raises.

Sound:  a row outside shares no key with a changed row, so no loop over the changes meets it. All
        rows of a table are read where keys are unknown, raise, or may differ from themselves.
Needs:  joins of stored tables in this process; nothing but sums and counts by group above them.
        Without an equation that spares rows nothing is tried: the query is compiled again.
Cost:   one visit of the tables, and the rows that agree with a changed row.

`PlansBefore` returns to the plans before a commit that queries were compiled again for, if that
fails.

    recompile    the leaves read new nodes; the old ones leave the graph, and are kept
    commit       fails, and is undone
    restore      the old nodes enter the graph again, with their state; the new ones are dropped

Sound:  the old nodes have undone the commit, or not begun it, and nothing is committed since.
State:  the old nodes, until the commit ends.
Cost:   O(old nodes).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from optimizer import plan
from optimizer.expr import Expr, Lifted
from optimizer.plans import multiway
from optimizer.plans.properties import nodes
from optimizer.rewriting.optimize import Segment, merge_segments
from reactive.engine.codegen.functions import compiled_of
from reactive.engine.collections.zset import Pair, Row, consolidate
from reactive.engine.dataflow.delivery_queue import DeliveryQueue
from reactive.engine.dataflow.graph import Graph
from reactive.engine.dataflow.leaves import ChangesOnly
from reactive.engine.runtime.interrupts import reraise_asynchronous

if TYPE_CHECKING:
    from reactive.engine.dataflow.node import Node

    Build = Callable[[plan.Node, Graph, Callable[[Any], Node]], Node]
    """Builds the nodes of a plan in a graph, over the nodes of its tables, by rows only."""

Deltas = Mapping[plan.Table, Sequence[Pair]]
Contents = Callable[[plan.Table], Sequence[Pair]]
Key = Callable[[Row], Any]
LINEAR = plan.Where | plan.Select | plan.Extend
"""Nodes that handle a row by itself."""


def try_rows(
    segment: Segment,
    owner: plan.Node,
    operator: Any,
    leaves: Sequence[Node],
    changes: Deltas,
    contents: Contents,
    build: Build,
) -> None:
    """Raise what a commit raises by rows; nothing if it stands, or if only all rows can tell.

    If an asynchronous exception ends this, the state of `operator` is unknown.

    Parameters
    ----------
    owner: the node of the query whose `operator` gave up.
    leaves: their views are named in the message.
    contents: returns the rows of a table before the commit.
    """
    root = _find_part(segment, owner, operator)
    rows = None if root is None else _find_needed_rows(root, changes, contents)
    if root is None or rows is None:
        return
    graph = Graph(lambda *_: None, DeliveryQueue())
    sources = {table: graph.source(partial(rows.__getitem__, table), table) for table in rows}
    try:
        top = build(root, graph, sources.__getitem__)
        if isinstance(root, plan.Aggregate):
            top.operator.copy_groups(operator.groups)
        for leaf in leaves:
            graph.attach(ChangesOnly(), top, leaf.leaf, fill=False)
    except Exception as error:  # the rows so far are no reason to refuse
        reraise_asynchronous(error)
        return
    fed = []
    for table, source in sources.items():
        if table in changes:  # a table changes before the operators step
            fed.append((source, changes[table]))
            rows[table] = consolidate([*rows[table], *changes[table]])
    step = graph.prepare(fed, graph.version + 1)
    graph.undo(step, AssertionError("the rows are accepted"))


def _find_part(segment: Segment, owner: plan.Node, operator: Any) -> plan.Node | None:
    """Return the part of a query that stands for an operator, over tables; None if there is none.

    It ends at an aggregate if the operator has groups.
    """
    run, of = merge_segments(segment)
    every = nodes(run.plan)
    found = [node for node in every if of.get(id(node)) == owner]
    if len(found) != 1:
        return None
    readers: defaultdict[int, list[plan.Node]] = defaultdict(list)
    for node in every:
        for source in node.inputs():
            readers[id(source)].append(node)
    (part,) = found
    has_groups = hasattr(operator, "copy_groups")
    while has_groups and not isinstance(part, plan.Aggregate):
        above = readers[id(part)]
        if len(above) != 1 or not isinstance(above[0], LINEAR | plan.Aggregate):
            return None
        (part,) = above
    is_plain = all(map(_is_plain, nodes(part)))
    wanted = plan.Aggregate if has_groups else plan.Join
    return part if is_plain and isinstance(part, wanted) else None


def _is_plain(node: plan.Node) -> bool:
    """Return True for a stored table, and for operations without a past or rows of their own."""
    if isinstance(node, plan.Table):
        return node.stored
    return bool(node.inputs()) and not isinstance(node, plan.Previous)


def _find_needed_rows(
    root: plan.Node, changes: Deltas, contents: Contents
) -> dict[plan.Table, Sequence[Pair]] | None:
    """Return rows of each table of a plan that contain all that a commit reads.

    Return None if these are all rows.
    """
    top = root
    while not isinstance(top, plan.Join):
        if len(top.inputs()) != 1:
            return None
        (top,) = top.inputs()
    found = multiway.equations_between(top)
    if found is None:
        return None
    relations, equations = found
    every = dict.fromkeys(node for node in nodes(root) if isinstance(node, plan.Table))
    read = [_find_table(node) for node in relations]
    needed = _NeededRows(read, equations, changes, contents)
    needed.whole |= every.keys() - set(read)
    for place in range(len(relations)):
        needed.follow(place)
    if every.keys() <= needed.whole:
        return None
    return {table: needed.select(table) for table in sorted(every, key=attrgetter("number"))}


def _find_table(node: plan.Node) -> plan.Table | None:
    """Return the table whose rows an input of a join passes on; None for any other input."""
    while isinstance(node, plan.Where | plan.View):
        node = node.input
    return node if isinstance(node, plan.Table) else None


class _NeededRows:
    """The rows of joined tables that have a key of a changed row, or of a partner of one.

    `read` are the tables of the inputs of the joins; None stands for an input whose rows are
    computed, and so unknown.
    """

    def __init__(
        self,
        read: Sequence[plan.Table | None],
        equations: Sequence[multiway.Equation],
        changes: Deltas,
        contents: Contents,
    ) -> None:
        self._read = read
        self._changes = changes
        self._contents = contents
        self._pairs: dict[plan.Table, Sequence[Pair]] = {}
        self._kept: defaultdict[plan.Table, set[int]] = defaultdict(set)
        self.whole: set[plan.Table] = set()
        """The tables of which all rows are needed."""
        self._partners: list[list[tuple[Key, int, Key]]] = [[] for _ in read]
        for each in equations:
            left, right = _compile_key(each.of_left), _compile_key(each.of_right)
            self._partners[each.left].append((left, each.right, right))
            self._partners[each.right].append((right, each.left, left))

    def select(self, table: plan.Table) -> Sequence[Pair]:
        """Return the needed rows of a table, in its order, and then other removed ones."""
        if table in self.whole:
            return self._load(table)
        kept = self._kept[table]
        pairs = self._load(table) if kept else ()
        found = [pairs[place] for place in sorted(kept)]
        known = {row for row, _ in found}
        removed = ((row, -weight) for row, weight in self._changes.get(table, ()) if weight < 0)
        return [*found, *(pair for pair in removed if pair[0] not in known)]

    def follow(self, start: int) -> None:
        """Add the partners of the changed rows of an input, their partners, and so on."""
        table = self._read[start]
        rows = None if table is None else self._find_changed(table)
        if rows is not None and not rows:
            return
        met: dict[int, Sequence[Row] | None] = {start: rows}
        waiting = [start]
        while waiting:
            place = waiting.pop()
            for mine, other, theirs in self._partners[place]:
                if other not in met:
                    met[other] = self._keep(other, _find_keys(mine, met[place]), theirs)
                    waiting.append(other)
        for other in range(len(self._read)):
            if other not in met:
                self._keep(other, None, None)

    def _keep(self, place: int, wanted: set[Any] | None, key: Key | None) -> Sequence[Row] | None:
        """Keep the rows of an input whose key is wanted; return them, and its changed rows.

        Keep all its rows, and return None, if the wanted keys are unknown.
        """
        table = self._read[place]
        if table is None:
            return None
        if wanted is None or key is None:
            self.whole.add(table)
            return None
        if table in self.whole:
            return None
        pairs = self._load(table)
        found = _find_positions(pairs, wanted, key)
        self._kept[table].update(found)
        return [pairs[i][0] for i in found] + self._find_changed(table)

    def _find_changed(self, table: plan.Table) -> list[Row]:
        return [row for row, _ in self._changes.get(table, ())]

    def _load(self, table: plan.Table) -> Sequence[Pair]:
        """Return all rows of a table before the commit."""
        found = self._pairs.get(table)
        if found is None:
            found = self._pairs[table] = self._contents(table)
        return found


def _compile_key(expr: Expr) -> Key:
    """Return the function that computes a side of an equation."""
    return compiled_of(Lifted(expr, ("row",), (), 1))


def _find_keys(key: Key, rows: Sequence[Row] | None) -> set[Any] | None:
    """Return the keys of rows; None if they are unknown, or an equal key may be another one."""
    if rows is None:
        return None
    try:
        found = {key(row) for row in rows}
        return None if any(k.__class__ is tuple or k != k for k in found) else found
    except Exception as error:
        reraise_asynchronous(error)
        return None


def _find_positions(pairs: Sequence[Pair], wanted: set[Any], key: Key) -> Sequence[int]:
    """Return the positions of the rows whose key is wanted, or raises."""
    try:
        return [i for i, (row, _) in enumerate(pairs) if key(row) in wanted]
    except Exception as error:
        reraise_asynchronous(error)
    return [i for i, (row, _) in enumerate(pairs) if _is_wanted(row, wanted, key)]


def _is_wanted(row: Row, wanted: set[Any], key: Key) -> bool:
    try:
        return key(row) in wanted
    except Exception as error:
        reraise_asynchronous(error)
        return True


class PlansBefore:
    """The leaves, the segments of their queries, and the nodes dropped inside `with`."""

    def __init__(self, graph: Graph, leaves: Iterable[Node], segments: Iterable[Segment]) -> None:
        self._graph = graph
        self._leaves = [(leaf, leaf.inputs[0], leaf.operator, leaf.order) for leaf in leaves]
        self._segments = [(s, {*s.without}, s.top, s.physical) for s in segments]
        self._since = graph.made
        upstream = {node for leaf, *_ in self._leaves for node in leaf.upstream()}
        self._is_possible = not graph.forgets and not any(map(_has_state_elsewhere, upstream))

    def __enter__(self) -> PlansBefore:
        self._graph.dropped = {} if self._is_possible else None
        return self

    def __exit__(self, *_: object) -> None:
        dropped, self._graph.dropped = self._graph.dropped, None
        self._nodes = {node: of for node, of in (dropped or {}).items() if node.rank <= self._since}

    def restore(self) -> None:
        """Connect the leaves to their nodes as before, and drop the new ones."""
        if not self._is_possible:
            return
        graph = self._graph
        for node in sorted(self._nodes, key=lambda node: node.rank):
            graph.connect_again(node, self._nodes[node])
        there = set(graph.leaves())
        for leaf, source, operator, order in self._leaves:
            if leaf in there:
                graph.reattach(leaf, source, operator)
                leaf.order = order
        for segment, without, top, physical in self._segments:
            segment.without, segment.top, segment.physical = without, top, physical
        graph.sweep()


def _has_state_elsewhere(node: Node) -> bool:
    """Return True if a node cannot leave the graph and come back."""
    return node.is_remote or node.deferred or isinstance(node.plan, plan.Previous)
