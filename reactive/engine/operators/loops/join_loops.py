"""Loops of joins, of keys for an index, and of chains of linear operators.

Join: a join, its residual predicate, and the chain above it, as two loops.

    for key, (row, weight) in left:                 dL join (R + dR)
        found = get(key)
        for other in found:
            ...                                     the residual predicate, the chain above
            append((result, weight))
    for key, (other, weight) in right:              L join dR
        ...

Fields of the outer row are read before the inner loop begins. The sink of the pairs is part of both
loops: a list, or the groups of an aggregate (`grouped.py`).

If left rows are deleted while right rows are inserted, a pair of the two must not be made. With
`K` the left rows that stay, the two products become three:

    dL join (R + dR)  +  L join dR   =   L- join R  +  L+ join (R + dR)  +  K join dR

The plain join runs while there are error rows, and if a row occurs twice in the delta.

Rows of one weight whose partners have the weight 1 make a batch, by loops of their own, without a
pair of each result and its weight. So does a single row with many partners.

State:  none of its own.
Cost:   O(|dL| + |dR| + matches).
Source: [dbsp] bilinear operators; [i3ql] join.

Keys: the keys of a delta for an index, with the chain below it, as one loop.

    for row, weight in delta:
        ...                             the chain below, the tests of the side
        append((key, (row, weight)))

An extracted key must not raise: if the loop does, the plain key function runs row by row.

State:  none.
Cost:   O(|dL|).

Chain: a chain of linear operators as one loop.

    d(select(f, where(p, L)))  =  [(f(row), weight) for row, weight in dL if p(row)]

State:  none.
Cost:   O(|dL|), and one per element that an unnest makes.
Source: [i3ql] fusion of selections and projections.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, ClassVar

from optimizer import plan
from optimizer.expr import Expr, Lifted
from optimizer.plans.side_conditions import AnyJoin, bounds_of, compares_rows, pair_shapes, residual
from optimizer.traverse import read_functions
from reactive.engine.codegen.nest import CountSink, ListSink
from reactive.engine.collections.index import NO_MATCH, NOTHING, Index, KeyedPair, WeightedRows
from reactive.engine.collections.trie import index_as_batch
from reactive.engine.collections.zset import (
    KeyedBatch,
    Pair,
    Pairs,
    Row,
    UniformDelta,
    as_batch,
    consolidate,
    has_both_signs,
    is_mixed,
)
from reactive.engine.operators import merged_partners, moved_bounds
from reactive.engine.operators.index_by import FINDS_NOTHING, IndexBy, KeyedStream
from reactive.engine.operators.loops.nests import SinkOf, values_of_pairs
from reactive.engine.runtime.interrupts import reraise_asynchronous

MANY = 16
"""Least number of partners of a single row whose pairs are made as a batch."""
FEW = 256
"""Most right rows for which an index of the left is built, to join all rows."""
MANY_TIMES = 8
"""Least number of left rows for each right row, if the right rows are looked up in the left."""
Delta = Sequence[KeyedPair]
Sides = tuple[Any, Any, Callable[..., Any], Callable[..., Any]]
"""Changes of the left and the right, and the look-ups of the right and the left."""


class JoinIndexes:
    """The two indexes of a join, and the arguments of its loops.

    `bounds` makes the part that finds moved bounds, if the join compares values. `merged` makes the
    part that finds replaced rows, and partners of these, that the loops cannot tell apart.
    """

    __slots__ = ("_bounds", "_made_bounds", "_made_merged", "_merged", "_table", "left", "right")

    def __init__(
        self,
        left: IndexBy,
        right: IndexBy,
        table: Callable[[], Iterable[Any]] | None = None,
        bounds: Callable[[], moved_bounds.MovedBounds] | None = None,
        merged: Callable[[], merged_partners.MergedPartners] | None = None,
    ) -> None:
        self.left = left
        self.right = right
        self._merged = merged
        self._made_merged: merged_partners.MergedPartners | None = None
        self._bounds = bounds
        self._made_bounds: moved_bounds.MovedBounds | None = None
        self._table = table
        """Returns the rows of the left index, if a table stores them."""

    def arguments(self, left: Delta, right: Delta) -> tuple[Any, ...] | None:
        """Return the arguments of the loops; None if the plain join must run."""
        if self.left.poisoned or self.right.poisoned:
            return None
        if self._bounds is not None and (has_both_signs(left) or has_both_signs(right)):
            moved = self.moved_bounds().find(left, right)
            if moved is not None:
                return self._of_moved(left, right, *moved)
        if not right:
            find = self.right.look_up or self.right.find(before=False)
            if self._merged is not None and len(left) > 1 and _meets_many(left, find):
                left, find = self._merge(0, left, find)
            return (left, right, find, FINDS_NOTHING)
        if not left:
            find = self.left.look_up or self.left.find(before=False)
            if self._merged is not None and len(right) > 1 and _meets_many(right, find):
                right, find = self._merge(1, right, find)
            return (left, right, FINDS_NOTHING, find)
        if self._meets_empty(left, right):
            return (left, right, FINDS_NOTHING, self.left.find(before=False))
        found = _at_time(left, right, self.right)
        if found is None:
            return None
        changes, since, find = found
        return (changes, right, find, _find_kept(self.left, left, since))

    def _of_moved(
        self, left: Delta, right: Delta, side: int, paired: Delta
    ) -> tuple[Any, ...] | None:
        """Return the arguments for the delta of a side with moved keys, which looks up all its
        partners at one time: before the inserted rows of the other side."""
        own, other = (self.left, self.right)[:: -1 if side else 1]
        delta, others = (left, right) if side else (right, left)
        found = _at_time(delta, others, own)
        if found is None:
            return None
        changes, since, find = found
        kept = _find_kept(other, delta, since)
        partners = self.moved_bounds().partners(1 - side, kept, since)
        return (changes, paired, find, partners) if side else (paired, changes, partners, find)

    def next_change(self, side: int, moment: datetime) -> datetime | None:
        """Return the next moment at which a clock, the side 0 or 1, changes the pairs.

        Return `moment` if it is not known, and None if there is none.
        """
        return moment if self._bounds is None else self.moved_bounds().next_change(side, moment)

    def moved_bounds(self) -> moved_bounds.MovedBounds:
        """Return the part that finds moved bounds; the first call makes it."""
        assert self._bounds is not None
        if self._made_bounds is None:
            self._made_bounds = self._bounds()
        return self._made_bounds

    def _merge(
        self, side: int, delta: Delta, find: Callable[..., Any]
    ) -> tuple[Delta, Callable[..., Any]]:
        """Return the net delta of a side, 0 or 1, and the look-up of its merged partners."""
        assert self._merged is not None
        if self._made_merged is None:
            self._made_merged = self._merged()
        net = self._made_merged.net(side, delta)
        return net, self._made_merged.look_up(1 - side, find) if net else find

    def all(self) -> tuple[Any, ...] | None:
        """Return the arguments that join all current rows.

        Return None while an index has error rows: the plain join must run.
        """
        if self.left.poisoned or self.right.poisoned:
            return None
        if self._starts_right():
            return ((), self.right.contents(), FINDS_NOTHING, self.left.find(before=False))
        return (self.left.contents(), (), self.right.find(before=False), FINDS_NOTHING)

    def batch(
        self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]
    ) -> tuple[Sides, int] | None:
        """Return keys and rows of one side, or both, and their weight; None if weights differ, or
        if there are too few pairs."""
        if self.left.poisoned or self.right.poisoned:
            return None
        if left and right:
            return self._both(left, right)
        keyed = left or right
        other = self.right if left else self.left
        find = other.look_up or other.find(before=False)
        pairs: Any
        if type(keyed) is KeyedBatch:
            pairs, weight = zip(keyed.keys, keyed.rows, strict=True), keyed.weight
        elif len(keyed) == 1:
            ((key, (row, weight)),) = keyed
            found = find(key, NOTHING)
            if found.__class__ is not WeightedRows or len(found) < MANY:
                return None
            pairs = ((key, row),)
        else:
            return None
        sides = (pairs, (), find, find) if left else ((), pairs, find, find)
        return sides, weight

    def _both(
        self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]
    ) -> tuple[Sides, int] | None:
        """Return the batch of two sides that insert each row once; None for other changes, or few
        rows."""
        if type(left) is not KeyedBatch and type(right) is not KeyedBatch:
            return None
        one, other = as_batch(left, 1), as_batch(right, 1)
        if one is None or other is None:
            return None
        ours, theirs = (zip(each.keys, each.rows, strict=True) for each in (one, other))
        if self._meets_empty(left, right):
            return (ours, theirs, FINDS_NOTHING, self.left.find(before=False)), 1
        return (ours, theirs, self.right.find(before=False), self.left.find_before(left)), 1

    def all_as_batch(self) -> Sides | None:
        """Return the batch that joins all current rows; None if there is none."""
        if self.left.poisoned or self.right.poisoned:
            return None
        starts_right = self._starts_right()
        held = _batch_of(self.right if starts_right else self.left)
        keyed = held if starts_right else self._as_they_came() or held
        if keyed is None:
            return None
        pairs = zip(keyed.keys, keyed.rows, strict=True)
        if starts_right:
            return ((), pairs, FINDS_NOTHING, self.left.find(before=False))
        return (pairs, (), self.right.find(before=False), FINDS_NOTHING)

    def _as_they_came(self) -> KeyedBatch | None:
        """Return the left rows in the order of their table; None if it is unknown, or not worth it.

        Neighbouring rows of the view are then neighbours in memory.
        """
        if self._table is None or not self.left.is_made or self.left.index.rows < MANY:
            return None
        rows, held = self._table(), self.left.index.rows
        if type(rows) is not UniformDelta or len(rows) > 2 * held:
            return None
        keyed = self.left.add_keys(rows)
        return keyed if type(keyed) is KeyedBatch and len(keyed) == held else None

    def _starts_right(self) -> bool:
        """Return True if all rows are joined by probing the left index with the right rows.

        These are a few beside the left rows, as in each view of a family of joins.
        """
        left, right = self.left, self.right
        if right.is_empty:
            return False
        if not (left.has_plain_keys and right.has_plain_keys):
            return False
        count = right.index.rows  # the left rows would be looked up in this index, too
        if not left.is_made and (count > FEW or not left.is_worth_building()):
            return False
        is_few: bool = MANY_TIMES * count < left.index.rows
        return is_few

    def _meets_empty(self, left: Delta, right: Delta) -> bool:
        """Return True if both sides were empty: the longer one, the right, joins all."""
        return self.left.was_empty and self.right.was_empty and len(left) < len(right)


def _meets_many(delta: Delta, find: Callable[..., Any]) -> bool:
    """Return True if a delta replaces a row, and its last row has many partners."""
    last = find(delta[-1][0], NOTHING)
    return last.__class__ is WeightedRows and has_both_signs(delta)


def _batch_of(side: IndexBy) -> KeyedBatch | None:
    """Return all rows of a side in the order of the index; None if they form no batch."""
    if not side.is_made:
        keyed = side.contents()
        return keyed if type(keyed) is KeyedBatch else None
    return index_as_batch(side.index) if type(side.index) is Index else None


def _at_time(
    delta: Delta, others: Delta, index: IndexBy
) -> tuple[Delta, Delta, Callable[..., Any]] | None:
    """Return a delta, its last insertions, and the look-up of its partners in the other `index`.

    A deleted row has the partners before the delta `others`, an inserted one the current partners.
    Deletions and insertions of a row that occurs twice cannot be told apart: return None.
    """
    if not _removes(delta):
        return delta, delta, index.find(before=False)
    if len({pair[0] for _, pair in delta}) < len(delta):
        return None
    gone = [(_as_earlier(key), pair) for key, pair in delta if pair[1] < 0]
    come = [keyed for keyed in delta if keyed[1][1] > 0]
    find = _find_at_time(index.find_before(others), index.find(before=False))
    return [*gone, *come], come, find


def _find_kept(index: IndexBy, delta: Delta, since: Delta) -> Callable[..., Any]:
    """Return the look-up of the rows before `since`: all of a delta, or its insertions."""
    found: Callable[..., Any]
    found = index.find_before(since) if since is delta else index.index.find_before(since)
    return found


def _removes(delta: Sequence[KeyedPair]) -> bool:
    """Return True if a delta deletes rows."""
    if type(delta) is KeyedBatch:
        return delta.weight < 0
    return any(pair[1] < 0 for _, pair in delta)


class EarlierKey:
    """The key of a deleted row, whose partners are those before the commit."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key


