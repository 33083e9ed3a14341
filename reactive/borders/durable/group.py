"""Commits that are written some time after they were made, many in one transaction of the store.

    note        before the operators step: the rows as they are stored
    gather      what was noted and has been committed, as what it comes to (`noted.py`)
    write       of a thread, at most `DELAY` after the first (`"group"`), or of `flush` and `close`

What was noted of a commit that did not come to stand is passed over: its version is not reached, or
is noted again. If the store does not take what is written, memory is ahead of it: from then on the
database refuses changes of durable tables, and `flush` and `close` raise what it was. A file that
is not at its path is looked for at each `flush`; when it is back, what waits is written.

State:  what is not written yet; a thread.
Cost:   of noting a commit of one row half a microsecond.
"""

from __future__ import annotations

import atexit
import threading
import weakref
from bisect import bisect_right
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from reactive.borders.durable.journal import ANEW, Changes, Journal, KeptTable
from reactive.borders.durable.noted import Note, Noted, noting, noting_one, sides_of, together
from reactive.borders.durable.refusals import Gone
from reactive.borders.durable.store import Change, Store
from reactive.errors import DurabilityError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reactive.engine.collections.zset import Pair

BACK = (
    "move that file, with the -wal beside it, back to its place, and call db.flush(), which writes "
    "what waits; or save what the tables hold, close the database, and open it anew"
)
DELAY = 0.01
"""Seconds after which a commit is written at the latest."""
MOST = 10_000
"""Of what is noted that is written together, and what belongs to the same commit."""


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
        self._noted: list[Noted] = []
        """Never another list. Their versions rise."""
        self._notes: dict[Any, Note] = {}
        """Note deltas of tables with a key, as long as they may be written."""
        self._version = version
        self._is_each = is_each
        self._writes = threading.Lock()
        """Held by who writes to the store, or reads it."""
        self._has_work = threading.Event()
        self._is_due = threading.Event()
        self.is_asleep = by_itself
        """Whether a thread is to be woken when something is noted."""
        self._is_closed = False
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._is_gone = False
        """True while the file is not at its path, so that nothing is written."""
        self._ends = partial(_at_exit, weakref.ref(self))
        atexit.register(self._ends)

    def begin(self, changes: Changes, version: int) -> None:
        """Note a commit, which is written later."""
        self.record(changes, version)

    def record(self, changes: Changes, version: int) -> None:
        """Note a commit that is about to be made."""
        self.has(version)
        others = []
        for table, delta in changes:
            note = self._notes.get(table)
            if note is None:
                others.append((table, delta))
            else:
                note(delta, version)
        record = super().record(others, version) if others else None
        if record is not None:
            self._noted.append((version, None, record))
        if self.is_asleep and self._noted:
            self.wake()

    def has(self, version: int) -> bool:
        """It is not written before it stands; what was noted of it is forgotten."""
        noted = self._noted
        while noted and noted[-1][0] >= version:
            noted.pop()
        return False

    def refuse(self, why: str, error: BaseException | None, remedy: str = ANEW) -> None:
        """Write nothing any more."""
        super().refuse(why, error, remedy)
        for table in [*self._notes]:
            self._note_no_more(table)

    def keep(self, table: Any, kept: KeptTable) -> None:
        """A table is durable from now on."""
        super().keep(table, kept)
        if kept.codec.schema.key is None or self._is_each:
            return

        def otherwise(delta: Sequence[Pair], version: int) -> None:
            self.has(version)
            note(delta, version)
            if self.is_asleep:
                self.wake()

        sides = sides_of(kept)
        note = self._notes[table] = noting(kept, sides, self._noted)
        table._node.note = noting_one(kept, sides, self._noted, self, otherwise)

    def forget(self, table: Any) -> None:
        """A table was dropped, or replaced."""
        super().forget(table)
        self._note_no_more(table)

    def release(self, table: Any) -> None:
        """A table was not made after all."""
        super().release(table)
        self._note_no_more(table)

    def _note_no_more(self, table: Any) -> None:
        if self._notes.pop(table, None) is not None:
            table._node.note = None

    def wake(self) -> None:
        """Have the thread write what was noted, in a while."""
        self.is_asleep = False
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
            try:
                with self._writes:
                    self._write_noted()
            except DurabilityError:
                if self._is_gone:  # another thread goes on when it has come back
                    self._thread, self.is_asleep = None, True
                return
            self._has_work.clear()
            self.is_asleep = True
            if self._noted or self._is_closed:  # since, or of a commit that is about to stand
                self.wake()

    def _write_noted(self) -> None:
        """Write what has come to stand until now, not what others go on to commit. By who has
        `_writes`."""
        noted, now = self._noted, self._version()
        while self._error is None and noted and noted[0][0] <= now and (many := self._standing()):
            last = noted[many - 1][0]
            try:
                self.store.write(together(noted[:many]))
            except BaseException as error:
                if not self._stands(last):
                    self._fail(error, f"{self.store.name} has commits up to {noted[0][0] - 1} only")
                    raise
            self._stood = last
            del noted[:many]

    def _fail(self, error: BaseException, why: str) -> None:
        """Refuse commits: for ever, or until a file that is gone has come back."""
        if isinstance(error, Gone):
            self._is_gone = True
            self.refuse(why, error, BACK)
        else:
            self._error = error
            self.refuse(why, error)

    def _go_on(self) -> None:
        """Take commits again: the file has come back, and has all that was noted."""
        self._is_gone, self._refusal = False, None
        for table, kept in [*self.kept.items()]:
            self.keep(table, kept)

    def _stands(self, version: int) -> bool:
        try:
            return self.store.version() == version
        except DurabilityError:
            return False

    def _standing(self) -> int:
        """How many of what is noted belong to the first commits that stand."""
        last = self._version()
        for version, _, _ in self._noted[MOST - 1 : MOST]:
            last = min(last, version)
        return bisect_right(self._noted, last, key=_VERSION)

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
                if self._is_gone:
                    self._go_on()
        super().settle()

    def write_beside(self, changes: Sequence[Change], *, is_safe: bool) -> None:
        """Write what was committed, and then what is no commit."""
        with self._writes:
            if self._error is None:
                self._write_noted()
            super().write_beside(changes, is_safe=is_safe)

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


_VERSION = itemgetter(0)


def _at_exit(reference: weakref.ref[GroupJournal]) -> None:
    """The program ends, and nobody has closed it."""
    journal = reference()
    if journal is not None and not journal._is_closed:
        journal.close()
