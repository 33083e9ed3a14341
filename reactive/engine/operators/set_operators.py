"""Set and bag operators: the weight of an output row depends only on its weights in the inputs.

Pointwise: the common part of difference and intersection.

    out(row)   =  law(L(row), R(row))
    d(row)     =  law(L + dL, R + dR)  -  law(L, R)          for each changed row

The law maps (0, 0) to 0, so that a row on neither side is not in the result.

Most result rows have input weights that follow from their output weight, such as (1, 0) in a
difference. They are stored once, as result rows, which a view reads there; other rows are
stored with both weights.

State:  the weight of every result row; both input weights of the other rows.
Cost:   O(|dL| + |dR|).
Source: [dbsp] section 4; [i3ql] set operators.

Distinct: each row once, whatever its weight.

    distinct(L)(row)  =  1 if L(row) > 0 else 0

Not linear, but the old and the new weight of a row decide:

    d(row)  =  [L(row) + dL(row) > 0]  -  [L(row) > 0]

State:  the weight of every distinct row.
Cost:   O(|dL|).
Source: [dbsp] proposition 4.7, incremental distinct; [i3ql] duplicate elimination.

Set union: the rows of either side, each once.

    union(L, R)  =  distinct(L + R)

State:  the weight of every distinct row of the two sides together.
Cost:   O(|dL| + |dR|).
Source: [dbsp] section 3, relational operators on Z-sets; [i3ql] union.

Set difference: the rows of the left that the right lacks, each once.

    difference(L, R)(row)  =  1 if L(row) > 0 and R(row) <= 0 else 0

State:  the weights of every row of either side (`Pointwise`).
Cost:   O(|dL| + |dR|).
Source: [dbsp] section 3; [i3ql] difference.

Bag difference: left weights minus right weights (SQL's EXCEPT ALL).

    difference_all(L, R)(row)  =  max(0, L(row) - R(row)), with negative weights read as 0

State:  the weights of every row of either side (`Pointwise`).
Cost:   O(|dL| + |dR|).
Source: [dbsp] section 3; [i3ql] bag difference.

Bag intersection: the smaller of the two weights (SQL's INTERSECT ALL).

    intersection_all(L, R)(row)  =  min(L(row), R(row)), with negative weights read as 0

State:  the weights of every row of either side (`Pointwise`).
Cost:   O(|dL| + |dR|).
Source: [dbsp] section 3; [i3ql] bag intersection.

Set intersection: the rows that both sides have, each once.

    intersection(L, R)(row)  =  1 if L(row) > 0 and R(row) > 0 else 0

State:  the weights of every row of either side (`Pointwise`).
Cost:   O(|dL| + |dR|).
Source: [dbsp] section 3; [i3ql] intersection.

Bag union: the rows of both sides, weights added (SQL's UNION ALL).

    d(L + R)  =  dL + dR

Linear in both inputs together.

State:  none.
Cost:   O(|dL| + |dR|).
Source: [dbsp] addition of Z-sets.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice, repeat
from typing import TYPE_CHECKING, ClassVar

from reactive.engine.collections.whole_rows import different_keys, different_weights
from reactive.engine.collections.zset import Pair, Pairs, Row, UniformDelta, consolidate
from reactive.engine.operators.aggregate import Inputs, State, weight_columns, weighted_rows
from reactive.engine.operators.operator import DetachedState

if TYPE_CHECKING:
    from reactive.engine.operators.loops.join_loops import Linear


Weights = tuple[int, int]
Law = Callable[[int, int], int]

FEW = 3
_SHARED = {(a, b): (a, b) for a in range(FEW) for b in range(FEW)}


class Pointwise:
    """Store both weights of each row, and emit the changes of the law's value.

    `usual` defines the usual weights of rows of a value v: (v, v * usual). In a set no value
    exceeds 1.

    >>> smaller = Pointwise(min, usual=1)
    >>> smaller.step([("a", 2)], [("a", 1)]), smaller.step([], [("a", 1)])
    ([('a', 1)], [('a', 1)])
    """

    change_cost: ClassVar[float] = 1
    emits_changes: ClassVar[bool] = True
    is_detachable: ClassVar[bool] = True
    __slots__ = ("_held", "_is_set", "_last", "_law", "_others", "_usual", "touched")

    def __init__(self, law: Law, *, usual: int, is_set: bool = False) -> None:
        self._law = law
        self._usual = usual
        self._is_set = is_set
        self._held: dict[Row, int] = {}
        self._others: dict[Row, Weights] = {}
        self._last = NOTHING  # the last deltas, and the number of applied rows
        self.touched = 0

    def step(self, left: Pairs, right: Pairs) -> Sequence[Pair]:
        """Return the changes of the law's value; if it raises, `undo` reverts the applied rows."""
        size = len(left) + len(right)
        self.touched += size
        if size == 1:
            return self._step_one(left, right)
        move, done = self._move, 0
        out: list[Pair] = []
        try:
            for row, dl, dr in _changed_weights(left, right):
                moved = move(row, dl, dr)
                done += 1  # before `out.append`: an interrupt can arrive after that call
                if moved:
                    out.append((row, moved))
        finally:
            self._last = left, right, done
        return out

    def _step_one(self, left: Pairs, right: Pairs) -> Sequence[Pair]:
        """Apply a delta of one pair of one side."""
        ((row, weight),) = left or right
        moved = self._move(row, weight, 0) if left else self._move(row, 0, weight)
        self._last = left, right, 1
        return [(row, moved)] if moved else []

    def undo(self) -> None:
        """Take back the rows that the last step has applied, if it raised midway only these."""
        left, right, done = self._last
        if done:  # otherwise rows may have failed before the first was reached
            for row, dl, dr in islice(_changed_weights(left, right), done):
                self._move(row, -dl, -dr)
        self._last = NOTHING

    def commit(self) -> None:
        self._last = NOTHING

    def detach_state(self) -> DetachedState:
        """Empty the result rows, in the same dictionary, which a view may read, and the others."""
        held, others = self._held, self._others
        kept, self._others = dict(held), {}

        def restore() -> None:
            held.clear()
            held.update(kept)
            self._others = others
            self.commit()

        held.clear()
        find = different_keys if self._is_set else different_weights
        return DetachedState(restore, lambda: find(kept, held))

    @property
    def shown(self) -> Mapping[Row, object] | None:
        """The result rows, if each has the weight 1; else None."""
        return self._held if self._is_set else None

    def contents(self) -> Iterable[Pair]:
        return list(self._held.items())

    def state(self) -> State:
        """Return the result rows with their weights, and other rows with both input weights."""
        others = self._others
        own = weight_columns(self._held)
        return {**own, "others": list(others), "both": list(others.values())}

    def restore(self, state: State, inputs: Inputs) -> None:
        """Load a stored state."""
        self._held.update(weighted_rows(state))
        both = [_SHARED.get(weights, weights) for weights in state["both"]]
        self._others.update(zip(state["others"], both, strict=True))

    def footprint(self) -> tuple[int, int]:
        """Return the number of rows of any weight, and the bytes of the dictionaries."""
        unusual = sum(weights not in _SHARED for weights in self._others.values())
        size = sys.getsizeof(self._held) + sys.getsizeof(self._others)
        rows = len(self._held) + sum(row not in self._held for row in self._others)
        return rows, size + unusual * sys.getsizeof((0, 0))

    def _move(self, row: Row, dl: int, dr: int) -> int:
        """Add to the weights of a row, or change nothing if it raises; return the change of the
        value."""
        held, others = self._held, self._others
        found = others.get(row)
        if found is None:
            a = before = held.get(row, 0)
            b = a * self._usual
        else:
            a, b = found
            before = self._law(a, b)
        left, right = a + dl, b + dr
        value = self._law(left, right)
        if left != value or right != value * self._usual:
            weights = (left, right)
            others[row] = _SHARED.get(weights, weights)
        elif found is not None:
            del others[row]
        if value == before:
            return 0
        try:
            if value:
                held[row] = value
            else:
                del held[row]
        except BaseException:  # the row raised when hashed or compared
            if found is None:
                others.pop(row, None)
            else:
                others[row] = found
            raise
        return value - before