def _as_earlier(key: Any) -> Any:
    return key if key is NO_MATCH else EarlierKey(key)


def _find_at_time(before: Callable[..., Any], now: Callable[..., Any]) -> Callable[..., Any]:
    """Return the look-up of current partners; for an `EarlierKey`, of those before the commit."""

    def find(key: Any, default: Any) -> Any:
        return before(key.key, default) if key.__class__ is EarlierKey else now(key, default)

    return find


def residual_tests(join: AnyJoin) -> tuple[Expr, ...]:
    """Return the residual predicate of a join, which is lifted, as one test; () without one."""
    rest = residual(join)
    assert rest is None or isinstance(rest, Lifted)
    return () if rest is None else (rest.body,)


def bounds_maker(
    join: AnyJoin,
    chain: tuple[plan.Node, ...],
    node: plan.Node,
    sink_of: SinkOf | None,
    indexes: tuple[IndexBy, IndexBy],
    *,
    by_range: bool,
) -> Callable[[], moved_bounds.MovedBounds] | None:
    """Return the maker of the part that finds moved bounds; None if no values are compared.

    `node` reads the chain. Without a sink, pairs are only counted.
    """
    bounds = bounds_of(join) if by_range else None
    tests = residual_tests(join)
    if bounds is None:
        above = chain if any(node is each for each in (join, *chain[-1:])) else (*chain, node)
        called = (*tests, *[function.body for function in read_functions(*above)])
        if not any(map(compares_rows, called)):
            return None
    ranges, other = (None, tests) if bounds is None else (bounds.ranges, bounds.other)

    def make() -> moved_bounds.MovedBounds:
        values: Sequence[Expr] = other
        if sink_of is not None:
            values = values_of_pairs(pair_shapes(join), other, chain, sink_of)
        return moved_bounds.MovedBounds(join, values, indexes, ranges)

    return make


