"""Anti-join: the left rows that have no partner on the right (NOT EXISTS), with their own weights.

    L anti_join R  =  L - (L semi_join R)  =  alone(L, R)

State:  the index of the left, and what `matching.py` counts.
Cost:   O(|dL| + |dR| + rows whose presence flips); with a predicate, plus the pairs it is asked.
Source: [i3ql] not exists; [dbsp] section 4.
"""

from __future__ import annotations

from reactive.engine.operators.matching import Matching, MatchingJoin, alone


def anti_join(matching: Matching) -> MatchingJoin:
    """The operator: it hands on the rows that have no partner on the right.

    >>> from reactive.engine.operators.index_by import IndexBy
    >>> from reactive.engine.operators.matching import KeyMatching
    >>> names = IndexBy(len)
    >>> join = anti_join(KeyMatching(names.index))
    >>> first = join.step(names.step([("anna", 1)]), [])
    >>> join.step([], [(4, ("otto", 1))])
    [('anna', -1)]
    """
    return MatchingJoin(matching, alone)
