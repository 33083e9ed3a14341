"""Loop nests of all operators, as combinations of sources, probes and sinks.

chain              pairs, or a batch                               -> any sink
join               keyed pairs of a side    x rows of the other    -> list, groups
join of sums       keyed pairs, or sums     x rows, or sums        -> groups, sums
multiway join      keyed pairs of an input  x each other input     -> list, groups
recursion          rows of a round, pairs   x an input, a relation -> list
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from optimizer import plan
from optimizer.expr import (
    Expr,
    Item,
    Lifted,
    Local,
    Parameter,
    all_parameters,
    constant,
    items_of,
    substitute,
)
from optimizer.expressions.knowledge import Shapes
from optimizer.expressions.text import over as over_row
from optimizer.plans import multiway as multiways
from optimizer.plans.factorization import Factorization, Sums
from optimizer.plans.side_conditions import SideTerm
from optimizer.record import record
from optimizer.traverse import read_functions
from reactive.engine.codegen import loop_expressions, probe_order
from reactive.engine.codegen import probes as probing
from reactive.engine.codegen.emitter import Chain, Emitter, RowPipeline, row_names
from reactive.engine.codegen.functions import Made
from reactive.engine.codegen.nest import (
    Bound,
    KeySink,
    ListSink,
    LoopNest,
    LoopSink,
    LoopSource,
    Move,
    PartnerSink,
    Then,
)
from reactive.engine.collections.index import Mark

KeySide = tuple[Lifted | None, tuple[SideTerm, ...]]
SinkOf = Callable[[RowPipeline], LoopSink]
LEFT, RIGHT = "left", "right"
OF_SIDES = "left, right, find_right, find_left"
"""The parameters of loops over both sides of a join."""


# Chains.


def delta_loop(
    parameters: str,
    pipeline: RowPipeline,
    called: Iterable[Lifted],
    sink: LoopSink,
    *,
    batch: bool = False,
) -> Made:
    """Build the loop over the pairs of a delta, or the rows of a batch."""
    nest = LoopNest(row_names(called, pipeline.bindings), pipeline, sink)
    places = range(pipeline.bindings)
    if not batch:
        _look_inside(nest, pipeline, sink, "delta", places)
    nest.loop(_row_source(nest, places) if batch else _pair_source(nest, places))
    return nest.build(parameters)


def _look_inside(
    nest: LoopNest,
    pipeline: RowPipeline,
    sink: LoopSink,
    over: str,
    places: Sequence[int],
    *,
    keyed: bool = False,
    moves: Iterable[Move] = (),
) -> None:
    """Restrict loops over a changed bag to the changes inside it.

    Nothing is written for a pipeline that makes at most one row of a row.
    """
    if not pipeline.makes_several:
        return
    after = [*sink.exprs(), *(expr for move in moves for expr in move.exprs())]
    for bag in loop_expressions.inner_bags(pipeline, after, places):
        nest.first(over, bag.substitute_keyed if keyed else bag, "inside")


def keyed_loop(
    pipeline: RowPipeline, called: Iterable[Lifted], sink: KeySink, *, batch: bool
) -> Made:
    """Build the loop that adds keys to pairs, or to the rows of a batch."""
    nest = LoopNest(row_names(called, pipeline.bindings), pipeline, sink)
    places = tuple(range(pipeline.bindings))
    source = LoopSource("delta", "pair", ("row, weight = pair",), places=places)
    if not batch:
        _look_inside(nest, pipeline, sink, "delta", places)
    nest.loop(_row_source(nest, places) if batch else source)
    return nest.build("delta", "keyed")


def _pair_source(nest: LoopNest, places: Iterable[int]) -> LoopSource:
    places = tuple(places)
    return LoopSource("delta", f"{nest.one(places)}, weight", places=places)


def _row_source(nest: LoopNest, places: Iterable[int]) -> LoopSource:
    places = tuple(places)
    return LoopSource("delta", nest.one(places), weights=(), places=places)


# Joins of two.


def join_loops(
    bindings: int, shapes: Shapes, rest: Lifted | None, chain: Chain, sink_of: SinkOf
) -> Made:
    """Build the loops over the changes of both sides of a join, with the residual predicate and the
    chain above. The parameters `groups` and `before` are for a sink that has groups."""
    nest = _nest_of_pairs(bindings, shapes, rest, chain, sink_of)
    return nest.build(f"groups, before, {OF_SIDES}")


def values_of_pairs(
    shapes: Shapes, tests: Iterable[Expr], chain: Chain, sink_of: SinkOf
) -> list[Expr]:
    """Return the expressions that the loops of a join evaluate for a pair."""
    pipeline = _of_joined(shapes, tests, chain)
    values = sink_of(pipeline).exprs()
    return [*(instruction.expr for instruction in pipeline.instructions), *values]


def batch_join_loops(bindings: int, shapes: Shapes, rest: Lifted | None, chain: Chain) -> Made:
    """Build the loops of a join over keys and rows of one weight, into a batch.

    The function returns None if a partner has another weight.
    """
    nest = _nest_of_pairs(bindings, shapes, rest, chain, _batch, batch=True)
    return nest.build(OF_SIDES)


def outer_loops(
    bindings: int, shapes: Shapes, rest: Lifted | None, chain: Chain, kind: str, sink_of: SinkOf
) -> Made:
    """Build the loops of an outer join: those of a join, and loops over the rows of a kept side
    that lose their last partner or get a first one (`alone_left`, `alone_right`)."""
    nest = _nest_of_pairs(bindings, shapes, rest, chain, sink_of)
    for side in ("left", "right"):
        if kind in (side, "full"):
            own, pipeline = _padded(bindings, shapes, chain, side)
            sink = sink_of(pipeline)
            nest.values.bind({"nothing": None})  # not a literal: Python warns of `None[0]`
            nest.become(pipeline, sink)
            _look_inside(nest, pipeline, sink, f"alone_{side}", own)
            nest.loop(LoopSource(f"alone_{side}", f"{nest.one(own)}, weight", places=own))
    return nest.build(f"groups, before, {OF_SIDES}, alone_left, alone_right")


def partner_loops(
    bindings: int, shapes: Shapes, rest: Lifted | None, *, keeps_left: bool, is_interned: bool
) -> Made:
    """Build the loops that count the partners of the rows of one side of a join.

    That side is called left in the function: new rows of it count their partners, and changed rows
    of the other side change the counts of the left rows that they are joined with.
    """
    asked = [] if rest is None else [rest]
    pipeline = _of_joined(shapes, [test.body for test in asked], ())
    names = row_names(asked, bindings + 1)
    left, right = tuple(range(bindings)), (bindings,)
    ours, theirs = (left, right) if keeps_left else (right, left)
    row = names[ours[0]] if len(ours) == 1 else "row"
    sink = PartnerSink(row, is_interned=is_interned)
    nest = LoopNest(names, pipeline, sink, more=("handle",), counts=True)
    new = LoopSource("left", "key, pair", (f"{nest.one(ours)}, _ = pair",), ("1",), ours)
    nest.loop(new, probing.ProbeCode("find_right", probing.split_form(*theirs)))
    changed = _keyed_source(nest, "right", "weight", theirs)
    nest.loop(changed, probing.ProbeCode("find_left", probing.set_form(*ours)))
    return nest.build(OF_SIDES)


def alone_loop(
    bindings: int, shapes: Shapes, chain: Chain, side: str, sink_of: SinkOf, into: str = ""
) -> Callable[..., Any]:
    """Build the loop over rows of a kept side that have no partner, without weights.

    `into` are parameters of the sink, before the rows.
    """
    own, pipeline = _padded(bindings, shapes, chain, side)
    nest = LoopNest(row_names(read_functions(*chain), bindings + 1), pipeline, sink_of(pipeline))
    nest.values.bind({"nothing": None})
    nest.loop(_row_source(nest, own))
    return nest.build(f"{into}delta")[0]


def _padded(
    bindings: int, shapes: Shapes, chain: Chain, side: str
) -> tuple[tuple[int, ...], RowPipeline]:
    """Return the places of a kept side's bindings, and the pipeline of its rows without a partner.

    The bindings of the other side are the variable `nothing`.
    """
    whole, places = all_parameters(bindings + 1), tuple(range(bindings + 1))
    nothing = Local("nothing")
    if side == "left":
        return places[:-1], _of_joined(shapes, (), chain, (*whole[:-1], nothing))
    return places[-1:], _of_joined(shapes, (), chain, (*[nothing] * bindings, whole[-1]))


def _nest_of_pairs(
    bindings: int,
    shapes: Shapes,
    rest: Lifted | None,
    chain: Chain,
    sink_of: SinkOf,
    *,
    batch: bool = False,
) -> LoopNest:
    """Return the loops over both deltas of a join; with `batch`, all rows have one weight."""
    asked = [] if rest is None else [rest]
    pipeline = _of_joined(shapes, [test.body for test in asked], chain)
    names = row_names([*asked, *read_functions(*chain)], bindings + 1)
    sink = sink_of(pipeline)
    nest = LoopNest(names, pipeline, sink, counts=True)
    left, right = tuple(range(bindings)), (bindings,)
    for over, mine, find, theirs in (
        ("left", left, "find_right", right),
        ("right", right, "find_left", left),
    ):
        keyed = LoopSource(over, f"key, {nest.one(mine)}", weights=(), places=mine)
        source = keyed if batch else _keyed_source(nest, over, "weight", mine)
        if not batch:
            _look_inside(nest, pipeline, sink, over, mine, keyed=True)
        nest.loop(source, probing.ProbeCode(find, probing.split_form(*theirs)))
    return nest


def _of_joined(
    shapes: Shapes,
    tests: Iterable[Expr],
    chain: Chain,
    row: tuple[Expr, ...] | None = None,
) -> RowPipeline:
    """Return the pipeline of joined rows: tests, then a chain over them, or over `row`.

    `shapes` are the shapes of the bindings of a joined row.
    """
    pipeline = RowPipeline((), len(shapes), shapes)
    pipeline.is_input = False  # the row must be constructed
    for test in tests:
        pipeline.test(test)
    if row is not None:
        pipeline.row = row
    pipeline.extend(chain)
    return pipeline


def _keyed_source(nest: LoopNest, over: str, weight: str, places: tuple[int, ...]) -> LoopSource:
    """Return the source over keyed pairs; `weight` is the variable of their weights."""
    return LoopSource(
        over, "key, pair", (f"{nest.one(places)}, {weight} = pair",), (weight,), places
    )


# Look-ups of events.


def lookup_loop(
    lookup: plan.Lookup,
    shapes: Shapes,
    below: Chain,
    row: Expr,
    chain: Chain,
    *,
    batch: bool,
    is_unique: bool,
) -> Made:
    """Build the loop from events to their rows, as `delta, find_right -> pairs`.

    With `batch`, it takes events and makes rows, and returns None if a row that is found has
    another weight than one.

    Parameters
    ----------
    shapes: those of the bindings of an event, then of a row of the index.
    below: the chain that puts the key beside the event.
    row: the row of the right, over the row of the index.
    chain: the chain above the pairs.
    is_unique: at most one row has a key.
    """
    theirs = len(shapes) - 1
    pipeline = RowPipeline(below, theirs, shapes)
    before, pair = len(pipeline.instructions), pipeline.row
    event, key = (over_row(item, pair) for item in items_of(Parameter(0), 2))
    mine = (Parameter(0),) if lookup.count == 1 else items_of(Parameter(0), lookup.count)
    events = tuple(over_row(each, (event,)) for each in mine)
    pipeline.row = (*events, over_row(row, (Parameter(theirs),)))
    pipeline.is_input = False
    pipeline.extend(chain)
    first = RowPipeline((), theirs, shapes)
    first.instructions, pipeline.instructions = (
        pipeline.instructions[:before],
        pipeline.instructions[before:],
    )
    nest = LoopNest(
        row_names(read_functions(*chain), theirs + 1), pipeline, ListSink(pipeline, batch=batch)
    )
    places = range(theirs)
    source = _row_source(nest, places) if batch else _pair_source(nest, places)
    form = probing.unique_form(theirs) if is_unique else probing.split_form(theirs)
    nest.loop(source, probing.ProbeCode("find_right", form, (key,)), first=first)
    return nest.build("delta, find_right")


# Joins of sums.


def sums_loops(
    names: tuple[str, ...],
    shapes: Shapes,
    factors: Factorization,
    chain: Chain,
    sink_of: SinkOf,
    *,
    counts: bool,
) -> Made:
    """Build the loops over both sides of a join of sums, with a chain on the pairs.

    Parameters
    ----------
    names: names of the bindings of a pair.
    counts: True if the function takes groups, and also returns the number of partners.
    """
    nest = _nest_of_sums(names, shapes, factors, chain, sink_of, counts=counts)
    for outer, inner in ((LEFT, RIGHT), (RIGHT, LEFT)):
        form = _side_form(factors, names, inner)
        probe = probing.ProbeCode(f"find_{inner}", form, finds_all=outer in factors.kept)
        nest.loop(_side_source(nest, factors, outer), probe)
    given = "groups, before, " if counts else ""
    return nest.build(f"{given}{OF_SIDES}")


def changes_loop(sums: Sequence[str], pipeline: RowPipeline, sink: LoopSink) -> Callable[..., Any]:
    """Build the loop over sums by key, without a join."""
    more = ("key", "times_left", "times_right", *sums)
    nest = LoopNest(("row",), pipeline, sink, more=more)
    taken = (f"{', '.join(('times_left', *sums))}, = sums", "times_right = 1")
    nest.loop(LoopSource("left", "key, sums", taken, ("times_left",), ()))
    return nest.build("groups, before, left")[0]


def loop_of_one(
    names: tuple[str, ...], shapes: Shapes, factors: Factorization, sink_of: SinkOf, outer: str
) -> tuple[Callable[..., Any], str]:
    """Build the loop over a single change of a side, whose partner is a single row or sum."""
    nest = _nest_of_sums(names, shapes, factors, (), sink_of, counts=False)
    inner = RIGHT if outer == LEFT else LEFT
    form = _side_form(factors, names, inner, alone=True)
    probe = probing.ProbeCode(f"find_{inner}", form, finds_all=outer in factors.kept)
    nest.loop(_side_source(nest, factors, outer), probe)
    return nest.build(f"groups, before, {outer}, find_{inner}")


def _nest_of_sums(
    names: tuple[str, ...],
    shapes: Shapes,
    factors: Factorization,
    chain: Chain,
    sink_of: SinkOf,
    *,
    counts: bool,
) -> LoopNest:
    """Return a nest without loops, over a join in which sums replace rows of a side."""
    pipeline = _of_joined(shapes, factors.tests, chain)
    kept = ((LEFT, factors.left), (RIGHT, factors.right))
    spelled = [
        name
        for side, of in kept
        if of
        for name in (*_groups(side, of), *_sum_names(side, of), *_extreme_names(side, of))
    ]
    more = (*spelled, "times_left", "times_right")
    return LoopNest(names, pipeline, sink_of(pipeline), more=more, counts=counts)


def _sums_of_side(factors: Factorization, side: str) -> Sums | None:
    return factors.left if side == LEFT else factors.right


def _side_places(names: Sequence[str], side: str) -> tuple[int, ...]:
    """Return the places of a side's bindings in a pair: the right one is the last."""
    count = len(names) - 1
    return tuple(range(count)) if side == LEFT else (count,)