def merged_maker(
    join: AnyJoin,
    chain: tuple[plan.Node, ...],
    node: plan.Node,
    sink_of: SinkOf,
    indexes: tuple[IndexBy, IndexBy],
) -> Callable[[], merged_partners.MergedPartners]:
    """Return the maker of the part that finds rows that what reads the pairs cannot tell apart.

    Partners are merged if `node` aggregates all values: these pairs cannot be replaced by sums.
    """

    def make() -> merged_partners.MergedPartners:
        values = values_of_pairs(pair_shapes(join), residual_tests(join), chain, sink_of)
        merges = isinstance(node, plan.Aggregate) and any(
            folded.accumulator.adds_values for folded in node.aggregates
        )
        return merged_partners.MergedPartners(join, values, indexes, merges=merges)

    return make


class JoinLoops:
    """Run the loops into a list; run the plain operators if the loops cannot run, or raise.

    `plainly` returns all rows by the plain operators.
    """

    __slots__ = (
        *("_batch", "_carefully", "_loop", "_made", "_pairing", "_plainly"),
        *("source", "touched"),
    )

    def __init__(
        self,
        pairing: JoinIndexes,
        loop: Callable[..., Any],
        made: Callable[[], tuple[Callable[..., Any], str]],
        carefully: Callable[..., Sequence[Pair]],
        plainly: Callable[[], Sequence[Pair]],
        source: str,
    ) -> None:
        self._pairing = pairing
        self._loop = loop
        self._made = made
        self._batch: Callable[..., Any] | None = None
        self._carefully = carefully
        self._plainly = plainly
        self.source = source
        self.touched = 0

    def next_change(self, side: int, moment: datetime) -> datetime | None:
        """Return the next moment at which a clock, the side 0 or 1, changes the pairs.

        Return `moment` if it is not known, and None if there is none.
        """
        return self._pairing.next_change(side, moment)

    def step(self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]) -> Sequence[Pair]:
        """Return the delta of the join: as a batch, by loops, or by the plain operators."""
        self.touched += len(left) + len(right)
        batch = self._pairing.batch(left, right)
        if batch is not None and (rows := self._run_batch(batch[0])) is not None:
            return UniformDelta(rows, batch[1])
        out: list[Pair] | None = None
        try:
            arguments = self._pairing.arguments(left, right)
            if arguments is not None:
                out, pairs = self._loop(None, None, *arguments)
                self.touched += pairs
        except Exception as error:  # the plain operators raise it, or find that it is ignored
            reraise_asynchronous(error)
            out = None
        return self._carefully(left, right) if out is None else out

    def _run_batch(self, sides: Sides) -> list[Row] | None:
        """Return the rows of a batch; None if they have several weights, or raise."""
        if self._batch is None:
            self._batch, _ = self._made()
        try:
            found = self._batch(*sides)
        except Exception as error:  # as above
            reraise_asynchronous(error)
            return None
        if found is None:
            return None
        rows: list[Row] = found[0]
        self.touched += found[1]
        return rows

    def contents(self) -> Sequence[Pair]:
        """Return all joined rows: as a batch, by loops, or by the plain operators."""
        sides = self._pairing.all_as_batch()
        touched = self.touched
        rows = None if sides is None else self._run_batch(sides)
        if rows is not None:
            self.touched = touched
            return UniformDelta(rows, 1)
        out: list[Pair] | None = None
        try:
            arguments = self._pairing.all()
            if arguments is not None:
                out, _ = self._loop(None, None, *arguments)
        except Exception as error:
            reraise_asynchronous(error)
            out = None
        return self._plainly() if out is None else out


