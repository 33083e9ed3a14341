"""Stores that hold nothing: of rows that flow through, and of a table that is no more.

State:  none.
Cost:   of a row that of asking whether it has a hash.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from reactive.engine.collections.zset import Pair, Row
from reactive.errors import TableError


class NoStore:
    """Rows that flow through and are not kept.

    `hashable` is a class whose rows are sure to have a hash, so that it need not be tried.
    """

    interns: ClassVar[bool] = False
    wants_plain: ClassVar[bool] = True
    __slots__ = ("_hashable",)

    def __init__(self, *, hashable: Any = None) -> None:
        self._hashable = hashable

    def add(self, row: Row, count: int) -> Pair:
        if row.__class__ is not self._hashable:
            hash(row)
        return (row, count)

    def add_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        if set(map(type, rows)) != {self._hashable}:
            for row in rows:
                hash(row)
        return rows

    def add_plain(self, rows: Sequence[Row]) -> Sequence[Row]:
        return rows

    def remove(self, row: Row, count: int) -> Pair:
        return self.add(row, -count)

    def remove_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        return self.add_rows(rows)

    def revert(self, changes: Iterable[Pair]) -> None: ...

    def recount(self) -> None: ...

    def count(self, row: Row) -> int:
        return 0

    def pairs(self) -> Iterable[Pair]:
        return ()

    def __len__(self) -> int:
        return 0

    def bytes(self) -> int:
        return 0


class NoMore:
    """The store of a table that was dropped: whatever is asked of it, it says so."""

    def __init__(self, why: str) -> None:
        self.why = why

    def revert(self, changes: Iterable[Pair]) -> None: ...
    def recount(self) -> None: ...

    def __len__(self) -> int:
        raise TableError(self.why)

    def __getattr__(self, name: str) -> Any:
        raise TableError(self.why)
