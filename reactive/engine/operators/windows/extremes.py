"""MIN and MAX of frames.

    a frame that grows       the best so far; after a row whose best is unchanged, all are unchanged
    a frame that shrinks     the same from the end
    a frame that slides      a monotone queue of candidates for the best

NaN is greater than all numbers.

Cost:   O(rows whose best value changes) for a frame that grows, shrinks or is the partition; O(1)
        for each row that sees the changed row if it slides. O(rows / 500) to begin with.
Source: the monotone queue; Leis et al., *Efficient Processing of Window Functions in Analytical SQL
        Queries*, 2015.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate
from typing import Any

from optimizer.record import record
from reactive.engine.collections.value_order import item_key
from reactive.engine.operators.windows.frames import Order
from reactive.engine.operators.windows.function import (
    Asked,
    Function,
    Told,
    aggregate_text,
    in_frame,
    make_fold_of_frames,
    near_frame,
    with_near,
)

Better = Callable[[Any, Any], bool]


def make_extreme(asked: Asked) -> Function:
    """Make MIN or MAX."""
    (name,), frame = asked.more, asked.frame
    if frame.exclude:
        return make_fold_of_frames(Asked(_FoldOfExtreme(name), asked.argument, frame))
    better: Better = _less if name == "min" else _greater
    seeing = partial(in_frame, frame)
    if frame.grows:
        growing = partial(_best_of_growing, asked, better)
        of_all = partial(_all_growing, asked, better)
        return Function(seeing, growing, settles="always", of_all=of_all)
    if frame.shrinks:
        shrunk = partial(_best_of_shrinking, asked, better)
        return Function(seeing, shrunk, settles="always", is_backward=True)
    made = Function(seeing, partial(_best_of_sliding, asked, better))
    text = aggregate_text(asked, f"{name}({{cells}})")
    return with_near(made, near_frame(frame), partial(_best_near, asked), text, _PLAIN)


@record
class _FoldOfExtreme:
    """The least or greatest of the values of a frame, by the name of the function."""

    name: str

    def __call__(self, values: list[Any]) -> Any:
        return _best_of_values(self.name, values)


def _all_growing(asked: Asked, better: Better, order: Order) -> list[Any]:
    """Return the best values of the frames of all rows; plain values are compared by `min`."""
    size = order.entries.size
    values = order.values(asked.argument, 0, size)
    kinds = frozenset(map(type, values))
    if kinds not in _PLAIN:
        return list(_best_of_growing(asked, better, order, 0, size, lambda place: None))
    best = list(accumulate(values, min if asked.more == ("min",) else max))
    _, lasts = order.all_frames(asked.frame)
    return [best[last - 1] if last else None for last in lasts]


_PLAIN = (frozenset([int]), frozenset([str]))
"""Classes of the values of a column that are in the order of Python."""


def _less(one: Any, other: Any) -> bool:
    """Return True if one value is before another, with NaN last."""
    return bool(item_key(one) < item_key(other))


def _greater(one: Any, other: Any) -> bool:
    """Return True if one value is behind another, with NaN last."""
    return bool(item_key(other) < item_key(one))


def _best_of_growing(
    asked: Asked, better: Better, order: Order, start: int, stop: int, told: Told
) -> Iterator[Any]:
    """Yield the best value of each frame, which begins with the partition; None without values."""
    best, behind = None, 0
    for place in range(start, stop):
        _, last = order.frame(asked.frame, place)
        if last > behind:
            best = _better(better, best, _best_of_span(asked, order, behind, last))
            behind = last
        yield best


def _best_of_shrinking(
    asked: Asked, better: Better, order: Order, start: int, stop: int, told: Told
) -> Iterator[Any]:
    """Yield the best value of each frame, which ends with the partition, from the last row back."""
    best, before = None, order.entries.size
    for place in range(stop - 1, start - 1, -1):
        first, _ = order.frame(asked.frame, place)
        if first < before:
            best = _better(better, best, _best_of_span(asked, order, first, before))
            before = first
        yield best


def _best_of_sliding(
    asked: Asked, better: Better, order: Order, start: int, stop: int, told: Told
) -> Iterator[Any]:
    """Yield the best value of each frame from a queue of candidates; None without values."""
    queue: deque[tuple[int, Any]] = deque()
    behind, entering = 0, None
    for place in range(start, stop):
        first, last = order.frame(asked.frame, place)
        if entering is None:
            behind, entering = first, order.entries.cells_from(first)
        for at in range(behind, last):
            (value,) = _arguments(asked, order, [next(entering)])
            if value is not None:
                while queue and not better(queue[-1][1], value):
                    queue.pop()
                queue.append((at, value))
        behind = max(behind, last)
        while queue and queue[0][0] < first:
            queue.popleft()
        yield queue[0][1] if queue and queue[0][0] < last else None


def _best_near(
    asked: Asked, order: Order, keys: list[Any], cells: list[Any], start: int, stop: int
) -> list[Any]:
    """Return the best value of each frame from the cells of the rows around its row."""
    values, (name,) = _arguments(asked, order, cells), asked.more
    first, last = order.rows_of_frame(asked.frame)
    frames = [values[max(0, place + first) : max(0, place + last)] for place in range(start, stop)]
    if frozenset(map(type, values)) in _PLAIN:
        best = min if name == "min" else max
        return [best(each, default=None) for each in frames]
    return [_best_of_values(name, each) for each in frames]


def _better(better: Better, one: Any, other: Any) -> Any:
    """Return the better of two values; None is worse than any value."""
    if one is None or other is None:
        return other if one is None else one
    return other if better(other, one) else one


def _best_of_span(asked: Asked, order: Order, start: int, stop: int) -> Any:
    """Return the best value of some rows; the best values of whole chunks are cached."""
    (name,) = asked.more

    def of_cells(cells: list[Any]) -> Any:
        return _best_of_values(name, _arguments(asked, order, cells))

    parts, chunks = order.entries.split_span(start, stop)
    found = [value for cells in parts for value in _arguments(asked, order, cells)]
    known = [chunk.cached((name, asked.argument), of_cells) for chunk in chunks]
    return _best_of_values(name, found + known)


def _arguments(asked: Asked, order: Order, cells: list[Any]) -> list[Any]:
    """Return the argument of each row with these cells."""
    return [1] * len(cells) if asked.argument is None else order.of_cells(asked.argument, cells)


def _best_of_values(name: str, values: list[Any]) -> Any:
    """Return the least or greatest value, NaN being the greatest; None without values."""
    found = [value for value in values if value is not None]
    if found and isinstance(found[0], tuple):
        return (min if name == "min" else max)(found, key=item_key)
    numbers = [value for value in found if value == value]
    if name == "min":
        return min(numbers or found, default=None)
    if len(numbers) < len(found):
        return next(value for value in found if value != value)
    return max(found, default=None)
