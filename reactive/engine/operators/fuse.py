"""Make operators that run generated loops, with the plain operators that the loops replace."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, MutableMapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, TypeGuard, TypeVar, cast

from optimizer import plan
from optimizer.expr import Apply, Expr, Function, Lifted, walk
from optimizer.plans import multiway as multiways
from optimizer.plans.factorization import NO_FACTORIZATION, Factorization, Sums
from optimizer.plans.properties import bindings, is_interned, row_shape, shapes
from optimizer.plans.side_conditions import AnyJoin, pair_shapes, residual
from optimizer.traverse import read_functions
from reactive.engine.codegen import loop_expressions
from reactive.engine.codegen import probe_order as order_of_probes
from reactive.engine.codegen.emitter import RowPipeline, row_names
from reactive.engine.codegen.functions import (
    Made,
    Recall,
    build_at_first_call,
    callable_of,
    generated_source,
    make_without_reuse,
)
from reactive.engine.codegen.nest import CountSink, KeySink, ListSink
from reactive.engine.collections.index import Key
from reactive.engine.collections.zset import Pair, Row
from reactive.engine.operators import event_time, index_by, predicate_matching, set_operators
from reactive.engine.operators import extremes_by as extremes
from reactive.engine.operators import join as sums_by
from reactive.engine.operators.accumulators import CountAccumulator
from reactive.engine.operators.aggregate import GroupAggregates
from reactive.engine.operators.loops import (
    factored_aggregate,
    first_load,
    multiway_join,
    padded_sides,
)
from reactive.engine.operators.loops import join_loops as joined_groups
from reactive.engine.operators.loops import outer_join_loops as matched_loop
from reactive.engine.operators.loops.grouped import (
    Grouping,
    GroupingOfOne,
    GroupLoopRunner,
    first_that_fits,
    when_large,
)
from reactive.engine.operators.loops.nests import (
    SinkOf,
    batch_join_loops,
    batch_multiway_loops,
    delta_loop,
    join_loops,
    keyed_loop,
    lookup_loop,
    multiway_loops,
    outer_loops,
    partner_loops,
    sums_loops,
)
from reactive.engine.operators.plain import (
    PipelineSource,
    PlainChain,
    Side,
    all_read,
    count_nested,
    inputs_of_multiway,
    log_of,
    pair_with,
    plain_aggregate,
    plain_join,
    shared_accumulators,
    side_functions,
    side_key,
    signature,
)

Rows = Callable[[Sequence[Any]], Sequence[Any]]
Make = Callable[[], Any]
Loops = MutableMapping[Hashable, Callable[..., Any]]
Taken = tuple[Expr | None, list[tuple[Any, Expr | None]]]
"""A key, and accumulators with the values that they take."""
Summable = plan.Join | plan.Product | plan.OuterJoin
G = TypeVar("G", bound=Grouping)
S = TypeVar("S", bound="factored_aggregate.GroupingOfSums")


def make_loop_operator(
    node: plan.Node, below: PipelineSource, loops: Loops, recall: Recall = make_without_reuse
) -> Make:
    """Return the maker of the operator of a chain, or of the node that reads the chain.

    `loops` caches loops in use.
    """
    match node:
        case plan.Aggregate():
            return make_grouped_operator(node, below, loops, recall)
        case plan.Distinct() if below.chain:
            return lambda: set_operators.Distinct(make_linear_operator(below, loops, recall))
        case plan.Distinct():
            return set_operators.Distinct
        case _:
            return lambda: make_linear_operator(below, loops, recall)


def make_linear_operator(
    below: PipelineSource, loops: Loops, recall: Recall = make_without_reuse
) -> joined_groups.Linear:
    """Return the operator of a chain. Equal chains over rows of one shape share a loop."""
    called = read_functions(*below.chain)

    def made(kind: type[ListSink | CountSink]) -> Callable[..., Any]:
        return recall(kind.__name__, lambda: of_batch(kind))[0]

    def of_batch(kind: type[ListSink | CountSink]) -> Made:
        pipeline = below.pipeline()
        sink = ListSink(pipeline, batch=True) if kind is ListSink else CountSink(pipeline)
        return delta_loop("delta", pipeline, called, sink, batch=True)

    def listing() -> Made:
        pipeline = below.pipeline()
        return delta_loop("delta", pipeline, called, ListSink(pipeline))

    if recall is make_without_reuse:
        loop = _share_loop(loops, _doing(below), lambda: listing()[0])
    else:
        loop, _ = recall("loop", listing)
    return joined_groups.Linear(loop, PlainChain(below.chain).run, generated_source(loop), made)


def _doing(below: PipelineSource) -> tuple[Hashable, ...]:
    """Return the cache key of a loop: the chain, and the shape of its rows."""
    return below.does, bindings(below.base), shapes(below.base)


def _share_loop(
    loops: Loops, key: Hashable, make: Callable[[], Callable[..., Any]]
) -> Callable[..., Any]:
    """Return the loop with this key, if an operator runs it, or make one."""
    found = loops.get(key)
    if found is None:
        found = loops[key] = make()
    return found


def make_keyer(
    below: PipelineSource,
    side: Side,
    arguments: int,
    *,
    generate: bool,
    deferred: bool = False,
    recall: Recall = make_without_reuse,
) -> tuple[Make, Rows]:
    """Return the maker of the operator that adds keys to the rows of a chain, and the plain chain.

    A deferred operator gets the changes of several commits in one step, in which a row may be
    deleted and an equal one inserted: it compares rows by equality, not identity.
    """
    key = side_key(side, arguments)
    identity = is_interned(below.top) and not deferred
    if generate and all_read(side_functions(side)):
        return _generate_keys(below, side, arguments, key, recall, identity=identity)
    return (lambda: index_by.KeyedStream(key, identity=identity)), (lambda rows: rows)


def make_key_lister(node: plan.Node, side: Side, arguments: int) -> Callable[[list[Any]], Any]:
    """Return the loop that lists the keys of rows and the rows, for a side that is lifted."""
    below = PipelineSource((), node)
    called = list(filter(_is_lifted_function, side_functions(side)))
    pipeline = below.pipeline()
    pipeline.narrow(arguments)
    parts, is_written = _write_side_key(pipeline, side)
    sink = KeySink(pipeline, parts, is_written=is_written, batch=True)
    return keyed_loop(pipeline, called, sink, batch=True)[0]


def _generate_keys(
    below: PipelineSource,
    side: Side,
    arguments: int,
    key: Callable[[Row], Key] | None,
    recall: Recall,
    *,
    identity: bool,
) -> tuple[Make, Rows]:
    """Return the maker of a `KeyLoop` over a chain, and the plain chain."""
    rows = PlainChain(below.chain).run
    called = [*read_functions(*below.chain), *filter(_is_lifted_function, side_functions(side))]

    def made(batch: bool) -> Made:
        pipeline = below.pipeline()
        pipeline.narrow(arguments)
        parts, is_written = _write_side_key(pipeline, side)
        sink = KeySink(pipeline, parts, is_written=is_written, batch=batch)
        return keyed_loop(pipeline, called, sink, batch=batch)

    def recalled(batch: bool) -> Made:
        return recall("batch" if batch else "loop", lambda: made(batch))

    def make() -> joined_groups.KeyLoop:
        return joined_groups.KeyLoop(
            recalled, index_by.KeyedStream(key, identity=identity), rows, identity=identity
        )

    return make, rows


def _write_side_key(pipeline: RowPipeline, side: Side) -> tuple[list[Expr], bool]:
    """Return the parts of the key of a side, and True if the user wrote the key."""
    written, steps = side
    assert written is None or isinstance(written, Lifted)
    return loop_expressions.key_parts(pipeline, written, steps), written is not None


def make_grouped_operator(
    node: plan.Aggregate, below: PipelineSource, loops: Loops, recall: Recall = make_without_reuse
) -> Make:
    """Return the maker of the operator of an aggregate over a chain.

    Equal ones over rows of one shape share loops, unless `keeps_negative`: then the loop calls its
    own operator to test if a group is empty.
    """
    called = read_functions(*below.chain, node)
    shared: list[tuple[RowPipeline, Taken]] = []  # by both loops

    def made(plain: GroupAggregates, kind: type[Grouping]) -> Callable[..., Any]:
        again = make_without_reuse if plain.keeps_negative else recall
        return again(kind.__name__, lambda: written(plain, kind))[0]

    def written(plain: GroupAggregates, kind: type[Grouping]) -> Made:
        if not shared:
            pipeline = below.pipeline()
            shared.append((pipeline, _read_aggregate(node, pipeline)))
        pipeline, taken = shared[0]
        sink = _sink_of(node, taken, plain, kind)
        return delta_loop("groups, before, delta", pipeline, called, sink)

    def make() -> GroupLoopRunner:
        plain = plain_aggregate(node)
        held = loops if recall is make_without_reuse and not plain.keeps_negative else {}
        key = (signature(node), *_doing(below))
        has_one = not count_nested(below.chain) and GroupingOfOne.fits(plain.accumulators)
        of_batch = partial(made, plain, Grouping)
        make_batch = partial(build_at_first_call, of_batch) if has_one else of_batch
        loop = _share_loop(held, (Grouping, key), make_batch)
        one = None
        if has_one:
            one = _share_loop(held, (GroupingOfOne, key), lambda: made(plain, GroupingOfOne))
        sink_of = partial(grouping_sink, node, plain=plain)
        columns = when_large(lambda: factored_aggregate.group_columns(below.pipeline, sink_of))
        first = when_large(
            lambda: first_load.FirstLoad(plain, below.pipeline(), sink_of, called).step,
            needs_fields=False,
        )
        return GroupLoopRunner(
            plain,
            loop,
            PlainChain(below.chain).run,
            one=one,
            at_once=first_that_fits(columns, first),
        )

    return make


def make_join_operator(
    join: plan.Join | plan.Product,
    node: plan.Node,
    chain: tuple[plan.Node, ...],
    left: index_by.IndexBy,
    right: index_by.IndexBy,
    table: Callable[[], Iterable[Any]] | None = None,
    recall: Recall = make_without_reuse,
    *,
    by_range: bool = False,
) -> Make:
    """Return the maker of the operator of a join, its chain and the reader of the chain.

    `table` returns the rows of the left index, if a table stores them. With `by_range`, the keys of
    the indexes are the compared values.
    """

    def make() -> Any:
        rest, of = _residual(join), shapes(join)
        plain = cache(lambda: plain_join(join, left, right))
        operators = PlainChain(chain)
        sink: SinkOf = ListSink
        if isinstance(node, plan.Aggregate):
            aggregate = plain_aggregate(node)
            sink = lambda pipeline: grouping_sink(node, pipeline, aggregate)  # noqa: E731
        bounds = joined_groups.bounds_maker(
            join, chain, node, sink, (left, right), by_range=by_range
        )
        merged = (
            None if by_range else joined_groups.merged_maker(join, chain, node, sink, (left, right))
        )
        pairing = joined_groups.JoinIndexes(left, right, table, bounds, merged)

        def carefully(*deltas: Sequence[Any]) -> Sequence[Pair]:
            return operators.run(plain().step(*deltas))

        count = bindings(join.left)
        if isinstance(node, plan.Aggregate):
            again = make_without_reuse if aggregate.keeps_negative else recall
            loops, text = again("loop", lambda: join_loops(count, of, rest, chain, sink))
            return GroupLoopRunner(aggregate, loops, carefully, text, pairing)
        loops, text = recall("loop", lambda: join_loops(count, of, rest, chain, ListSink))
        plainly = lambda: operators.run(list(plain().contents()))  # noqa: E731
        batch = partial(recall, "batch", lambda: batch_join_loops(count, of, rest, chain))
        return joined_groups.JoinLoops(pairing, loops, batch, carefully, plainly, text)

    return make


def make_event_lookup(
    lookup: plan.Lookup,
    below: PipelineSource,
    held: plan.Node,
    row: Lifted,
    chain: tuple[plan.Node, ...],
    rows: index_by.IndexBy,
    recall: Recall = make_without_reuse,
    *,
    generate: bool,
    is_unique: bool,
) -> Make:
    """Return the maker of the operator of a look-up, with the chains below and above it.

    `rows` has the rows of `held` by key, and `row` makes the rows of the right of these.
    `is_unique`: at most one row has a key.
    """
    pair, made_row = pair_with(lookup.count), callable_of(row)

    def made(batch: bool) -> Made:
        both = (*shapes(below.base), row_shape(held))
        return lookup_loop(
            *(lookup, both, below.chain, row.body, chain), batch=batch, is_unique=is_unique
        )

    def make() -> event_time.LookupLoops | event_time.EventLookup:
        log = log_of(lookup)
        plain = event_time.EventLookup(
            rows,
            lambda event, found: pair(event, made_row(found)),
            pair if lookup.is_left else None,
            PlainChain(below.chain).run,
            PlainChain(chain).run,
            log=None if generate else log,
        )
        if not generate:
            return plain
        loop, text = recall("loop", lambda: made(False))
        batch = lambda: recall("batch", lambda: made(True))[0]  # noqa: E731
        is_left = lookup.is_left
        return event_time.LookupLoops(rows, loop, batch, plain, text, is_left=is_left, log=log)

    return make


def make_outer_join_operator(
    join: plan.OuterJoin,
    node: plan.Node,
    chain: tuple[plan.Node, ...],
    left: index_by.IndexBy,
    right: index_by.IndexBy,
    recall: Recall = make_without_reuse,
    *,
    by_range: bool = False,
) -> Make:
    """Return the maker of the operator of an outer join, its chain and the reader of the chain."""

    def loops(sink_of: SinkOf) -> tuple[Callable[..., Any], str]:
        count, of = bindings(join.left), shapes(join)
        return outer_loops(count, of, _residual(join), chain, join.kind, sink_of)

    def make() -> matched_loop.OuterJoinRunner | matched_loop.GroupedOuterJoin:
        plain = make_matching_join(join, left, right, recall, by_range=by_range)()
        chained = PlainChain(chain).run
        bounds = partial(
            joined_groups.bounds_maker, join, chain, node, indexes=(left, right), by_range=by_range
        )
        if not isinstance(node, plan.Aggregate):
            merged = (
                None
                if by_range
                else joined_groups.merged_maker(join, chain, node, ListSink, (left, right))
            )
            pairing = joined_groups.JoinIndexes(left, right, None, bounds(ListSink), merged)
            found = recall("loop", lambda: loops(ListSink))
            return matched_loop.OuterJoinRunner(plain, pairing, *found, chained)
        groups = plain_aggregate(node)
        again = make_without_reuse if groups.keeps_negative else recall
        sink: SinkOf = lambda pipeline: grouping_sink(node, pipeline, groups)  # noqa: E731
        merged = (
            None if by_range else joined_groups.merged_maker(join, chain, node, sink, (left, right))
        )
        pairing = joined_groups.JoinIndexes(left, right, None, bounds(sink), merged)
        made = again("loop", lambda: loops(sink))
        return matched_loop.GroupedOuterJoin(groups, plain, pairing, *made, chained)

    return make


def make_matching_join(
    join: plan.OuterJoin | plan.SemiJoin | plan.AntiJoin,
    left: index_by.IndexBy,
    right: Any,
    recall: Recall = make_without_reuse,
    *,
    by_range: bool = False,
) -> Make:
    """Return the maker of the plain operator of a join that tests for partners.

    Generated loops count the partners of rows. They are built at their first call. A function
    that was not lifted is called for each pair, as a loop also asks about rows that leave.
    """
    if any(
        isinstance(part, Apply)
        for test in joined_groups.residual_tests(join)
        for part in walk(test)
    ):
        return lambda: plain_join(join, left, right)

    def loops(*, keeps_left: bool) -> Made:
        count, of = bindings(join.left), pair_shapes(join)
        is_interned = (left if keeps_left else right).handle is id
        return partner_loops(
            count, of, _residual(join), keeps_left=keeps_left, is_interned=is_interned
        )

    bounds = joined_groups.bounds_maker(join, (), join, None, (left, right), by_range=by_range)

    def counters(keeps_left: bool) -> predicate_matching.PartnerLoop:
        side = "left" if keeps_left else "right"
        made = partial(recall, f"partners {side}", partial(loops, keeps_left=keeps_left))
        loop = build_at_first_call(lambda: made()[0])
        return predicate_matching.PartnerLoop(loop, bounds, 0 if keeps_left else 1)

    return lambda: plain_join(join, left, right, counters)


def _residual(join: AnyJoin) -> Lifted | None:
    """Return the residual predicate of a join, which is lifted; None if there is none."""
    rest = residual(join)
    assert rest is None or isinstance(rest, Lifted)
    return rest


def make_row_sums(
    below: PipelineSource,
    side: Side,
    arguments: int,
    sums: Sums,
    owner: plan.Node,
    recall: Recall = make_without_reuse,
) -> Make:
    """Return the maker of the operator that maintains the rows of a chain as sums by key."""
    called = [*read_functions(*below.chain), *filter(_is_lifted_function, side_functions(side))]

    def row_pipeline() -> RowPipeline:
        pipeline = below.pipeline()
        pipeline.narrow(arguments)
        return pipeline

    def loop_over(parameters: str, kind: type[first_load.SumColumns]) -> Made:
        pipeline = row_pipeline()
        return delta_loop(
            parameters,
            pipeline,
            called,
            _summing(pipeline, side, sums, kind),
            batch=kind.is_of_batch,
        )

    def make() -> sums_by.SumsBy:
        if sums.extremes:
            loop, text = recall("loop", lambda: loop_over("delta", first_load.SumsAndValues))
            return _extremes_by(sums, loop, owner, text)
        loop, text = recall("loop", lambda: loop_over("delta", first_load.SumColumns))
        columns = when_large(
            lambda: _summing(row_pipeline(), side, sums, first_load.SumColumns).over_columns()
        )
        width, by_group = len(sums.values), bool(sums.groups)
        lists = when_large(
            lambda: first_load.sum_by_lists(
                loop_over("changed, delta", first_load.SummingInLists)[0], width
            ),
            needs_fields=False,
        )
        one = None
        if not by_group and not row_pipeline().makes_several:
            one = recall("one", lambda: loop_over("sums, delta", first_load.SummingOfOne))[0]
        return sums_by.SumsBy(
            loop,
            width,
            owner,
            text,
            by_group=by_group,
            one=one,
            at_once=first_that_fits(columns, lists),
        )

    return make


def make_pair_sums(
    join: Summable,
    chain: tuple[plan.Node, ...],
    side: Side,
    arguments: int,
    sums: Sums,
    sides: tuple[Any, Any],
    owner: plan.Node,
    recall: Recall = make_without_reuse,
) -> Make:
    """Return the maker of the operator that maintains the pairs of a join as sums by key."""

    def make() -> sums_by.SumsBy:
        below = sums.below
        called = [*read_functions(join, *chain)]
        written = side[0] is not None

        def sink_of(pipeline: RowPipeline) -> first_load.SumColumns:
            if below is None:
                pipeline.narrow(arguments)
                kind = first_load.SumsAndValues if sums.extremes else first_load.SumColumns
                return _summing(pipeline, side, sums, kind)
            parts = list(map(pipeline.take, below.parts))
            values = [_term(pipeline, v) for v in below.values if v is not None]
            count = len(parts) - len(sums.groups)
            return _sums_sink(
                (parts[:count], parts[count:], values, pipeline),
                sums,
                [pipeline.take(end) for end in below.extremes],
                is_written=written,
            )

        above = () if below is not None else chain
        factors = below or replace(NO_FACTORIZATION, tests=joined_groups.residual_tests(join))
        loop, text = recall(
            "loop", lambda: _pair_loops(join, above, factors, called, sink_of, counts=False)
        )
        width = len(sums.values)
        both = _sides_of(join, factors, sides)
        if sums.extremes:
            return _extremes_by(sums, loop, owner, text, both)
        return sums_by.SumsBy(loop, width, owner, text, by_group=bool(sums.groups), sides=both)

    return make


def make_factored_operator(
    node: plan.Aggregate,
    join: Summable,
    factors: Factorization,
    sides: tuple[Any, Any],
    recall: Recall = make_without_reuse,
) -> Make:
    """Return the maker of the operator of an aggregate over a join of sums."""

    def make() -> factored_aggregate.FactoredAggregate:
        def sink_of(pipeline: RowPipeline, kind: type[S] = factored_aggregate.GroupingOfSums) -> S:  # type: ignore[assignment]
            given = zip(node.aggregates, factors.values, strict=True)
            accumulators = [
                (a.accumulator, None if value is None else _term(pipeline, value))
                for a, value in given
            ]
            counts = [None if each is None else _term(pipeline, each) for each in factors.counts]
            key = None if node.key is None else pipeline.take(factors.parts[0])
            shared = shared_accumulators(node)
            return kind(key, accumulators, shared, counts=counts, row=node.row)

        called = read_functions(join, node)
        both = _sides_of(join, factors, sides)
        loop, text = recall(
            "loop", lambda: _pair_loops(join, (), factors, called, sink_of, counts=True)
        )
        of = shapes(join)
        names = row_names(called, len(of))
        accumulators = [folded.accumulator for folded in node.aggregates]
        one = factored_aggregate.make_single_side_runner(
            names,
            of,
            factors,
            lambda pipeline: sink_of(pipeline, factored_aggregate.GroupingOfOneSum),
            accumulators,
            both,
            recall,
        )
        return factored_aggregate.FactoredAggregate(
            plain_aggregate(node), loop, text, both, node, one
        )

    return make


def make_multiway_operator(
    join: plan.Join,
    of: multiways.MultiwayJoin,
    node: plan.Node,
    chain: tuple[plan.Node, ...],
    indexes: dict[Any, index_by.IndexBy],
    recall: Recall = make_without_reuse,
) -> Make:
    """Return the maker of the operator of a multiway join, its chain and the chain's reader."""

    def make() -> Any:
        paths = [order_of_probes.probe_order(place, of) for place in range(len(of.tests))]
        relations = inputs_of_multiway(join, of)
        shown = tuple(row_shape(relation) for relation in relations)
        names = tuple(f"row{place}" for place in range(len(relations)))
        if not isinstance(node, plan.Aggregate):
            loop, text = recall(
                "loop", lambda: multiway_loops(names, shown, of, paths, chain, ListSink)
            )
            batch = lambda: batch_multiway_loops(names, shown, of, paths, chain)  # noqa: E731
            orders = multiway_join.ProbeOrders(paths, indexes, is_filled=True)
            return multiway_join.MultiwayJoinRunner(orders, loop, batch, text, join)
        plain = plain_aggregate(node)
        again = make_without_reuse if plain.keeps_negative else recall
        sink: SinkOf = lambda pipeline: grouping_sink(node, pipeline, plain)  # noqa: E731
        loop, text = again("loop", lambda: multiway_loops(names, shown, of, paths, chain, sink))
        return factored_aggregate.FactoredAggregate(
            plain, loop, text, multiway_join.ProbeOrders(paths, indexes), join
        )

    return make


