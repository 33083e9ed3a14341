"""Loops of delta rules: generated code, and the rows of a recursive relation or an input by key.

Generated loops return None if they cannot run, or if a callable raises: the plain operators then
repeat the work, and raise the exception or find that the query does not evaluate it.

Partners: the input rows that match a row of a recursive relation, now or before a change.

    relation  --key-->  input rows of that key that pass a predicate

If a key could not be computed, all rows are candidates.

State:  none; it reads the indexes of both sides.
Cost:   O(rows with the key) per relation row.

Recursive index: a recursive relation by key, as one side of a join.

It applies several deltas per commit, and can undo all of them. If the other side is an input, the
index is read only when that input changes, so it is updated once, at the end of a commit. Otherwise
it follows each round.

State:  the rows, by key (`row_index.py`).
Cost:   O(rows that enter or leave).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from typing import Any

from optimizer.traverse import read_functions
from reactive.engine.codegen.functions import generated_source
from reactive.engine.codegen.nest import ListSink
from reactive.engine.collections.index import NO_MATCH, IndexBefore, KeyedPair
from reactive.engine.collections.zset import KeyedBatch, Pair, Pairs, Row, UniformDelta
from reactive.engine.operators.fixpoint.recursive_relation import RecursiveRelation
from reactive.engine.operators.index_by import IndexBy, KeyedStream
from reactive.engine.operators.join import KeyCandidates
from reactive.engine.operators.loops.nests import (
    DeltaRule,
    delta_loop,
    entering_loop,
    leaving_both_loop,
    leaving_loop,
    meeting_loop,
)
from reactive.engine.operators.plain import PipelineSource
from reactive.engine.runtime.interrupts import reraise_asynchronous

Loop = Callable[..., Any]
RISEN = 1 << 62
"""The round of rows whose value no round justifies: later than all others."""
Derived = tuple[Sequence[Pair], Sequence[Row]]
"""Derivations with their rounds, negative if they are removed; rows derived in this round."""
Entering = Callable[[Sequence[Row]], Sequence[Row]]
"""Returns what a rule makes of rows that enter."""
Moved = tuple[Sequence[Pair], Sequence[Row], Sequence[Row], int]
"""Rows that leave, with their negative rounds; rows that enter in this round, and rows that enter
later than all rounds; this round."""


def dated(came: Sequence[Row], late: Sequence[Row], now: int) -> list[Pair]:
    """Return rows that enter, each with its round."""
    return [*zip(came, repeat(now)), *zip(late, repeat(RISEN))]


class UnaryLoops:
    """Generated loops of a chain, over rows that enter or leave."""

    __slots__ = ("_enter", "_leave")

    def __init__(self, below: PipelineSource) -> None:
        self._enter, self._leave = (_copy_loop(below, batch=batch) for batch in (True, False))

    def run(self, delta: Pairs) -> Pairs | None:
        """Return the derivations from rows that enter or leave; None if a loop raises."""
        try:
            if type(delta) is UniformDelta:
                return UniformDelta(self._enter(delta.rows), delta.weight)
            pairs: Pairs = self._leave(delta)
            return pairs
        except Exception as error:
            reraise_asynchronous(error)
            return None

    def run_moves(self, moves: Moved) -> Derived | None:
        """Return the derivations of rows that leave and of rows that enter; None as in `run`."""
        gone, came, late, now = moves
        try:
            if late:
                return self._leave([*gone, *dated(came, late, now)]), ()
            return self._leave(gone) if gone else (), self._enter(came) if came else ()
        except Exception as error:
            reraise_asynchronous(error)
            return None

    def entering(self) -> Entering:
        """Return the loop over rows that enter."""
        return self._enter

    def sources(self) -> list[str]:
        """Return the code of the loops."""
        return [generated_source(loop) for loop in (self._enter, self._leave)]


def _copy_loop(below: PipelineSource, *, batch: bool) -> Loop:
    """Return the loop that lists the rows of a chain, from pairs or from the rows of a batch."""
    pipeline, called = below.pipeline(), read_functions(*below.chain)
    sink = ListSink(pipeline, batch=batch)
    return delta_loop("delta", pipeline, called, sink, batch=batch)[0]


class BinaryLoops:
    """Generated loops that join rows of one side that enter or leave with the other side."""

    __slots__ = ("_loops", "_mine", "_other", "touched")

    def __init__(
        self, rule: DeltaRule, mine: RecursiveIndex, other: RecursiveIndex | IndexBy
    ) -> None:
        self._mine = mine
        self._other = other
        self.touched = 0
        makers = {"enter": entering_loop, "leave": leaving_loop, "given": meeting_loop}
        if isinstance(other, RecursiveIndex):
            makers = {"enter": entering_loop, "leave": leaving_both_loop}
        self._loops: dict[str, Loop] = {kind: make(rule)[0] for kind, make in makers.items()}

    def run(self, delta: Pairs) -> Pairs | None:
        """Return the derivations from rows that enter or leave; None for plain operators.

        Plain operators must run if a loop raises, or if an index has error rows.
        """
        other = self._other
        index = other.index_by if isinstance(other, RecursiveIndex) else other
        if index.poisoned or self._mine.index_by.poisoned:
            return None
        find = index.index.buckets.get
        try:
            if type(delta) is UniformDelta:
                return UniformDelta(self._loops["enter"](delta.rows, find), delta.weight)
            more = (other.relation.since,) if isinstance(other, RecursiveIndex) else ()
            pairs: Pairs = self._loops["leave"](delta, find, *more)
            return pairs
        except Exception as error:
            reraise_asynchronous(error)
            return None

    def run_moves(self, moves: Moved, *, later: bool) -> Derived | None:
        """Return the derivations of rows that leave and of rows that enter; None as in `run`.

        `later` says that partners may be of a later round than the rows that enter.
        """
        other, loops = self._other, self._loops
        is_recursive = isinstance(other, RecursiveIndex)
        index: IndexBy = other.index_by if is_recursive else other  # type: ignore[union-attr,assignment]
        if index.poisoned or self._mine.index_by.poisoned:
            return None
        find, leave = index.index.buckets.get, loops["leave"]
        gone, came, late, now = moves
        lost: Sequence[Pair] = ()
        made: Sequence[Row] = ()
        try:
            if is_recursive:
                since = other.relation.since  # type: ignore[union-attr]
                if gone:
                    lost = leave(gone, find, since)
                if later or late:
                    new = [(row, -round_) for row, round_ in dated(came, late, now)]
                    lost = [*lost, *[(row, -at) for row, at in leave(new, find, since)]]
                elif came:
                    made = loops["enter"](came, find)
            elif late:
                lost = leave([*gone, *dated(came, late, now)], find)
            else:
                lost = leave(gone, find) if gone else ()
                made = loops["enter"](came, find) if came else ()
        except Exception as error:
            reraise_asynchronous(error)
            return None
        self.touched += len(gone) + len(came) + len(late) + len(lost) + len(made)
        return lost, made

    def entering(self) -> Entering | None:
        """Return the loop over rows that enter; None if an index has error rows."""
        other = self._other
        index = other.index_by if isinstance(other, RecursiveIndex) else other
        if index.poisoned or self._mine.index_by.poisoned:
            return None
        enter, find = self._loops["enter"], index.index.buckets.get
        return lambda rows: enter(rows, find)

    def derive_from_input(self, keyed: Sequence[KeyedPair]) -> Pairs | None:
        """Return the derivations from changed input rows of the other side; None as in `run`."""
        mine, other = self._mine, self._other
        assert isinstance(other, IndexBy)
        if other.poisoned or mine.index_by.poisoned:
            return None
        find = mine.index_by.index.buckets.get
        try:
            pairs: Pairs = self._loops["given"](keyed, find, mine.relation.rounds)
            return pairs
        except Exception as error:
            reraise_asynchronous(error)
            return None

    def sources(self) -> list[str]:
        """Return the code of the loops."""
        return list(map(generated_source, self._loops.values()))


Keyed = Sequence[KeyedPair]
Of = Callable[[Any, Row], list[Pair]]
"""Returns the partners of a row with a key."""


class Partners:
    """Input rows that match the rows of a relation.

    Parameters
    ----------
    fits: True for two rows of equal key that match.
    whole: True for two rows of any keys that match.
    keys_decide: True if all rows of equal keys match.
    """

    __slots__ = ("_fits", "_keys_decide", "_unseen", "_whole", "left", "right", "touched")

    def __init__(
        self,
        sides: tuple[RecursiveIndex, IndexBy],
        fits: Callable[[Row, Row], object],
        whole: Callable[[Row, Row], object],
        *,
        keys_decide: bool = False,
    ) -> None:
        self.left, self.right = sides
        self._keys_decide = keys_decide
        self._fits = fits
        self._whole = whole
        self._unseen: Keyed = ()
        self.touched = 0

    @contextmanager
    def hide_delta(self, keyed: Keyed) -> Iterator[None]:
        """Hide the delta `keyed`, already applied to the input, inside the context."""
        self._unseen = keyed
        try:
            yield
        finally:
            self._unseen = ()

    def find_candidates(self, keyed: Keyed) -> Sequence[tuple[Row, Any]]:
        """Return the relation rows that changed input rows may match, with their keys."""
        found: dict[Row, Any] = {}
        index = self.left.index_by
        rows = KeyCandidates(index) if self._is_poisoned() else index.index
        for key, _ in keyed:
            for row, _ in rows.pairs(key):
                found.setdefault(row, key)
        self.touched += len(found)
        return [*found.items()]

    def unmatched_rows(self, rows: Sequence[Row]) -> Sequence[Row] | None:
        """Return those of some rows whose keys have no partner; None as in `unmatched`."""
        if not self._keys_decide or self._unseen:
            return None
        keyed = self.left.index_by.add_keys(UniformDelta(rows, 1))
        if type(keyed) is not KeyedBatch or self._is_poisoned():
            return None
        self.touched += len(keyed)
        buckets, keys = self.right.index.buckets, keyed.keys
        if NO_MATCH not in keys and buckets.keys().isdisjoint(keys):
            return keyed.rows
        pairs = zip(keys, keyed.rows, strict=True)
        return [row for key, row in pairs if key not in buckets or key is NO_MATCH]

    def finds_unmatched(self) -> Entering | None:
        """Return the function that finds the rows whose keys have no partner; None as in
        `unmatched`."""
        keys_of = self.left.index_by.keys_of_batch()
        if keys_of is None or not self._keys_decide or self._unseen or self._is_poisoned():
            return None
        buckets = self.right.index.buckets

        def find(rows: Sequence[Row]) -> Sequence[Row]:
            keys, rows = keys_of(rows)
            return [
                row
                for key, row in zip(keys, rows, strict=True)
                if key not in buckets or key is NO_MATCH
            ]

        return find

    def unmatched(self, delta: Pairs) -> Pairs | None:
        """Return the changed rows of the relation whose keys have no partner; None if keys do not
        decide."""
        if not self._keys_decide or self._unseen:
            return None
        keyed = self.left.add_keys(delta)
        if self._is_poisoned():
            return None
        self.touched += len(keyed)
        buckets = self.right.index.buckets
        if type(keyed) is KeyedBatch:
            pairs = zip(keyed.keys, keyed.rows, strict=True)
            rows = [row for key, row in pairs if key not in buckets or key is NO_MATCH]
            return UniformDelta(rows, delta.weight) if type(delta) is UniformDelta else None
        since = self.left.relation.since
        return [
            (row, since(row) if weight > 0 else -since(row))
            for key, (row, weight) in keyed
            if key not in buckets or key is NO_MATCH
        ]

    def find_partners_before(self, since: Keyed) -> Of:
        """Return the function that finds the partners of a row, as they were before `since`."""
        others: Any = self.right.index
        fits = self._fits
        if self._unseen:
            since = [*self._unseen, *since]
        if self._is_poisoned():  # keys are not reliable then
            others, fits = _Everything(self.right, since), self._whole
        elif since:
            others = IndexBefore(others, since)

        def partners(key: Any, row: Row) -> list[Pair]:
            candidates = others.pairs(key)
            self.touched += len(candidates)
            return [pair for pair in candidates if fits(row, pair[0])]

        return partners

    def _is_poisoned(self) -> bool:
        return self.left.index_by.poisoned or self.right.poisoned


class _Everything:
    """All rows of an input, whatever the key, as they were before a delta."""

    def __init__(self, rows: IndexBy, since: Keyed) -> None:
        self._rows = list(rows.all_rows(since))

    def pairs(self, key: Any) -> Sequence[Pair]:
        return self._rows


Held = tuple[dict[Any, Any], int, bool, list[Sequence[KeyedPair]]]
"""The contents of an index, and the deltas of this commit."""


class RecursiveIndex:
    """Rows of a relation, by key.

    >>> recursive_index = RecursiveIndex(RecursiveRelation(), IndexBy(len), follows=False)
    >>> recursive_index.change([("anna", 3)])
    >>> list(recursive_index.index_by.index.pairs(4))
    [('anna', 1)]
    """

    __slots__ = ("_taken", "follows", "index_by", "relation")

    def __init__(self, relation: RecursiveRelation, index_by: IndexBy, *, follows: bool) -> None:
        self.relation = relation
        self.index_by = index_by
        self.follows = follows
        """True if it is updated in each round."""
        self._taken: list[Sequence[KeyedPair]] = []

    def add_keys(self, delta: Pairs) -> Sequence[KeyedPair]:
        """Return rows that enter or leave with their keys, without storing them."""
        return self.index_by.add_keys(_with_unit_weights(delta))

    def change(self, delta: Pairs) -> None:
        """Apply rows that enter or leave; the weights in the index are 1."""
        self._taken.append(self.index_by.step(_with_unit_weights(delta)))

    def replace(self, gone: Sequence[Pair], came: Sequence[Row]) -> None:
        """Apply rows that leave and then rows that enter."""
        if gone:
            rows = [row for row, _ in gone]
            self._taken.append(self.index_by.step(UniformDelta(rows, -1)))
        if came:
            self._taken.append(self.index_by.step(UniformDelta(came, 1)))

    def undo(self) -> None:
        """Undo the commit."""
        for keyed in reversed(self._taken):
            self.index_by.take_back(keyed)
        self.commit()

    def set_aside(self) -> Held:
        """Empty the index; return its previous contents."""
        index = self.index_by.index
        held = (index.buckets, index.rows, self.index_by.poisoned, self._taken)
        index.buckets, index.rows, self._taken = {}, 0, []
        self.index_by.poisoned = False
        return held

    def bring_back(self, held: Held) -> None:
        """Restore the contents that `set_aside` returned, as before the commit."""
        index = self.index_by.index
        index.buckets, index.rows, self.index_by.poisoned, self._taken = held
        self.undo()

    def commit(self) -> None:
        """Drop the undo state."""
        if self._taken or self.index_by.poisoned:
            self._taken = []
            self.index_by.commit()


class FilteredKeys:
    """Emit keys of the rows that pass some conditions.

    >>> from reactive.engine.operators.index_by import KeyedStream
    >>> FilteredKeys(lambda pairs: [p for p in pairs if p[0] != "otto"], KeyedStream(len)).step(
    ...     [("anna", 1), ("otto", 1)])
    [(4, ('anna', 1))]
    """

    __slots__ = ("_keys", "_wheres")

    def __init__(self, wheres: Callable[[Pairs], Pairs], keys: KeyedStream) -> None:
        self._wheres = wheres
        self._keys = keys

    @property
    def touched(self) -> int:
        return self._keys.touched

    @property
    def emits_filtered(self) -> bool:
        """True if filtered rows are also emitted."""
        return self._keys.emits_filtered

    @emits_filtered.setter
    def emits_filtered(self, value: bool) -> None:
        self._keys.emits_filtered = value

    def step(self, delta: Pairs) -> Sequence[KeyedPair]:
        return self._keys.step(self._wheres(delta))


def _with_unit_weights(delta: Pairs) -> Sequence[Pair]:
    """Return a delta with weights 1 and -1 in place of rounds."""
    if type(delta) is UniformDelta:
        return UniformDelta(delta.rows, 1 if delta.weight > 0 else -1)
    return [(row, 1 if weight > 0 else -1) for row, weight in delta]
