"""Unnest: pair each row with every element of a collection computed from it.

    d(unnest(f, L))  =  { row + (element,): weight  |  (row, weight) in dL, element in f(row) }

Linear. An element that the collection has twice makes two rows.

State:  none.
Cost:   O(|dL| + elements).
Source: [i3ql] unnest; [slender] flattening.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from reactive.engine.collections.zset import Pair, Pairs, Row, canonical


class Unnest:
    """One pair out per element; `extend(row, element)` makes the row.

    >>> Unnest(str.split, lambda row, word: (row, word)).step([("to be", 1)])
    [(('to be', 'to'), 1), (('to be', 'be'), 1)]
    """

    __slots__ = ("_extend", "_function", "touched")

    def __init__(
        self, function: Callable[[Row], Iterable[Any]], extend: Callable[[Row, Any], Row]
    ) -> None:
        self._function = function
        self._extend = extend
        self.touched = 0

    def step(self, delta: Pairs) -> list[Pair]:
        function, extend = self._function, self._extend
        out = []
        for row, weight in delta:
            for element in function(row):
                out.append((extend(row, canonical(element)), weight))
        self.touched += len(delta) + len(out)
        return out
