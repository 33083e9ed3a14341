"""The plain operator of a plan node: it calls one callable after the other.

These are the operators of `reactive/engine/operators`, one per plan node. The compiler replaces
them by generated loops where it can, and keeps them for cases that the loops do not cover.

Previous: the rows of the input as of the previous commit.

    previous(t)  =  L(t - 1)        d previous(t)  =  dL(t - 1)

The operator stores its delta; the graph feeds it to the readers in the next commit
(`dataflow/moment.py`). It starts with the current rows, since earlier ones are not known.

State:  the delta of the last commit.
Cost:   O(|dL|) in this commit, and in the next.
Source: [dbsp] the delay operator, z^-1.

Negation: each row with its weight negated.

    d(-L)  =  -dL

Linear.

State:  none.
Cost:   O(|dL|).
Source: [dbsp] negation of Z-sets.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import fields
from functools import lru_cache, partial
from typing import Any

from optimizer import plan
from optimizer.expr import Function, Lifted
from optimizer.expressions.knowledge import hashable, total
from optimizer.plans import multiway
from optimizer.plans.facts import CachedHash
from optimizer.plans.join_lists import callable_of_row
from optimizer.plans.nodes.groups import callables_of, keeper
from optimizer.plans.properties import (
    bindings,
    is_interned,
    keeps_identity,
    may_be_negative,
    once,
    reads_stream,
    row_shape,
    shapes,
    tables,
)
from optimizer.plans.side_conditions import (
    AnyJoin,
    SideTerm,
    join_match,
    residual,
    side_conditions_of,
)
from optimizer.record import record
from optimizer.rewriting import lookups
from optimizer.traverse import functions
from reactive.engine.codegen.emitter import RowPipeline, canonical_maker
from reactive.engine.codegen.functions import callable_of
from reactive.engine.collections import sorting
from reactive.engine.collections.index import Key, itself
from reactive.engine.collections.zset import Pair, Pairs, Row, canonical, consolidate, negate
from reactive.engine.operators import (
    aggregate,
    asof_join,
    bound_matching,
    checked_matching,
    closing,
    closing_asof,
    closing_sets,
    frontiers,
    hash_matching,
    matching,
    moving_window,
    order_by,
    predicate_matching,
    rowwise,
    set_operators,
)
from reactive.engine.operators import join as product
from reactive.engine.operators.accumulators import CountAccumulator
from reactive.engine.operators.aggregate import GroupAggregates, shared_accumulators_of

Make = Callable[[], Any]
LINEAR = (plan.Where, plan.Select, plan.Extend, plan.SelectMany, plan.Unnest)
"""Nodes that map one row at a time."""


def chain_over(node: plan.Node) -> tuple[tuple[plan.Node, ...], plan.Node]:
    """Return the chain of linear nodes that ends in `node`, in order of evaluation, and its
    input."""
    chain: list[plan.Node] = []
    while isinstance(node, LINEAR):
        chain.append(node)
        node = node.input
    return tuple(chain[::-1]), node


def plain_operator(node: plan.Node) -> tuple[Make, tuple[Function | None, ...]]:
    """Return the maker of the operator of a node that is not a join, and its callables."""
    match node:
        case plan.Where(source, f):
            return lambda: rowwise.Where(spread_bindings(f, bindings(source))), (f,)
        case plan.Select(source, f):
            return lambda: _make_select(f, source), (f,)
        case plan.Extend(source, _, columns):
            made = callable_of_row(node)
            return lambda: _make_select(made, source), columns
        case plan.SelectMany(source, f):
            return lambda: rowwise.SelectMany(spread_bindings(f, bindings(source))), (f,)
        case plan.Unnest(source, f):
            count = bindings(source)
            return lambda: rowwise.Unnest(spread_bindings(f, count), pair_with(count)), (f,)
        case plan.Tolerate(source, tolerance):
            count = bindings(source)
            by, value = (
                spread_bindings(tolerance.by, count),
                spread_bindings(tolerance.value, count),
            )
            return lambda: rowwise.Tolerate(by, value, tolerance.least), (
                tolerance.by,
                tolerance.value,
            )
        case plan.Distinct():
            return _distinct_of(node), ()
        case plan.UnionAll():
            return set_operators.UnionAll, ()
        case plan.Negate():
            return Negate, ()
        case plan.Previous(_, moment):
            return lambda: Previous(moment), ()
        case plan.SetOperation():
            return _set_operation_of(node), ()
        case plan.AsofJoin():
            return lambda: _make_asof_join(node), ()
        case plan.Aggregate(_, key, aggregates):
            functions = (f for a in aggregates for f in (a.value, *a.functions))
            return lambda: plain_aggregate(node, _kind_of_groups(node)), (key, *functions)
        case plan.Reduce(_, key, function):
            return lambda: _make_reduce(node), (key, function, *callables_of(function))
        case plan.Top(source, key, keys, limit, offset):
            return lambda: rowwise.Top(
                spread_bindings(key, bindings(source)),
                order_key(node.order),
                descending=node.order.descending,
                limit=limit,
                offset=offset,
            ), (key, *(k.function for k in keys))
        case plan.OrderBy(source, keys, limit, offset):
            is_moving = isinstance(limit, plan.Node)
            kind = moving_window.MovingWindow if is_moving else order_by.OrderBy
            return lambda: kind(
                order_key(node),
                descending=node.descending,
                limit=None if isinstance(limit, plan.Node) else limit,
                offset=offset,
                show=node.show,
                are_hashable=keeps_identity(source),
                are_interned=is_interned(source),
            ), tuple(key.function for key in keys)
        case _:
            raise TypeError(f"no operator for plan node {type(node).__name__}")


def _make_asof_join(node: plan.AsofJoin) -> asof_join.AsofJoin:
    kind = closing_asof.kind_of(node) if reads_stream(node) else asof_join.AsofJoin
    return kind(
        pair_with(node.count),
        asof_join.Nearest(node.direction, node.tolerance, is_strict=node.is_strict),
        is_left=node.is_left,
    )


def _make_select(function: Function, source: plan.Node) -> rowwise.Select:
    """Return the operator that maps the rows of a node."""
    return rowwise.Select(
        spread_bindings(function, bindings(source)), canonical_key_maker(function, source)
    )


def canonical_key_maker(function: Function | None, source: plan.Node) -> Callable[[Any], Any]:
    """Return the function that makes values of a callable canonical."""
    if not isinstance(function, Lifted):
        return canonical
    made: Callable[[Any], Any] = canonical_maker(function.body, shapes(source))
    return made


def _make_reduce(node: plan.Reduce) -> rowwise.Reduce | aggregate.KeptGroups:
    """Return the operator of a reduce; the groups are the function's own if it keeps a state."""
    key, kept = spread_bindings(node.key, bindings(node.input)), keeper(node.function)
    if kept is not None:
        operator: Any = getattr(kept, "operator", aggregate.KeptGroups)
        return operator(key, kept.kept())  # type: ignore[no-any-return]
    return rowwise.Reduce(key, callable_of(node.function))