def _side_source(nest: LoopNest, factors: Factorization, side: str) -> LoopSource:
    """Return the source over the changes of a side, whose state is rows or sums."""
    of, weight = _sums_of_side(factors, side), f"times_{side}"
    if of is None:
        return _keyed_source(nest, side, weight, _side_places(nest.names, side))
    each = "(key, part), sums" if of.groups else "key, sums"
    return LoopSource(side, each, tuple(_assignment_lines(side, of)), (weight,), ())


def _side_form(
    factors: Factorization, names: Sequence[str], side: str, *, alone: bool = False
) -> probing.Form:
    """Return the code for the partners found on a side; for an `alone` change, one sum or row."""
    of, weight = _sums_of_side(factors, side), f"times_{side}"
    if of is None:
        places = _side_places(names, side)
        return probing.single_form(weight, *places) if alone else probing.pair_form(weight, *places)
    taken = _assignment_lines(side, of)

    def form(nest: LoopNest, emitter: Emitter, found: str, bound: Bound, then: Then) -> None:
        nest.hoist(emitter, bound)
        if of.groups:
            nest.count(emitter, f"len({found})")
            emitter = emitter.loop(f"for part, sums in {found}.items():")
        else:
            nest.count(emitter, "1")
            emitter.line(f"sums = {found}")
        for line in taken:
            emitter.line(line)
        then(emitter, bound.and_found((), weight))

    return form


