"""Scans: the state after each row of a partition, folded from the first row on.

    values     3    -5     4     1
    states     3     0     4     5        step: max(0, state + value), from 0 on

    a row -2 is inserted behind the first:
    values     3    -2    -5     4     1
    states     3     1     0     as before

A changed row changes the states from its place on. Behind the first row whose state is equal to the
one before, all states are, and the step is not called for them.

State:  none beside the answers.
Cost:   a call of the step for each row from the changed one on, up to the first whose state stays;
        for a row at the end, one call.
Source: `itertools.accumulate`; the scans of APL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from functools import partial
from typing import Any

from optimizer.callables.opaque import Opaque
from optimizer.record import record
from reactive.engine.collections.zset import EXACT, canonical
from reactive.engine.operators.windows.frames import CURRENT, UNBOUNDED, Frame, Order, Span
from reactive.engine.operators.windows.function import Asked, Function, Told

TO_ROW = Frame("rows", UNBOUNDED, CURRENT)


@record
class OrderedFold:
    """The step of a scan, and its first state.

    Two are equal if their steps are, and their first states mean the same (0 and 0.0 do not).
    """

    step: Opaque
    start: Any = field(compare=False)
    meaning: object
    begins: bool = True
    """True if `start` is the state before the first row; else its value is its state."""

    def first(self, value: Any) -> Any:
        """Return the state of the first row."""
        return self.step.function(self.start, value) if self.begins else value


def make_scan(asked: Asked) -> Function:
    """Return the function of a scan, the one constant of `asked`."""
    return Function(_from_row, partial(_answer_states, asked), settles="always")


def steps_of(functions: Iterable[Asked]) -> tuple[Opaque, ...]:
    """Return the steps of the scans among window functions."""
    return tuple(each.more[0].step for each in functions if each.function == "scan")


def _from_row(order: Order, place: int) -> Iterable[Span]:
    return ((place, order.entries.size),)


def _answer_states(asked: Asked, order: Order, start: int, stop: int, told: Told) -> Iterator[Any]:
    """Yield the state of each row, from the state before the first of them on."""
    (scan,) = asked.more
    step: Callable[[Any, Any], Any] = scan.step.function
    values = _values_from(order, asked.argument, start)
    rows = order.entries.heads(start, stop)
    state = told(start - 1) if start else None
    for place, row in enumerate(rows, start):  # noqa: B007 (errors tell the row)
        value = next(values)
        state = _as_state(step(state, value) if place else scan.first(value))
        yield state


def _values_from(order: Order, argument: int | None, start: int) -> Iterator[Any]:
    cells = order.entries.cells_from(start)
    return cells if order.is_single else (cell[argument] for cell in cells)


def _as_state(state: Any) -> Any:
    """Return a state with one object for every NaN; refuse one that may change."""
    if state.__class__ in EXACT:
        return state
    try:
        hash(state)
    except TypeError as error:
        raise TypeError(
            f"the state of a scan is a {type(state).__name__}, which cannot be kept: {error}\n"
            "  return a new value that has a hash, such as a tuple"
        ) from error
    return canonical(state)
