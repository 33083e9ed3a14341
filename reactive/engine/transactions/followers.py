"""Followers of a table: objects that note its committed deltas, and read them when they are asked.

    commit  -->  note(delta)          a list append
    question  -->  the noted deltas are applied

State:  that of the followers.
Cost:   a list append per commit and follower.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from typing import TYPE_CHECKING, Any, Protocol

from reactive.engine.collections.zset import Pair
from reactive.engine.transactions.rows_by_field import RowsByField

if TYPE_CHECKING:
    from reactive.engine.transactions.row_gate import Base


class TableFollower(Protocol):
    """An object that checks the changes of a table, and notes those that are committed."""

    def check(self, delta: Sequence[Pair], /) -> None:
        """Raise `TableError` for a change that the table must refuse."""
        ...

    def note(self, delta: Sequence[Pair], rows: int, /) -> None:
        """Note the delta of a commit, after which the table has `rows` rows."""
        ...

    def forget(self) -> None:
        """Forget all rows and deltas, to read the table again."""
        ...


class Followers:
    """The followers of a table."""

    __slots__ = ("by_field", "expiry", "log")

    def __init__(self) -> None:
        self.by_field = RowsByField()
        self.expiry: TableFollower | None = None
        self.log: Callable[[Sequence[Pair]], object] | None = None
        """Notes a delta in the log of commits (`commit_log.py`)."""

    def note(self, delta: Sequence[Pair], store: Sized) -> None:
        """Note the delta of a commit, after which the table has the rows of `store`."""
        if self.log is not None:
            self.log(delta)
        if self.by_field.indexes:
            self.by_field.note(delta, len(store))
        if self.expiry is not None:
            self.expiry.note(delta, len(store))

    def forget(self) -> None:
        """Forget all rows and deltas, because the table may have other rows."""
        self.by_field.forget()
        if self.expiry is not None:
            self.expiry.forget()


def followers_of(table: Base) -> Followers:
    """Return the followers of a table, which are made on the first use."""
    if table._followers is None:
        table._followers = Followers()
    found: Any = table._followers
    return found  # type: ignore[no-any-return]