def _assignment_lines(side: str, of: Sums) -> Iterator[str]:
    """Yield the lines that assign the stored values of a side to variables."""
    names = [f"times_{side}", *_sum_names(side, of), *_extreme_names(side, of)]
    yield f"{', '.join(names)}, = sums"
    if of.groups:
        yield f"{', '.join(_groups(side, of))} = part"


def _sum_names(side: str, of: Sums) -> list[str]:
    return [f"{side}_sum{place}" for place in range(len(of.values))]


def _extreme_names(side: str, of: Sums) -> list[str]:
    """Return the names of stored extremes, and of how often they count in a change."""
    names = [f"{side}_extreme{place}" for place in range(len(of.extremes))]
    return [*names, f"{side}_sign"] if names else []


def _groups(side: str, of: Sums) -> list[str]:
    return [f"{side}_group{place}" for place in range(len(of.groups))]


# Multiway joins.


def multiway_loops(
    names: tuple[str, ...],
    shapes: Shapes,
    multiway: multiways.MultiwayJoin,
    paths: Sequence[probe_order.ProbeOrder],
    chain: Chain,
    sink_of: SinkOf,
    *,
    batch: bool = False,
) -> Made:
    """Build the loops over the changes of each input, by its probe order, with a chain above.

    With `batch`, the loops run over keys and rows of one weight, and the function returns None if a
    partner has another weight; no probe order then intersects inputs.
    """
    pipeline = joined_plan(multiway, chain, shapes)
    more = [f"{name}_{n}" for name in ("times", "found", "also") for n in range(len(names))]
    sink = sink_of(pipeline)
    nest = LoopNest(names, pipeline, sink, more=more, counts=True)
    nest.values.bind({"Mark": Mark})
    parameters = ["groups", "before"]
    for place, path in enumerate(paths):
        finds = {
            key: f"find_{place}_{number}" for number, key in enumerate(probe_order.probe_keys(path))
        }
        parameters += [f"delta_{place}", *finds.values()]
        source = _input_source(names[place], place, batch=batch)
        orders = [_moves(moves, finds, batch=batch) for moves in path]
        every = [move for order in orders for move in order]
        if not batch:
            _look_inside(nest, pipeline, sink, source.over, (place,), keyed=True, moves=every)
        if len(orders) == 1:
            nest.loop(source, *orders[0])
        else:
            same = next(n for n, (a, b) in enumerate(zip(*path, strict=False)) if a != b)
            one, other = (
                _rename_found(moves[same:], f"found_{n}") for n, moves in enumerate(orders)
            )
            nest.loop(source, *orders[0][:same], probing.Shorter(one, other))
    return nest.build(", ".join(parameters))


