"""Accumulators: the state of an aggregate per group, and how a value changes it.

An accumulator has a `zero()` state, `add(state, value, weight)` which returns the next state, and
`result(state)`. Adding a value with a negative weight removes it, if the accumulator is invertible.

A group whose rows have weights of both signs may have the total weight zero without being empty. So
`is_zero` tells if a state is zero: everything that was added has been removed.

An accumulator that works in place returns the same object from `add`; its `add` must be able to
undo what it did without failing. The others return a new state and leave the old one unchanged.

With `skip_none`, None is ignored, as in SQL. Code that writes an accumulator into a loop
(`loops/grouped.py`) must skip it before.

    Count, Sum, Avg                       O(1) per change        one number, or `exact.py`
    Min, Max, CountDistinct, Collect      O(log group)           each distinct value
    Aggregate (the user's)                one call               the user's state
    Monoid (the user's)                   O(log group) calls     a tree over the values

Source: [dbsp] section 4.2, aggregation; [i3ql] self-maintainable aggregates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any, Protocol

from optimizer.callables.opaque import Opaque
from optimizer.plans.facts import Cost
from optimizer.record import record
from reactive.engine.collections import group_values
from reactive.engine.collections import values as multisets
from reactive.engine.collections.bag import Bag, MonoidTree
from reactive.engine.collections.exact import (
    RunningSum,
    add_value,
    sum_result,
    summable,
    summable_or_none,
)
from reactive.engine.collections.zset import canonical


class ValueState(Protocol):
    """Values of a group, changed in place."""

    negative: dict[Any, int] | None

    def add(self, value: Any, weight: int) -> None: ...
    def __len__(self) -> int: ...


class Accumulator(Protocol):
    """An aggregate, as the aggregate operators see it."""

    @property
    def in_place(self) -> bool: ...
    @property
    def cost(self) -> Cost:
        """Cost of a changed row; `Cost.ONE` if it is linear in the rows."""
        ...

    @property
    def over_values(self) -> bool:
        """True if the state is an `OrderedValues`, which accumulators of equal values share."""
        ...

    @property
    def adds_values(self) -> bool:
        """True if a state is changed by its own `add(value, weight)`, also to undo that; loops call
        it for each value but None that is ignored."""
        ...

    @property
    def skip_none(self) -> bool:
        """True if None is ignored."""
        ...

    @property
    def check(self) -> Callable[[Any], object] | None:
        """A function that raises for values that cannot be added; None if all can."""
        ...

    def zero(self) -> Any: ...
    def add(self, state: Any, value: Any, weight: int) -> Any: ...
    def is_zero(self, state: Any) -> bool: ...
    def result(self, state: Any) -> Any: ...


@record
class CountAccumulator:
    """Count rows."""

    cost = Cost.ONE
    in_place = False
    over_values = False
    adds_values = False
    skip_none = False
    check = None

    def zero(self) -> int:
        return 0

    def add(self, state: int, value: Any, weight: int) -> int:
        return state + weight

    def is_zero(self, state: int) -> bool:
        return not state

    def result(self, state: int) -> int:
        return state


@record
class SumAccumulator:
    """A running sum (`collections/exact.py`): an integer while all values are integers."""

    skip_none: bool = False
    cost = Cost.ONE
    in_place = True
    over_values = False
    adds_values = False

    @property
    def check(self) -> Callable[[Any], object]:
        return summable_or_none if self.skip_none else summable

    def zero(self) -> RunningSum:
        return 0

    def add(self, state: RunningSum, value: Any, weight: int) -> RunningSum:
        if value is None and self.skip_none:
            return state
        return add_value(state, value, weight)

    def is_zero(self, state: RunningSum) -> bool:
        return not state

    def result(self, state: RunningSum) -> Any:
        return sum_result(state)


@record
class RingAccumulator(SumAccumulator):
    """A running sum of values of a ring of the user's, which `shown` turns into the result."""

    ring: Any = None

    def check(self, value: Any) -> None:
        """Raise for a value that cannot be added to the zero."""
        self.ring.add(self.ring.zero, value.value)

    def result(self, state: RunningSum) -> Any:
        """Return what the ring shows of a sum; of its zero without rows."""
        ring = self.ring
        return canonical(ring.shown(ring.zero if state.__class__ is int else state.value))


@record
class AvgAccumulator:
    """The exact sum, rounded once, over the number of values."""

    skip_none: bool = False
    cost = Cost.ONE
    in_place = True
    over_values = False
    adds_values = False

    @property
    def check(self) -> Callable[[Any], object]:
        return summable_or_none if self.skip_none else summable

    def zero(self) -> tuple[Any, int]:
        return (0, 0)

    def add(self, state: tuple[Any, int], value: Any, weight: int) -> tuple[Any, int]:
        if value is None and self.skip_none:
            return state
        return (add_value(state[0], value, weight), state[1] + weight)

    def is_zero(self, state: tuple[Any, int]) -> bool:
        return not (state[0] or state[1])

    def result(self, state: tuple[Any, int]) -> Any:
        """Return the mean, rounded once; None without values."""
        total, count = state
        return canonical(sum_result(total) / count) if count > 0 else None


