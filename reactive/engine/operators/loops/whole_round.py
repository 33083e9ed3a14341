"""Whole round of a loop: rows in, rows out, by generated loops without weights or state.

    ranks --> probe shares --> values by node --> sums --> select Rank(...)      each round
    shares --> index by src                                                      while unchanged

A plan over given relations becomes a list of passes, each a loop of `codegen/nest.py` that produces
a list, values by group, or an index. Passes that read only constant relations run once. Rows are in
lists; a row of weight two is listed twice.

If a pass raises, the reference evaluates the round: it raises too, or finds that the query ignores
the error.

Several rounds run over a layout (`layout.py`, `kept_rounds.py`), once the keys of groups are
constant.

State:  results of constant relations, until these change.
Cost:   one visit of each row and pair of the round, a tenth of the time of operators.
Source: T. Neumann, *Efficiently Compiling Efficient Query Plans for Modern Hardware*, 2011.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from optimizer import plan
from optimizer.expr import Function, Lifted
from optimizer.plans.properties import bindings, nodes, row_shape, shapes
from optimizer.plans.side_conditions import has_keys, residual
from optimizer.traverse import read_functions
from reactive.engine.codegen.emitter import RowPipeline
from reactive.engine.codegen.nest import ListSink, LoopSink
from reactive.engine.operators.accumulators import CountAccumulator, MaxAccumulator, MinAccumulator
from reactive.engine.operators.fuse import make_key_lister
from reactive.engine.operators.loops.best_partners import (
    BestPartners,
    QuickPass,
    decides_group,
    find_best_partners,
    find_partner_groups,
    groups_pass,
    rows_pass,
)
from reactive.engine.operators.loops.first_load import Gathering, aggregate_value, index_rows
from reactive.engine.operators.loops.kept_rounds import KeptRounds, arrange_rounds
from reactive.engine.operators.loops.layout import AggregateLoop, Joined, Layout, NoLayout
from reactive.engine.operators.loops.nests import (
    DeltaRule,
    SinkOf,
    alone_loop,
    delta_loop,
    entering_loop,
)
from reactive.engine.operators.loops.number_rounds import run_rounds
from reactive.engine.operators.loops.partnered_rows import Fits, alone_rows, matched_rows
from reactive.engine.operators.loops.settled_rounds import SettlingRounds
from reactive.engine.operators.loops.totals import totals_of
from reactive.engine.operators.plain import (
    LINEAR,
    PipelineSource,
    can_nest,
    count_nested,
    is_read,
    match_predicates,
    side_functions,
    sides,
)
from reactive.engine.runtime.interrupts import reraise_asynchronous

Slots = list[Any]
"""The given relations, then the results of the passes."""
Pass = Callable[[Slots], Any]
Row = Any
Chained = tuple[tuple[plan.Node, ...], plan.Node, Joined | None, str]
"""A chain, its base, the base again if it is a join in the same loop, and the side of an outer join
whose rows without a partner are the rows of the loop."""
MOST_NODES = 200
"""Plan nodes of a round, above which no passes are generated."""
FEWEST = 3
"""Fewest rounds that are worth a layout."""
TRIES = 2
"""Rounds after which the keys are tested for being constant."""
LONGEST = 64
"""Most evaluations without a test of the keys, after failed tests."""


class NoWholeRound(Exception):
    """Raised if a plan has no passes."""


class WholeRound:
    """Passes of a round, for the bodies of a loop.

    Parameters
    ----------
    bodies: plans over `Recursive` relations; the first `changing` relations change in each round.
    tolerances: of these relations, if they are settled.
    """

    def __init__(
        self,
        bodies: Sequence[plan.Node],
        given: int,
        changing: int,
        tolerances: Sequence[plan.Tolerance | None] = (),
    ) -> None:
        self.given = given
        self.changing = changing
        if sum(len(nodes(body)) for body in bodies) > MOST_NODES:
            raise NoWholeRound
        self._passes: list[tuple[Pass, Sequence[int]]] = []
        self._grouped: list[tuple[plan.Aggregate, list[AggregateLoop]]] = []
        self._best: dict[int, BestPartners] = {}
        """By aggregate over a product."""
        self._made: dict[Any, int] = {}
        self._varies = {place: place < changing for place in range(given)}
        self._readers: Counter[int] = Counter()
        known: dict[int, None] = {}
        for body in bodies:
            for node in nodes(body):
                if id(node) not in known:
                    known[id(node)] = None
                    self._readers.update(map(id, node.inputs()))
        self._keep = list(bodies)
        self._tops = [self._list(body) for body in bodies]
        self._slots: Slots = [None] * (given + len(self._passes))
        self._looked = 0
        self.layout = self._laid_out(tolerances)
        self._first = 0
        self._tries = range(0)
        self._waits, self._patience = 0, 1

    def begin(self, place: int, rows: list[Row]) -> None:
        """Set the rows of a constant relation."""
        self._slots[place] = rows
        for number in range(self.given, len(self._slots)):
            self._slots[number] = None

    def run(self, rows: Sequence[list[Row]], times: int) -> list[list[Row]]:
        """Return the relations after `times` rounds; use a layout once the keys are constant."""
        found = list(rows)
        tries = range(self._first, self._first + TRIES) if self._may_try() else range(0)
        for done in range(times):
            if done in tries and has_layout(times - done):
                kept = self._make_kept_rounds(found)
                if kept is not None:
                    self._first, self._waits, self._patience = done, 0, 1
                    return self._run(kept, times - done)
            found = self.round(found)
        if tries:
            self._waits, self._patience = self._patience, min(2 * self._patience, LONGEST)
        return found

    def settle(
        self, rows: Sequence[list[Row]], done: int, most: int
    ) -> tuple[list[list[Row]], int, bool]:
        """Run rounds over a layout until no row moves, at most `most`, after `done` other rounds.

        Return the relations, the number of rounds, which is 0 if there is no layout, and True if
        the last round moved no row.
        """
        if done == 0:
            tries = range(self._first, self._first + TRIES)
            self._tries = tries if self._may_try() else range(0)
        layout, found = self.layout, list(rows)
        if done in self._tries and layout is not None and layout.near is not None:
            kept = self._make_kept_rounds(found)
            settling = None if kept is None else SettlingRounds(kept, layout.near)
            if kept is not None and settling is not None and settling.is_unique():
                self._first, self._waits, self._patience = done, 0, 1
                self._tries = range(0)
                more = settling.run(most)
                self._looked += more * kept.count_touched() // 2
                return self._settled_rows(settling, found), more, settling.is_settled
            if done == self._tries[-1]:
                self._waits, self._patience = self._patience, min(2 * self._patience, LONGEST)
        return found, 0, False

    def round(self, rows: Sequence[list[Row]]) -> list[list[Row]]:
        """Return the relations after one round."""
        slots = self._slots
        slots[: self.changing] = rows
        for place, (make, _) in enumerate(self._passes, self.given):
            if self._varies[place]:
                found = slots[place] = make(slots)
                self._looked += len(found)
            elif slots[place] is None:
                slots[place] = make(slots)
        return [slots[place] for place in self._tops]

    def count_touched(self) -> int:
        """Return the number of rows and pairs since the last call."""
        looked, self._looked = self._looked, 0
        return looked

    def forget(self) -> None:
        """Release all rows until the next round."""
        self._slots = [None] * len(self._slots)

    # Rounds over a layout.

    def _laid_out(self, tolerances: Sequence[plan.Tolerance | None]) -> Layout | None:
        """Return the layout of the aggregates that change in each round; None if there is none."""
        loops = [
            (node, self._made[id(node)], streams)
            for node, streams in self._grouped
            if self._varies[self._made[id(node)]]
        ]
        try:
            return Layout(self._keep, loops, self._slot_of, tolerances)
        except NoLayout:
            return None

    def _slot_of(self, node: plan.Node) -> tuple[int, bool]:
        """Return the slot of a node's rows, and True if they change from round to round."""
        place = self._list(node)
        return place, self._varies[place]

    def _may_try(self) -> bool:
        """Return True if a layout should be tried; rarely after failed attempts."""
        if self.layout is None:
            return False
        self._waits -= 1
        return self._waits < 0

    def _make_kept_rounds(self, rows: Sequence[list[Row]]) -> KeptRounds | None:
        """Return the rounds over a layout that start with `rows`; None if there is none."""
        assert self.layout is not None
        self._forget_rounds()
        self._slots[: self.changing] = rows
        try:
            for place in self.layout.reads:
                self._fill(place)
            return arrange_rounds(self.layout, self._slots, rows)
        except Exception as error:  # a round raises it, or finds that it is ignored
            reraise_asynchronous(error)
            return None

    def _forget_rounds(self) -> None:
        """Release the results that change from round to round."""
        for place in range(self.given, len(self._slots)):
            if self._varies[place]:
                self._slots[place] = None

    def _fill(self, place: int) -> None:
        """Compute the rows of a slot, if they are missing, and the slots that it reads."""
        if place >= self.given and self._slots[place] is None:
            make, reads = self._passes[place - self.given]
            for read in reads:
                self._fill(read)
            self._slots[place] = make(self._slots)

    def _settled_rows(self, settling: SettlingRounds, rows: Sequence[list[Row]]) -> list[list[Row]]:
        """Return the relations that settled rounds pass on; `rows` are those before."""
        slots, found = self._slots, list(rows)
        self._forget_rounds()
        assert self.layout is not None
        for relation, groups in self.layout.groups.items():
            made = settling.aggregate_rows(relation)
            if made is not None:
                slots[groups.slot] = made
                self._fill(self._tops[relation])
                made = slots[self._tops[relation]]
                found[relation] = settling.rows(relation, found[relation], made)
        return found

    def _run(self, kept: KeptRounds, times: int) -> list[list[Row]]:
        """Run rounds over a layout; return the relations after the last."""
        slots = self._slots
        made = run_rounds(kept, times)
        self._looked += times * kept.count_touched() // 2  # columns take half the time of rows
        self._forget_rounds()
        for place, rows in made.items():
            slots[place] = rows
        for place in self._tops:
            self._fill(place)
        return [slots[place] for place in self._tops]

    # Passes of plan nodes.

    def _list(self, node: plan.Node) -> int:
        """Return the slot with the rows of a node."""
        if isinstance(node, plan.Recursive):
            return node.index
        found = self._made.get(id(node))
        if found is None:
            found = self._made[id(node)] = self._add(*self._rows(node))
        return found

    def _add(self, make: Pass, reads: Sequence[int]) -> int:
        """Add a pass, which varies if one of the slots it reads does; return its slot."""
        place = self.given + len(self._passes)
        self._varies[place] = any(self._varies[read] for read in reads)
        self._passes.append((make, reads))
        return place

    def _rows(self, node: plan.Node) -> tuple[Pass, list[int]]:
        """Return the pass that computes a node, and the slots that it reads.

        Raises `NoWholeRound` for nodes without a pass.
        """
        match node:
            case plan.Aggregate():
                return self._aggregate(node)
            case plan.Distinct(source):
                place = self._list(source)
                return (lambda slots: list(dict.fromkeys(slots[place]))), [place]
            case plan.View(source) | plan.Shared(source):
                place = self._list(source)
                return (lambda slots: slots[place]), [place]
            case plan.Union(left, right):
                first, second = self._list(left), self._list(right)
                return (lambda slots: list(dict.fromkeys([*slots[first], *slots[second]]))), [
                    first,
                    second,
                ]
            case plan.SemiJoin() | plan.AntiJoin():
                return self._half(node, wanted=isinstance(node, plan.SemiJoin))
            case plan.UnionAll() | plan.Join() | plan.Product() | plan.OuterJoin():
                return self._joined_up(node)
            case _ if isinstance(node, LINEAR):
                return self._joined_up(node)
            case _:
                raise NoWholeRound

    def _joined_up(self, node: plan.Node) -> tuple[Pass, list[int]]:
        """Return a pass that concatenates the rows of loops."""
        streams = self._loops(node, lambda pipeline: ListSink(pipeline, batch=True), "")
        loops = [stream.loop for stream in streams]

        def make(slots: Slots) -> list[Row]:
            if len(loops) == 1:
                found: list[Row] = loops[0](slots)
                return found
            return [row for loop in loops for row in loop(slots)]

        return make, _read_by(streams)

    def _loops(
        self, node: plan.Node, sink_of: SinkOf, into: str, key: Function | None = None
    ) -> list[AggregateLoop]:
        """Return the loops that pass the rows of a node to a sink, with parameters `into`.

        `key` is that of the sink's groups.
        """
        streams = []
        for chain, base, join, side in self._chains(node):
            if join is None:
                loop, places = self._chain_loop(base, chain, sink_of, into)
            elif isinstance(join, plan.OuterJoin) and side:
                loop, places = self._alone_loop(join, chain, side, sink_of, into)
            else:
                loop, places = self._join_loop(join, chain, sink_of, into, key)
            streams.append(AggregateLoop(chain, base, join, loop, tuple(places), side))
        return streams

    def _chains(self, node: plan.Node) -> list[Chained]:
        """Return the chains whose rows together are the rows of a node."""
        found: list[Chained] = []
        waiting: list[tuple[plan.Node, tuple[plan.Node, ...]]] = [(node, ())]
        while waiting:
            part, chain = waiting.pop()
            is_ours = part is node or self._readers[id(part)] < 2
            if isinstance(part, LINEAR) and is_ours:
                if not is_read(part) or not can_nest(2 + count_nested((part, *chain))):
                    raise NoWholeRound
                waiting.append((part.input, (part, *chain)))
            elif isinstance(part, plan.UnionAll) and is_ours:
                waiting += [(part.right, chain), (part.left, chain)]
            elif isinstance(part, plan.Join | plan.Product | plan.OuterJoin) and is_ours:
                found.append((chain, part, part, ""))
                kind = part.kind if isinstance(part, plan.OuterJoin) else ""
                found += [(chain, part, part, s) for s in ("left", "right") if kind in (s, "full")]
            else:
                found.append((chain, part, None, ""))
        return found

    def _chain_loop(
        self, base: plan.Node, chain: tuple[plan.Node, ...], sink_of: SinkOf, into: str
    ) -> tuple[Callable[..., Any], list[int]]:
        """Return the loop of a chain over the rows of its base, and the slot of these."""
        place = self._list(base)
        pipeline = PipelineSource(chain, base).pipeline()
        sink = sink_of(pipeline)
        loop, _ = delta_loop(f"{into}delta", pipeline, read_functions(*chain), sink, batch=True)
        return (lambda slots, *given: loop(*given, slots[place])), [place]

    def _join_loop(
        self,
        join: Joined,
        chain: tuple[plan.Node, ...],
        sink_of: SinkOf,
        into: str,
        key: Function | None,
    ) -> tuple[Callable[..., Any], list[int]]:
        """Return the loop over the side that changes, or the left, which probes the other side.

        Of a product, it is the side that decides the group.
        """
        left, right = self._list(join.left), self._list(join.right)
        rest = residual(join)
        _check_read(join)
        is_left = self._varies[left] or not self._varies[right]
        if not has_keys(join):
            is_left = decides_group(join, chain, key, is_left)
        outer, inner = (left, right) if is_left else (right, left)
        of = (*shapes(join.left), row_shape(join.right))
        width = bindings(join.left if is_left else join.right)
        own: Any = sides(join)[not is_left]
        asked: Any = rest
        rule = DeltaRule((), own, is_left, len(of), width, of, asked, chain)
        loop, _ = entering_loop(rule, sink_of, into)
        index = self._index(join, inner, is_left=not is_left)
        return (lambda slots, *given: loop(*given, slots[outer], slots[index].get)), [outer, index]

    def _alone_loop(
        self,
        join: plan.OuterJoin,
        chain: tuple[plan.Node, ...],
        side: str,
        sink_of: SinkOf,
        into: str,
    ) -> tuple[Callable[..., Any], list[int]]:
        """Return the loop over the rows of a side of an outer join that have no partner."""
        alone = self._add(*self._half(join, is_left=side == "left"))
        loop = alone_loop(bindings(join.left), shapes(join), chain, side, sink_of, into)
        return (lambda slots, *given: loop(*given, slots[alone])), [alone]

    def _index(self, join: plan.Node, place: int, *, is_left: bool) -> int:
        """Return the slot with the rows of a side by key."""
        assert isinstance(join, Joined | plan.SemiJoin | plan.AntiJoin)
        side = sides(join)[not is_left]
        source = join.left if is_left else join.right
        told = (place, side)
        if told not in self._made:
            keyed = make_key_lister(source, side, bindings(source) if is_left else 1)
            self._made[told] = self._add(lambda slots: index_rows(*keyed(slots[place])), [place])
        return self._made[told]

    def _half(
        self,
        join: plan.SemiJoin | plan.AntiJoin | plan.OuterJoin,
        *,
        is_left: bool = True,
        wanted: bool = False,
    ) -> tuple[Pass, list[int]]:
        """Return a pass that lists the rows of a side with a partner, if `wanted`, or without."""
        _check_read(join)
        rows, keyed, index = self._keyed_sides(join, is_left=is_left)
        fits: Fits | None = None
        if residual(join) is not None:
            both, _ = match_predicates(join)
            fits = both if is_left else lambda row, other: both(other, row)
        select = matched_rows if wanted else alone_rows
        return (
            lambda slots: select(slots[rows], keyed(slots[rows]), slots[index], fits),
            [rows, index],
        )

    def _keyed_sides(
        self, join: plan.SemiJoin | plan.AntiJoin | plan.OuterJoin, *, is_left: bool
    ) -> tuple[int, Any, int]:
        """Return the slot of a side's rows, the function that lists their keys, and the slot of the
        other side by key."""
        mine, other = (join.left, join.right) if is_left else (join.right, join.left)
        keyed = make_key_lister(mine, sides(join)[not is_left], bindings(mine) if is_left else 1)
        return self._list(mine), keyed, self._index(join, self._list(other), is_left=not is_left)

    def _aggregate(self, node: plan.Aggregate) -> tuple[Pass, list[int]]:
        """Return the pass that computes the rows of an aggregate, and the slots that it reads."""
        if not is_read(node) or node.row is not None:
            raise NoWholeRound
        asked = [a for a in node.aggregates if not isinstance(a.accumulator, CountAccumulator)]
        places = [a.value for a in asked]
        best = "" if len(node.aggregates) > 1 else _best_of(node.aggregates[0].accumulator)

        def sink_of(pipeline: RowPipeline) -> LoopSink:
            values = [aggregate_value(pipeline, value) for value in places]
            key = node.key
            assert key is None or isinstance(key, Lifted)
            return Gathering(None if key is None else pipeline.take(key.body), values, best)

        streams = self._loops(node.input, sink_of, "groups, ", node.key)
        self._grouped.append((node, streams))
        loops = [stream.loop for stream in streams]
        totals = totals_of(node)
        quick, more = self._quick_pass(node, streams, best)

        def make(slots: Slots) -> Sequence[Row]:
            if quick is not None and (found := quick(slots)) is not None:
                self._looked += len(found)
                return found
            groups: dict[Any, list[Any]] = defaultdict(list)
            if node.key is None:
                groups[()] = []
            for loop in loops:
                loop(slots, groups)
            self._looked += sum(map(len, groups.values()))
            return totals(groups)

        return make, [*_read_by(streams), *more]

    def _quick_pass(
        self, node: plan.Aggregate, streams: Sequence[AggregateLoop], best: str
    ) -> tuple[QuickPass | None, list[int]]:
        """Return a pass over best partners for an aggregate, if there is one, and the slots that it
        reads."""
        (stream, *others) = streams
        below = stream.base
        if not others and best and stream.join is not None:
            partners = find_best_partners(node, stream.chain, stream.join, best)
            if partners is not None:
                self._best[id(node)] = partners
                left, right = map(self._list, stream.inputs)
                own, other = (left, right) if partners.is_left else (right, left)
                columns = self._add(lambda slots: partners.read_rows(slots[own]), [own])
                is_lazy = self._is_read_once(node)
                return rows_pass(partners, columns, other, is_lazy=is_lazy), [columns, other]
        if not others and isinstance(below, plan.Aggregate) and id(below) in self._best:
            groups = find_partner_groups(self._best[id(below)], below, node, stream.chain)
            if groups is not None and self._is_read_once(below):
                (place,) = stream.reads
                return groups_pass(groups, place), [place]
        return None, []

    def _is_read_once(self, node: plan.Node) -> bool:
        """Return True if one node reads the rows of `node`, and it is no relation of the loop."""
        return self._readers[id(node)] == 1 and all(node is not body for body in self._keep)


