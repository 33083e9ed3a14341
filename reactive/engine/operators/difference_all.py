"""Bag difference: left weights less right weights (SQL's EXCEPT ALL).

    difference_all(L, R)(row)  =  max(0, L(row) - R(row)), with negative weights read as 0

State:  the weights of every row of either side (`pointwise.py`).
Cost:   O(|dL| + |dR|).
Source: [dbsp] section 3; [i3ql] bag difference.
"""

from __future__ import annotations

from reactive.engine.operators.pointwise import Pointwise


def difference_all() -> Pointwise:
    """The operator.

    >>> difference_all().step([("a", 2), ("b", 1)], [("a", 1), ("b", 1)])
    [('a', 1)]
    """
    return Pointwise(_law, usual=0)


def _law(left: int, right: int) -> int:
    return max(0, max(0, left) - max(0, right))