class KeyLoop:
    """A `KeyedStream` that runs a loop; if it raises, run the plain keys over the plain chain.

    `made` returns the loop over pairs, or over the rows of a batch, and its text.
    """

    gives_keys: ClassVar[bool] = True
    __slots__ = (
        *("_batch", "_identity", "_loop", "_made", "_plain", "_rows"),
        *("source", "emits_filtered", "touched"),
    )

    def __init__(
        self,
        made: Callable[[bool], tuple[Callable[..., Any], str]],
        plain: KeyedStream,
        rows: Callable[[Pairs], Pairs],
        *,
        identity: bool,
    ) -> None:
        self._made = made
        self._loop, self.source = made(False)
        self._batch: Callable[..., Any] | None = None
        self._plain = plain
        self._rows = rows
        self._identity = identity
        self.emits_filtered = False
        self.touched = 0

    def step(self, delta: Pairs) -> Sequence[KeyedPair]:
        """Return the pairs with keys, by the loop or, if it raises, by the plain operators.

        While filtered rows are emitted, the plain operators run.
        """
        self.touched += len(delta)
        keyed: Sequence[KeyedPair] | None = None
        if not self.emits_filtered:
            try:
                if type(delta) is UniformDelta:
                    keyed = self._of_batch(delta)
                else:
                    loop = self._loop
                    keyed = loop(delta)
            except Exception as error:  # the plain key raises it, or finds that it is ignored
                reraise_asynchronous(error)
                keyed = None
        if keyed is None:
            return self._carefully(delta)
        if self._identity or len(keyed) < 2 or not is_mixed(delta):
            return keyed
        return _net_keyed(keyed)

    @property
    def batch(self) -> Callable[..., Any]:
        """The loop over batches: from rows to their keys, and the rows that have one."""
        return self._batch or self.make_batch()

    def make_batch(self) -> Callable[..., Any]:
        """Generate the loop over batches now; otherwise the first batch generates it."""
        self._batch, _ = self._made(True)
        return self._batch

    def _of_batch(self, delta: UniformDelta) -> KeyedBatch:
        """Return the batch with its keys, all of one weight."""
        keys, rows = self.batch(delta.rows)
        keyed = KeyedBatch(keys, rows, delta.weight)
        keyed.differ = delta.differ and self._identity  # no rows are made, so none twice
        return keyed

    def _carefully(self, delta: Pairs) -> list[KeyedPair]:
        """Compute the keys by the plain operators over the plain chain."""
        self._plain.emits_filtered = self.emits_filtered
        return self._plain.step(self._rows(delta))


