"""Stores without rows: of a table whose rows flow through, and of a dropped table.

State:  none.
Cost:   a hash per row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from reactive.engine.collections.zset import Pair, Row
from reactive.errors import TableError


class NoStore:
    """The store of rows that flow through without being stored.

    `hashable` is a class whose rows are always hashable, so that this is not tested.
    """

    interns: ClassVar[bool] = False
    wants_plain: ClassVar[bool] = True
    field: ClassVar[None] = None
    """No field finds its rows."""
    __slots__ = ("hashable",)

    def __init__(self, *, hashable: Any = None) -> None:
        self.hashable = hashable

    def add(self, row: Row, count: int) -> Pair:
        if row.__class__ is not self.hashable:
            hash(row)
        return (row, count)

    def add_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Return the rows, which are not stored; raises `TypeError` if one is not hashable."""
        if set(map(type, rows)) != {self.hashable}:
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
    """The store of a dropped table: every read or statement raises an error with the reason."""

    def __init__(self, why: str) -> None:
        self.why = why

    def revert(self, changes: Iterable[Pair]) -> None: ...
    def recount(self) -> None: ...

    def __len__(self) -> int:
        raise TableError(self.why)

    def __getattr__(self, name: str) -> Any:
        raise TableError(self.why)
