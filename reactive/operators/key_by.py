"""Key by: put a key beside every pair of a delta, for an operator that matches by it.

State:  none.
Cost:   O(|dL|).
"""

from __future__ import annotations

from collections.abc import Callable

from reactive.index import Key, KeyedPair, match_key
from reactive.zset import Pairs, Row


class KeyBy:
    """Pairs with their keys; a row without a key function has the key `()`.

    >>> KeyBy(len).step([("anna", 1)])
    [(4, ('anna', 1))]
    """

    __slots__ = ("_key", "touched")

    def __init__(self, key: Callable[[Row], Key] | None) -> None:
        self._key = key
        self.touched = 0

    def step(self, delta: Pairs) -> list[KeyedPair]:
        self.touched += len(delta)
        key = self._key
        if key is None:
            return [((), pair) for pair in delta]
        return [(match_key(key(pair[0])), pair) for pair in delta]
