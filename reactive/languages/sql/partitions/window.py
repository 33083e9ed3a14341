"""Windows in a plan, with places of rows and extremes of frames.

Functions of the place of a row: its number, its rank, and its part of the partition.

Cost:   O(1) for each row whose answer changes, and O(log rows) for a change.

MIN and MAX of frames.

    a frame that grows       the best so far; after a row whose best is unchanged, all are unchanged
    a frame that shrinks     the same from the end
    a frame that slides      a monotone queue of candidates for the best

NaN is greater than all numbers.

Cost:   O(rows whose best value changes) for a frame that grows, shrinks or is the partition; O(1)
        for each row that sees the changed row if it slides. O(rows / 500) to begin with.
Source: the monotone queue; Leis et al., *Efficient Processing of Window Functions in Analytical SQL
        Queries*, 2015.

The part of a plan that computes a window: a reducer that keeps the state of partitions.

    (bindings, partition, keys, arguments)    ->    (*bindings, *answers)

Called for a whole partition, it treats all rows as inserted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace
from functools import partial
from typing import Any

from optimizer.expressions.knowledge import Shape
from optimizer.record import record
from reactive.languages.sql.partitions import function
from reactive.languages.sql.partitions.frames import Order, Span
from reactive.languages.sql.partitions.function import (
    ALL,
    Asked,
    Function,
    Told,
    in_frame,
    make_fold_of_frames,
)
from reactive.languages.sql.partitions.kept import WindowFacts, WindowPartition
from reactive.languages.sql.runtime.rows import Directions, Tied, item_key, sort_key_function


def make_row_number(asked: Asked) -> Function:
    return Function(_behind_row, _row_numbers, settles="always")


def make_rank(asked: Asked) -> Function:
    return Function(_behind_peers, _ranks, settles="always")


def make_dense_rank(asked: Asked) -> Function:
    return Function(_behind_only, _dense_ranks, settles="always")


def make_percent_rank(asked: Asked) -> Function:
    return Function(_behind_peers, _relative_ranks, _all_if_resized)


def make_cume_dist(asked: Asked) -> Function:
    return Function(_from_peers, _shares, _all_if_resized)


def make_ntile(asked: Asked) -> Function:
    (count,) = asked.more
    return Function(_nowhere, partial(_tiles, count), partial(_stale, count))


# Which rows.


def _nowhere(order: Order, place: int) -> Iterable[Span]:
    return ()


def _behind_row(order: Order, place: int) -> Iterable[Span]:
    return ((place, order.entries.size),)


def _behind_peers(order: Order, place: int) -> Iterable[Span]:
    return ((order.behind(place), order.entries.size),)


def _from_peers(order: Order, place: int) -> Iterable[Span]:
    return ((order.first(place), order.entries.size),)


def _behind_only(order: Order, place: int) -> Iterable[Span]:
    """Return the rows whose group number changes with the row at `place`; () if none does.

    Some do if that row is the only one of its group.
    """
    behind = order.behind(place)
    return ((behind, order.entries.size),) if behind - order.first(place) == 1 else ()


def _all_if_resized(order: Order, before: int, told: Told) -> Iterable[Span]:
    return ((0, order.entries.size),) if order.entries.size != before else ()


def _stale(count: int, order: Order, before: int, told: Told) -> Iterator[Span]:
    """Yield the spans at both ends of each of `count` parts whose number is no longer right."""
    for start, stop, number in _parts_of(count, order.entries.size):
        first, last = start, stop
        while first < stop and told(first) != number:
            first += 1
        while last > first and told(last - 1) != number:
            last -= 1
        yield (start, first)
        yield (last, stop)


# What is said.


def _row_numbers(order: Order, start: int, stop: int, told: Told) -> Iterator[int]:
    return iter(range(start + 1, stop + 1))


def _firsts(order: Order, start: int, stop: int) -> Iterator[int]:
    """Yield for each row the place of the first row with equal keys."""
    if start >= stop:
        return
    rows = order.entries.from_(start)
    keys, first = next(rows)[2], order.first(start)
    yield first
    for place, row in zip(range(start + 1, stop), rows, strict=False):
        if row[2] != keys:
            keys, first = row[2], place
        yield first


def _ranks(order: Order, start: int, stop: int, told: Told) -> Iterator[int]:
    return (first + 1 for first in _firsts(order, start, stop))


def _dense_ranks(order: Order, start: int, stop: int, told: Told) -> Iterator[int]:
    """Yield the number of each row's group of equal keys, on from the row before `start`."""
    before, number = start - 1, told(start - 1) if start else 0
    first_before = order.first(before) if start else -1
    for first in _firsts(order, start, stop):
        number += first != first_before
        first_before = first
        yield number


