"""Joins that test for partners: semi, anti and outer joins; and literal rows of a query.

Matching: which rows of one input have a partner in the other, for semi, anti and outer joins.

    partnered(L, R)(row)  =  L(row)  if some row of R matches, else 0
    alone(L, R)(row)      =  L(row)  -  partnered(L, R)(row)

`KeyMatching` matches by key alone: it needs only the total weight of `R` per key, not the rows of
`R`. With P for "R has the key":

    d partnered  =  dL * (P + dP)  +  L * dP

`PredicateMatching` has a predicate too (`predicate_matching.py`).

State:  the weight of R per key.
Cost:   O(|dL| + |dR| + rows whose presence flips).
Source: [i3ql] exists and not exists; [dbsp] section 4, antijoin.

Outer joins: a join that includes rows without a partner, with None for the missing side.

    L left_join R   =  L join R  +  alone(L, R) x {None}
    L right_join R  =  L join R  +  {None} x alone(R, L)
    L full_join R   =  L join R  +  alone(L, R) x {None}  +  {None} x alone(R, L)

State:  one index per input, and the state of a matching for each side that is kept whole.
Cost:   as join, plus rows whose presence flips.
Source: [i3ql] has none; the law is SQL's.

Anti-join: the left rows without a partner on the right (NOT EXISTS), with their own weights.

    L anti_join R  =  L - (L semi_join R)  =  alone(L, R)

State:  the index of the left, and the state of the matching.
Cost:   O(|dL| + |dR| + rows whose presence flips); with a predicate, plus the tested pairs.
Source: [i3ql] not exists; [dbsp] section 4.

Semi-join: the left rows with a partner on the right (EXISTS), with their own weights.

    L semi_join R  =  partnered(L, R)

State:  the index of the left, and the state of the matching.
Cost:   O(|dL| + |dR| + rows whose presence flips); with a predicate, plus the tested pairs.
Source: [i3ql] exists; [dbsp] section 4.

Literal rows: rows that are written in a query; they never change.

State:  the rows.
Cost:   none.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import compress
from operator import not_
from typing import ClassVar, Protocol

from reactive.engine.collections.index import NO_MATCH, NOTHING, Index, Key, KeyedPair, bucket_pairs
from reactive.engine.collections.zset import KeyedBatch, Pair, Row, UniformDelta, consolidate
from reactive.engine.operators.join import Join
from reactive.engine.operators.operator import DetachedState

Change = tuple[Row, int, int]
"""A row, the change of its weight among the partnered rows, and among the rows alone."""


class KeyMatching:
    """Match rows by key alone.

    >>> from reactive.engine.operators.index_by import IndexBy
    >>> names = IndexBy(len)
    >>> matching = KeyMatching(names.index)
    >>> matching.step(names.step([("anna", 1)]), [])
    [('anna', 0, 1)]
    >>> matching.step([], [(4, ("otto", 1))])
    [('anna', 1, -1)]
    """

    __slots__ = ("_last", "_left", "_weights", "touched")

    def __init__(self, left: Index) -> None:
        self._left = left
        self._weights: dict[Key, int] = {}
        self._last: dict[Key, int] = {}
        self.touched = 0

    @property
    def by_key(self) -> KeyMatching:
        """The matching that knows the partners of a key."""
        return self

    def step(self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]) -> Sequence[Change]:
        """Return the changes of left rows, also of those whose key got or lost its last partner."""
        if len(right) == 1 and not left:
            return self._step_one(*right[0])
        flipped, find = self.change_partners(left, right), self._weights.get
        self.touched += len(left)
        out = [
            (row, weight, 0) if find(key, 0) > 0 else (row, 0, weight)
            for key, (row, weight) in left
        ]
        return [*out, *flipped] if flipped else out

    def change_partners(
        self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]
    ) -> Sequence[Change]:
        """Apply the delta of the right; return the changes of the left rows before their delta."""
        weights, before = self._weights, dict[Key, int]()
        self._last = before
        for key, (row, weight) in right:  # noqa: B007  # messages name `row`
            if key is NO_MATCH:
                continue
            old = weights.get(key, 0)
            before.setdefault(key, old)
            if old + weight:
                weights[key] = old + weight
            else:
                del weights[key]
        flipped = list(self._find_flipped_rows(left)) if before else ()
        self.touched += len(flipped) + len(right)
        return flipped

    def have_partners(self, keys: Sequence[Key]) -> list[bool]:
        """Return for each key if the right side has it."""
        find = self._weights.get
        return [find(key, 0) > 0 for key in keys]

    def _step_one(self, key: Key, pair: Pair) -> Sequence[Change]:
        """Apply one inserted or deleted row of the right.

        Return () if no key gains its first row or loses its last.
        """
        self.touched += 1
        if key is NO_MATCH:
            self._last = {}
            return ()
        weights = self._weights
        old = weights.get(key, 0)
        self._last = {key: old}
        now = old + pair[1]
        if now:
            weights[key] = now
        else:
            del weights[key]
        if (now > 0) == (old > 0):
            return ()
        out = list(self._find_flipped_rows(()))
        self.touched += len(out)
        return out

    def held_keys(self) -> Collection[Key]:
        """Return the keys that the right side has, as they are at any later time."""
        return self._weights

    def undo(self) -> None:
        for key, weight in self._last.items():
            self._set(key, weight)
        self._last = {}

    def commit(self) -> None:
        self._last = {}

    def contents(self) -> Iterator[Change]:
        for key, (row, weight) in self._left.items():
            yield (row, weight, 0) if self._weights.get(key, 0) > 0 else (row, 0, weight)

    def detach_state(self) -> DetachedState:
        """Empty the weights, in the same dictionary, which others may read."""
        weights = self._weights
        kept = dict(weights)

        def restore() -> None:
            weights.clear()
            weights.update(kept)
            self._last = {}

        weights.clear()
        return DetachedState(restore)

    def fill(self, right: Sequence[KeyedPair]) -> None:
        """Add the rows of the right to empty weights."""
        weights = self._weights
        self.touched += len(right)
        for key, (_, weight) in right:
            if key is not NO_MATCH:
                weights[key] = weights.get(key, 0) + weight

    def footprint(self) -> tuple[int, int]:
        return len(self._weights), sys.getsizeof(self._weights)

    def _find_flipped_rows(self, left: Sequence[KeyedPair]) -> Iterator[Change]:
        """Yield the rows, without the delta `left`, of each changed key that got a first partner,
        or lost the last."""
        find = self._left.find_before(left) if left else self._left.find
        for key, old in self._last.items():
            now = self._weights.get(key, 0) > 0
            if now != (old > 0) and (found := find(key, NOTHING)) is not NOTHING:
                for row, weight in bucket_pairs(found):
                    yield (row, weight, -weight) if now else (row, -weight, weight)

    def _set(self, key: Key, weight: int) -> None:
        """Set the weight of a key; 0 deletes it."""
        if weight:
            self._weights[key] = weight
        else:
            self._weights.pop(key, None)


class Matching(Protocol):
    """Divides the left rows into rows with a partner and rows alone."""

    @property
    def touched(self) -> int:
        """The number of touched rows so far."""
        ...

    def step(self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]) -> Sequence[Change]:
        """Apply deltas; return the left rows that got a first partner, or lost the last."""
        ...

    def undo(self) -> None:
        """Undo the last step."""
        ...

    def commit(self) -> None:
        """Finish the last step: it is not undone later."""
        ...

    def contents(self) -> Iterable[Change]:
        """Return all left rows, as if they were just inserted."""
        ...

    def footprint(self) -> tuple[int, int]:
        """Return the size of the state, in entries and bytes."""
        ...


Part = Callable[..., list[Pair]]


class MatchingJoin:
    """Emit the left rows of one part of a matching: `partnered_delta`, or `alone_delta`."""

    is_made: ClassVar[bool] = True
    is_empty: ClassVar[bool] = False
    change_cost: ClassVar[float] = 0
    emits_changes: ClassVar[bool] = False
    __slots__ = ("_matching", "_part")

    def __init__(self, matching: Matching, part: Part) -> None:
        self._matching = matching
        self._part = part

    @property
    def touched(self) -> int:
        return self._matching.touched

    @property
    def held_keys(self) -> Callable[[], Collection[Key]]:
        """Returns the keys that the right side has, for a matching by key; else absent."""
        found: Callable[[], Collection[Key]] = self._matching.held_keys  # type: ignore[attr-defined]
        return found

    def next_change(self, side: int, moment: datetime) -> datetime | None:
        """Return the next moment at which a clock, the side 0 or 1, changes the rows.

        Return `moment` if it is not known, and None if there is none.
        """
        found = getattr(self._matching, "next_change", None)
        return moment if found is None else found(side, moment)

    def step(self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]) -> Sequence[Pair]:
        """Return the delta of the part; a batch of left rows makes a batch."""
        if type(left) is KeyedBatch:
            by_key: KeyMatching | None = getattr(self._matching, "by_key", None)
            if by_key is not None:
                return self._step_batch(by_key, left, right)
        both_changed = bool(left and right)
        return self._part(self._matching.step(left, right), both_changed=both_changed)

    def _step_batch(
        self, matching: KeyMatching, left: KeyedBatch, right: Sequence[KeyedPair]
    ) -> Sequence[Pair]:
        """Return the delta of a batch of left rows, and of earlier rows whose partners changed."""
        flipped, chosen = matching.change_partners(left, right), matching.have_partners(left.keys)
        matching.touched += len(left)
        if self._part is alone_delta:
            chosen = list(map(not_, chosen))
        rows = UniformDelta(list(compress(left.rows, chosen)), left.weight)
        if not flipped:
            return rows
        return consolidate([*rows, *self._part(flipped, both_changed=False)])

    def match(self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]) -> list[Sequence[Pair]]:
        """Return the delta, as a list of one (as `OuterJoin.match`, which returns two)."""
        return [self.step(left, right)]

    def rows(
        self,
        left: Sequence[KeyedPair],
        right: Sequence[KeyedPair],
        matched: Sequence[Sequence[Pair]],
    ) -> Sequence[Pair]:
        """Return the delta that `match` has computed."""
        return matched[0]

    @property
    def is_detachable(self) -> bool:
        return type(self._matching) is KeyMatching

    def detach_state(self) -> DetachedState:
        """Empty the matching by key."""
        assert isinstance(self._matching, KeyMatching)
        return self._matching.detach_state()

    def fill(self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]) -> None:
        """Fill the empty matching by key, without output."""
        assert isinstance(self._matching, KeyMatching)
        self._matching.fill(right)

    def undo(self) -> None:
        self._matching.undo()

    def commit(self) -> None:
        self._matching.commit()

    def contents(self) -> Iterable[Pair]:
        return self._part(self._matching.contents(), both_changed=False)

    def footprint(self) -> tuple[int, int]:
        return self._matching.footprint()


def partnered_delta(changes: Iterable[Change], *, both_changed: bool) -> list[Pair]:
    """Return the delta of the rows with a partner, consolidated if `both_changed`."""
    pairs = [(row, weight) for row, weight, _ in changes if weight]
    return consolidate(pairs) if both_changed else pairs


def alone_delta(changes: Iterable[Change], *, both_changed: bool) -> list[Pair]:
    """Return the delta of the rows without a partner, consolidated if `both_changed`."""
    pairs = [(row, weight) for row, _, weight in changes if weight]
    return consolidate(pairs) if both_changed else pairs


Kept = tuple[Matching, Callable[[Row], Row]]
"""The matching of a side that is kept whole, and the function that pads a row with None."""


class OuterJoin:
    """Join two inputs, and add the rows alone of the sides that are kept whole.

    >>> from reactive.engine.operators.index_by import IndexBy
    >>> from reactive.engine.operators.matching import KeyMatching
    >>> left, right = IndexBy(len), IndexBy(len)
    >>> join = Join(left, right, lambda a, b: (a, b))
    >>> kept = (KeyMatching(left.index), lambda row: (row, None))
    >>> OuterJoin(join, left=kept).step(left.step([("anna", 1)]), [])
    [(('anna', None), 1)]
    """

    __slots__ = ("_join", "_kept", "_matchings")

    def __init__(self, join: Join, *, left: Kept | None = None, right: Kept | None = None) -> None:
        self._join = join
        self._kept = [(side, kept) for side, kept in enumerate((left, right)) if kept is not None]
        self._matchings = [matching for _, (matching, _) in self._kept]

    @property
    def touched(self) -> int:
        return self._join.touched + sum(m.touched for m in self._matchings)

    def step(self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]) -> list[Pair]:
        """Return the delta of the join, padded rows included; undoes the matchings if it raises."""
        missing = self.match(left, right)
        try:
            return self.rows(left, right, missing)
        except BaseException:
            self.undo()
            raise

    def match(self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]) -> list[Sequence[Pair]]:
        """Return the deltas of rows alone on the left and the right; () for a side not kept."""
        found: list[Sequence[Pair]] = [(), ()]
        done: list[Matching] = []
        try:
            for side, (matching, _) in self._kept:
                changes = matching.step(right, left) if side else matching.step(left, right)
                done.append(matching)
                if changes:
                    found[side] = alone_delta(changes, both_changed=bool(left and right))
        except BaseException:
            for matching in done:
                matching.undo()
            raise
        return found

    def rows(
        self,
        left: Sequence[KeyedPair],
        right: Sequence[KeyedPair],
        missing: Sequence[Sequence[Pair]],
    ) -> list[Pair]:
        """Return the delta; `missing` are the rows that `match` has returned."""
        out = self._join.step(left, right)
        for side, (_, pad) in self._kept:
            out += [(pad(row), weight) for row, weight in missing[side]]
        return out

    def undo(self) -> None:
        for matching in self._matchings:
            matching.undo()

    def commit(self) -> None:
        for matching in self._matchings:
            matching.commit()

    def contents(self) -> Iterable[Pair]:
        """Yield all joined rows, then the padded rows of the kept sides."""
        yield from self._join.contents()
        alone = self.alone()
        for side, (_, pad) in self._kept:
            yield from [(pad(row), weight) for row, weight in alone[side]]

    @property
    def is_detachable(self) -> bool:
        return all(type(matching) is KeyMatching for matching in self._matchings)

    def detach_state(self) -> DetachedState:
        """Empty the matchings by key."""
        states = [m.detach_state() for m in self._matchings if isinstance(m, KeyMatching)]

        def restore() -> None:
            for state in states:
                state.restore()

        return DetachedState(restore)

    def fill(self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]) -> None:
        """Fill the empty matchings by key, without output."""
        for side, (matching, _) in self._kept:
            assert isinstance(matching, KeyMatching)
            matching.fill(left if side else right)

    def alone(self) -> list[Sequence[Pair]]:
        """Return all rows alone on the left and the right; () for a side not kept."""
        found: list[Sequence[Pair]] = [(), ()]
        for side, (matching, _) in self._kept:
            found[side] = alone_delta(matching.contents(), both_changed=False)
        return found

    def footprint(self) -> tuple[int, int]:
        sizes = [m.footprint() for m in self._matchings]
        return sum(rows for rows, _ in sizes), sum(size for _, size in sizes)


def anti_join(matching: Matching) -> MatchingJoin:
    """Return the operator that emits the left rows without a partner on the right.

    >>> from reactive.engine.operators.index_by import IndexBy
    >>> from reactive.engine.operators.matching import KeyMatching
    >>> names = IndexBy(len)
    >>> join = anti_join(KeyMatching(names.index))
    >>> first = join.step(names.step([("anna", 1)]), [])
    >>> join.step([], [(4, ("otto", 1))])
    [('anna', -1)]
    """
    return MatchingJoin(matching, alone_delta)


def semi_join(matching: Matching) -> MatchingJoin:
    """Return the operator that emits the left rows with a partner on the right.

    >>> from reactive.engine.operators.index_by import IndexBy
    >>> from reactive.engine.operators.matching import KeyMatching
    >>> names = IndexBy(len)
    >>> join = semi_join(KeyMatching(names.index))
    >>> first = join.step(names.step([("anna", 1)]), [])
    >>> join.step([], [(4, ("otto", 1))])
    [('anna', 1)]
    """
    return MatchingJoin(matching, partnered_delta)


class LiteralRows:
    """Rows of a literal relation; no rows for an empty relation.

    >>> values = LiteralRows(["a", "a"])
    >>> values.contents(), values.step()
    ([('a', 1), ('a', 1)], [])
    """

    __slots__ = ("_rows", "touched")

    def __init__(self, rows: Sequence[Row] = ()) -> None:
        self._rows = rows
        self.touched = 0

    def step(self) -> list[Pair]:
        return []

    def contents(self) -> Iterable[Pair]:
        return [(row, 1) for row in self._rows]