def batch_multiway_loops(
    names: tuple[str, ...],
    shapes: Shapes,
    multiway: multiways.MultiwayJoin,
    paths: Sequence[probe_order.ProbeOrder],
    chain: Chain,
) -> Callable[..., Any] | None:
    """Build the loops of a multiway join into a batch; None if a probe order intersects inputs."""
    steps = [step for path in paths for moves in path for step in moves]
    if any(len(path) > 1 for path in paths) or not all(
        isinstance(step, probe_order.InputProbe) for step in steps
    ):
        return None
    return multiway_loops(names, shapes, multiway, paths, chain, _batch, batch=True)[0]


def _input_source(name: str, place: int, *, batch: bool) -> LoopSource:
    """Return the loop over the changes of an input: pairs, or rows of one weight."""
    over, skip = f"delta_{place}", "if key.__class__ is Mark: continue"
    if batch:
        return LoopSource(over, f"key, {name}", (skip,), (), (place,))
    taken = (skip, f"{name}, times_{place} = pair")
    return LoopSource(over, "key, pair", taken, (f"times_{place}",), (place,))


def joined_plan(multiway: multiways.MultiwayJoin, chain: Chain, shapes: Shapes) -> RowPipeline:
    """Return the pipeline of the joined rows."""
    return _of_joined(shapes, multiway.residual, chain, multiway.row)


