"""Set difference: the rows of the left that the right lacks, each once.

    difference(L, R)(row)  =  1 if L(row) > 0 and R(row) <= 0 else 0

State:  the weights of every row of either side (`pointwise.py`).
Cost:   O(|dL| + |dR|).
Source: [dbsp] section 3; [i3ql] difference.
"""

from __future__ import annotations

from reactive.engine.operators.pointwise import Pointwise


def difference() -> Pointwise:
    """The operator.

    >>> difference().step([("a", 2), ("b", 1)], [("b", 1)])
    [('a', 1)]
    """
    return Pointwise(_law, usual=0, is_set=True)


def _law(left: int, right: int) -> int:
    return 1 if left > 0 >= right else 0
