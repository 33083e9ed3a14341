"""Functions of the place of a row: its number, its rank, and its part of the partition.

Cost:   O(1) for each row of which a function says something else, and O(log rows) for a change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from reactive.languages.sql.partitions.frames import Order, Span
from reactive.languages.sql.partitions.function import Asked, Function, Told


def row_number(asked: Asked) -> Function:
    return Function(_behind_row, _row_numbers, settles="always")


def rank(asked: Asked) -> Function:
    return Function(_behind_peers, _ranks, settles="always")


def dense_rank(asked: Asked) -> Function:
    return Function(_behind_only, _dense_ranks, settles="always")


def percent_rank(asked: Asked) -> Function:
    return Function(_behind_peers, _relative_ranks, _all_if_resized)


def cume_dist(asked: Asked) -> Function:
    return Function(_from_peers, _shares, _all_if_resized)


def ntile(asked: Asked) -> Function:
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
    """The number of groups before a row changes only with the first row of a group, or the last."""
    behind = order.behind(place)
    return ((behind, order.entries.size),) if behind - order.first(place) == 1 else ()


def _all_if_resized(order: Order, before: int, told: Told) -> Iterable[Span]:
    return ((0, order.entries.size),) if order.entries.size != before else ()


def _stale(count: int, order: Order, before: int, told: Told) -> Iterator[Span]:
    """Where the number of a part is no longer right, at both ends of each: rows are in order."""
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
    """Of each row the place of the first with equal keys."""
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
    behind = start
    for place in range(start, stop):
        if place >= behind:
            behind = order.behind(place)
        yield behind / order.entries.size


def _parts_of(count: int, size: int) -> Iterator[tuple[int, int, int]]:
    """Where each part is, and its number: the first parts are larger by one if they must be."""
    small, larger = divmod(size, count)
    start = 0
    for number in range(1, min(count, size) + 1):
        stop = start + small + (number <= larger)
        yield start, stop, number
        start = stop


def _tiles(count: int, order: Order, start: int, stop: int, told: Told) -> Iterator[int]:
    small, larger = divmod(order.entries.size, count)
    border = larger * (small + 1)
    for place in range(start, stop):
        if place < border:
            yield place // (small + 1) + 1
        else:
            yield (place - border) // small + larger + 1


PLACES: dict[str, Callable[[Asked], Function]] = {
    "row_number": row_number,
    "rank": rank,
    "dense_rank": dense_rank,
    "percent_rank": percent_rank,
    "cume_dist": cume_dist,
    "ntile": ntile,
}
