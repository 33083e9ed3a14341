"""Negation: each row with its weight negated.

    d(-L)  =  -dL

Linear.

State:  none.
Cost:   O(|dL|).
Source: [dbsp] negation of Z-sets.
"""

from __future__ import annotations

from collections.abc import Sequence

from reactive.engine.collections.zset import Pair, Pairs, negate


class Negate:
    """Turns the signs.

    >>> Negate().step([("a", 1), ("b", -2)])
    [('a', -1), ('b', 2)]
    """

    __slots__ = ("touched",)

    def __init__(self) -> None:
        self.touched = 0

    def step(self, delta: Pairs) -> Sequence[Pair]:
        self.touched += len(delta)
        return negate(delta)
