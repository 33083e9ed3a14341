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
from itertools import islice
from time import time
from typing import TYPE_CHECKING, TypeAlias

from reactive.durable.journal import Changes, Journal
from reactive.durable.rows.values import Unstorable
from reactive.durable.store import Change, Record, Store, Values
from reactive.errors import DurabilityError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Noted: TypeAlias = Record | tuple[int, float, str, Values, int]
"""A commit; of one row, flat: its version, time, table, values, and whether the row comes (1) or
goes (-1)."""
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
    is_each: whether the store keeps a history, of each commit.
    """

    is_immediate = False

    def __init__(
        self, store: Store, version: Callable[[], int], *, by_itself: bool, is_each: bool
    ) -> None:
        super().__init__(store)
        self._noted: deque[Noted] = deque()
        self._version = version
        self._by_itself = by_itself
        self._is_each = is_each
        self._writes = threading.Lock()
        """Held by who writes to the store, or reads it."""
        self._has_work = threading.Event()
        self._is_due = threading.Event()
        self._is_closed = False
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._ends = partial(_at_exit, weakref.ref(self))
        atexit.register(self._ends)

    def begin(self, changes: Changes, version: int) -> None:
        """Note a commit, which is written later."""
        if len(changes) == 1 and self._refusal is None:
            table, delta = changes[0]
            kept = self.kept.get(table)
            if kept is not None and len(delta) == 1 and table._keyed is not None:
                row, weight = delta[0]  # as `record`, in half of the time
                try:
                    values = kept.codec.write(row)
                except Unstorable as misfit:
                    raise kept.refusal(row, misfit) from None
                noted = self._noted
                if noted and noted[-1][0] >= version:
                    self.has(version)
                noted.append((version, time(), kept.name, values, weight))
                if self._by_itself and not self._has_work.is_set():
                    self._wake()
                return
        self.record(changes, version)

    def record(self, changes: Changes, version: int) -> None:
        """Note a commit that is about to be made."""
        noted = self._noted
        while noted and noted[-1][0] >= version:  # of one that was undone
            noted.pop()
        record = super().record(changes, version)
        if record is not None:
            noted.append(record)
            if self._by_itself and not self._has_work.is_set():
                self._wake()

    def has(self, version: int) -> bool:
        """It is not written before it stands; what was noted of it is forgotten."""
        while self._noted and self._noted[-1][0] >= version:
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
        while (noted := self._gathered()) and self._error is None:
            records = _records(noted, is_each=self._is_each)
            try:
                self.store.write(records)
            except BaseException as error:
                if not self._stands(records[-1].version):
                    self._error = error
                    last = noted[0][0] - 1
                    self.refuse(f"{self.store.name} has commits up to {last} only", error)
                    raise
            for _ in noted:
                self._noted.popleft()

    def _stands(self, version: int) -> bool:
        try:
            return self.store.version() == version
        except DurabilityError:
            return False

    def _gathered(self) -> list[Noted]:
        """The first commits that stand and are not written."""
        version = self._version()
        found = [*islice(self._noted, MOST)]
        while found and found[-1][0] > version:
            found.pop()
        return found

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

    def is_settled(self) -> bool:
        """Whether no commit waits to be written."""
        return not self._noted and super().is_settled()

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


def _records(noted: Sequence[Noted], *, is_each: bool) -> list[Record]:
    """Commits as a store takes them. Unless each is asked for, those that only add rows to the same
    table, one after the other, become one: they are written together all the same."""
    found: list[Record] = []
    rows: list[Values] = []
    into: str | None = None
    last = (0, 0.0)
    for each in noted:
        if isinstance(each, Record):
            if into is not None:
                found[-1] = Record(*last, found[-1].changes)
            found.append(each)
            into = None
            continue
        version, when, table, values, weight = each
        if table == into and weight > 0:
            rows.append(values)
            last = version, when
            continue
        if into is not None:
            found[-1] = Record(*last, found[-1].changes)
        rows = [values]
        change = Change(table, (), rows) if weight > 0 else Change(table, rows)
        found.append(Record(version, when, (change,)))
        into, last = (table if weight > 0 and not is_each else None), (version, when)
    if into is not None:
        found[-1] = Record(*last, found[-1].changes)
    return found


def _at_exit(reference: weakref.ref[GroupJournal]) -> None:
    """The program ends, and nobody has closed it."""
    journal = reference()
    if journal is not None and not journal._is_closed:
        journal.close()