def _relative_ranks(order: Order, start: int, stop: int, told: Told) -> Iterator[float]:
    others = order.entries.size - 1
    return (first / others if others else 0.0 for first in _firsts(order, start, stop))


def _shares(order: Order, start: int, stop: int, told: Told) -> Iterator[float]:
    """Yield the part of the partition up to the last row with equal keys (CUME_DIST)."""
    behind = start
    for place in range(start, stop):
        if place >= behind:
            behind = order.behind(place)
        yield behind / order.entries.size


def _parts_of(count: int, size: int) -> Iterator[tuple[int, int, int]]:
    """Yield the first place, the end and the number of each of `count` parts of `size` rows.

    The first parts may be larger by one. Empty parts are left out.
    """
    small, larger = divmod(size, count)
    start = 0
    for number in range(1, min(count, size) + 1):
        stop = start + small + (number <= larger)
        yield start, stop, number
        start = stop


def _tiles(count: int, order: Order, start: int, stop: int, told: Told) -> Iterator[int]:
    """Yield for each row the number of its part of `count` parts (NTILE)."""
    small, larger = divmod(order.entries.size, count)
    border = larger * (small + 1)
    for place in range(start, stop):
        if place < border:
            yield place // (small + 1) + 1
        else:
            yield (place - border) // small + larger + 1


PLACES: dict[str, Callable[[Asked], Function]] = {
    "row_number": make_row_number,
    "rank": make_rank,
    "dense_rank": make_dense_rank,
    "percent_rank": make_percent_rank,
    "cume_dist": make_cume_dist,
    "ntile": make_ntile,
}


Better = Callable[[Any, Any], bool]


def make_extreme(asked: Asked) -> Function:
    """Make MIN or MAX."""
    (name,), frame = asked.more, asked.frame
    if frame.exclude:
        return make_fold_of_frames(Asked(ALL[name], asked.argument, frame))
    better: Better = _less if name == "min" else _greater
    seeing = partial(in_frame, frame)
    if frame.grows:
        return Function(seeing, partial(_best_of_growing, asked, better), settles="always")
    if frame.shrinks:
        shrunk = partial(_best_of_shrinking, asked, better)
        return Function(seeing, shrunk, settles="always", is_backward=True)
    return Function(seeing, partial(_best_of_sliding, asked, better))


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
    """Return the better of two values; None is worse than any value."""
    if one is None or other is None:
        return other if one is None else one
    return other if better(other, one) else one


def _best_of_span(asked: Asked, order: Order, start: int, stop: int) -> Any:
    """Return the best value of some rows; the best values of whole chunks are cached."""
    parts, chunks = order.entries.split_span(start, stop)
    name = (asked.more, asked.argument)
    for chunk in chunks:
        if name not in chunk.known:
            chunk.known[name] = _best_of_values(
                asked, [row[3][asked.argument] for row in chunk.rows]
            )
    found = [row[3][asked.argument] for rows in parts for row in rows]
    return _best_of_values(asked, found + [chunk.known[name] for chunk in chunks])


def _best_of_values(asked: Asked, values: list[Any]) -> Any:
    """Return the least or greatest value, NaN being the greatest; None without values."""
    found = [value for value in values if value is not None]
    if found and isinstance(found[0], tuple):
        return (min if asked.more == ("min",) else max)(found, key=item_key)
    numbers = [value for value in found if value == value]
    if asked.more == ("min",):
        return min(numbers or found, default=None)
    if len(numbers) < len(found):
        return next(value for value in found if value != value)
    return max(found, default=None)