def order_key(node: plan.OrderBy) -> Callable[[Row], Any]:
    """Return the sort key of the rows of an order."""
    count = bindings(node.input)
    return sorting.make_sort_key(
        node.keys, [spread_bindings(key.function, count) for key in node.keys]
    )


def is_logged(node: plan.Lookup) -> bool:
    """Return True for a look-up of events of durable streams, whose pairs are in their log."""
    logs = [table.clock.lookups for table in tables(node.left) if table.clock is not None]
    return bool(logs) and None not in logs


def log_of(node: plan.Lookup) -> Any:
    """Return the log of a look-up, which is opened for it; None if it is not logged."""
    if not is_logged(node):
        return None
    clock = next(table.clock for table in tables(node.left) if table.clock is not None)
    return clock.lookups.of_plan(node)


def _distinct_of(node: plan.Distinct) -> Make:
    """Return the maker of the operator of `distinct`: of rows that close, or of others."""
    found = _closing_of(node)
    return set_operators.Distinct if found is None else partial(closing.ClosingDistinct, found)


def _set_operation_of(node: plan.SetOperation) -> Make:
    """Return the maker of the operator of a set operation: of rows that close, or of others."""
    found = _closing_of(node)
    if isinstance(node, plan.Union):
        return partial(closing_sets.ClosingUnion, found) if found else set_operators.Union
    make = {
        plan.Difference: set_operators.make_difference,
        plan.DifferenceAll: set_operators.make_difference_all,
        plan.Intersection: set_operators.make_intersection,
        plan.IntersectionAll: set_operators.make_intersection_all,
    }[type(node)]
    return make if found is None else lambda: make(partial(closing_sets.ClosingPointwise, found))


