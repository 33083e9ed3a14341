"""Semi-join: the left rows that have a partner on the right (EXISTS), with their own weights.

    L semi_join R  =  partnered(L, R)

State:  the index of the left, and what `matching.py` counts.
Cost:   O(|dL| + |dR| + rows whose presence flips); with a predicate, plus the pairs it is asked.
Source: [i3ql] exists; [dbsp] section 4.
"""

from __future__ import annotations

from reactive.engine.operators.matching import Matching, MatchingJoin, partnered


def semi_join(matching: Matching) -> MatchingJoin:
    """The operator: it hands on the rows that have a partner on the right.

    >>> from reactive.engine.operators.index_by import IndexBy
    >>> from reactive.engine.operators.matching import KeyMatching
    >>> names = IndexBy(len)
    >>> join = semi_join(KeyMatching(names.index))
    >>> first = join.step(names.step([("anna", 1)]), [])
    >>> join.step([], [(4, ("otto", 1))])
    [('anna', 1)]
    """
    return MatchingJoin(matching, partnered)
