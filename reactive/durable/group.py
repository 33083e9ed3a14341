"""Commits that are written some time after they were made, many in one transaction of the store.

    note        before the operators step: the rows as they are stored
    gather      what was noted and has been committed, in its order
    write       of a thread, at most `DELAY` after the first (`"group"`), or of `flush` and `close`

What was noted of a commit that did not come to stand is passed over: its version is not reached, or
is noted again. If the store does not take what is written, memory is ahead of it: from then on the
database refuses changes of durable tables, and `flush` and `close` raise what it was.

State:  what is not written yet; a thread.
Cost:   of noting a commit of one row a microsecond.
"""

from __future__ import annotations

import atexit
import threading
import weakref
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from reactive.durable.journal import Changes, Journal
from reactive.durable.store import Record, Store
from reactive.errors import DurabilityError

if TYPE_CHECKING:
    from collections.abc import Callable

DELAY = 0.01
"""Seconds after which a commit is written at the latest."""
MOST = 10_000
"""Commits that are written together."""


class GroupJournal(Journal):
    """Notes commits, and writes them later.

    Parameters
    ----------
    version: what gives the version of the last commit that stands.
    by_itself: whether a thread writes them; else only `flush` and `close` do.
    """

    is_immediate = False

    def __init__(self, store: Store, version: Callable[[], int], *, by_itself: bool) -> None:
        super().__init__(store)
        self._noted: deque[Record] = deque()
        self._version = version
        self._by_itself = by_itself
        self._writes = threading.Lock()
        """Held by who writes to the store, or reads it."""
        self._has_work = threading.Event()
        self._is_due = threading.Event()
        self._is_closed = False
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._ends = partial(_at_exit, weakref.ref(self))
        atexit.register(self._ends)

    def passes(self, changes: Changes, version: int) -> bool:
        """It always does."""
        self.record(changes, version)
        return True

    def record(self, changes: Changes, version: int) -> None:
        """Note a commit that is about to be made."""
        self.has(version)
        record = super().record(changes, version)
        if record is not None:
            self._noted.append(record)
            if self._by_itself and not self._has_work.is_set():
                self._wake()

    def has(self, version: int) -> bool:
        """It is not written before it stands; what was noted of it is forgotten."""
        while self._noted and self._noted[-1].version >= version:
            self._noted.pop()
        return False

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name=f"writer of {self.store.name}", daemon=True
            )
            self._thread.start()
        self._has_work.set()

    def _run(self) -> None:
        while not self._is_closed and self._error is None:
            self._has_work.wait()
            self._is_due.wait(DELAY)
            self._is_due.clear()
            self._has_work.clear()
            try:
                with self._writes:
                    self._write_noted()
            except DurabilityError:
                return
            if self._noted:  # of a commit that is about to stand
                self._has_work.set()

    def _write_noted(self) -> None:
        """Write what has come to stand. By who has `_writes`."""
        while (found := self._gathered()) and self._error is None:
            try:
                self.store.write(found)
            except BaseException as error:
                if not self._stands(found[-1].version):
                    self._error = error
                    last = found[0].version - 1
                    self.refuse(f"{self.store.name} has commits up to {last} only", error)
                    raise
            for _ in found:
                self._noted.popleft()

    def _stands(self, version: int) -> bool:
        try:
            return self.store.version() == version
        except DurabilityError:
            return False

    def _gathered(self) -> list[Record]:
        """The first commits that stand and are not written."""
        version, found = self._version(), []
        for record in [*self._noted] if len(self._noted) <= MOST else self._first():
            if record.version > version:
                break
            found.append(record)
        return found

    def _first(self) -> list[Record]:
        return [self._noted[n] for n in range(MOST)]

    def settle(self) -> None:
        self.flush()

    def flush(self) -> None:
        """Write what has been committed.

        Raises
        ------
        DurabilityError: it cannot be written, now or before.
        """
        with self._writes:
            if self._error is None:
                self._write_noted()
        super().settle()

    def after_fork(self) -> None:
        """In a child of the process: nothing may be written."""
        super().after_fork()
        self._noted.clear()
        self._is_closed = True

    def close(self) -> None:
        """Write what there is, and let the store go."""
        try:
            if not self._is_closed:
                self.flush()
        finally:
            self._is_closed = True
            atexit.unregister(self._ends)
            self._is_due.set()
            self._has_work.set()
            with self._writes:
                super().close()


def _at_exit(reference: weakref.ref[GroupJournal]) -> None:
    """The program ends, and nobody has closed it."""
    journal = reference()
    if journal is not None and not journal._is_closed:
        journal.close()
