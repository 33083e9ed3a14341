"""Sort the keys of many rows, most of which may be equal.

    b a b a a b        a: 3, b: 3        a a a b b b

Where few keys differ they are counted, and only those are sorted. Equal keys then are one object.

Cost: O(n + d log d) of n keys of which d differ, if that is few; else O(n log n).
"""

from __future__ import annotations

from collections import Counter
from itertools import chain, repeat
from typing import Any

SAMPLED = 1024
"""Keys that are looked at to see whether few of them differ."""
COUNTED: frozenset[type] = frozenset({int, str})
"""Classes of keys that are equal if neither stands before the other."""


def sorted_keys(keys: list[Any]) -> list[Any]:
    """Keys in order.

    >>> sorted_keys(["b", "a", "b"]), sorted_keys([2.5, 1])
    (['a', 'b', 'b'], [1, 2.5])
    """
    some = keys[:: max(1, len(keys) // SAMPLED)]
    few = COUNTED.issuperset(map(type, some)) and 2 * len(set(some)) <= len(some)
    if not (few and COUNTED.issuperset(map(type, keys))):
        return sorted(keys)
    counts = Counter(keys)
    different = sorted(counts)
    return list(chain.from_iterable(map(repeat, different, map(counts.__getitem__, different))))
