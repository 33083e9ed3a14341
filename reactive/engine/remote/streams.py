"""Batches of rows that are elsewhere, and what is known of a table that they feed.

    batches --prepare, without the lock--> written aside --publish, inside it--> a version

A batch has the query that it is of and a number: those that have come are noted with the rows.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from reactive.engine.remote.external import ExternalRows

Changes: TypeAlias = Literal["append", "cdf", "debezium", "weight", "snapshot"]
"""How the rows of a stream say what changes."""


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How a stream is read; the names are those of `Database.spark_stream`."""

    changes: Changes = "append"
    deletes: Any = None
    change_column: str | None = None
    order: str | None = None
    trigger: str | float = 1.0
    format: str = "parquet"
    drops: bool = False


@dataclass(frozen=True, slots=True)
class FrameBatch:
    """Rows that came together.

    `made` is when, as `time.time()` tells. `token` is the number of the batch in its query.
    """

    frame: Any
    query: str
    token: int
    made: float


class Prepared(Protocol):
    """A batch that is written aside."""

    @property
    def rows(self) -> int:
        """How many rows change, with those that are left out."""
        ...

    @property
    def is_change(self) -> bool:
        """Whether it is to be published: not if it was before, or is a snapshot without a
        difference."""
        ...

    def publish(self) -> None:
        """Let it count; quick. Inside the lock of the database."""
        ...


class ExternalStream(Protocol):
    """What feeds a table of rows that are elsewhere, and these rows."""

    @property
    def rows(self) -> ExternalRows:
        """The rows of the table."""
        ...

    @property
    def unfit(self) -> ExternalRows | None:
        """The rows that are left out; None while one of them stops the stream."""
        ...

    @property
    def token(self) -> int | None:
        """The number of the last batch that counts."""
        ...

    def batches(self, since: Any, stop: threading.Event) -> Iterable[FrameBatch]:
        """As of a `Source`."""
        ...

    def waiting(self) -> int | None:
        """How many changes are still to come, if that is known."""
        ...

    def prepared(self, batch: FrameBatch) -> AbstractContextManager[Prepared]:
        """Write a batch aside.

        Raises
        ------
        TableError: a row does not fit, and none is to be left out; nothing has changed.
        """
        ...
