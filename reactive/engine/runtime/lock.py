"""The lock of a database, and the owner of its open transaction.

    lock      held during a change, and by readers of state that must not change meanwhile
    owner     the thread, or the asyncio task, that has a transaction open; it holds no lock
    aside     the thread whose tasks have transactions that are set aside, out of the tables

A statement waits for the transaction of another owner to end. A reader never does: views change at
the end of a transaction, and tables are read as of the last commit (`row_gate.py`). A reader waits
only for the lock, which is held for a statement or a commit.

Under asyncio, a thread cannot be the owner: a transaction may await in the middle, and another task
of the same thread must then neither join it nor block the event loop until it ends. So the open
transaction is set aside for the statement of the other task (`transactions/pending.py`).

`asyncio` is imported where it is used: the import takes a third as long as that of this library,
and programs without tasks do not need it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from sys import modules
from threading import get_ident
from typing import TYPE_CHECKING, Any, TypeVar

from reactive.engine.runtime.interrupts import SIGINT, is_common
from reactive.errors import TransactionError

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
Owner = tuple[int, Any]
"""A thread, and the task running in it, if any."""
IDLE, BROKEN = 0, -1
LONGEST_SLEEP = 0.01
LONGEST_WAIT = 1.0
"""Seconds after which a waiting writer checks again if the transaction has ended."""


def _repair_nothing() -> None: ...


class DatabaseLock:
    """The lock of a database: enter it with `with db_lock.inside(): ...`. It is reentrant.

    Code that enters directly (`enter`, `enter_to_write`, `try_enter`) leaves inline, in a
    `finally`: during a call, an interrupt could prevent it from leaving.

        db_lock.depth -= 1
        if not db_lock.depth:
            db_lock.sequence, db_lock.critical = db_lock.sequence + 1, False
            db_lock.depth = db_lock.at_rest
        db_lock.lock.release()

    Short critical sections may also enter inline (`Engine.write`): check that `depth` is 0 and
    nothing `is_special`, acquire `lock`, and set `depth` and `critical`.
    """

    __slots__ = (
        *(
            "_repair",
            "_tell",
            "aside",
            "at_rest",
            "critical",
            "depth",
            "has_news",
            "held",
            "idle",
            "is_closed",
        ),
        *(
            "is_held_back",
            "is_special",
            "is_writing",
            "free",
            "lock",
            "noted",
            "owner",
            "transaction",
            "sequence",
            "waiting",
        ),
        "__weakref__",
    )

    def __init__(
        self,
        repair: Callable[[], None] = _repair_nothing,
        tell: Callable[[], None] = _repair_nothing,
    ) -> None:
        self.lock = threading.RLock()
        self.free = threading.Condition(self.lock)
        """Notified when a transaction ends, if a thread waits for that."""
        self.waiting = 0
        """The number of threads that wait for `free`; changed and read inside."""
        self._repair = repair
        self._tell = tell
        self.has_news = False
        """True if a repair has queued deltas; the next reader delivers them."""
        self.depth = IDLE
        """The number of times it is entered by the thread inside; below 0 if a repair is needed."""
        self.at_rest = IDLE
        """The value of `depth` while no thread is inside; `BROKEN` makes the next one repair."""
        self.aside: int | None = None
        """The thread whose tasks have transactions that are set aside."""
        self.idle = IDLE
        """The value of `at_rest` while nothing is broken.

        It is `BROKEN` if transactions are set aside, so that an entering task looks for its own.
        """
        self.critical = False
        """True if Ctrl-C must be deferred: something is half changed."""
        self.held = 0
        """The number of times that a supposition holds it, without being inside."""
        self.is_held_back = False
        """True if Ctrl-C must be deferred outside the lock, too: another system commits."""
        self.is_writing = False
        """True while a writer enters, which may repair."""
        self.noted: Any = None
        """The deferred Ctrl-C."""
        self.sequence = 0
        """The number of times it was left."""
        self.owner: Owner | None = None
        """The owner of the open transaction, if any."""
        self.transaction: object = None
        """The open asynchronous transaction, if any."""
        self.is_closed = False
        self.is_special = False
        """True if a statement cannot use the fast path: a transaction is open, or it is closed."""
        SIGINT.guard(self)

    # Entering.

    def enter(self) -> None:
        """Wait until no other thread is inside, and repair the database if it is broken."""
        try:
            self.lock.acquire()
            self.count_entry()
        except BaseException:
            self.let_go()
            raise

    @contextmanager
    def inside(self, *, to_write: bool = False) -> Iterator[None]:
        """Enter, to read or change state that only statements and commits change."""
        if to_write:
            self.enter_to_write()
        else:
            self.enter()
        try:
            yield
        finally:
            self.depth -= 1
            if not self.depth:
                self.sequence, self.critical, self.depth = self.sequence + 1, False, self.at_rest
            self.lock.release()
        if self.has_news and not self.depth_here:
            self.has_news = False
            self._tell()

    def try_enter(self) -> bool:
        """Enter only if no thread is inside, not even this one, and nothing is broken."""
        if self.depth:
            return False
        try:
            if not self.lock.acquire(False):
                return False
            if self.depth:  # meanwhile
                self.lock.release()
                return False
            self.count_entry()
        except BaseException:
            self.let_go()
            raise
        return True

    def count_entry(self) -> None:
        """Count an entry of the thread that has just taken the lock; repair first if needed."""
        if self.depth >= 0:
            self.depth += 1
            return
        self.depth = 1
        try:
            self._repair()
        except BaseException:
            self.depth = self.at_rest
            self.lock.release()
            raise

    @property
    def depth_here(self) -> int:
        """The number of times the running thread is inside."""
        return self.depth if self.lock._is_owned() else 0  # type: ignore[attr-defined]

    def let_go(self) -> None:
        """Release a lock that an interrupt prevented from being recorded as entered."""
        most = max(self.depth, 0) + self.held
        while self.lock._is_owned() and _times_taken(self.lock) > most:  # type: ignore[attr-defined]
            self.lock.release()

    # Reading.

    def read(self, read: Callable[..., T], *arguments: Any) -> T:
        """Return the result of a reading, as of a moment when no thread was inside.

        The reading first runs without entering, which is many times faster; if a thread was inside
        meanwhile, it runs again inside.
        """
        sequence = self.sequence
        if not self.depth:
            try:
                found = read(*arguments)
                if not self.depth and self.sequence == sequence:
                    return found
            except Exception as error:  # if it is not due to another thread, it is raised again
                if not is_common(error):
                    raise
        with self.inside():
            return read(*arguments)

    # Transactions.

    @property
    def is_mine(self) -> bool:
        """True if the running thread, or task, has a transaction open."""
        return self.owner == me()

    @property
    def is_taken(self) -> bool:
        """True if another owner has a transaction open."""
        return self.aside is not None if self.owner is None else not self.is_mine

    def enter_to_write(self, set_aside: Callable[[], object] | None = None) -> None:
        """Enter while no other owner has a transaction open.

        Another task of the same event loop could never end its transaction while this one waits:
        `set_aside` is called to set it aside.

        Raises
        ------
        TransactionError: another task has a transaction open, and `set_aside` is missing or cannot
            set it aside.
        """
        try:
            self.lock.acquire()
            if not self.depth and (self.owner is None or self.owner == me()):
                self.depth = 1
                return
            self.is_writing = True
            try:
                self.count_entry()
            finally:
                self.is_writing = False
        except BaseException:
            self.let_go()
            raise
        if self.owner is None and self.aside is None:
            return
        is_entered = False
        try:
            while self.depth == 1 and self.is_taken:
                if (self.aside if self.owner is None else self.owner[0]) != get_ident():
                    self._wait()
                elif set_aside is None:
                    raise TransactionError(ANOTHER_TASK)
                elif self.owner is None:
                    break
                else:
                    set_aside()
            if self.at_rest is not IDLE:
                self.is_writing = True
                try:
                    self._repair()
                finally:
                    self.is_writing = False
            is_entered = True
        finally:
            if not is_entered:
                self.depth -= 1
                if not self.depth:
                    self.sequence, self.depth = self.sequence + 1, self.at_rest
                self.lock.release()

    def _wait(self) -> None:
        """Let other threads in until the owner has ended its transaction."""
        self.sequence, self.depth = self.sequence + 1, self.at_rest
        self.waiting += 1
        try:
            self.free.wait(LONGEST_WAIT)
        finally:
            self.waiting -= 1
            self.depth = 1

    async def begin_async(self, mine: object) -> None:
        """Open a transaction for the running task; wait without blocking the event loop.

        `mine` is the transaction that contains or started the task: waiting for it would never end.
        """
        import asyncio

        pause = 0.0
        while True:
            with self.inside():
                if not self.is_taken:
                    self.begin()
                    return
            if mine is not None and mine is self.transaction:
                raise TransactionError(
                    "the transaction that is open waits for this task, and this task would for it\n"
                    "  make the changes in the task that opened it"
                )
            await asyncio.sleep(pause)
            pause = min(pause * 2 + 0.0005, LONGEST_SLEEP)

    def begin(self) -> None:
        """Make the running thread, or task, the owner of a transaction. Call it inside."""
        self.owner, self.is_special = me(), True

    def end(self) -> None:
        """End the transaction. Call it inside, or as its owner."""
        self.owner, self.is_special = None, self.is_closed
        if self.waiting:
            with self.lock:
                self.free.notify_all()

    def close(self) -> None:
        """Refuse writers from now on."""
        self.is_closed = self.is_special = True


ANOTHER_TASK = (
    "another task of this event loop has a transaction open\n"
    "  use `async with db.transaction()`, which waits for it to end"
)


def _times_taken(lock: threading.RLock) -> int:
    """Return how many times the running thread has acquired a lock."""
    count = getattr(lock, "_recursion_count", None)
    if count is not None:
        return int(count())
    return int(repr(lock).partition("count=")[2].partition(" ")[0])  # before CPython 3.11.5


def me() -> Owner:
    """Return the running thread, and the task running in it."""
    return get_ident(), running_task() if "asyncio.events" in modules else None


def running_task() -> asyncio.Task[Any] | None:
    """Return the asyncio task running in this thread; None if there is none."""
    loop = running_loop()
    return None if loop is None else modules["asyncio"].current_task(loop)


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop running in this thread; None if there is none."""
    events: Any = modules.get("asyncio.events")
    try:
        loop: asyncio.AbstractEventLoop | None = events._get_running_loop()
    except AttributeError:  # not imported, or half imported
        return None
    return loop
