"""Functions of the place of a row: its number, its rank, and its part of the partition.

Cost:   O(1) for each row whose answer changes, and O(log rows) for a change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import accumulate
from typing import Any

from reactive.engine.operators.windows.frames import Order, Span
from reactive.engine.operators.windows.function import Asked, Function, Near, Told


def make_row_number(asked: Asked) -> Function:
    near = Near(None, 0, _row_numbers_near, reads_keys=False, text=_row_number_text)
    return Function(_behind_row, _row_numbers, settles="always", of_all=_all_row_numbers, near=near)


def make_rank(asked: Asked) -> Function:
    near = Near(None, 0, _ranks_near)
    return Function(_behind_peers, _ranks, settles="always", of_all=_all_ranks, near=near)


def make_dense_rank(asked: Asked) -> Function:
    near = Near(None, 0, _dense_ranks_near)
    return Function(
        _behind_only, _dense_ranks, settles="always", of_all=_all_dense_ranks, near=near
    )


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


def _row_numbers_near(
    order: Order, keys: list[Any], cells: list[Any], start: int, stop: int
) -> list[int]:
    return list(range(start + 1, stop + 1))


def _row_number_text(is_single: bool) -> str:
    return "at + 1"


def _ranks_near(
    order: Order, keys: list[Any], cells: list[Any], start: int, stop: int
) -> list[int]:
    return [first + 1 for first in _firsts(order.of_part(keys, cells), start, stop)]


def _dense_ranks_near(
    order: Order, keys: list[Any], cells: list[Any], start: int, stop: int
) -> list[int]:
    return _all_dense_ranks(order.of_part(keys[:stop], cells[:stop]))[start:]


def _all_row_numbers(order: Order) -> list[int]:
    return list(range(1, order.entries.size + 1))


def _all_ranks(order: Order) -> list[int]:
    return [first + 1 for first in order.all_firsts()]


def _all_dense_ranks(order: Order) -> list[int]:
    firsts = order.all_firsts()
    return list(accumulate([int(first == place) for place, first in enumerate(firsts)]))


def _firsts(order: Order, start: int, stop: int) -> Iterator[int]:
    """Yield for each row the place of the first row with equal keys."""
    if start >= stop:
        return
    keys = order.entries.keys(start, stop)
    known, first = next(keys), order.first(start)
    yield first
    for place, key in enumerate(keys, start + 1):
        if key is not known and key != known:
            known, first = key, place
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
