"""Sort keys of rows, and sorting of many rows: in chunks, by rank, and grouped.

Sort key: all keys of an order as one key, for a list that is read from one end.

    order_by(f)                     f(row)
    order_by(f, nulls="last")       (0, f(row)), and (1,) for None
    order_by(f, desc(g))            (f(row), -g(row)), or ReversedKey(g(row)) if g is not a number

The list is sorted in the direction of the first key, and read backwards if that is descending; keys
of the other direction are reversed. A single key without a place for None is the user's callable.

Chunks: rows that are loaded together, in the chunks of `ranked.py`.

    keys  [4 1 4 7]     rows  [b a c d]      ->      [1 4 4] [7]      [a b c] [d]

If there are few different keys, the rows of a key form a chunk, or part of one, without a copy.

Cost: O(n log n) for n rows; O(n) if few keys differ, and rows with equal keys are incomparable.

Rank: the order by which a fixpoint chooses the best row of each key.

Least value first, or largest; NaN is larger than everything. Rows with equal values are sorted by
themselves, dataclasses by their fields.

Grouped rows: sort many rows by their keys if few of these differ.

    (b, 1) (a, 2) (b, 3)        a: [2]  b: [1, 3]

Each row is added to the rows of its key, and only the keys are sorted. This needs keys that are
equal if neither is less than the other; rows with equal keys stay in order of arrival.

Cost: O(n + d log d) for n rows with d different keys.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import chain, islice
from numbers import Integral, Real
from operator import lt
from typing import Any

from optimizer import plan
from reactive.engine.collections.order import (
    FIRST,
    are_plainly_comparable,
    is_comparable_class,
    sort_key,
    tie_key,
)
from reactive.engine.collections.zset import Row, canonical, is_nan

Key = Callable[[Row], Any]
LOW, HIGH = (-1,), (1,)
"""Replacements of None: before and after `(0, value)`, without a comparison of the value."""


class ReversedKey:
    """A key in reverse order, for values that are not numbers (`reversed_key`).

    >>> sorted([ReversedKey("a"), ReversedKey("b")])[0].key
    'b'
    """

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: Any) -> bool:
        if other.__class__ is not ReversedKey:
            return other is not FIRST and bool(-other < self.key)
        return bool(other.key < self.key)

    def __gt__(self, other: Any) -> bool:
        return other is FIRST or bool(self.key < -other)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReversedKey) and bool(self.key == other.key)

    __hash__ = None  # type: ignore[assignment]


def reversed_key(value: Any) -> Any:
    """Return a key in reverse order: for numbers the negative, which compares faster.

    >>> sorted([2, 7, 3.5], key=reversed_key), sorted("ab", key=reversed_key)
    ([7, 3.5, 2], ['b', 'a'])
    """
    kind = value.__class__
    if kind is int:
        return -value
    if is_nan(canonical(value)):
        return FIRST
    if kind is float or kind is Fraction:
        return -value
    if kind is Decimal:
        return value.copy_negate()
    if isinstance(value, Integral):
        return -int(value)
    return -value if isinstance(value, Real) else ReversedKey(sort_key(value))


def make_sort_key(keys: Sequence[plan.SortKey], calls: Sequence[Key]) -> Key:
    """Return the sort key of rows; `calls` are the callables of the keys, of one row."""
    first = keys[0].descending
    parts = [_key_part(key, call, first) for key, call in zip(keys, calls, strict=True)]
    if len(parts) == 1:
        return parts[0]
    return lambda row: tuple([part(row) for part in parts])


def _key_part(key: plan.SortKey, call: Key, first: bool) -> Key:
    """Return the sort key of one key, in a list sorted in the direction of the first key."""
    is_reversed = key.descending != first
    if key.nulls is not None:
        null = LOW if (key.nulls == "first") != key.descending else HIGH
        return (_reversed_with_nulls if is_reversed else _with_nulls)(call, null)
    return (lambda row: reversed_key(call(row))) if is_reversed else call


def _with_nulls(call: Key, null: tuple[int]) -> Key:
    """Return the key with a replacement of None, before or after all values."""
    return lambda row: _place_none(call(row), null)


def _reversed_with_nulls(call: Key, null: tuple[int]) -> Key:
    """Return the key in reverse order, with a replacement of None that is also reversed."""
    other = HIGH if null is LOW else LOW

    def part(row: Row) -> Any:
        value = call(row)
        return other if value is None else (0, reversed_key(_place_none(value, null)[1]))

    return part


def _place_none(value: Any, null: tuple[int]) -> tuple[Any, ...]:
    """Return a value that compares with the replacement of None, also inside tuples."""
    if value is None:
        return null
    if isinstance(value, tuple):
        return (0, tuple([_place_none(part, null) for part in value]))
    return (0, value)


Chunks = tuple[list[list[Any]], list[list[Row]]]
"""Chunks of keys, and the rows of each."""


def chunks_in_order(
    keys: list[Any], rows: list[Row], *, descending: bool, size: int, most: int
) -> Chunks:
    """Sort keys and rows, given in order of arrival. Chunks of more than `most` are cut to `size`.

    >>> chunks_in_order([4, 1, 7], ["b", "a", "d"], descending=False, size=2, most=4)
    ([[1, 4], [7]], [['a', 'b'], ['d']])
    """
    if descending:  # the newest of equal keys at the right end
        keys, rows = keys[::-1], rows[::-1]
    do_compare = any(map(is_comparable_class, set(map(type, rows))))
    groups = grouped_rows(keys, rows)
    if groups is not None:
        if do_compare:
            by = _tie_order(rows)
            for some in groups.values():
                some.sort(key=by, reverse=descending)
        return _chunks(groups, size, most)
    in_turn: Callable[[Row], Any] = partial(next, iter(keys))  # the key of each row, in call order
    rows = sorted(rows, key=in_turn)
    keys = sorted(keys)
    if do_compare and not all(map(lt, keys, islice(keys, 1, None))):
        _sort_ties(keys, rows, _tie_order(rows), descending=descending)
    return cut_chunks(keys, size), cut_chunks(rows, size)


def cut_chunks(items: list[Any], size: int) -> list[list[Any]]:
    """Cut a list into pieces."""
    return [items[place : place + size] for place in range(0, len(items), size)]


def _tie_order(rows: list[Row]) -> Callable[[Row], Any] | None:
    """Return the sort key of rows with equal keys; None if they are compared themselves."""
    return None if are_plainly_comparable(rows) else tie_key


def _sort_ties(
    keys: list[Any], rows: list[Row], by: Callable[[Row], Any] | None, *, descending: bool
) -> None:
    """Sort the rows of each run of equal keys, in place; `by` None compares the rows themselves."""
    start = 0
    for place, is_last in enumerate([*map(lt, keys, keys[1:]), True], 1):
        if is_last:
            if place - start > 1:
                some = rows[start:place]
                some.sort(key=by, reverse=descending)
                rows[start:place] = some
            start = place


def _chunks(groups: dict[Any, list[Row]], size: int, most: int) -> Chunks:
    """Return keys and rows in chunks of `size` to `most`; changes the lists of `groups`."""
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
            keys += cut_chunks(keys.pop(), size)
            rows += cut_chunks(rows.pop(), size)
            last = rows[-1]
    return keys, rows


Rank = tuple[Any, "Tie"]
"""A smaller rank is better."""


class ReversedValue:
    """A value in reverse order."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: ReversedValue) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReversedValue) and bool(self.value == other.value)

    __hash__ = None  # type: ignore[assignment]