def _changed_weights(left: Pairs, right: Pairs) -> Iterable[tuple[Row, int, int]]:
    """Yield the changes of both weights of each row; a row of a `UniformDelta` may come
    repeatedly."""
    if not right and type(left) is UniformDelta:
        return zip(left.rows, repeat(left.weight), repeat(0))
    if not left and type(right) is UniformDelta:
        return zip(right.rows, repeat(0), repeat(right.weight))
    changed: dict[Row, Weights] = {}
    for row, weight in left:
        a, b = changed.get(row, (0, 0))
        changed[row] = (a + weight, b)
    for row, weight in right:
        a, b = changed.get(row, (0, 0))
        changed[row] = (a, b + weight)
    return ((row, a, b) for row, (a, b) in changed.items())


NOTHING: tuple[Pairs, Pairs, int] = ((), (), 0)


class Distinct:
    """Emit a row when its first copy is inserted, and delete it when its last copy is deleted.

    `below` computes the rows of the delta by a generated loop (`loops/join_loops.py`), if given.

    >>> distinct = Distinct()
    >>> distinct.step([("a", 2), ("b", 1)]), distinct.step([("a", -1), ("b", -1)])
    ([('a', 1), ('b', 1)], [('b', -1)])
    """

    change_cost: ClassVar[float] = 2.5
    emits_changes: ClassVar[bool] = True
    __slots__ = ("_below", "_last", "_owed", "shown", "source", "touched")

    def __init__(self, below: Linear | None = None) -> None:
        self._below = below
        self.source = None if below is None else below.source
        """The code of the generated loop."""
        self.shown: dict[Row, int] = {}
        """The result rows, with their input weights."""
        self._owed: dict[Row, int] = {}  # rows of negative weight, of a table that is not stored
        self._last: Iterable[Pair] = ()
        self.touched = 0

    def step(self, delta: Pairs) -> Sequence[Pair]:
        """Return the rows that appear or disappear, from the chain's output if there is one."""
        self.touched += len(delta)
        if self._below is not None:
            if type(delta) is UniformDelta:
                counts = self._below.counts(delta)
                is_first = delta.weight > 0 and not (self.shown or self._owed)
                return self._add_counts(counts) if is_first else self._add_net(counts.items())
            delta = self._below.step(delta)
        if type(delta) is UniformDelta and delta.weight > 0 and not self._owed:
            return self._add_all(delta)
        return self._add_net(delta if len(delta) == 1 else consolidate(delta))

    def _add_net(self, changes: Collection[Pair]) -> Sequence[Pair]:
        """Apply a net delta; return the rows that appear or disappear."""
        shown, out = self.shown, []
        done = 0
        try:
            for row, change in changes:
                before = shown.get(row, 0)
                if before > -change and (before or not self._owed):
                    shown[row] = before + change
                    is_told = not before
                else:
                    is_told = self._add(row, change)
                done += 1  # before `out.append`: an interrupt can arrive after that call
                if is_told:
                    out.append((row, -1 if before else 1))
        except BaseException:
            self._last = list(islice(changes, done))
            self.undo()
            raise
        self._last = changes
        return out

    def _add_counts(self, counts: dict[Row, int]) -> UniformDelta:
        """Apply counts of inserted rows to an empty state; return the rows, all new."""
        try:
            self.shown.update(counts)
        except BaseException:
            self.shown.clear()
            raise
        self._last = counts.items()
        return UniformDelta(list(counts), 1)

    def _add_all(self, batch: UniformDelta) -> UniformDelta:
        """Apply insertions of equal weight; return the new rows."""
        shown, weight, new = self.shown, batch.weight, list[Row]()
        get, done = shown.get, 0
        try:
            for row in batch.rows:
                before = get(row)
                if before is None:
                    shown[row] = weight
                    new.append(row)
                else:
                    shown[row] = before + weight
                done += 1
        except BaseException:
            self._last = batch[:done]
            self.undo()
            raise
        self._last = batch
        return UniformDelta(new, 1)

    def undo(self) -> None:
        for row, change in self._last:
            self._add(row, -change)
        self._last = ()

    def commit(self) -> None:
        self._last = ()

    def contents(self) -> Iterable[Pair]:
        return UniformDelta(list(self.shown), 1)

    def state(self) -> State | None:
        """Return the rows with their weights; None while a weight is negative."""
        if self._owed:
            return None
        return weight_columns(self.shown)

    def restore(self, state: State, inputs: Inputs) -> None:
        """Load a stored state."""
        self.shown.update(weighted_rows(state))

    @property
    def is_detachable(self) -> bool:
        return not self._owed

    def detach_state(self) -> DetachedState:
        """Empty the rows, in the same dictionary, which a view may read."""
        kept, shown = dict(self.shown), self.shown

        def restore() -> None:
            shown.clear()
            shown.update(kept)
            self._owed.clear()
            self.commit()

        shown.clear()
        return DetachedState(restore, lambda: different_keys(kept, shown))

    def footprint(self) -> tuple[int, int]:
        size = sys.getsizeof(self.shown) + sys.getsizeof(self._owed)
        return len(self.shown) + len(self._owed), size

    def _add(self, row: Row, change: int) -> bool:
        """Add to the weight of a row; return True if it appeared or disappeared."""
        before = self.shown.get(row) or self._owed.get(row, 0)
        weight = before + change
        if weight > 0:
            self.shown[row] = weight
        elif before > 0:
            del self.shown[row]
        if weight < 0:
            self._owed[row] = weight
        elif before < 0:
            del self._owed[row]
        return (before > 0) != (weight > 0)


