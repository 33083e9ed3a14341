"""What difference and intersection share: a row's weight depends on its two input weights only.

    out(row)   =  law(L(row), R(row))
    d(row)     =  law(L + dL, R + dR)  -  law(L, R)          at each row that changed

The law maps (0, 0) to 0, so that rows on neither side stay out.

Most rows of the result have weights that their value tells, such as (1, 0) in a difference. They
are held once, as rows of the result, which a view reads there; the weights of all others are held
beside these.

State:  the weight of every row of the result; both weights of the others.
Cost:   O(|dL| + |dR|).
Source: [dbsp] section 4; [i3ql] set operators.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice, repeat

from reactive.engine.collections.zset import Batch, Pair, Pairs, Row
from reactive.engine.operators.operator_state import Inputs, State, columns_of, weighted_rows

Weights = tuple[int, int]
Law = Callable[[int, int], int]

FEW = 3
_SHARED = {(a, b): (a, b) for a in range(FEW) for b in range(FEW)}


class Pointwise:
    """Keeps both weights of each row, and gives out how the law's value moves.

    `usual` says which weights most rows of a value v have: (v, v * usual). Of a set no value is
    more than 1.

    >>> smaller = Pointwise(min, usual=1)
    >>> smaller.step([("a", 2)], [("a", 1)]), smaller.step([], [("a", 1)])
    ([('a', 1)], [('a', 1)])
    """

    __slots__ = ("_held", "_is_set", "_last", "_law", "_others", "_usual", "touched")

    def __init__(self, law: Law, *, usual: int, is_set: bool = False) -> None:
        self._law = law
        self._usual = usual
        self._is_set = is_set
        self._held: dict[Row, int] = {}
        self._others: dict[Row, Weights] = {}
        self._last = NOTHING  # what was done, and how much of it
        self.touched = 0

    def step(self, left: Pairs, right: Pairs) -> Sequence[Pair]:
        size = len(left) + len(right)
        self.touched += size
        if size == 1:
            return self._step_one(left, right)
        move, done = self._move, 0
        out: list[Pair] = []
        try:
            for row, dl, dr in _both(left, right):
                moved = move(row, dl, dr)
                done += 1  # at once: an interrupt comes after a call
                if moved:
                    out.append((row, moved))
        finally:
            self._last = left, right, done
        return out

    def _step_one(self, left: Pairs, right: Pairs) -> Sequence[Pair]:
        ((row, weight),) = left or right
        moved = self._move(row, weight, 0) if left else self._move(row, 0, weight)
        self._last = left, right, 1
        return [(row, moved)] if moved else []

    def undo(self) -> None:
        left, right, done = self._last
        if done:  # else rows may have failed before the first of them was reached
            for row, dl, dr in islice(_both(left, right), done):
                self._move(row, -dl, -dr)
        self._last = NOTHING

    def commit(self) -> None:
        self._last = NOTHING

    @property
    def shown(self) -> Mapping[Row, object] | None:
        """The rows of the result, if each is there once."""
        return self._held if self._is_set else None

    def contents(self) -> Iterable[Pair]:
        return list(self._held.items())

    def state(self) -> State:
        """The rows of the result with their weights, and others with those of both inputs."""
        others = self._others
        own = columns_of(self._held)
        return {**own, "others": list(others), "both": list(others.values())}

    def restore(self, state: State, inputs: Inputs) -> None:
        """Hold what another one has told as its state."""
        self._held.update(weighted_rows(state))
        both = [_SHARED.get(weights, weights) for weights in state["both"]]
        self._others.update(zip(state["others"], both, strict=True))

    def footprint(self) -> tuple[int, int]:
        unusual = sum(weights not in _SHARED for weights in self._others.values())
        size = sys.getsizeof(self._held) + sys.getsizeof(self._others)
        rows = len(self._held) + sum(row not in self._held for row in self._others)
        return rows, size + unusual * sys.getsizeof((0, 0))

    def _move(self, row: Row, dl: int, dr: int) -> int:
        """Add to the weights of a row, or leave all as it is; how the law's value moves."""
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
        except BaseException:  # a row that does not let itself be hashed or compared
            if found is None:
                others.pop(row, None)
            else:
                others[row] = found
            raise
        return value - before


def _both(left: Pairs, right: Pairs) -> Iterable[tuple[Row, int, int]]:
    """The change of the left and of the right weight, of each row; of a batch in several pieces."""
    if not right and type(left) is Batch:
        return zip(left.rows, repeat(left.weight), repeat(0))
    if not left and type(right) is Batch:
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
