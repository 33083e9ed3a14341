"""MIN and MAX of frames.

    a frame that grows       the best so far; behind a row of which it is as before, all is
    a frame that shrinks     the same from the end
    one that slides          a queue of those that are still to be the best

NaN is greater than all numbers.

Cost:   O(rows whose best value changes) of a frame that grows, shrinks or is the partition; of one
        that slides O(1) for each row that sees the one that changes. O(rows / 500) to begin with.
Source: the monotone queue; Leis et al., *Efficient Processing of Window Functions in Analytical SQL
        Queries*, 2015.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from reactive.languages.sql.partitions.frames import Order
from reactive.languages.sql.partitions.function import Asked, Function, Told, in_frame
from reactive.languages.sql.partitions.totals import ALL, folded
from reactive.languages.sql.runtime.sort_keys import item_key

Better = Callable[[Any, Any], bool]


def extreme(asked: Asked) -> Function:
    """MIN or MAX."""
    (name,), frame = asked.more, asked.frame
    if frame.exclude:
        return folded(Asked(ALL[name], asked.argument, frame))
    better: Better = _less if name == "min" else _greater
    seeing = partial(in_frame, frame)
    if frame.grows:
        return Function(seeing, partial(_grown, asked, better), settles="always")
    if frame.shrinks:
        shrunk = partial(_shrunk, asked, better)
        return Function(seeing, shrunk, settles="always", is_backward=True)
    return Function(seeing, partial(_slid, asked, better))


def _less(one: Any, other: Any) -> bool:
    return bool(item_key(one) < item_key(other))


def _greater(one: Any, other: Any) -> bool:
    return bool(item_key(other) < item_key(one))


def _grown(
    asked: Asked, better: Better, order: Order, start: int, stop: int, told: Told
) -> Iterator[Any]:
    best, behind = None, 0
    for place in range(start, stop):
        _, last = order.frame(asked.frame, place)
        if last > behind:
            best = _better(better, best, _best(asked, order, behind, last))
            behind = last
        yield best


def _shrunk(
    asked: Asked, better: Better, order: Order, start: int, stop: int, told: Told
) -> Iterator[Any]:
    best, before = None, order.entries.size
    for place in range(stop - 1, start - 1, -1):
        first, _ = order.frame(asked.frame, place)
        if first < before:
            best = _better(better, best, _best(asked, order, first, before))
            before = first
        yield best


def _slid(
    asked: Asked, better: Better, order: Order, start: int, stop: int, told: Told
) -> Iterator[Any]:
    queue: deque[tuple[int, Any]] = deque()
    behind, entering = 0, None
    for place in range(start, stop):
        first, last = order.frame(asked.frame, place)
        if entering is None:
            behind, entering = first, order.entries.from_(first)
        for at in range(behind, last):
            value = next(entering)[3][asked.argument]
            if value is not None:
                while queue and not better(queue[-1][1], value):
                    queue.pop()
                queue.append((at, value))
        behind = max(behind, last)
        while queue and queue[0][0] < first:
            queue.popleft()
        yield queue[0][1] if queue and queue[0][0] < last else None


def _better(better: Better, one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    return other if better(other, one) else one


def _best(asked: Asked, order: Order, start: int, stop: int) -> Any:
    """The best value of some rows, that of whole chunks as it is known."""
    parts, chunks = order.entries.apart(start, stop)
    name = (asked.more, asked.argument)
    for chunk in chunks:
        if name not in chunk.known:
            chunk.known[name] = _best_of(asked, [row[3][asked.argument] for row in chunk.rows])
    found = [row[3][asked.argument] for rows in parts for row in rows]
    return _best_of(asked, found + [chunk.known[name] for chunk in chunks])


def _best_of(asked: Asked, values: list[Any]) -> Any:
    found = [value for value in values if value is not None]
    if found and isinstance(found[0], tuple):
        return (min if asked.more == ("min",) else max)(found, key=item_key)
    numbers = [value for value in found if value == value]
    if asked.more == ("min",):
        return min(numbers or found, default=None)
    if len(numbers) < len(found):
        return next(value for value in found if value != value)
    return max(found, default=None)
