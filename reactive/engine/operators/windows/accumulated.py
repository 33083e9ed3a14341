"""Aggregates of frames by their accumulators: values that enter a frame are added, others removed.

    rows    a  b  c  d
    frames  [a  b  c]           add a, b, c
               [b  c  d]        add d, remove a

State:  none between changes: the accumulator of the first frame of a span is made anew.
Cost:   O(rows of the first frame that sees the change), then two changes of the accumulator for
        each row that sees it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from reactive.engine.operators.windows.frames import Order
from reactive.engine.operators.windows.function import (
    Asked,
    Function,
    Settles,
    Told,
    in_frame,
    near_frame,
    with_near,
)


def make_accumulated(asked: Asked) -> Function:
    """Return the function of an accumulator, the one constant of `asked`."""
    settles: Settles = "always" if asked.frame.is_whole else "never"
    made = Function(partial(in_frame, asked.frame), partial(_answer_states, asked), settles=settles)
    return with_near(made, near_frame(asked.frame))


def _answer_states(asked: Asked, order: Order, start: int, stop: int, told: Told) -> Iterator[Any]:
    """Yield each row's answer from the state of the frame before, changed at both ends."""
    (accumulator,) = asked.more
    state, first, last, answer = accumulator.zero(), 0, 0, None
    for place in range(start, stop):
        before = (first, last)
        first, last = order.frame(asked.frame, place)
        if place == start or first >= before[1]:  # it shares no row with the frame before
            state, before = accumulator.zero(), (first, first)
        elif before == (first, last):
            yield answer
            continue
        for value in order.values(asked.argument, before[1], last):
            state = accumulator.add(state, value, 1)
        for value in order.values(asked.argument, before[0], first):
            state = accumulator.add(state, value, -1)
        answer = accumulator.result(state)
        yield answer