def _sides_of(
    join: Summable, factors: Factorization, sides: tuple[Any, Any]
) -> factored_aggregate.Sides:
    """Return the sides of a join of sums; those of an outer join are padded."""
    if factors.kept:
        return padded_sides.PaddedSides(*sides, factors, bindings(join.left))
    return factored_aggregate.Sides(*sides)


def _extremes_by(
    sums: Sums,
    loop: Callable[..., Any],
    owner: plan.Node,
    text: str,
    sides: factored_aggregate.Sides | None = None,
) -> extremes.ExtremesBy:
    """Return the operator of sums with extremes."""
    below = sums.below
    ends = [e.value for e in sums.extremes] if below is None else below.extremes
    listed = _listed_values(sums, ends)
    places = list(dict.fromkeys(listed))
    named = [(places.index(each), e.name) for each, e in zip(listed, sums.extremes, strict=True)]
    return extremes.ExtremesBy(
        *(loop, len(sums.values), owner, text, named),
        by_group=bool(sums.groups),
        sides=sides,
    )


def _pair_loops(
    join: Summable,
    chain: tuple[plan.Node, ...],
    factors: Factorization,
    called: Sequence[Lifted],
    sink_of: SinkOf,
    *,
    counts: bool,
) -> tuple[Callable[..., Any], str]:
    """Return the loops over the pairs of a join of rows or sums, and their code."""
    of = shapes(join)
    names = row_names(called, len(of))
    return sums_loops(names, of, factors, chain, sink_of, counts=counts)


