"""What some remotes can do besides: tell of a change later, and have their output read where it is.

    told       how a quiet `apply` has changed the output
    rows       all rows of the output, as of when the reader began
    changes    what flushes have come to since
    forget     the reader has both; what comes from now on is for the next time

What they read is kept for them, however many flushes there are in between; unless that is more than
all rows are, or the remote is given up: then they have to begin anew.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol, runtime_checkable

from reactive.engine.collections.zset import Pairs


@runtime_checkable
class Telling(Protocol):
    """A `Remote` whose output need not be fetched: it can still tell how it has changed."""

    def told(self, number: int) -> Pairs:
        """How the output changed in an `apply` that was quiet, until there is a later one."""
        ...

    def size(self) -> int:
        """How many rows the output has, copies counted."""
        ...


@runtime_checkable
class FindingSome(Protocol):
    """A `Remote` that looks up several keys together."""

    def some(self, keys: Collection[Any]) -> Pairs:
        """What of the output is made of rows with one of the keys; others may come along."""
        ...


class RemoteRows(Protocol):
    """Rows with weights that are elsewhere, not added up, for those who know how to read them."""

    @property
    def rows(self) -> int:
        """There are no more than so many."""
        ...

    def with_rows(self, more: Any) -> Any:
        """These and more, of the same kind."""
        ...


class Following(Protocol):
    """What one reader has read of a remote."""

    @property
    def is_over(self) -> bool:
        """Whether it has to begin anew."""
        ...

    @property
    def waiting(self) -> int:
        """How many changed rows it has not read, at most."""
        ...

    def rows(self) -> Any:
        """All rows as of when it began, as `RemoteRows`; until something is forgotten."""
        ...

    def changes(self) -> Any:
        """How the output has changed since, as `RemoteRows`; None if it has not."""
        ...

    def forget(self) -> None:
        """What `rows` and the last `changes` have given was read."""
        ...

    def close(self) -> None:
        """It reads no more."""
        ...


@runtime_checkable
class Followable(Protocol):
    """A `Remote` whose output can be read where it is."""

    @property
    def is_followable(self) -> bool:
        """Whether that is so of the rows of this one."""
        ...

    def follow(self) -> Following:
        """A reader of the output as of the last `apply`."""
        ...
