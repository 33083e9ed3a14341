"""Tolerant user aggregates: for views that no row may stop, an exception becomes a value.

    values of a group   --add, remove, combine, result-->   the result, or a `Fault`

After a function has raised, the next result is recomputed from all values, so that it depends only
on the present rows.

State:  that of the aggregate, and the values of each group.
Cost:   that of the aggregate; O(values of the group) for each commit that changes a group after a
        function has raised for it, until none raises.
"""

from __future__ import annotations

from typing import Any

from optimizer.expressions.attempts import Fault
from optimizer.plans.facts import Cost
from optimizer.record import record
from reactive.engine.collections.bag import MonoidTree
from reactive.engine.collections.zset import canonical
from reactive.engine.operators.accumulators import MonoidAccumulator, UserAccumulator
from reactive.engine.runtime.interrupts import reraise_asynchronous


@record
class Tolerant:
    """A user's own aggregate; its result is a `Fault` if a function raises."""

    inner: UserAccumulator | MonoidAccumulator
    in_place = True
    over_values = False
    adds_values = False
    skip_none = False
    check = None

    @property
    def cost(self) -> Cost:
        return self.inner.cost

    def zero(self) -> MonoidTree | TolerantState:
        if isinstance(self.inner, MonoidAccumulator):
            return self.inner.zero()
        return TolerantState(self.inner)

    def add(self, state: Any, value: Any, weight: int) -> Any:
        state.add(canonical(value), weight)
        return state

    def is_zero(self, state: Any) -> bool:
        return not len(state)

    def result(self, state: Any) -> Any:
        """Return the result, if it can be part of a row, or the `Fault` of the exception."""
        try:
            is_tree = isinstance(self.inner, MonoidAccumulator)
            found = self.inner.result(state if is_tree else state.fold())
            hash(found)
        except Exception as error:
            reraise_asynchronous(error)
            return Fault.of(error)
        return found


_STALE = object()


class TolerantState:
    """Values of a group, and the state that the functions computed, unless one has raised."""

    __slots__ = ("_held", "_inner", "_loose", "_state")

    def __init__(self, inner: UserAccumulator) -> None:
        self._inner = inner
        self._held: dict[Any, int] = {}
        self._loose: list[list[Any]] = []  # values without a hash, with their weights
        self._state: Any = inner.zero()

    def __len__(self) -> int:
        return len(self._held) + len(self._loose)

    def add(self, value: Any, weight: int) -> None:
        """Change the weight of a value; if the function raises, `folded` starts again."""
        try:
            self._hold(value, weight)
        except Exception as error:  # its `__hash__` or `__eq__` raises
            reraise_asynchronous(error)
            self._hold_loose(value, weight)
        if self._state is _STALE:
            return
        try:
            self._state = self._inner.add(self._state, value, weight)
        except Exception as error:
            reraise_asynchronous(error)
            self._state = _STALE

    def fold(self) -> Any:
        """Return the state that `add` and `remove` compute; raises what they raise."""
        if self._state is _STALE:
            state = self._inner.zero()
            for value, weight in (*self._held.items(), *self._loose):
                state = self._inner.add(state, value, weight)
            self._state = state
        return self._state

    def _hold(self, value: Any, weight: int) -> None:
        """Change the weight of a value that can be hashed; weight 0 deletes it."""
        weight += self._held.get(value, 0)
        if weight:
            self._held[value] = weight
        else:
            del self._held[value]

    def _hold_loose(self, value: Any, weight: int) -> None:
        """Change the weight of a value that cannot be hashed, found by a scan."""
        for place, (other, before) in enumerate(self._loose):
            if other is value or _are_equal(other, value):
                self._loose[place][1] = before + weight
                if not before + weight:
                    del self._loose[place]
                return
        self._loose.append([value, weight])


def _are_equal(value: Any, other: Any) -> bool:
    """Return True if two values are equal; False if the comparison raises."""
    try:
        return bool(value == other)
    except Exception as error:
        reraise_asynchronous(error)
        return False
