"""Ways of updates from tables to leaves, and late queries over tables that are not stored.

A way leads from a table to a leaf, along the nodes that map an update to an update.

    table students --- where --- left side of a join --- select --- leaf
    table council ------------- right side of the join ---/

A way leads through linear nodes and either side of inner joins (`hops.py`), and not through other
nodes: a consolidated row has no single origin. Parts of a query that are elsewhere and change later
have no ways either.

Partners are looked up during the commit, for all joins; nodes above the last join are followed when
`updated` is read.

State:  the ways, while there are subscribers. None is followed at a commit without updates.

Late queries read tables whose rows have flowed, and start from rows that other nodes hold.

    where f              held by a view        late query, as it is compiled
      table t       -->                  -->     select g
    (rows have flowed)                             rows of view 'v'

The rows of such a table are gone. But operators with state hold results of them, and so do views.
The largest parts of a query whose rows are all held are replaced by `plan.Known`, whose node is the
existing node of the part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from optimizer import plan
from optimizer.plans import explain
from optimizer.plans.properties import free, is_set, nodes, shapes
from optimizer.record import record
from optimizer.rules.read_callables import read_callables
from optimizer.traverse import Interned, rebuilt, with_inputs
from reactive.engine.compiler import equality_checks, physical
from reactive.engine.compiler import hops as ways
from reactive.engine.dataflow.delta import Move, MoveComposer, Moves, MovesBySource
from reactive.engine.dataflow.discrimination import holds_all_rows
from reactive.engine.dataflow.node import Node, is_deferred
from reactive.engine.operators import cycles
from reactive.engine.operators.plain import INNER, LINEAR
from reactive.engine.runtime.interrupts import reraise_asynchronous
from reactive.errors import TableError

if TYPE_CHECKING:
    from reactive.engine.compiler.queries import Queries
    from reactive.engine.dataflow.delta import Channel


MOST = 32
"""Maximum number of ways that are followed to one leaf."""

Hops = tuple["ways.Hop", ...]
SAME = (plan.UnionAll, plan.View)
"""Nodes that pass rows on unchanged."""


class SplitWay:
    """A way from a source through hops, split after the last hop that looks up partners."""

    __slots__ = ("_after", "_before", "source")

    def __init__(self, source: Node, hops: Hops) -> None:
        last = max((n for n, hop in enumerate(hops, 1) if not hop.is_late), default=0)
        self.source = source
        self._before, self._after = hops[:last], hops[last:]

    def follow(self, moves: Moves) -> Moves:
        """Follow moves through the hops that look up partners; the result follows the rest."""
        if not self._before:
            return partial(_late, moves, self._after)
        return partial(_through, _through(moves(), self._before), self._after)


class LeafLineage:
    """The ways to a leaf, followed while there are subscribers."""

    __slots__ = ("_leaf", "_ways")

    def __init__(self, leaf: Node) -> None:
        self._leaf = leaf
        self._ways: Sequence[SplitWay] = ()
        self.renew()

    def renew(self) -> None:
        """Find the ways again, because the leaf is new or reads another node."""
        self.end()
        self._ways = ways_to(self._leaf.inputs[0])
        for way in self._ways:
            way.source.tracers[self] = None

    def end(self) -> None:
        """Stop following."""
        for way in self._ways:
            way.source.tracers.pop(self, None)
        self._ways = ()

    def find_moves(self, moved: MovesBySource) -> Moves | None:
        """Return the function that finds the moves of the leaf; None if its tables have none."""
        try:
            if len(self._ways) == 1:
                (way,) = self._ways
                return way.follow(moved[way.source]) if way.source in moved else None
            ends = [way.follow(moved[way.source]) for way in self._ways if way.source in moved]
        except Exception as error:  # rows that cannot be compared have no updates
            reraise_asynchronous(error)
            return None
        if len(ends) < 2:
            return ends[0] if ends else None
        return partial(_compose_moves, ends)


def ways_to(top: Node) -> list[SplitWay]:
    """Return all ways to a node, in the order of join sides; none if there are too many."""
    found: list[SplitWay] = []
    waiting: list[tuple[Node, Hops]] = [(top, ())]
    while waiting:
        node, above = waiting.pop()
        if not node.inputs and isinstance(node.plan, plan.Table):
            found.append(SplitWay(node, above))
        elif not is_deferred(node):
            below = [(source, (*hops, *above)) for source, hops in _below(node)]
            waiting += below[::-1]
        if len(found) + len(waiting) > MOST:
            return []
    return found


def _below(node: Node) -> Iterable[tuple[Node, Hops]]:
    """Return the nodes that rows are derived from, with the hops; () if rows cannot be traced."""
    match node.physical:
        case physical.Pipeline(chain=below, sink=None):
            return [(node.inputs[0], _make_linear_hops(below.chain))]
        case physical.Apply(op=op) if isinstance(op.node, LINEAR):
            return [(node.inputs[0], _make_linear_hops([op.node]))]
        case physical.Apply(op=op) if isinstance(op.node, SAME):
            return [(source, ()) for source in node.inputs]
        case physical.Lookup(of=asked, index=of):
            (index,) = node.inputs
            return [(index.inputs[0], _make_linear_hops([*of.chain.chain, asked]))]
        case (
            physical.PhysicalProbe(join=op, chain=above, sink=None)
            | physical.Intervals(join=op, chain=above, sink=None)
        ) if isinstance(op.node, INNER):
            return _sides_with_hops(node, node.physical, above)
        case physical.Match(join=op) if isinstance(op.node, INNER):
            return _sides_with_hops(node, node.physical, ())
        case physical.Multiway(sink=None) as wide:
            return _inputs(node, wide)
        case physical.PhysicalCyclicJoin(sink=None) as wide:
            return _cyclic_inputs(node, wide)
        case _:
            return ()


def _make_linear_hops(chain: Iterable[plan.Node]) -> Hops:
    return tuple(map(ways.Through, chain))


def _sides_with_hops(
    node: Node,
    of: physical.PhysicalProbe | physical.Intervals | physical.Match,
    above: physical.Ops,
) -> Iterable[tuple[Node, Hops]]:
    """Yield the node below each side of a join, with the hops from it through `above`."""
    join, (left, right) = of.join.node, node.inputs
    assert isinstance(join, INNER)
    both = ((left, of.left, right, True), (right, of.right, left, False))
    for index, kind, other, is_left in both:
        assert not isinstance(kind, physical.PhysicalKeys)
        hop = ways.JoinHop(join, kind.side, index.operator, other.operator, is_left=is_left)
        before, after = (
            _make_linear_hops(kind.chain.chain),
            _make_linear_hops(op.node for op in above),
        )
        yield index.inputs[0], (*before, hop, ways.PairHop(hop.found), *after)


def _inputs(node: Node, wide: physical.Multiway) -> Iterable[tuple[Node, Hops]]:
    """Yield all inputs of a multiway join."""
    made = [node.inputs[place] for place in node.wiring]
    indexes = {key: made[place].operator for key, place in wide.keys}
    for place in range(len(wide.multiway.tests)):
        number = next(number for key, number in wide.keys if key[0] == place)
        index, of = made[number], wide.indexes[number]
        hop = ways.MultiwayInput(wide.multiway, place, of.side, indexes)
        before, after = (
            _make_linear_hops(of.chain.chain),
            _make_linear_hops(op.node for op in wide.chain),
        )
        yield index.inputs[0], (*before, hop, ways.PairHop(hop.found), *after)


def _cyclic_inputs(node: Node, wide: physical.PhysicalCyclicJoin) -> Iterable[tuple[Node, Hops]]:
    """Yield all inputs of joins in a cycle."""
    made = [node.inputs[place] for place in node.wiring]
    found = cycles.cycle_of(wide.multiway, wide.chains)
    assert found is not None
    numbers = [occurrence.of for occurrence in found.occurrences]
    bases = list(dict.fromkeys(id(chain.base) for chain in wide.chains))
    for place, chain in enumerate(wide.chains):
        hop = ways.CyclicInput(wide.multiway, place, node.operator.rows, numbers)
        before, after = (
            _make_linear_hops(chain.chain),
            _make_linear_hops(op.node for op in wide.chain),
        )
        yield made[bases.index(id(chain.base))], (*before, hop, ways.PairHop(hop.found), *after)


def _through(moves: Sequence[Move], hops: Hops) -> Sequence[Move]:
    for hop in hops:
        moves = hop(moves)
    return moves


def _late(moves: Moves, hops: Hops) -> Sequence[Move]:
    return _through(moves(), hops)


def _compose_moves(ends: Iterable[Moves]) -> Sequence[Move]:
    return MoveComposer(move for end in ends for move in end()).moves()


T = TypeVar("T")


class RowsFlowedAway(TableError):
    """The rows of a table that is not stored have flowed already."""


@record
class ComputedPart:
    """A part of a query, and the node of the graph that computes it."""

    plan: plan.Node
    node: Node


def over(
    queries: Queries,
    written: plan.Node,
    channel: Channel,
    act: Callable[[Node], T],
    *,
    complete: bool,
) -> T:
    """Return the result of `act` on the node that computes a query.

    `complete`: the node must hold all its rows. If rows have flowed away, parts of the query that
    hold their rows are read instead.

    `channel.base` is set to the plan that is compiled.

    Raises
    ------
    TableError: it reads rows that no node holds.
    """

    def if_known(source: Node) -> T:
        if complete and queries.graph.forgets and not holds_all_rows(source):
            raise RowsFlowedAway
        return act(source)

    def if_held(source: Node) -> T:
        if complete and not holds_all_rows(source):  # an operator drops rows that are held below it
            read = (n.name for n in nodes(written) if isinstance(n, plan.Table) and not n.stored)
            raise TableError(_explain_lost_rows(next(read, "events"), explain.headline(written)))
        return act(source)

    while True:
        channel.base = queries.base(written)
        try:
            return queries.over(channel.base, if_known)
        except RowsFlowedAway:
            channel.base = _Late(queries).over(written)
            return queries.over(channel.base, if_held)
        except Exception as error:
            if not equality_checks.check_again(queries, written, error):
                raise


class _Late:
    """Finds the parts of a plan whose rows are held."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries
        self._interned = Interned()
        self._shown: dict[int, Node] = {}  # leaves by the `id` of their plan, lifted and as written
        for leaf in queries.graph.leaves():
            if not leaf.deferred and holds_all_rows(leaf.inputs[0]):
                written = leaf.leaf.plan
                for found in (written, rebuilt(written, read_callables)):
                    self._shown.setdefault(id(self._interned.all(found)), leaf)

    def over(self, written: plan.Node) -> plan.Node:
        """Return the plan over its parts whose rows are held."""
        root = self._interned.all(written)
        lost = self._find_lost_nodes(root)
        made: dict[int, plan.Node] = {}
        read: dict[int, plan.Node] = {}
        try:
            for node in nodes(root):
                inputs = [read[id(source)] for source in node.inputs()]
                read[id(node)] = self._interned.all(read_callables(with_inputs(node, inputs)))
                known = self._find_replacement(node, read[id(node)]) if id(node) in lost else None
                made[id(node)] = known or with_inputs(node, [made[id(s)] for s in node.inputs()])
        finally:
            self._queries.graph.sweep()
        self._check(made[id(root)])
        return made[id(root)]

    def _find_lost_nodes(self, root: plan.Node) -> set[int]:
        """Return the nodes, by `id`, that read a table whose rows are gone."""
        found: set[int] = set()
        for node in nodes(root):
            is_gone = isinstance(node, plan.Table) and self._is_gone(node)
            if is_gone or any(id(source) in found for source in node.inputs()):
                found.add(id(node))
        return found

    def _is_gone(self, table: plan.Table) -> bool:
        return not table.stored and not holds_all_rows(self._queries.source(table))

    def _find_replacement(self, node: plan.Node, read: plan.Node) -> plan.Known | None:
        """Return the replacement of a part; None if its rows are not held."""
        leaf = self._shown.get(id(node)) or self._shown.get(id(read))
        if leaf is not None:
            return _standing(ComputedPart(leaf.leaf.base, leaf.inputs[0]), str(leaf.leaf))
        if isinstance(node, (*LINEAR, plan.Table)) or free(node):
            return None  # these hold nothing, or cannot be computed alone
        try:
            source = self._queries.node(node)
        except RowsFlowedAway:
            return None
        is_held = holds_all_rows(source)
        return _standing(ComputedPart(node, source), explain.headline(node)) if is_held else None

    def _check(self, made: plan.Node) -> None:
        """Raise if a plan still reads a table whose rows are gone."""
        lost = self._find_lost_nodes(made)
        for node in nodes(made):
            read = [s for s in node.inputs() if isinstance(s, plan.Table) and id(s) in lost]
            if read:
                raise TableError(_explain_lost_rows(read[0].name, explain.headline(node)))
        if isinstance(made, plan.Table) and id(made) in lost:
            raise TableError(_explain_lost_rows(made.name, explain.headline(made)))


def lost_of(table: str) -> RowsFlowedAway:
    """Return the error for a table whose rows are gone."""
    return RowsFlowedAway(_explain_lost_rows(table, f"table {table}"))


def _explain_lost_rows(table: str, part: str) -> str:
    """Return the message: no node holds the rows of `part`, which reads an unstored table."""
    return (
        f"table {table!r} is not stored, and rows have flowed already\n"
        f"  nobody holds what became of them in: {part}\n"
        "  query a view that was there before (view.relation), or make the table with stored=True"
    )


def _standing(part: ComputedPart, name: str) -> plan.Known:
    """Return a plan node that reads the rows of a part that the graph has computed."""
    return plan.Known(
        number=-part.node.rank,
        name=name,
        key=None,
        stored=False,
        of=shapes(part.plan),
        is_set=is_set(part.plan),
        part=part,
    )
