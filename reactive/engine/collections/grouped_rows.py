"""Sort many rows by their keys where few of these differ.

    (b, 1) (a, 2) (b, 3)        a: [2]  b: [1, 3]

Each row is put beside those of its key, and only the keys are sorted. That is done where keys are
equal if neither stands before the other; rows with equal keys stay as they came.

Cost: O(n + d log d) of n rows of which d keys differ.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import Any

from reactive.engine.collections.zset import Row

SAMPLED = 8_192
"""Keys that are looked at to see whether few of them differ."""
FEW = 4
"""Rows of a key, on the average of the sample, from which on these are few."""
PARTS: frozenset[type] = frozenset({int, str, float, bytes, bool, type(None)})
"""Classes of parts of keys that are equal if neither stands before the other."""
KEYS: frozenset[type] = PARTS - {type(None)}
"""Classes of such keys, also by themselves."""


def grouped_rows(keys: Sequence[Any], rows: Sequence[Row]) -> dict[Any, list[Row]] | None:
    """The rows of each key, in order of the keys; None if many differ. No NaN is among them.

    >>> grouped_rows([2, 1, 2, 1, 1, 2, 2, 2], "abcdefgh")
    {1: ['b', 'd', 'e'], 2: ['a', 'c', 'f', 'g', 'h']}
    >>> grouped_rows([2, 1, 3, 4], "abcd")
    """
    some = keys[:: max(1, len(keys) // SAMPLED)]
    if not _are_plain(some) or FEW * len(set(some)) > len(some) or not _are_plain(keys):
        return None
    found: defaultdict[Any, list[Row]] = defaultdict(list)
    for key, row in zip(keys, rows, strict=True):
        found[key].append(row)
    return {key: found[key] for key in sorted(found)}


def _are_plain(keys: Sequence[Any]) -> bool:
    kinds = set(map(type, keys))
    if kinds == {tuple}:
        return PARTS.issuperset(map(type, chain.from_iterable(keys)))
    return kinds <= KEYS