def _closing_of(node: closing.Closeable) -> closing.Closing | None:
    return closing.closing_of(node) if reads_stream(node) else None


def closes(node: closing.Closeable) -> bool:
    """Return True if groups, or rows, change no more below a watermark (`closing.py`)."""
    return _closing_of(node) is not None


def retentions(join: AnyJoin) -> frontiers.Retentions:
    """Return when rows of the left and the right of a join are dropped; None for those that
    stay."""
    return frontiers.retentions_of(join) if reads_stream(join) else (None, None)


def joins_drop(node: plan.Node) -> bool:
    """Return True if a join that a node reads drops rows."""
    return reads_stream(node) and frontiers.drops_rows_of(node)


def _kind_of_groups(node: plan.Aggregate) -> Callable[..., GroupAggregates]:
    """Return the maker of the operator of an aggregate: of groups that close, or of others."""
    found = _closing_of(node)
    return GroupAggregates if found is None else partial(closing.ClosingAggregates, closing=found)


def plain_aggregate(
    node: plan.Aggregate, kind: Callable[..., GroupAggregates] = GroupAggregates
) -> GroupAggregates:
    """Return the plain operator of an aggregate; accumulators of one value share its callable."""
    count = bindings(node.input)
    known: dict[Function | None, Any] = {}
    accumulators = [
        (
            a.accumulator,
            known.setdefault(a.value, _accumulator_value(a, count))
            if a.value
            else _accumulator_value(a, count),
        )
        for a in node.aggregates
    ]
    keeps_negative = may_be_negative(node.input)
    return kind(
        spread_or_none(node.key, count),
        accumulators,
        keeps_negative=keeps_negative,
        row=node.row,
        to_canonical=canonical_key_maker(node.key, node.input),
    )


def group_of_row(node: plan.Aggregate) -> Callable[[Row, Pairs], list[Row]]:
    """Return the function that makes the group row of a left row and its partners."""
    join = node.input
    assert isinstance(join, plan.Join | plan.Product | plan.OuterJoin)
    pair = pair_with(bindings(join.left))
    keeps_alone = isinstance(join, plan.OuterJoin)

    def group(row: Row, partners: Pairs) -> list[Row]:
        pairs = [(pair(row, other), weight) for other, weight in partners]
        if not pairs and keeps_alone:
            pairs = [(pair(row, None), 1)]
        return [made for made, _ in plain_aggregate(node).step(pairs)]

    return group


def shared_accumulators(node: plan.Aggregate) -> list[int]:
    """Return the state place of each accumulator of an aggregate, as in its operator."""
    return shared_accumulators_of([(a.accumulator, a.value or itself) for a in node.aggregates])


def _accumulator_value(folded: plan.Folded, count: int) -> Callable[[Row], Any] | None:
    """Return the value that an accumulator reads of a row of `count` bindings.

    Return `itself` if the accumulator reads the row, and None if it only counts.
    """
    if isinstance(folded.accumulator, CountAccumulator):
        return None
    return itself if folded.value is None else spread_bindings(folded.value, count)


Counters = Callable[[bool], Any]
"""Returns the loop that counts the partners of the left rows, or of the right rows if False."""


def without_loop(keeps_left: bool) -> None:
    """Call the predicate for each pair."""


