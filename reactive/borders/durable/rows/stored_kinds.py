"""The classes of the values that are read, column by column: what need not be asked of each row.

    [(1, "Bonn"), (2, None)]        {int}, {str, None}

Where none of them is bytes, the values of plain columns are as they were, and rows are made of them
as they are. A store gives no NaN, which is written as bytes. So of rows of a class that keeps what
it is given it is known that they are plain (`storage/plain_rows.py`).

State:  a few classes for each column.
Cost:   O(columns) per row, some 30 ns each.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from reactive.borders.durable.store import Schema, Values
from reactive.engine.storage import plain_rows


class StoredKinds:
    """What is known of the rows so far.

    >>> from reactive.borders.durable.store import Column
    >>> kinds = StoredKinds(Schema("pairs", (Column("a", "int", "plain"),), None, ""))
    >>> kinds.are_plain([(1,), (2,)]), kinds.are_plain([(b"1",)]), kinds.are_plain([(3,)])
    (True, False, False)
    """

    def __init__(self, schema: Schema) -> None:
        self._names = [column.name for column in schema.columns]
        self._readers = [itemgetter(place) for place in range(len(self._names))]
        self._kinds: list[set[type]] | None = [set() for _ in self._names]

    def are_plain(self, batch: Sequence[Values]) -> bool:
        """Whether the values of some more rows, and of all before, are as they were written."""
        if self._kinds is None:
            return False
        for kinds, read in zip(self._kinds, self._readers, strict=True):
            kinds.update(map(type, map(read, batch)))
        if any(bytes in kinds for kinds in self._kinds):
            self._kinds = None
        return self._kinds is not None

    def test_of(self, rows: Sequence[Any]) -> plain_rows.PlainTest | None:
        """The test that the rows made of all these pass; None if that is not known."""
        if self._kinds is None or not rows:
            return None
        kind: Any = type(rows[0])
        if self._names != list(plain_rows.plain_fields(kind) or ()):
            return None
        if set(map(type, rows)) != {kind}:
            return None
        return plain_rows.plain_test_of(kind, tuple(map(frozenset, self._kinds)))
