"""Equality of the rows of a view with a list, a tuple, a `Bag` or a dictionary.

Two NaN are equal here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reactive.engine.collections.bag import Bag
from reactive.engine.collections.zset import Pair, Row, canonical

Rows = list[Any] | tuple[Any, ...] | Bag[Any]


def same_in_order(rows: Sequence[Row], other: Iterable[Row]) -> bool:
    """Return True if the rows are the same, in the same order.

    >>> same_in_order(["to", "be"], ("to", "be")), same_in_order(["to", "be"], ["be", "to"])
    (True, False)
    """
    return list(rows) == list(map(canonical, other))


def same_as_bags(pairs: Iterable[Pair], other: Rows) -> bool:
    """Return True if each row has the same weight on both sides; unhashable values are not rows.

    >>> same_as_bags([("to", 2), ("be", 1)], ["to", "be", "to"]), same_as_bags([], [[]])
    (True, False)
    """
    given = other.items() if isinstance(other, Bag) else ((row, 1) for row in other)
    try:
        return _count_rows(pairs) == _count_rows((canonical(row), weight) for row, weight in given)
    except TypeError:
        return False


def same_groups(groups: Mapping[Any, Any], other: Mapping[Any, Any]) -> bool:
    """Return True if the keys are the same, with the same aggregates.

    >>> same_groups({"ann": (1, 2)}, {"ann": (1, 2)}), same_groups({"ann": 1}, {})
    (True, False)
    """
    return groups == {canonical(key): canonical(value) for key, value in other.items()}


def _count_rows(pairs: Iterable[Pair]) -> dict[Row, int]:
    """Add up the counts of pairs by row; pairs of weight 0 or less are left out."""
    found: dict[Row, int] = {}
    for row, weight in pairs:
        if weight > 0:
            found[row] = found.get(row, 0) + weight
    return found
