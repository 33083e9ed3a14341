"""Rows that are elsewhere already, and what of them goes to a fragment without coming by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeAlias

from optimizer import plan
from optimizer.record import record
from reactive.engine.collections.zset import Pair, Row

BEFORE = -1
"""The version before the first rows."""
Once: TypeAlias = tuple[str, int]
"""A query and the number of one of its batches, which count up: it is taken in once."""


class ExternalRows(Protocol):
    """Rows that are kept elsewhere, and their changes, by version."""

    @property
    def version(self) -> int:
        """The last one; 0 is what there was at first."""
        ...

    def check(self, row: Row) -> None:
        """Raise `OffloadError` for a row that cannot be kept as what it is."""
        ...

    def append(self, pairs: Sequence[Pair]) -> int:
        """Insert and delete rows: a new version."""
        ...

    def append_frame(self, frame: Any, weight: int, once: Once | None = None) -> int:
        """The same of rows that are there already. With a batch that came before, no new one."""
        ...

    def upsert(self, rows: Any, once: Once | None = None) -> int:
        """Rows, or a frame of them, in the place of the rows that have their keys."""
        ...

    def replace(self, frame: Any, once: Once | None = None) -> int:
        """The rows of a frame in the place of all rows."""
        ...

    def pairs(self) -> Iterator[Pair]:
        """All rows, each once."""
        ...

    def size(self) -> int:
        """How many there are."""
        ...

    def frame(self) -> Any:
        """All rows, without fetching them."""
        ...

    def stop(self) -> None:
        """Nobody reads it any more."""
        ...

    def steps(self, chain: Sequence[plan.Node]) -> list[str]:
        """How the nodes of a chain run there, a line each."""
        ...


@record
class ExternalInput:
    """Rows that an input of a fragment is fed from where they are, instead of from the process.

    Those of versions after `after`, up to `upto`, through `chain`; the node that sees them first
    comes first.
    """

    place: int
    rows: ExternalRows
    chain: tuple[plan.Node, ...]
    after: int
    upto: int


class ExternalSource(Protocol):
    """A table whose rows are elsewhere."""

    rows: ExternalRows

    def save(self) -> int:
        """Give what has been committed a version; the number of the last one."""
        ...