def plain_join(node: AnyJoin, left: Any, right: Any, counters: Counters = without_loop) -> Any:
    """Return the operator of a join; `left` and `right` are the operators of its inputs."""
    count = bindings(node.inputs()[0])
    pair = pair_with(count)
    whole, on = (
        spread_or_none(join_match(node).on, count + 1),
        spread_or_none(residual(node), count + 1),
    )
    match node:
        case plan.Product():
            return product.make_product(left, right, pair)
        case plan.Join():
            return product.Join(left, right, pair, on, whole)
        case plan.SemiJoin():
            return matching.semi_join(
                _make_matching(node, left, right, on, whole, pair, counters(True))
            )
        case plan.AntiJoin():
            return matching.anti_join(
                _make_matching(node, left, right, on, whole, pair, counters(True))
            )
        case plan.OuterJoin(kind=kind):
            join = product.Join(left, right, pair, on, whole)
            keep_left: matching.Kept | None = None
            keep_right: matching.Kept | None = None
            if kind != "right":
                ours = _make_matching(node, left, right, on, whole, pair, counters(True))
                keep_left = (ours, lambda row: pair(row, None))
            if kind != "left":
                nothing = None if count == 1 else (None,) * count
                back = _make_matching(
                    *(node, right, left, on, whole),
                    lambda row, other: pair(other, row),
                    counters(False),
                )
                keep_right = (back, lambda row: pair(nothing, row))
            return matching.OuterJoin(join, left=keep_left, right=keep_right)
        case _:
            raise TypeError(f"{type(node).__name__} is no join")


def _make_matching(
    node: plan.SemiJoin | plan.AntiJoin | plan.OuterJoin,
    left: Any,
    right: Any,
    on: Callable[[Row], object] | None,
    whole: Callable[[Row], object] | None,
    pair: Callable[[Row, Row], Row],
    count: predicate_matching.PartnerLoop | None,
) -> matching.Matching:
    """Return the matching of a join: by hash, by key, by checked keys, by a bound, or by pairs."""
    if getattr(left, "forgets", False):  # an index whose rows are dropped
        return _make_expiring_matching(left, right, on, whole, pair, count)
    if (found := lookups.looked_up(node.match)) is not None:
        value, memory = found
        return hash_matching.HashMatching(
            left, spread_bindings(value, bindings(node.inputs()[0])), memory
        )
    if whole is None or by_key_alone(node):
        return matching.KeyMatching(left.index)
    fits = _predicate_of_two(on, pair), _predicate_of_two(whole, pair)

    def by_pairs() -> predicate_matching.PredicateMatching:
        return predicate_matching.PredicateMatching(left, right, *fits, count)

    if on is None:
        return checked_matching.CheckedMatching(left, right, by_pairs)
    bound = None if isinstance(node, plan.OuterJoin) else multiway.bound_of(node)
    if bound is None:
        return by_pairs()
    sides = _bound_side(bound.left, bindings(node.left)), _bound_side(bound.right, 1)
    return bound_matching.BoundMatching(
        *(left, right, sides),
        by_pairs,
        is_upper=bound.is_upper,
        closed=bound.closed,
    )


def _make_expiring_matching(
    left: closing.ExpiringIndexBy,
    right: Any,
    on: Callable[[Row], object] | None,
    whole: Callable[[Row], object] | None,
    pair: Callable[[Row, Row], Row],
    count: predicate_matching.PartnerLoop | None,
) -> predicate_matching.PredicateMatching:
    """Return the matching of rows that are dropped, and with them their numbers of partners."""
    fits, all_fit = (
        (lambda row, other: True) if test is None else _predicate_of_two(test, pair)
        for test in (on, whole)
    )
    loop = None if on is None else count
    matching = predicate_matching.PredicateMatching(left, right, fits, all_fit, loop)
    left.beside(matching)
    return matching


def _bound_side(side: multiway.BoundSide, count: int) -> bound_matching.BoundSide:
    """Return the reader of one side's compared value, over rows of `count` bindings."""
    before, after = (
        [spread_bindings(t, count) for t in tests] for tests in (side.before, side.after)
    )
    return bound_matching.BoundSide(before, spread_bindings(side.value, count), after)