class Tie:
    """Sort key of rows with equal values. It compares rows only if there are such rows."""

    __slots__ = ("row",)

    def __init__(self, row: Row) -> None:
        self.row = row

    def __lt__(self, other: Tie) -> bool:
        return _tie_fields(self.row) < _tie_fields(other.row)


def ranker(value: Callable[[Row], Any], *, largest: bool) -> Callable[[Row], Rank]:
    """Return the function that ranks a row by its value.

    >>> rank = ranker(len, largest=True)
    >>> min(["a", "ccc", "bbb"], key=rank)
    'bbb'
    """
    if largest:
        return lambda row: (ReversedValue(sort_key(value(row))), Tie(row))
    return lambda row: (sort_key(value(row)), Tie(row))


def _tie_fields(value: Any) -> tuple[Any, ...]:
    """Return a value that sorts rows of equal rank, by their fields; rows need no order."""
    kind = type(value)
    if dataclasses.is_dataclass(kind):
        shown = [_tie_fields(getattr(value, f.name)) for f in dataclasses.fields(kind) if f.compare]
        return (6, kind.__qualname__, tuple(shown))
    if isinstance(value, tuple):
        return (5, tuple(map(_tie_fields, value)))
    return tie_key(value)


SAMPLED = 8_192
"""Number of keys that are tested for repetition."""
FEW = 4
"""Least average number of rows per key in the sample."""
PARTS: frozenset[type] = frozenset({int, str, float, bytes, bool, type(None)})
"""Classes of parts of keys that are equal if neither is less than the other."""
KEYS: frozenset[type] = PARTS - {type(None)}
"""Classes of such keys that are not tuples."""


def grouped_rows(keys: Sequence[Any], rows: Sequence[Row]) -> dict[Any, list[Row]] | None:
    """Return the rows of each key, sorted by key; None if many keys differ. Keys contain no NaN.

    >>> grouped_rows([2, 1, 2, 1, 1, 2, 2, 2], "abcdefgh")
    {1: ['b', 'd', 'e'], 2: ['a', 'c', 'f', 'g', 'h']}
    >>> grouped_rows([2, 1, 3, 4], "abcd")
    """
    some = keys[:: max(1, len(keys) // SAMPLED)]
    if not _are_groupable(some) or FEW * len(set(some)) > len(some) or not _are_groupable(keys):
        return None
    found: defaultdict[Any, list[Row]] = defaultdict(list)
    for key, row in zip(keys, rows, strict=True):
        found[key].append(row)
    return {key: found[key] for key in sorted(found)}


def _are_groupable(keys: Sequence[Any]) -> bool:
    """Return True if all keys are of plain classes, whose equality agrees with their order."""
    kinds = set(map(type, keys))
    if kinds == {tuple}:
        return PARTS.issuperset(map(type, chain.from_iterable(keys)))
    return kinds <= KEYS
