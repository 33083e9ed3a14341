"""The lock of a database, and who has a transaction open.

    lock      held while something changes, and by those who look at what must not change meanwhile
    owner     the thread, or the asyncio task, that has a transaction open; it holds no lock
    aside     the thread whose tasks have transactions open that are not in the tables for now

A statement waits for the transaction of another owner to end. A reader never does: views change at
the end of a transaction, and tables are read as of the last commit (`row_gate.py`). It waits only
for the lock, which is held for a statement or a commit.

A thread is not owner enough under asyncio: a transaction may wait in the middle, and another task
of the same thread must then not slip into it, nor wait for it and so stop the event loop. The open
transaction is set aside for its statement (`transactions/pending.py`).

`asyncio` is imported where it is used: it takes as long as a third of all this, and who has no task
may do without.
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
"""A thread, and the task in it if there is one."""
IDLE, BROKEN = 0, -1
LONGEST_SLEEP = 0.01
LONGEST_WAIT = 1.0
"""Seconds after which a writer looks again whether the transaction that it waits for has ended."""


def _nothing() -> None: ...


class DatabaseLock:
    """Be inside with `with db_lock.inside(): ...`; who is inside may enter again.

    Who enters by itself (`enter`, `enter_to_write`, `try_enter`) leaves in line, in a `finally`, so
    that no call stands between, at which an interrupt could keep it from leaving:

        db_lock.depth -= 1
        if not db_lock.depth:
            db_lock.sequence, db_lock.critical = db_lock.sequence + 1, False
            db_lock.depth = db_lock.at_rest
        db_lock.lock.release()

    Who stays briefly may also enter by itself (`Engine.write`): see that `depth` is 0 and nothing
    `is_special`, take `lock`, and set `depth` and `critical`.
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
            "idle",
            "is_closed",
        ),
        *(
            "is_held_back",
            "is_special",
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
        self, repair: Callable[[], None] = _nothing, tell: Callable[[], None] = _nothing
    ) -> None:
        self.lock = threading.RLock()
        self.free = threading.Condition(self.lock)
        """Notified when a transaction ends, if anybody is waiting for that."""
        self.waiting = 0
        """How many threads wait for that; changed and read inside."""
        self._repair = repair
        self._tell = tell
        self.has_news = False
        """Whether a repair has left something to be told, which any reader may do."""
        self.depth = IDLE
        """How often it has been entered by who is inside; below 0 if what it guards is broken."""
        self.at_rest = IDLE
        """What `depth` is when nobody is inside. If it is `BROKEN`, whoever enters has to repair
        first what this guards."""
        self.aside: int | None = None
        """The thread that has transactions open which are set aside."""
        self.idle = IDLE
        """The value of `at_rest` while nothing is broken: `BROKEN` if some are set aside, so that
        who enters looks whether one of them is its own."""
        self.critical = False
        """Whether Ctrl-C has to wait: something is half changed."""
        self.is_held_back = False
        """Whether Ctrl-C has to wait though nobody is inside: another system commits."""
        self.noted: Any = None
        """The Ctrl-C that waits."""
        self.sequence = 0
        """How often it has been left."""
        self.owner: Owner | None = None
        """Who has a transaction open."""
        self.transaction: object = None
        """The asynchronous transaction that is open, if it is one."""
        self.is_closed = False
        self.is_special = False
        """Whether a statement has more to ask than whether somebody is inside."""
        SIGINT.guard(self)

    # Being inside.

    def enter(self) -> None:
        """Wait until nobody else is inside, and repair what is broken."""
        try:
            self.lock.acquire()
            self.own()
        except BaseException:
            self.let_go()
            raise

    @contextmanager
    def inside(self, *, to_write: bool = False) -> Iterator[None]:
        """Be inside for a reading of what only statements and commits change, or to change it."""
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
        if self.has_news and not self.held:
            self.has_news = False
            self._tell()

    def try_enter(self) -> bool:
        """Enter only if nobody is inside, the caller neither, and nothing is broken."""
        if self.depth:
            return False
        try:
            if not self.lock.acquire(False):
                return False
            if self.depth:  # by then
                self.lock.release()
                return False
            self.own()
        except BaseException:
            self.let_go()
            raise
        return True

    def own(self) -> None:
        """Be inside once more, by whoever has just taken the lock."""
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
    def held(self) -> int:
        """How often the running thread is inside."""
        return self.depth if self.lock._is_owned() else 0  # type: ignore[attr-defined]

    def let_go(self) -> None:
        """An interrupt between taking the lock and noting it must not keep it for ever."""
        while self.lock._is_owned() and _times_taken(self.lock) > max(self.depth, 0):  # type: ignore[attr-defined]
            self.lock.release()

    # Reading.

    def read(self, read: Callable[..., T], *arguments: Any) -> T:
        """The result of a reading, as of a moment when nobody was inside.

        It is done without entering first, which is many times faster than a lock; and again, as
        `reading`, if anybody was inside meanwhile.
        """
        sequence = self.sequence
        if not self.depth:
            try:
                found = read(*arguments)
                if not self.depth and self.sequence == sequence:
                    return found
            except Exception as error:  # it may be due to what another thread did: it will show
                if not is_common(error):
                    raise
        with self.inside():
            return read(*arguments)

    # Transactions.

    @property
    def is_mine(self) -> bool:
        """Whether the running thread, or task, has a transaction open."""
        return self.owner == me()

    @property
    def is_taken(self) -> bool:
        """True if somebody else has a transaction open."""
        return self.aside is not None if self.owner is None else not self.is_mine

    def enter_to_write(self, set_aside: Callable[[], object] | None = None) -> None:
        """Enter when nobody else has a transaction open.

        Another task of the same event loop could never end its transaction while we wait: that one
        is set aside, by a callable that is given for it.

        Raises
        ------
        TransactionError: another task has one open, and it is not to be set aside, or cannot be.
        """
        try:
            self.lock.acquire()
            if not self.depth and (self.owner is None or self.owner == me()):
                self.depth = 1
                return
            self.own()
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
                self._repair()
            is_entered = True
        finally:
            if not is_entered:
                self.depth -= 1
                if not self.depth:
                    self.sequence, self.depth = self.sequence + 1, self.at_rest
                self.lock.release()

    def _wait(self) -> None:
        """Let others in until the owner has ended its transaction."""
        self.sequence, self.depth = self.sequence + 1, self.at_rest
        self.waiting += 1
        try:
            self.free.wait(LONGEST_WAIT)
        finally:
            self.waiting -= 1
            self.depth = 1

    async def begin_async(self, mine: object) -> None:
        """Have a transaction open as the running task; wait without stopping the event loop.

        `mine` is the transaction that the task is in, or was started in: waiting for that one
        would never end.
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
        """The running thread, or task, has a transaction open from now on. Done inside."""
        self.owner, self.is_special = me(), True

    def end(self) -> None:
        """Nobody has one open any more. Done inside, or by the owner."""
        self.owner, self.is_special = None, self.is_closed
        if self.waiting:
            with self.lock:
                self.free.notify_all()

    def close(self) -> None:
        """Nobody may enter to write any more."""
        self.is_closed = self.is_special = True


ANOTHER_TASK = (
    "another task of this event loop has a transaction open\n"
    "  use `async with db.transaction()`, which waits for it to end"
)


def _times_taken(lock: threading.RLock) -> int:
    """How often the running thread has taken a lock that it has."""
    count = getattr(lock, "_recursion_count", None)
    if count is not None:
        return int(count())
    return int(repr(lock).partition("count=")[2].partition(" ")[0])  # before CPython 3.11.5


def me() -> Owner:
    """The running thread, and the task that runs in it."""
    return get_ident(), running_task() if "asyncio.events" in modules else None


def running_task() -> asyncio.Task[Any] | None:
    """The asyncio task that runs in this thread, if one does."""
    loop = running_loop()
    return None if loop is None else modules["asyncio"].current_task(loop)


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that this thread runs, if it runs one."""
    events: Any = modules.get("asyncio.events")
    try:
        loop: asyncio.AbstractEventLoop | None = events._get_running_loop()
    except AttributeError:  # it is not imported, or just being imported
        return None
    return loop
