"""Where updates of tables go: the ways from tables to what a leaf gives out.

    table students --- where --- left side of a join --- select --- leaf
    table council ------------- right side of the join ---/

A way leads through linear nodes and either side of inner joins (`hops.py`). Above all others there
is none: what has been consolidated comes from no single row. Neither is there where parts of a
query are elsewhere and come later.

Partners are looked up while the commit is made, those of the last join too; all that is above is
followed when somebody asks for what was updated.

State:  the ways, while there are subscribers. None is followed at a commit without updates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from optimizer import plan
from reactive.engine.compiler import hops as ways
from reactive.engine.compiler import physical
from reactive.engine.dataflow.moves import Chains, Move, Moved, Moves
from reactive.engine.dataflow.node import Node, is_deferred
from reactive.engine.operators import cycles
from reactive.engine.operators.pipelines import INNER
from reactive.engine.operators.plain import LINEAR
from reactive.engine.runtime.interrupts import reraise_asynchronous

MOST = 32
"""Ways that are followed to one leaf."""

Hops = tuple["ways.Hop", ...]
SAME = (plan.UnionAll, plan.View)
"""Nodes that hand rows on as they are."""


class Way:
    """From a source through hops, the first one first: as far as partners are looked up, and from
    there."""

    __slots__ = ("_after", "_before", "source")

    def __init__(self, source: Node, hops: Hops) -> None:
        last = max((n for n, hop in enumerate(hops, 1) if not hop.is_late), default=0)
        self.source = source
        self._before, self._after = hops[:last], hops[last:]

    def follow(self, moves: Moves) -> Moves:
        """Follow moves as far as must be now; the result follows them to the end."""
        if not self._before:
            return partial(_late, moves, self._after)
        return partial(_through, _through(moves(), self._before), self._after)


class Lineage:
    """The ways to a leaf, which it follows while it is subscribed to."""

    __slots__ = ("_leaf", "_ways")

    def __init__(self, leaf: Node) -> None:
        self._leaf = leaf
        self._ways: Sequence[Way] = ()
        self.renew()

    def renew(self) -> None:
        """Find them: the leaf is new, or reads another node."""
        self.end()
        self._ways = ways_to(self._leaf.inputs[0])
        for way in self._ways:
            way.source.tracers[self] = None

    def end(self) -> None:
        """Follow none any more."""
        for way in self._ways:
            way.source.tracers.pop(self, None)
        self._ways = ()

    def traced(self, moved: Moved) -> Moves | None:
        """What finds the moves of a commit in what the leaf gives out."""
        try:
            if len(self._ways) == 1:
                (way,) = self._ways
                return way.follow(moved[way.source]) if way.source in moved else None
            ends = [way.follow(moved[way.source]) for way in self._ways if way.source in moved]
        except Exception as error:  # rows that do not compare are told one by one
            reraise_asynchronous(error)
            return None
        if len(ends) < 2:
            return ends[0] if ends else None
        return partial(_composed, ends)


def ways_to(top: Node) -> list[Way]:
    """All ways to a node, those of the left side of a join first; none if there are too many."""
    found: list[Way] = []
    waiting: list[tuple[Node, Hops]] = [(top, ())]
    while waiting:
        node, above = waiting.pop()
        if not node.inputs and isinstance(node.plan, plan.Table):
            found.append(Way(node, above))
        elif not is_deferred(node):
            below = [(source, (*hops, *above)) for source, hops in _below(node)]
            waiting += below[::-1]
        if len(found) + len(waiting) > MOST:
            return []
    return found


def _below(node: Node) -> Iterable[tuple[Node, Hops]]:
    """From which nodes rows come, and by which hops."""
    match node.physical:
        case physical.Pipeline(chain=below, sink=None):
            return [(node.inputs[0], _all(below.chain))]
        case physical.Apply(op=op) if isinstance(op.node, LINEAR):
            return [(node.inputs[0], _all([op.node]))]
        case physical.Apply(op=op) if isinstance(op.node, SAME):
            return [(source, ()) for source in node.inputs]
        case physical.Lookup(of=asked, index=of):
            (index,) = node.inputs
            return [(index.inputs[0], _all([*of.chain.chain, asked]))]
        case (
            physical.Probe(join=op, chain=above, sink=None)
            | physical.Intervals(join=op, chain=above, sink=None)
        ) if isinstance(op.node, INNER):
            return _sides(node, node.physical, above)
        case physical.Match(join=op) if isinstance(op.node, INNER):
            return _sides(node, node.physical, ())
        case physical.Multiway(sink=None) as wide:
            return _inputs(node, wide)
        case physical.CyclicJoin(sink=None) as wide:
            return _cyclic_inputs(node, wide)
        case _:
            return ()


def _all(chain: Iterable[plan.Node]) -> Hops:
    return tuple(map(ways.Through, chain))


def _sides(
    node: Node, of: physical.Probe | physical.Intervals | physical.Match, above: physical.Ops
) -> Iterable[tuple[Node, Hops]]:
    """Both sides of a join."""
    join, (left, right) = of.join.node, node.inputs
    assert isinstance(join, INNER)
    both = ((left, of.left, right, True), (right, of.right, left, False))
    for index, kind, other, is_left in both:
        assert not isinstance(kind, physical.Keys)
        hop = ways.Join(join, kind.side, index.operator, other.operator, is_left=is_left)
        before, after = _all(kind.chain.chain), _all(op.node for op in above)
        yield index.inputs[0], (*before, hop, ways.Pairing(hop.found), *after)


def _inputs(node: Node, wide: physical.Multiway) -> Iterable[tuple[Node, Hops]]:
    """All inputs of joins that are one."""
    made = [node.inputs[place] for place in node.wiring]
    indexes = {key: made[place].operator for key, place in wide.keys}
    for place in range(len(wide.multiway.tests)):
        number = next(number for key, number in wide.keys if key[0] == place)
        index, of = made[number], wide.indexes[number]
        hop = ways.MultiwayInput(wide.multiway, place, of.side, indexes)
        before, after = _all(of.chain.chain), _all(op.node for op in wide.chain)
        yield index.inputs[0], (*before, hop, ways.Pairing(hop.found), *after)


def _cyclic_inputs(node: Node, wide: physical.CyclicJoin) -> Iterable[tuple[Node, Hops]]:
    """The same of joins in a cycle."""
    made = [node.inputs[place] for place in node.wiring]
    found = cycles.cycle_of(wide.multiway, wide.chains)
    assert found is not None
    numbers = [occurrence.of for occurrence in found.occurrences]
    bases = list(dict.fromkeys(id(chain.base) for chain in wide.chains))
    for place, chain in enumerate(wide.chains):
        hop = ways.CyclicInput(wide.multiway, place, node.operator.rows, numbers)
        before, after = _all(chain.chain), _all(op.node for op in wide.chain)
        yield made[bases.index(id(chain.base))], (*before, hop, ways.Pairing(hop.found), *after)


def _through(moves: Sequence[Move], hops: Hops) -> Sequence[Move]:
    for hop in hops:
        moves = hop(moves)
    return moves


def _late(moves: Moves, hops: Hops) -> Sequence[Move]:
    return _through(moves(), hops)


def _composed(ends: Iterable[Moves]) -> Sequence[Move]:
    return Chains(move for end in ends for move in end()).moves()