@record
class ValuesAccumulator:
    """Base of accumulators over distinct values, which they add in place."""

    skip_none: bool = False
    cost = Cost.LOG
    in_place = True
    over_values = True
    adds_values = True

    @property
    def check(self) -> Callable[[Any], object]:
        return hash

    def zero(self) -> ValueState:
        raise NotImplementedError

    def add(self, state: ValueState, value: Any, weight: int) -> ValueState:
        """Add a value to `state` in place; with `skip_none`, None changes nothing."""
        if value is None and self.skip_none:
            return state
        try:
            state.add(value, weight)
        except TypeError as error:
            _advise(error, state, value)
            raise
        return state

    def is_zero(self, state: ValueState) -> bool:
        return not (len(state) or state.negative)

    def result(self, state: Any) -> Any:
        raise NotImplementedError


@record
class MinAccumulator(ValuesAccumulator):
    """The least value; None if there are no rows."""

    def zero(self) -> multisets.OrderedValues:
        return multisets.OrderedValues(in_order=True)

    def result(self, state: multisets.OrderedValues) -> Any:
        return _read_ordered_values(state, multisets.OrderedValues.least)


@record
class MaxAccumulator(ValuesAccumulator):
    """The greatest value; None if there are no rows."""

    def zero(self) -> multisets.OrderedValues:
        return multisets.OrderedValues(in_order=True)

    def result(self, state: multisets.OrderedValues) -> Any:
        return _read_ordered_values(state, multisets.OrderedValues.greatest)


def _read_ordered_values(
    state: multisets.OrderedValues, read: Callable[[multisets.OrderedValues], Any]
) -> Any:
    """Return what `read` returns of the values, which it may compare for the first time."""
    try:
        return read(state)
    except TypeError as error:
        _advise(error, state)
        raise


def _advise(error: TypeError, state: ValueState, value: Any = 0) -> None:
    """Add a note to the error if a None does not compare with other values."""
    if value is None or (isinstance(state, multisets.OrderedValues) and state.has_none()):
        error.add_note(SKIP)


SKIP = "  skip_none=True leaves None out"


@record
class CountDistinctAccumulator(ValuesAccumulator):
    """The number of different values."""

    def zero(self) -> multisets.OrderedValues:
        return multisets.OrderedValues()

    def result(self, state: multisets.OrderedValues) -> int:
        return len(state)


@record
class CollectAccumulator(ValuesAccumulator):
    """All values, as a `Bag`, which is updated once per commit."""

    over_values = False

    def zero(self) -> group_values.GroupValues:
        return group_values.GroupValues()

    def result(self, state: group_values.GroupValues) -> Bag[Any]:
        return state.bag()


@record
class UserAccumulator:
    """A user's own invertible aggregate; a state is a value, and is never changed in place.

    Two are equal if their initial values mean the same (0 and 0.0 do not), and their callables do.
    """

    initial: Any = field(compare=False)
    meaning: object
    plus: Opaque
    minus: Opaque
    finish: Opaque | None
    is_empty: Opaque | None = None
    cost = Cost.ONE
    in_place = False
    over_values = False
    adds_values = False
    skip_none = False

    def check(self, value: Any) -> None:
        """Raise for a value that cannot be added to the zero."""
        self.plus.function(self.initial, value)

    def zero(self) -> Any:
        return self.initial

    def is_zero(self, state: Any) -> bool:
        """Return True if the state is that of no values: by the user's test, or by equality."""
        test = self.is_empty
        return bool(state == self.initial if test is None else test.function(state))

    def add(self, state: Any, value: Any, weight: int) -> Any:
        """Return the state after `plus` or, if `weight` is negative, `minus`, once per copy."""
        step = self.plus.function if weight > 0 else self.minus.function
        for _ in range(abs(weight)):
            state = step(state, value)
        return state

    def result(self, state: Any) -> Any:
        return canonical(state if self.finish is None else self.finish.function(state))


@record
class MonoidAccumulator:
    """A user's own combination of values."""

    initial: Any = field(compare=False)
    meaning: object
    combine: Opaque
    finish: Opaque | None
    cost = Cost.LOG
    in_place = True
    over_values = False
    adds_values = False
    skip_none = False

    def check(self, value: Any) -> None:
        """Raise for a value that cannot be hashed or combined with the zero."""
        hash(value)
        self.combine.function(self.initial, value)

    def zero(self) -> MonoidTree:
        return MonoidTree(self.initial, self.combine.function)

    def add(self, state: MonoidTree, value: Any, weight: int) -> MonoidTree:
        state.add(canonical(value), weight)
        return state

    def is_zero(self, state: MonoidTree) -> bool:
        return not len(state)

    def result(self, state: MonoidTree) -> Any:
        total = state.total()
        return canonical(total if self.finish is None else self.finish.function(total))