def match_predicates(
    node: plan.SemiJoin | plan.AntiJoin | plan.OuterJoin,
) -> tuple[predicate_matching.Fits, predicate_matching.Fits]:
    """Return the tests of two rows of equal key, and of two rows of any keys."""
    count = bindings(node.left)
    whole, on = spread_or_none(node.match.on, count + 1), spread_or_none(residual(node), count + 1)
    return _predicate_of_two(on, pair_with(count)), _predicate_of_two(whole, pair_with(count))


def _predicate_of_two(
    on: Callable[[Row], object] | None, pair: Callable[[Row, Row], Row]
) -> predicate_matching.Fits:
    """Return the test of two rows; without a condition, one that all rows pass."""
    return _always_true if on is None else lambda row, other: on(pair(row, other))


def _always_true(row: Row, other: Row) -> bool:
    return True


def pair_with(count: int) -> Callable[[Row, Any], Row]:
    """Return the function that appends a binding to a row with `count` bindings."""
    if count == 1:
        return lambda row, other: (row, other)
    return lambda row, other: (*row, other)


def spread_bindings(
    function: Function, count: int, made: Callable[[Function], Callable[..., Any]] = callable_of
) -> Callable[[Row], Any]:
    """Return a callable of one row for a function that takes `count` bindings.

    `made` converts the function to a Python callable.
    """
    call = made(function)
    return call if count == 1 else lambda row: call(*row)


def spread_or_none(function: Function | None, count: int) -> Callable[[Row], Any] | None:
    """Return `spread_bindings` of a function; None for None."""
    return None if function is None else spread_bindings(function, count)


Side = tuple[Function | None, tuple[SideTerm, ...]]
"""The written key of a side, and the tests and keys extracted from the predicate."""


def side_key_functions(side: Side) -> list[Function]:
    """Return all key parts of a side, written and extracted."""
    key, steps = side
    written = [] if key is None else [key]
    return [*written, *(step.function for step in steps if step.is_key)]


def sides(node: AnyJoin) -> tuple[Side, Side]:
    """Return the keys of both sides of a join."""
    conditions, match = side_conditions_of(node), join_match(node)
    found = ((), ()) if conditions is None else (conditions.left, conditions.right)
    return (match.left_key, found[0]), (match.right_key, found[1])


def side_functions(side: Side) -> tuple[Function | None, ...]:
    """Return the written key of a side, or None, then the functions of all its steps."""
    return (side[0], *(step.function for step in side[1]))


def side_key(side: Side, count: int) -> Callable[[Row], Key] | None:
    """Return the function for the key of a row of `count` bindings; None without key and test."""
    written, steps = side
    key = spread_or_none(written, count)
    if steps:
        return product.found_key(
            key, [(s.is_key, spread_bindings(s.function, count)) for s in steps]
        )
    return None if key is None else product.written_key(key)


def by_key_alone(node: plan.SemiJoin | plan.AntiJoin | plan.OuterJoin) -> bool:
    """Return True if equal keys are the whole condition, and no key can raise."""
    conditions = side_conditions_of(node)
    if conditions is None:
        return node.match.on is None
    both = ((conditions.left, shapes(node.left)), (conditions.right, (row_shape(node.right),)))
    certain = all(
        total(step.function.body, of) and (not step.is_key or hashable(step.function.body, of))
        for steps, of in both
        for step in steps
    )
    return certain and conditions.residual is None


def signature(node: plan.Node) -> Hashable:
    """Return the node without its inputs, as a value that can be compared."""
    return once(node, "signature", _compute_signature)


def _compute_signature(node: plan.Node) -> Hashable:
    kind: Any = type(node)
    values = [getattr(node, name) for name in _init_fields(kind)]
    return CachedHash((kind, *[v for v in values if not isinstance(v, plan.Node)]))


@lru_cache(maxsize=64)
def _init_fields(kind: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind) if each.init)


# Parts of one loop: a chain of linear nodes over a base, and the node that reads it.

INNER = (plan.Product, plan.Join)
Inner = plan.Product | plan.Join
MOST_NESTED = 15
"""Nested loops of generated code; Python allows 20, and the sink needs some."""


