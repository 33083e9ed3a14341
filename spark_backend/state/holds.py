"""Files of state tables that count no more, and who still reads them.

    begin       a reader holds the files of a table, as of a flush
    counts      each later flush adds its files of the table to what the reader holds
    forget      the reader has what it was told of: these are not held any more
    drop        files that count no more are deleted, once nobody holds them

So a reader may take its time, while flushes go on, put files together and delete what they have put
together. One that has half of the table to read, or more, is done as soon with all of it anew, so
it is let go: what is kept for it stays bounded.

State:  which segments are held.
Cost:   a flush O(readers); no job.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from spark_backend.state.leftovers import drop, of_flush
from spark_backend.state.manifest import Manifest, Segment

MOST_HELD = 256
"""Flushes that are kept for a reader at most."""
FEWEST_ROWS = 10_000
"""Changed rows that are kept for a reader, however few there are in the table."""


class Hold:
    """What one reader holds of one table. Made by `Holds.begin`."""

    def __init__(self, holds: Holds, table: str, manifest: Manifest) -> None:
        self._holds = holds
        self.table = table
        self.first: tuple[Segment, ...] = tuple(manifest.tables.get(table, ()))
        """All that there was when it began, until that is forgotten."""
        self._later: tuple[int, tuple[Segment, ...]] = (_number(manifest), ())
        self.is_over = False
        """Whether nothing is held any more."""

    @property
    def later(self) -> tuple[Segment, ...]:
        """What flushes have added since."""
        return self._later[1]

    def counts(self, manifest: Manifest) -> None:
        """What the last flush has added is held too; told of it again, nothing is."""
        number, later = self._later
        if _number(manifest) > number:
            start = of_flush(manifest.number)
            segments = manifest.tables.get(self.table, ())
            added = tuple(segment for segment in segments if segment.folder.startswith(start))
            self._later = (_number(manifest), (*later, *added))

    def forget(self, later: Iterable[Segment]) -> None:
        """What there was at first has been read, and some of what has come later."""
        gone = tuple(later)
        with self._holds.lock:
            number, known = self._later
            self.first = ()
            self._later = (number, tuple(segment for segment in known if segment not in gone))
            self._holds.sweep()

    def close(self) -> None:
        """Hold nothing any more."""
        with self._holds.lock:
            self.is_over = True
            self.first, self._later = (), (self._later[0], ())
            self._holds.forget(self)


class Holds:
    """The readers of the tables in a folder.

    Parameters
    ----------
    files, root: a file system of pyarrow, and the folder in it.
    """

    def __init__(self, files: Any, root: str, manifest: Manifest) -> None:
        self._files, self._root = files, root
        self._manifest = manifest
        self._open: list[Hold] = []
        self._gone: list[Segment] = []
        self.lock = threading.RLock()

    def begin(self, table: str) -> Hold:
        """Hold what counts of a table, and what comes."""
        with self.lock:
            hold = Hold(self, table, self._manifest)
            self._open.append(hold)
            return hold

    def counts(self, manifest: Manifest) -> None:
        """Another manifest counts, perhaps that of one flush more."""
        with self.lock:
            self._manifest = manifest
            for hold in list(self._open):
                hold.counts(manifest)
                if self._is_slow(hold):
                    hold.close()

    def drop(self, gone: Iterable[Segment]) -> None:
        """Delete segments that count no more, now or when nobody holds them."""
        with self.lock:
            self._gone += gone
            self.sweep()

    def close(self) -> None:
        """Nobody holds anything any more: all is to be deleted, and there may be other tables in
        the folder soon."""
        with self.lock:
            for hold in list(self._open):
                hold.close()

    def sweep(self) -> None:
        """Delete what nobody holds."""
        held = {s.folder: s for hold in self._open for s in (*hold.first, *hold.later)}
        now = [segment for segment in self._gone if segment.folder not in held]
        if now:
            self._gone = [segment for segment in self._gone if segment.folder in held]
            drop(self._files, self._root, self._manifest, now, held.values())

    def forget(self, hold: Hold) -> None:
        """A reader is gone."""
        if hold in self._open:
            self._open.remove(hold)
            self.sweep()

    def _is_slow(self, hold: Hold) -> bool:
        rows = sum(segment.rows for segment in hold.later)
        most = max(FEWEST_ROWS, sum(self._manifest.rows(hold.table)) // 2)
        return rows > most or len(hold.later) > MOST_HELD


def _number(manifest: Manifest) -> int:
    return -1 if manifest.number is None else manifest.number
