"""Large deltas of Z-sets whose rows come or go as a whole: no weight is read to be added to.

    insert      new rows                          d = {}        +c +d
    delete      rows with their whole weight      d = {a, b}    -a -b
    exchange    both; the rows differ             d = {a, b}    -a +c -b +d

Each way applies all of a delta, or changes nothing and says so: then `consolidate` and `integrate`
do it. A delta that is applied has each row once, so that it is its own net.

Cost: one or two hashes per row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from itertools import repeat as repeat_value
from typing import Any, overload

from reactive.engine.collections.zset import (
    Pair,
    Pairs,
    Row,
    UniformDelta,
    consolidate,
    fill_empty,
    is_mixed,
)


def change_whole_rows(weights: dict[Row, int], delta: Pairs) -> bool:
    """Apply a delta whose rows all come or go as a whole; else return False, changing nothing."""
    if is_mixed(delta):
        return exchange_rows(weights, delta)
    change = delete_held if delta[0][1] < 0 else insert_new
    return change(weights, delta)


def insert_new(weights: dict[Row, int], pairs: Pairs) -> bool:
    """Add a delta, if all its rows are new, occur once, and have positive weights.

    It then needs no consolidation, and each row is hashed once. Otherwise return False, changing
    nothing.
    """
    if not weights:
        return fill_empty(weights, pairs)
    before = size = len(weights)
    add, are_new = weights.setdefault, False
    try:
        if type(pairs) is UniformDelta:
            if pairs.weight > 0 and not (pairs.rows and pairs.rows[0] in weights):
                deque(map(add, pairs.rows, repeat_value(pairs.weight)), 0)
                are_new = len(weights) == before + len(pairs)
            return are_new
        for row, weight in pairs:
            if weight <= 0:
                break
            add(row, weight)
            if len(weights) == size:
                break
            size += 1
        else:
            are_new = True
    finally:
        while not are_new and len(weights) > before:
            weights.popitem()  # the last rows; without hashing, which may raise
    return are_new


def delete_held(weights: dict[Row, int], pairs: Pairs) -> bool:
    """Apply a delta, if it deletes each of its rows with its whole weight.

    Otherwise return False, changing nothing.
    """
    if type(pairs) is UniformDelta:
        return _delete_batch(weights, pairs)
    done, odd, pop = 0, 0, weights.pop
    try:
        for row, weight in pairs:
            if weight >= 0:
                break
            held = pop(row, 0)
            if held + weight:
                odd = held
                break
            done += 1
    finally:
        if done < len(pairs):
            _restore_weights(weights, [(row, -weight) for row, weight in islice(pairs, done)])
            if odd:
                _restore_weights(weights, [(row, odd)])
    return done == len(pairs)


def _delete_batch(weights: dict[Row, int], batch: UniformDelta) -> bool:
    """Delete rows of one weight, if each has just that weight; else return False.

    Nothing is changed if it returns False.
    """
    if batch.weight >= 0:
        return not len(batch)
    held: list[int] = []
    are_held = False
    try:
        held.extend(map(weights.pop, batch.rows, repeat_value(0)))
        are_held = held.count(-batch.weight) == len(batch)
    finally:
        if not are_held:
            _restore_weights(
                weights, [pair for pair in zip(batch.rows, held, strict=False) if pair[1]]
            )
    return are_held


def _restore_weights(weights: dict[Row, int], pairs: Pairs) -> None:
    """Restore rows; if hashing one raises, try it once more."""
    for row, weight in pairs:
        try:
            weights[row] = weight
        except Exception:
            weights[row] = weight


def different_keys(old: dict[Row, Any], new: dict[Row, Any]) -> list[Pair]:
    """Return the keys that only one of two dictionaries has, those of `old` with the weight -1.

    The stored hashes are used: no row is hashed again.

    >>> different_keys({"a": 1, "b": 1}, {"b": 2, "c": 1})
    [('a', -1), ('c', 1)]
    """
    gone, come = set(old).difference(new), set(new).difference(old)
    return [*zip(gone, repeat_value(-1)), *zip(come, repeat_value(1))]


def different_weights(old: dict[Row, int], new: dict[Row, int]) -> list[Pair]:
    """Return the changes of weights from `old` to `new`.

    >>> different_weights({"a": 1, "b": 1}, {"b": 3})
    [('b', 2), ('a', -1)]
    """
    changed = [(row, weight - old.get(row, 0)) for row, weight in new.items()]
    gone = [(row, -weight) for row, weight in old.items() if row not in new]
    return [pair for pair in changed if pair[1]] + gone


def exchange_rows(weights: dict[Row, int], pairs: Pairs) -> bool:
    """Apply a delta that deletes rows with their whole weight, and inserts others that are new.

    Each row must occur once: then the delta is its own net. Otherwise return False, changing
    nothing.

    >>> weights = {"a": 1, "b": 2}
    >>> exchange_rows(weights, [("a", -1), ("c", 1)]), weights
    (True, {'b': 2, 'c': 1})
    >>> exchange_rows(weights, [("c", -1), ("c", 1)])
    False
    """
    inserted = [pair for pair in pairs if pair[1] > 0]
    new = dict(inserted)
    if len(new) < len(inserted) or len(set(new).difference(weights)) < len(new):
        return False  # the set has the hashes of `new`, so that no row is hashed again
    deleted = [pair for pair in pairs if pair[1] < 0]
    if len(inserted) + len(deleted) < len(pairs) or not delete_held(weights, deleted):
        return False
    size, are_new = len(weights), False
    try:
        weights.update(new)
        are_new = True
    finally:
        if not are_new:
            while len(weights) > size:
                weights.popitem()  # the last rows; without hashing, which may raise
            _restore_weights(weights, [(row, -weight) for row, weight in deleted])
    return True


class NetDelta(Sequence[Pair]):
    """A delta that is consolidated when read: a load without subscribers hashes no row.

    It is true even if its rows only moved.
    """

    __slots__ = ("_delta", "_pairs")

    def __init__(self, delta: Pairs) -> None:
        self._delta = delta
        self._pairs: Pairs | None = None

    def __bool__(self) -> bool:
        return bool(self._delta)

    def __len__(self) -> int:
        return len(self._net())

    def __iter__(self) -> Iterator[Pair]:
        return iter(self._net())

    @overload
    def __getitem__(self, place: int) -> Pair: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Pair]: ...
    def __getitem__(self, place: int | slice) -> Pair | Sequence[Pair]:
        return self._net()[place]

    def _net(self) -> Pairs:
        """Return the consolidated delta, which is computed once."""
        if self._pairs is None:
            self._pairs = consolidate(self._delta)
        return self._pairs


def uniform_rows(delta: Pairs, sign: int) -> Sequence[Row] | None:
    """Return the rows of a batch that it inserts (1) or deletes (-1), repeated by their weight.

    Return None for a delta of another form. No row is hashed.

    >>> batch = NetDelta(UniformDelta(["to", "be", "to"], -1))
    >>> uniform_rows(batch, -1), uniform_rows(batch, 1), uniform_rows([("to", 1)], 1)
    (['to', 'be', 'to'], [], None)
    """
    given = delta._delta if delta.__class__ is NetDelta else delta
    if given.__class__ is not UniformDelta:
        return None
    times = given.weight * sign
    return given.rows if times == 1 else [row for row in given.rows for _ in range(times)]


class JoinedDelta(Sequence[Pair]):
    """Batches of deleted rows, then of inserted rows, joined when the pairs are read.

    No pair is made for nodes that are evaluated anew, nor for operators that read the batches.

    >>> delta = JoinedDelta([UniformDelta(["a"], -1), UniformDelta(["b", "c"], 1)])
    >>> len(delta), listed(delta)
    (3, [('a', -1), ('b', 1), ('c', 1)])
    """

    __slots__ = ("_pairs", "_parts")

    def __init__(self, parts: Sequence[UniformDelta]) -> None:
        self._parts = parts
        self._pairs: list[Pair] | None = None

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __iter__(self) -> Iterator[Pair]:
        return iter(self.listed())

    @overload
    def __getitem__(self, place: int) -> Pair: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Pair]: ...
    def __getitem__(self, place: int | slice) -> Pair | Sequence[Pair]:
        return self.listed()[place]

    def split(self) -> tuple[list[Row], list[Row]]:
        """Return the deleted rows, and the inserted rows."""
        gone = [part.rows for part in self._parts if part.weight < 0]
        come = [part.rows for part in self._parts if part.weight > 0]
        return list(chain.from_iterable(gone)), list(chain.from_iterable(come))

    def listed(self) -> list[Pair]:
        """Return the list of all pairs, which is made once."""
        if self._pairs is None:
            self._pairs = list(chain.from_iterable(self._parts))
        return self._pairs


def listed(delta: Pairs) -> Pairs:
    """Return a joined delta as a list, for operators; any other delta unchanged."""
    return delta.listed() if type(delta) is JoinedDelta else delta