def compile_whole_round(
    bodies: Sequence[plan.Node],
    given: int,
    changing: int,
    tolerances: Sequence[plan.Tolerance | None] = (),
) -> WholeRound | None:
    """Return the passes of a round; None if a node has no pass, or there are too many.

    `given` is the number of relations, the first `changing` of which change in each round.
    """
    try:
        return WholeRound(bodies, given, changing, tolerances)
    except NoWholeRound:
        return None


def _best_of(accumulator: Any) -> str:
    """Return the function that finds the only value that matters of a group; "" if all do."""
    match accumulator:
        case MinAccumulator():
            return "min"
        case MaxAccumulator():
            return "max"
    return ""


def _check_read(join: Joined | plan.SemiJoin | plan.AntiJoin) -> None:
    """Raise `NoWholeRound` unless all callables of a join are lifted."""
    called = [residual(join), *(f for side in sides(join) for f in side_functions(side))]
    if not all(f is None or isinstance(f, Lifted) for f in called):
        raise NoWholeRound


def has_layout(times: int) -> bool:
    """Return True if a number of rounds is worth a layout."""
    return times >= FEWEST


def _read_by(streams: Sequence[AggregateLoop]) -> list[int]:
    """Return the slots that loops read."""
    return [place for stream in streams for place in stream.reads]