class Union:
    """Distinct rows of two inputs.

    >>> union = Union()
    >>> union.step([("a", 1)], [("a", 1), ("b", 1)]), union.step([("a", -1)], [])
    ([('a', 1), ('b', 1)], [])
    """

    change_cost: ClassVar[float] = 3.5
    emits_changes: ClassVar[bool] = True
    __slots__ = ("_distinct",)

    def __init__(self) -> None:
        self._distinct = Distinct()

    @property
    def touched(self) -> int:
        return self._distinct.touched

    @property
    def shown(self) -> dict[Row, int]:
        """The result rows, with their input weights."""
        return self._distinct.shown

    def step(self, left: Pairs, right: Pairs) -> Sequence[Pair]:
        return self._distinct.step([*left, *right])

    def undo(self) -> None:
        self._distinct.undo()

    def commit(self) -> None:
        self._distinct.commit()

    def contents(self) -> Iterable[Pair]:
        return self._distinct.contents()

    def state(self) -> State | None:
        """Return the same state as `Distinct.state`."""
        return self._distinct.state()

    def restore(self, state: State, inputs: Inputs) -> None:
        """Load a state of `Distinct.state`."""
        self._distinct.restore(state, inputs)

    @property
    def is_detachable(self) -> bool:
        return self._distinct.is_detachable

    def detach_state(self) -> DetachedState:
        """Empty the rows of both inputs."""
        return self._distinct.detach_state()

    def footprint(self) -> tuple[int, int]:
        return self._distinct.footprint()