def _moves(
    moves: Sequence[probe_order.ProbeStep], finds: dict[probe_order.Key, str], *, batch: bool
) -> list[Move]:
    """Return the probes of a probe order, after its first row."""
    made: list[Move] = []
    for move in reversed(moves):
        number = len(moves) - len(made)
        if isinstance(move, probe_order.Intersection):
            left, right = (
                probing.ProbeCode(
                    finds[step.key],
                    probing.pair_form("times"),
                    step.exprs,
                    found=f"{name}_{number}",
                )
                for step, name in ((move.left, "found"), (move.right, "also"))
            )
            places = (move.left.place, move.right.place)
            made.insert(0, probing.Meeting(left, right, places, f"times_{places[0]}", tuple(made)))
        else:
            place, found = move.place, f"found_{number}"
            several = (
                probing.split_form(place) if batch else probing.pair_form(f"times_{place}", place)
            )
            form = probing.unique_form(place) if move.is_only else several
            made.insert(
                0, probing.ProbeCode(finds[move.key], form, move.exprs, None, found, move.tests)
            )
    return made


def _rename_found(moves: Sequence[Move], found: str) -> list[Move]:
    """Return moves whose first probe stores its rows in the variable `found`."""
    first = moves[0]
    assert isinstance(first, probing.ProbeCode)
    return [replace(first, found=found), *moves[1:]]


