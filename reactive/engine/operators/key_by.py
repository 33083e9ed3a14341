"""Key by: put a key beside every pair of a delta, for an operator that matches by it.

What comes and goes in the same delta is cancelled first: a change of fields that a select has
dropped should not go through all matches of a join twice. Rows known by identity never cancel.

State:  none.
Cost:   O(|dL|).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from reactive.engine.collections.index import FILTERED, Key, KeyedPair
from reactive.engine.collections.zset import Pairs, Row, consolidate, is_mixed


class KeyBy:
    """Pairs with their keys; a row without a key function has the key `()`.

    The key may be one of the marks of `index.py`. Rejected rows are passed over, unless the other
    side of a join has error rows, which must be told of them.

    >>> KeyBy(len).step([("anna", 1)])
    [(4, ('anna', 1))]
    """

    gives_keys: ClassVar[bool] = True
    __slots__ = ("_identity", "_key", "emits_filtered", "touched")

    def __init__(self, key: Callable[[Row], Key] | None, *, identity: bool = False) -> None:
        self._key = key
        self._identity = identity
        self.emits_filtered = False
        self.touched = 0

    def step(self, delta: Pairs) -> list[KeyedPair]:
        self.touched += len(delta)
        if not self._identity and is_mixed(delta):
            delta = consolidate(delta)
        key = self._key
        if key is None:
            return [((), pair) for pair in delta]
        keyed = []
        for pair in delta:
            found = key(pair[0])
            if found is not FILTERED or self.emits_filtered:
                keyed.append((found, pair))
        return keyed