@record
class PipelineSource:
    """Input of a node: a chain of linear nodes, in order of evaluation, over a base.

    Two are equal if their chains do the same, over whatever base.
    """

    chain: tuple[plan.Node, ...]
    base: plan.Node

    @property
    def does(self) -> tuple[Hashable, ...]:
        """Return a value that is equal for chains that do the same."""
        return tuple(map(signature, self.chain))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PipelineSource) and self.does == other.does

    def __hash__(self) -> int:
        return hash(self.does)

    @property
    def top(self) -> plan.Node:
        """The last node of the chain."""
        return self.chain[-1] if self.chain else self.base

    def pipeline(self) -> RowPipeline:
        """Return the pipeline of a loop over the rows of the base."""
        return RowPipeline(self.chain, bindings(self.base), shapes(self.base))


class PlainChain:
    """Plain operators of a chain, made at their first use."""

    def __init__(self, chain: tuple[plan.Node, ...]) -> None:
        self._chain = chain
        self._operators: list[Any] | None = None

    def run(self, delta: Sequence[Pair]) -> Sequence[Pair]:
        """Apply the operators to a delta, one after the other."""
        if self._operators is None:
            self._operators = [plain_operator(node)[0]() for node in self._chain]
        for operator in self._operators:
            delta = operator.step(delta)
        return delta


def count_nested(chain: Sequence[plan.Node]) -> int:
    """Return the number of loops that a chain nests: one for each node that makes several rows."""
    return sum(isinstance(node, plan.SelectMany | plan.Unnest) for node in chain)


def can_nest(loops: int) -> bool:
    """Return True if Python can compile `loops` nested loops."""
    return loops <= MOST_NESTED


def all_callables(parts: Sequence[plan.Node]) -> list[Function]:
    """Return the callables of nodes."""
    return [function for part in parts for function in functions(part)]


def is_read(node: plan.Node) -> bool:
    """Return True if all callables of a node are lifted."""
    return all_read(functions(node))


def all_read(functions: Sequence[Function | None]) -> bool:
    """Return True if all functions that are not None are lifted."""
    return all(function is None or isinstance(function, Lifted) for function in functions)


def merged_nodes(join: plan.Join, multiway: multiway.MultiwayJoin) -> list[plan.Node]:
    """Return the joins that a multiway join merges and the selects between them, top first."""
    found: list[plan.Node] = []
    node: plan.Node = join
    left = len(multiway.tests) - 1
    while left and (
        isinstance(node, plan.Join)
        or (isinstance(node, plan.Select | plan.Extend) and isinstance(node.input, plan.Join))
    ):
        found.append(node)
        left -= isinstance(node, plan.Join)
        node = node.inputs()[0]
    return found


def inputs_of_multiway(join: plan.Join, multiway: multiway.MultiwayJoin) -> list[plan.Node]:
    """Return the inputs of a multiway join, in their order."""
    parts = merged_nodes(join, multiway)
    rights = [part.right for part in parts if isinstance(part, plan.Join)]
    return [parts[-1].inputs()[0], *rights[::-1]]


class Previous:
    """Store each delta for the next commit.

    Undo does nothing: the delta of an undone commit is not read.
    """

    __slots__ = ("_moment", "touched")

    def __init__(self, moment: Any) -> None:
        self._moment = moment
        self.touched = 0

    def step(self, delta: Pairs) -> Sequence[Pair]:
        """Store the net delta for the next commit; emits nothing now."""
        self.touched += len(delta)
        changed = consolidate(delta)
        if changed:
            self._moment.set(changed)
        return ()

    def contents(self) -> Iterable[Pair]:
        """Return the current rows, without the changes of the last commit."""
        moment = self._moment
        (source,) = moment.nodes[-1].inputs
        return consolidate([*moment.graph.contents(source), *negate(moment.pending)])

    def footprint(self) -> tuple[int, int]:
        pending = self._moment.pending
        return len(pending), sys.getsizeof(pending) if pending else 0


class Negate:
    """Negate the weights.

    >>> Negate().step([("a", 1), ("b", -2)])
    [('a', -1), ('b', 2)]
    """

    __slots__ = ("touched",)

    def __init__(self) -> None:
        self.touched = 0

    def step(self, delta: Pairs) -> Sequence[Pair]:
        self.touched += len(delta)
        return negate(delta)
