"""The protocol of what the changes of a view are written to.

    open        which batch is in it, as it says itself
    difference  what leads from what is in it to the rows of now
    stage       a batch is written aside: it is to be there, and nobody sees it yet
    deliver     what is staged is there, in one step; done again, it changes nothing

The position is a part of what is written, so there is no moment at which one is there and the
other is not. A batch that was staged and not delivered when the process ended is either delivered
by the next one, as it was, or is not there and is found as a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from reactive.engine.collections.zset import Pair

Changed: TypeAlias = Sequence[tuple[Any, int]]
"""Rows with the number of times that each comes, or goes if it is negative; each row once."""


@dataclass(frozen=True, slots=True)
class Position:
    """Up to where a view is written. Prints as text.

    >>> print(Position(4, 17))
    batch 4, through commit 17
    """

    batch: int
    """The number of the last batch, from 0 on. A batch that changes nothing is not written."""
    version: int
    """The commit that it is up to date through, in the process that wrote it."""

    def __str__(self) -> str:
        return f"batch {self.batch}, through commit {self.version}"


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """Changes that are written together.

    `number` counts up from 0. `plan` is the fingerprint of the query that the rows are of.
    """

    number: int
    changes: Any
    """`Changed`; for `FrameTarget.stage_frame`, `RemoteRows`."""
    plan: str
    version: int

    @property
    def position(self) -> Position:
        """Where what has it is."""
        return Position(self.number, self.version)


class Target(Protocol):
    """What a `Sink` writes to.

    One that has an attribute `is_owed`, and that is true, is given a batch also if nothing has
    changed: so a table can be there before its first row is.
    """

    def open(self, plan: str) -> Position | None:
        """Where it is; None if nothing has been written to it, or staged.

        Parameters
        ----------
        plan: the fingerprint of the query whose rows are to be written.

        Raises
        ------
        OffloadError: it cannot be read, or holds the changes of another query and keeps them.
        """
        ...

    def difference(self, rows: Iterable[Pair]) -> Changed:
        """What leads from what is in it, with what is staged, to these rows."""
        ...

    def stage(self, batch: ChangeBatch) -> None:
        """Write a batch aside. If this raises, it is as if it had not been called."""
        ...

    def deliver(self) -> None:
        """Have what was staged be there, once. Nothing staged: nothing is done."""
        ...


@runtime_checkable
class FrameTarget(Target, Protocol):
    """A `Target` that can read rows where they are, so that none of them passes the process."""

    def difference_frame(self, rows: Any) -> Any:
        """As `difference`, of all rows as `RemoteRows`, which are not read before `stage_frame`."""
        ...

    def stage_frame(self, batch: ChangeBatch) -> bool:
        """As `stage`, of changes that are not added up; false if they come to nothing, and nothing
        is staged."""
        ...


class Outbox(Protocol):
    """Keeps the batch that a receiver is to be given, until it has it, and what it was given."""

    def open(self, plan: str) -> Position | None:
        """As of a `Target`."""
        ...

    def difference(self, rows: Iterable[Pair]) -> Changed:
        """As of a `Target`."""
        ...

    def stage(self, batch: ChangeBatch) -> None:
        """Keep a batch. If this raises, it is as if it had not been called."""
        ...

    def staged(self) -> ChangeBatch | None:
        """The batch that was kept and is not known to be delivered."""
        ...

    def delivered(self) -> None:
        """The receiver has it."""
        ...


Called: TypeAlias = Callable[[int, list[tuple[Any, int]]], object]
"""A function of the number of a batch, and its changes."""