NAMED: dict[str, Callable[[Asked], Function]] = {
    **PLACES,
    "shifted": function.make_shift,
    "nth": function.make_nth_value,
    "count": function.make_total,
    "sum": function.make_total,
    "avg": function.make_total,
    "min": make_extreme,
    "max": make_extreme,
}


@record
class Window:
    """The function that `reduce` calls for each partition, with or without state.

    `limit` is the number of one of the functions, and the greatest answer of it in the output.
    """

    directions: Directions
    functions: tuple[Asked, ...]
    shape: Shape = field(default=None, compare=False)
    limit: tuple[int, int] | None = None
    drops: bool = False

    def __call__(self, partition: Any, rows: Any) -> list[tuple[Any, ...]]:
        return [row for row, weight in self.kept()().step([(row, 1) for row in rows])]

    def kept(self) -> Callable[[], WindowPartition]:
        """Return the function that makes an empty partition."""
        functions = tuple(_build_function(asked) for asked in self.functions)
        is_descending = bool(self.directions) and self.directions[0][0]
        tie = hash if all(map(is_of_peers, self.functions)) else Tied
        key = sort_key_function(self.directions, tie)
        made = WindowFacts(key, functions, self._cut(), is_descending, self.drops)
        return partial(WindowPartition, made)

    def limited(self, item: int, most: int) -> Window | None:
        """Return the window limited to answers of `item` up to `most`; None if it cannot be."""
        width = len(self.shape) if isinstance(self.shape, tuple) else 0
        number = item - (width - len(self.functions))
        if self.limit is not None or not 0 <= number < len(self.functions):
            return None
        names = [asked.function for asked in self.functions]
        return replace(self, limit=(number, most)) if _can_cut(names[number], names) else None

    def dropping(self) -> Window:
        """Return the window without the rows of partitions for which a function raises."""
        return replace(self, drops=True)

    def _cut(self) -> Callable[[Order], int]:
        """Return the function that counts the rows of a partition within the limit."""
        if self.limit is None:
            return _all_rows
        number, most = self.limit
        name = self.functions[number].function
        assert isinstance(name, str)
        return partial(CUTS[name], max(0, most))


def _build_function(asked: Asked) -> Function:
    """Return the function of a call, by its name or for its callable."""
    if isinstance(asked.function, str):
        return NAMED[asked.function](asked)
    return function.make_fold_of_frames(asked)


def is_of_peers(asked: Asked) -> bool:
    """Return True if rows with equal keys have equal answers, in whatever order they stand."""
    if asked.function in OF_PEERS:
        return True
    frame = asked.frame
    is_by_key = frame.is_whole or (frame.kind != "rows" and not frame.exclude)
    return is_by_key and asked.function in ANSWERS_OF_SETS


OF_PEERS = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})
ANSWERS_OF_SETS = frozenset({"count", "sum", "avg", "min", "max"})
"""Functions of a frame that no order of its rows changes."""


def _can_cut(name: Any, others: list[Any]) -> bool:
    """Return True if the function allows a limit; NTILE needs the answers of all rows."""
    return isinstance(name, str) and name in CUTS and "ntile" not in others


def _all_rows(order: Order) -> int:
    return order.entries.size


def _first_rows(most: int, order: Order) -> int:
    return min(most, order.entries.size)


def _first_ranks(most: int, order: Order) -> int:
    """Return the number of rows with a rank up to `most`: peers of a row are included."""
    return (
        order.entries.size if most >= order.entries.size else order.behind(most - 1) if most else 0
    )


def _first_groups(most: int, order: Order) -> int:
    """Return the number of rows in the first `most` groups of equal keys."""
    place = 0
    for _ in range(most):
        if place == order.entries.size:
            break
        place = order.behind(place)
    return place


CUTS: dict[str, Callable[[int, Order], int]] = {
    "row_number": _first_rows,
    "rank": _first_ranks,
    "dense_rank": _first_groups,
}
