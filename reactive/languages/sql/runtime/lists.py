"""Functions of lists in DuckDB that read several elements together.

    flattened(((1, 2), None, (3,)))         (1, 2, 3)
    chosen((5, 6, 7), (3, 1, 9))            (7, 5, None)
    cosine((1.0, 2.0), (2.0, 1.0))          0.8

A list is a tuple, and NULL is None.

Cost: O(elements); of an order O(n log n).
"""

from __future__ import annotations

import math
from typing import Any

Array = tuple[Any, ...]
NULLS = "NULLs are not allowed as list elements in the second input parameter"
MOST = 10_000_000
"""Elements of a list that is made longer."""


def flattened(array: Array) -> Array:
    """Return the elements of the elements, which are arrays or NULL."""
    return tuple([item for inner in array if inner is not None for item in inner])


def kept(array: Array, tests: Array) -> Array:
    """Return the elements whose test is true; NULL where a list has fewer elements than tests."""
    if None in tests:
        raise ValueError(NULLS)
    at = enumerate(tests)
    return tuple([array[n] if n < len(array) else None for n, is_kept in at if is_kept])


def chosen(array: Array, places: Array) -> Array:
    """Return the elements at some places, counted from 1; NULL for a place without one."""
    if None in places:
        raise ValueError(NULLS)
    return tuple([array[place - 1] if 0 < place <= len(array) else None for place in places])


def resized(array: Array | None, size: int | None, filler: Any = None) -> Array | None:
    """Return the first elements, and copies of `filler` up to a size; no size is 0."""
    if array is None:
        return None
    wanted = size or 0
    if not 0 <= wanted <= MOST:
        raise ValueError(f"a list cannot have {wanted} elements")
    return (*array[:wanted], *[filler] * (wanted - len(array)))


def repeated(array: Array, times: int) -> Array:
    """Return the elements a number of times; none for a negative number."""
    if len(array) * times > MOST:
        raise ValueError(f"a list cannot have {len(array) * times} elements")
    return array * times


def ranks(array: Array, is_descending: bool = False, nulls_first: bool = False) -> Array:
    """Return the places of the elements in their order, counted from 1."""
    there = [n for n, item in enumerate(array) if item is not None]
    there.sort(key=array.__getitem__, reverse=is_descending)
    missing = [n for n, item in enumerate(array) if item is None]
    return tuple([n + 1 for n in (missing + there if nulls_first else there + missing)])


def zipped(*arrays: Array | None) -> Array:
    """Return rows of the elements at each place; NULL where an array has no more elements."""
    present = [array or () for array in arrays]
    count = max(map(len, present), default=0)
    return tuple([tuple([a[n] if n < len(a) else None for a in present]) for n in range(count)])


def shortest_zipped(*arrays: Array | None) -> Array:
    """Return rows of the elements at each place that all arrays have."""
    return tuple(zip(*[array or () for array in arrays], strict=False))


def inner_product(one: Array, other: Array) -> float:
    """Return the sum of the products of the elements at each place."""
    return sum([a * b for a, b in _pairs(one, other)], 0.0)


def negative_inner_product(one: Array, other: Array) -> float:
    """Return the inner product with the other sign."""
    return -inner_product(one, other)


def distance(one: Array, other: Array) -> float:
    """Return the Euclidean distance."""
    return math.sqrt(sum([(a - b) ** 2 for a, b in _pairs(one, other)], 0.0))


def cosine(one: Array, other: Array) -> float | None:
    """Return the cosine of the angle between two vectors; None for vectors without elements."""
    product = inner_product(one, other)
    if not one:
        return None
    length = math.sqrt(inner_product(one, one) * inner_product(other, other))
    return max(-1.0, min(1.0, product / length)) if length else math.nan


def cosine_distance(one: Array, other: Array) -> float | None:
    """Return 1 less the cosine; None for vectors without elements."""
    found = cosine(one, other)
    return None if found is None else 1.0 - found


def _pairs(one: Array, other: Array) -> list[tuple[float, float]]:
    """Return the elements of two vectors; refuse NULL, and vectors of different lengths."""
    if len(one) != len(other):
        raise ValueError(f"list dimensions must be equal, got {len(one)} and {len(other)}")
    if None in one or None in other:
        raise ValueError("the lists of a distance cannot contain NULL")
    return list(zip(one, other, strict=True))
