"""Select many: every element of a collection computed from each row, without the row.

    d(select_many(f, L))  =  { element: weight  |  (row, weight) in dL, element in f(row) }

Linear.

State:  none.
Cost:   O(|dL| + elements).
Source: [mrql] cmap; [slender] flatten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from reactive.engine.collections.zset import Pair, Pairs, Row, canonical


class SelectMany:
    """One pair out per element.

    >>> SelectMany(str.split).step([("to be", 1), ("or", -1)])
    [('to', 1), ('be', 1), ('or', -1)]
    """

    __slots__ = ("_function", "touched")

    def __init__(self, function: Callable[[Row], Iterable[Any]]) -> None:
        self._function = function
        self.touched = 0

    def step(self, delta: Pairs) -> list[Pair]:
        function = self._function
        out = []
        for row, weight in delta:
            for element in function(row):
                out.append((canonical(element), weight))
        self.touched += len(delta) + len(out)
        return out