# Recursion.


def _batch(pipeline: RowPipeline) -> LoopSink:
    return ListSink(pipeline, batch=True)


@record
class DeltaRule:
    """A join in a recursion: a relation below wheres, another side, and a chain above the pairs."""

    below: tuple[plan.Node, ...]
    key: KeySide
    is_left: bool
    bindings: int
    """Number of bindings of the pair."""
    width: int
    """Number of bindings of the recursive side."""
    shapes: Shapes
    residual: Lifted | None
    above: tuple[plan.Node, ...]

    @property
    def mine(self) -> tuple[int, ...]:
        """The places of the recursive side in the pair."""
        count = self.bindings
        return tuple(range(count - 1)) if self.is_left else (count - 1,)

    @property
    def theirs(self) -> tuple[int, ...]:
        """The places of the other side in the pair."""
        return tuple(place for place in range(self.bindings) if place not in self.mine)


def entering_loop(rule: DeltaRule, sink_of: SinkOf = _batch, into: str = "") -> Made:
    """Build `rows, find -> rows`: all derivations are of this round. Other sinks may take more."""
    nest = _nest_of(rule, sink_of)
    return _outward(rule, nest, _row_source(nest, rule.mine), f"{into}delta, find", "entering")


def leaving_loop(rule: DeltaRule) -> Made:
    """Build `(row, -round), find -> (row, -round)`, a join with an input."""
    nest = _nest_of(rule)
    return _outward(rule, nest, _pair_source(nest, rule.mine), "delta, find", "leaving")


def leaving_both_loop(rule: DeltaRule) -> Made:
    """Build `(row, -round), find, since -> (row, -round)`, a join with a relation; the round is the
    later one of the two rows."""
    nest = _nest_of(rule)
    later = "min({weight}, -since({row}))"
    source = _pair_source(nest, rule.mine)
    return _outward(rule, nest, source, "delta, find, since", "leaving", weight=later)


def meeting_loop(rule: DeltaRule) -> Made:
    """Build `keyed, find, rounds -> pairs`, for inserted (1) or deleted (-1) rows of an input.

    The round is that of the recursive row.
    """
    nest = _nest_of(rule)
    form = probing.set_form(*rule.mine, weight="{weight} * rounds[{row}]")
    nest.loop(_keyed_source(nest, "delta", "weight", rule.theirs), probing.ProbeCode("find", form))
    return nest.build("delta, find, rounds", "meeting")


def _outward(
    rule: DeltaRule,
    nest: LoopNest,
    source: LoopSource,
    parameters: str,
    name: str,
    weight: str = "",
) -> Made:
    """Build the loop from rows of the relation to their partners."""
    first = RowPipeline((), rule.bindings, rule.shapes)
    for node in rule.below:
        assert isinstance(node, plan.Where) and isinstance(node.predicate, Lifted)
        first.test(_read_pair(rule, node.predicate.body, rule.width))
    written, steps = rule.key
    moved = [replace(s, function=_function_of_pair(rule, s.function)) for s in steps]
    key = loop_expressions.key_parts(
        first, None if written is None else _function_of_pair(rule, written), moved
    )
    form = probing.set_form(*rule.theirs, weight=weight)
    probe = probing.ProbeCode("find", form, tuple(key), is_written=written is not None)
    nest.loop(source, probe, first=first)
    return nest.build(parameters, name)


def _nest_of(rule: DeltaRule, sink_of: SinkOf = ListSink) -> LoopNest:
    """Return a nest without loops, for the rows that a delta rule derives."""
    asked = [] if rule.residual is None else [rule.residual]
    pipeline = _of_joined(rule.shapes, [test.body for test in asked], rule.above)
    names = row_names([*asked, *read_functions(*rule.above)], rule.bindings)
    return LoopNest(names, pipeline, sink_of(pipeline))


def _function_of_pair(rule: DeltaRule, function: Lifted) -> Lifted:
    return function.with_body(_read_pair(rule, function.body, len(rule.mine)))


def _read_pair(rule: DeltaRule, expr: Expr, arguments: int) -> Expr:
    """Rewrite an expression of the recursive row, of `arguments` parameters, to read the pair."""
    places = rule.mine
    if arguments == len(places):
        return substitute(expr, tuple(map(Parameter, places)))
    row = Parameter(places[0])  # one value of the pair, but several bindings of its own
    return substitute(expr, tuple(Item(row, constant(i)) for i in range(arguments)))