def _summing(
    pipeline: RowPipeline, side: Side, sums: Sums, kind: type[first_load.SumColumns]
) -> first_load.SumColumns:
    """Return the sink that sums the rows of a pipeline by key; adds its tests to the pipeline."""
    for test in sums.tests:
        pipeline.test(test)
    key, is_written = _write_side_key(pipeline, side)
    groups = list(map(pipeline.take, sums.groups))
    values = [factored_aggregate.Term(pipeline.take(value)) for value in sums.values]
    given = (key, groups, values, pipeline)
    if kind is first_load.SumsAndValues:
        ends = [pipeline.take(extreme.value) for extreme in sums.extremes]
        return _sums_sink(given, sums, ends, is_written=is_written)
    return kind(*given, is_written=is_written, is_kept=sums.is_kept)


def _sums_sink(
    given: tuple[Sequence[Expr], Sequence[Expr], Sequence[factored_aggregate.Term], RowPipeline],
    sums: Sums,
    ends: Sequence[Expr],
    *,
    is_written: bool,
) -> first_load.SumColumns:
    """Return the sink that sums rows or pairs by key, and lists the values of extremes."""
    if not sums.extremes:
        return first_load.SumColumns(*given, is_written=is_written, is_kept=sums.is_kept)
    listed = dict.fromkeys(_listed_values(sums, ends))
    valued = [(factored_aggregate.Term(value), skips_none) for value, skips_none in listed]
    return first_load.SumsAndValues(
        *given, ends=valued, is_written=is_written, is_kept=sums.is_kept
    )


