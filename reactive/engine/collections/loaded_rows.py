"""Rows that are put in order together, in the chunks that `ranked.py` keeps.

    keys  [4 1 4 7]     rows  [b a c d]      ->      [1 4 4] [7]      [a b c] [d]

Where few keys differ, the rows of a key are a chunk, or part of one, without being copied.

Cost: O(n log n) of n rows; O(n) where few keys differ, and rows with equal keys do not compare.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice
from operator import lt
from typing import Any

from reactive.engine.collections.grouped_rows import grouped_rows
from reactive.engine.collections.order import compare_plainly, compares, tie_key
from reactive.engine.collections.zset import Row

Chunks = tuple[list[list[Any]], list[list[Row]]]
"""Chunks of keys, and the rows of each."""


def chunks_in_order(
    keys: list[Any], rows: list[Row], *, descending: bool, size: int, most: int
) -> Chunks:
    """Keys and rows, as they come, in order. A chunk of more than `most` is cut to `size`.

    >>> chunks_in_order([4, 1, 7], ["b", "a", "d"], descending=False, size=2, most=4)
    ([[1, 4], [7]], [['a', 'b'], ['d']])
    """
    if descending:  # of equal keys, the newest at the right end
        keys, rows = keys[::-1], rows[::-1]
    do_compare = any(map(compares, set(map(type, rows))))
    groups = grouped_rows(keys, rows)
    if groups is not None:
        if do_compare:
            by = _tie_order(rows)
            for some in groups.values():
                some.sort(key=by, reverse=descending)
        return _chunks(groups, size, most)
    in_turn: Callable[[Row], Any] = partial(next, iter(keys))  # the key of each row, as called
    rows = sorted(rows, key=in_turn)
    keys = sorted(keys)
    if do_compare and not all(map(lt, keys, islice(keys, 1, None))):
        _sort_ties(keys, rows, _tie_order(rows), descending=descending)
    return cut(keys, size), cut(rows, size)


def cut(items: list[Any], size: int) -> list[list[Any]]:
    """A list in pieces."""
    return [items[place : place + size] for place in range(0, len(items), size)]


def _tie_order(rows: list[Row]) -> Callable[[Row], Any] | None:
    """What rows with equal keys are sorted by; None if by themselves."""
    return None if compare_plainly(rows) else tie_key


def _sort_ties(
    keys: list[Any], rows: list[Row], by: Callable[[Row], Any] | None, *, descending: bool
) -> None:
    start = 0
    for place, is_last in enumerate([*map(lt, keys, keys[1:]), True], 1):
        if is_last:
            if place - start > 1:
                some = rows[start:place]
                some.sort(key=by, reverse=descending)
                rows[start:place] = some
            start = place


def _chunks(groups: dict[Any, list[Row]], size: int, most: int) -> Chunks:
    keys, rows = list[list[Any]](), list[list[Row]]()
    last: list[Row] = []
    for key, some in groups.items():
        if last and len(last) < size:
            last += some
            keys[-1] += [key] * len(some)
        else:
            last = some
            keys.append([key] * len(some))
            rows.append(some)
        if len(last) > most:
            keys += cut(keys.pop(), size)
            rows += cut(rows.pop(), size)
            last = rows[-1]
    return keys, rows
