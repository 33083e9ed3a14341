"""What remotes over state tables have in common: numbers that are taken in once, files, their end.

    apply n   --what failed before, what is new--> one flush, tried again where it fails
              --what the flush added to the output--> the delta

State:  on disk; in the driver, what has not been sent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from reactive.collections.zset import Pairs
from reactive.remote.adoption import Adopt
from reactive.remote.external import ExternalInput
from reactive.remote.fragments import Fragment
from reactive.remote.remote import Entry
from spark_backend.cluster.session import Session
from spark_backend.incremental.tries import Owed, tried
from spark_backend.state.staged import Staged
from spark_backend.state.tables import StateTables
from spark_backend.tables.chain import Weighted
from spark_backend.tables.frames import net


class OnTables(ABC):
    """A `reactive.remote.remote.Remote`, but for what its rows are.

    Parameters
    ----------
    stable: whether another process may go on with its state.
    """

    def __init__(self, session: Session, fragment: Fragment, *, stable: bool) -> None:
        self._session, self._fragment = session, fragment
        self._is_kept = stable
        self._owed = Owed()
        self.is_closed = False
        self.begun_anew = ""
        self.adopt: Adopt | None = None

    def _keep_in(self, tables: StateTables, folder: str) -> None:
        """Have the state in tables, and rows staged in their folder."""
        self._tables, self._staged = tables, Staged(self._session, folder)
        self.resumed = tables.number

    @property
    def applied(self) -> int:
        """The last number that has been taken in; -1 for none."""
        return -1 if self._tables.number is None else self._tables.number

    def apply(
        self,
        number: int,
        entries: Sequence[Entry],
        fed: Sequence[ExternalInput] = (),
        *,
        quiet: bool = False,
    ) -> Pairs:
        """Take entries in once, and say how the output changes.

        Raises
        ------
        TakenIn: a callable of the query raised. The next number makes up for it.
        OffloadError: Spark is gone, a folder cannot be written, or state has been removed;
            nothing was taken in.
        """
        if number > self.applied:
            given = self._owed.added(number, entries, fed)
            tried(lambda: self._attempt(number, *given), self._session, self._goes_on, self._tables)
            self._owed.clear()
        if self._staged.rows:
            self._staged.forget()
        return () if quiet else self._change_of(number)

    def stop(self) -> None:
        """Nobody reads it any more; a later process can go on where that was asked for."""
        self.is_closed = True
        self._staged.forget()
        if not self._is_kept:
            self._tables.delete()

    def close(self) -> None:
        """Give everything up."""
        self.is_closed = True
        self._tables.delete()

    def _attempt(self, number: int, entries: Sequence[Entry], fed: Sequence[ExternalInput]) -> None:
        self._session.ready()
        self._compact()
        self._flush(number, entries, fed)

    def _compact(self) -> None:
        """Put files together; what the flush before wrote has been read by now."""
        self._tables.compact()

    @abstractmethod
    def _flush(self, number: int, entries: Sequence[Entry], fed: Sequence[ExternalInput]) -> None:
        """Add what comes of entries and of what is fed to the tables, in one job."""

    @abstractmethod
    def _change_of(self, number: int) -> Pairs:
        """How the output changed in the last flush, fetched."""

    def _goes_on(self, error: Exception) -> bool:
        """Whether a flush is to be done again for what it raised."""
        return False

    def _since(self, source: ExternalInput) -> Weighted:
        """The rows that are fed, each once where some were to come with a flush that failed."""
        rows: Any = source.rows
        given: Weighted = rows.frames.since(source.after, source.upto)
        return replace(given, frame=net(given.frame)) if self._owed.is_late else given


def changed(entries: Sequence[Entry], fed: Sequence[ExternalInput]) -> int:
    """How many rows change at most."""
    rows = len(entries)
    for source in fed:
        given: Any = source.rows
        rows += given.frames.changed(source.after, source.upto)
    return rows