def _listed_values(sums: Sums, ends: Sequence[Expr]) -> list[tuple[Expr, bool]]:
    """Return the value of each extreme, and True if it skips None."""
    return [(end, of.skip_none) for of, end in zip(sums.extremes, ends, strict=True)]


def _term(pipeline: RowPipeline, value: Expr | tuple[Expr, Expr]) -> factored_aggregate.Term:
    factors = value if isinstance(value, tuple) else (value,)
    return factored_aggregate.Term(*map(pipeline.take, factors))


def _is_lifted_function(function: Function | None) -> TypeGuard[Lifted]:
    return isinstance(function, Lifted)


def chain_runner(chain: tuple[plan.Node, ...]) -> Rows:
    """Return the function that applies the plain operators of a chain to a delta."""
    return PlainChain(chain).run


def grouping_sink(
    node: plan.Aggregate,
    pipeline: RowPipeline,
    plain: GroupAggregates,
    kind: type[G] = Grouping,  # type: ignore[assignment]
) -> G:
    """Return the sink that adds the rows of a pipeline to the groups of an aggregate."""
    return _sink_of(node, _read_aggregate(node, pipeline), plain, kind)


def _sink_of(node: plan.Aggregate, taken: Taken, plain: GroupAggregates, kind: type[G]) -> G:
    """Return the sink of an aggregate, whose key and values the pipeline computes already."""
    key, accumulators = taken
    is_empty = plain.is_empty if plain.keeps_negative else None
    return kind(key, accumulators, shared_accumulators(node), is_empty=is_empty, row=node.row)


def _read_aggregate(node: plan.Aggregate, pipeline: RowPipeline) -> Taken:
    """Return the key of an aggregate, and its accumulators with their values, of a row."""
    accumulators: list[tuple[Any, Expr | None]] = []
    for folded in node.aggregates:
        if isinstance(folded.accumulator, CountAccumulator):
            accumulators.append((folded.accumulator, None))
            continue
        value = (
            pipeline.value()
            if folded.value is None
            else pipeline.take(cast(Lifted, folded.value).body)
        )
        accumulators.append((folded.accumulator, value))
    return None if node.key is None else pipeline.take(cast(Lifted, node.key).body), accumulators
