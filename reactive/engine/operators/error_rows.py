"""Error rows: rows whose place in an index could not be computed, since something raised.

A predicate may name keys that only some rows have. The plain plan asks the predicate of every pair,
and raises only where the parts before it are true. So an error row is paired with every row of the
other side, those too that its index leaves out, and any row with the error rows of the other side.

    key            candidates of the other side
    a value        those with the key, and its error rows
    ERROR_KEY        all rows
    FILTERED       its error rows
    NO_MATCH       its error rows

State:  none; error rows are kept in the indexes.
Cost:   of an error row, O(rows of the other side), as without an index; of other rows, O(error
        rows).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reactive.engine.collections.index import ERROR_KEY, FILTERED, NO_MATCH, Key, KeyedPair
from reactive.engine.collections.zset import Pair
from reactive.engine.operators.index_by import IndexBy


class Candidates:
    """What may match a key on one side of a join.

    `since` is a delta that the side has already taken in, and that is taken out again to see the
    side as it was before.
    """

    def __init__(self, side: IndexBy, since: Sequence[KeyedPair] = ()) -> None:
        self._side = side
        self._since = since
        self._index: Any = side.index.earlier(since) if since else side.index

    def pairs(self, key: Key) -> list[Pair]:
        """The rows, with their weights."""
        if key is ERROR_KEY:
            return list(self._side.all_rows(self._since))
        index = self._index
        if key is FILTERED or key is NO_MATCH:
            return list(index.pairs(ERROR_KEY))
        return [*index.pairs(key), *index.pairs(ERROR_KEY)]
