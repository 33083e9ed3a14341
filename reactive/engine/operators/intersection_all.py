"""Bag intersection: the smaller of the two weights (SQL's INTERSECT ALL).

    intersection_all(L, R)(row)  =  min(L(row), R(row)), with negative weights read as 0

State:  the weights of every row of either side (`pointwise.py`).
Cost:   O(|dL| + |dR|).
Source: [dbsp] section 3; [i3ql] bag intersection.
"""

from __future__ import annotations

from reactive.engine.operators.pointwise import Pointwise


def intersection_all() -> Pointwise:
    """The operator.

    >>> intersection_all().step([("a", 2), ("b", 1)], [("a", 3)])
    [('a', 2)]
    """
    return Pointwise(_law, usual=1)


def _law(left: int, right: int) -> int:
    return max(0, min(left, right))