def make_difference(kind: Callable[..., Pointwise] = Pointwise) -> Pointwise:
    """Return the operator of a set difference.

    >>> make_difference().step([("a", 2), ("b", 1)], [("b", 1)])
    [('a', 1)]
    """
    return kind(_difference_law, usual=0, is_set=True)


def _difference_law(left: int, right: int) -> int:
    return 1 if left > 0 >= right else 0


def make_difference_all(kind: Callable[..., Pointwise] = Pointwise) -> Pointwise:
    """Return the operator of a bag difference.

    >>> make_difference_all().step([("a", 2), ("b", 1)], [("a", 1), ("b", 1)])
    [('a', 1)]
    """
    return kind(_bag_difference, usual=0)


def _bag_difference(left: int, right: int) -> int:
    return max(0, max(0, left) - max(0, right))


def make_intersection_all(kind: Callable[..., Pointwise] = Pointwise) -> Pointwise:
    """Return the operator of a bag intersection.

    >>> make_intersection_all().step([("a", 2), ("b", 1)], [("a", 3)])
    [('a', 2)]
    """
    return kind(_bag_intersection, usual=1)


def _bag_intersection(left: int, right: int) -> int:
    return max(0, min(left, right))


def make_intersection(kind: Callable[..., Pointwise] = Pointwise) -> Pointwise:
    """Return the operator of a set intersection.

    >>> make_intersection().step([("a", 2), ("b", 1)], [("a", 1)])
    [('a', 1)]
    """
    return kind(_intersection_law, usual=1, is_set=True)


def _intersection_law(left: int, right: int) -> int:
    return int(left > 0 and right > 0)


class UnionAll:
    """Concatenate the two deltas.

    >>> UnionAll().step([("a", 1)], [("a", 1), ("b", -1)])
    [('a', 1), ('a', 1), ('b', -1)]
    """

    __slots__ = ("touched",)

    def __init__(self) -> None:
        self.touched = 0

    def step(self, left: Pairs, right: Pairs) -> list[Pair]:
        self.touched += len(left) + len(right)
        return [*left, *right]
