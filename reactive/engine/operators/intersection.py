"""Set intersection: the rows that both sides have, each once.

    intersection(L, R)(row)  =  1 if L(row) > 0 and R(row) > 0 else 0

State:  the weights of every row of either side (`pointwise.py`).
Cost:   O(|dL| + |dR|).
Source: [dbsp] section 3; [i3ql] intersection.
"""

from __future__ import annotations

from reactive.engine.operators.pointwise import Pointwise


def intersection() -> Pointwise:
    """The operator.

    >>> intersection().step([("a", 2), ("b", 1)], [("a", 1)])
    [('a', 1)]
    """
    return Pointwise(_law, usual=1, is_set=True)


def _law(left: int, right: int) -> int:
    return int(left > 0 and right > 0)