def _net_keyed(keyed: Sequence[KeyedPair]) -> Sequence[KeyedPair]:
    """Return the net pairs with keys; the same list if no row is both inserted and deleted."""
    gone = {pair[0] for _, pair in keyed if pair[1] < 0}
    if gone.isdisjoint([pair[0] for _, pair in keyed if pair[1] > 0]):
        return keyed
    by_row = {pair[0]: key for key, pair in keyed}
    return [(by_row[pair[0]], pair) for pair in consolidate([pair for _, pair in keyed])]


Loop = Callable[[Pairs], list[Pair]]
Carefully = Callable[[Pairs], Sequence[Pair]]


class Linear:
    """Run a loop over a chain; if it raises, run the plain operators.

    Other loops, generated by `made` at their first use, turn a batch into a batch, or into counts.
    """

    __slots__ = ("_batch", "_carefully", "_count", "_loop", "_made", "source", "touched")

    def __init__(
        self,
        loop: Loop,
        carefully: Carefully,
        source: str,
        made: Callable[[type[ListSink | CountSink]], Callable[[Sequence[Row]], Any]],
    ) -> None:
        self._loop = loop
        self._carefully = carefully
        self._made = made
        self._batch: Callable[[Sequence[Row]], list[Row]] | None = None
        self._count: Callable[[Sequence[Row]], dict[Row, int]] | None = None
        self.source = source
        self.touched = 0

    def step(self, delta: Pairs) -> Sequence[Pair]:
        """Return the delta of the chain, as a batch for a batch; plainly if the loop raises."""
        self.touched += len(delta)
        try:
            if type(delta) is not UniformDelta:
                loop = self._loop
                return loop(delta)
            if self._batch is None:
                self._batch = self._made(ListSink)
            return UniformDelta(self._batch(delta.rows), delta.weight)
        except Exception as error:  # the plain operators raise it, or find that it is ignored
            reraise_asynchronous(error)
        return self._carefully(delta)

    def counts(self, batch: UniformDelta) -> dict[Row, int]:
        """Return the output rows of a batch with their weights; equal rows are counted together."""
        self.touched += len(batch)
        try:
            if self._count is None:
                self._count = self._made(CountSink)
            found = self._count(batch.rows)
            return found if batch.weight == 1 else {r: n * batch.weight for r, n in found.items()}
        except Exception as error:  # as above
            reraise_asynchronous(error)
        return dict(consolidate(self._carefully(batch)))
