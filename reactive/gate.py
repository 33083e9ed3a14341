"""The one lock of a database: reentrant, and owned by a thread or by an asyncio task.

A thread's lock is not enough under asyncio: a transaction may wait in the middle, and another
task of the same thread must then not slip into it, nor wait for it and so stop the event loop.

`asyncio` is imported where it is used: it takes as long as a third of all this, and who has no task
may do without.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from reactive.errors import TransactionError

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
BRIEF: Any = object()
"""In the place of a task: who is inside does not wait, so that no other task can come by."""
LONGEST_SLEEP = 0.01


class Gate:
    """Enter it with `with`; the owner may enter again.

    Who stays briefly may do what it does by itself (`Commits._write`): see that `depth` is 0, take
    `lock`, and set `depth` and `task`; at the end count `turns`, and set them back.

    Raises `TransactionError` instead of waiting for another task of the same event loop, which
    could never leave while we wait.
    """

    __slots__ = ("depth", "holder", "lock", "task", "turns")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.depth = 0
        """How often it has been entered by who is inside."""
        self.task: Any = None
        """The task that is inside, or `BRIEF`."""
        self.turns = 0
        """How often it has been left."""
        self.holder: object = None
        """The asynchronous transaction that has been entered, if there is one."""

    def __enter__(self) -> None:
        if self.held:
            if self.task is not BRIEF and self.task is not _running_task():
                raise TransactionError(
                    "another task of this event loop has a transaction open\n"
                    "  use `async with db.transaction()`, which waits for it to end"
                )
            self.depth += 1
            return
        try:
            self.lock.acquire()
            self._own()
        except BaseException:
            self.let_go()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.leave()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Be inside for a reading of what only commits change.

        Another task of this thread may have a transaction open: it is waiting, and does not
        change anything meanwhile.
        """
        if self.held:
            yield
            return
        with self:
            yield

    def read(self, read: Callable[..., T], *arguments: Any) -> T:
        """The result of a reading, as of a moment when nobody was inside.

        It is done without entering first, which is many times faster than a lock; and again, as
        `reading`, if anybody was inside meanwhile.
        """
        turns = self.turns
        if not self.depth:
            try:
                found = read(*arguments)
                if not self.depth and self.turns == turns:
                    return found
            except Exception:  # it may be due to what another thread did: it will show
                pass
        with self.reading():
            return read(*arguments)

    def try_enter(self) -> bool:
        """Enter only if nobody is inside, the caller neither."""
        if self.held:
            return False
        try:
            if not self.lock.acquire(False):
                return False
            self._own()
        except BaseException:
            self.let_go()
            raise
        return True

    def leave(self) -> bool:
        """Leave once; True if this was the outermost time."""
        if self.depth > 1:
            self.depth -= 1
            return False
        self.turns += 1
        self.task = None
        self.depth = 0
        self.lock.release()
        return True

    async def enter_async(self, mine: object) -> None:
        """Enter as the running task; wait without stopping the event loop.

        `mine` is the transaction that the task is in, or was started in: waiting for that one
        would never end.
        """
        import asyncio

        pause = 0.0
        while True:
            if self.held:
                if self.task is _running_task():
                    self.depth += 1
                    return
            elif self.try_enter():
                return
            if mine is not None and mine is self.holder:
                raise TransactionError(
                    "the transaction that is open waits for this task, and this task would for it\n"
                    "  make the changes in the task that opened it"
                )
            await asyncio.sleep(pause)
            pause = min(pause * 2 + 0.0005, LONGEST_SLEEP)

    def _own(self) -> None:
        self.task = _running_task()
        self.depth = 1

    @property
    def held(self) -> int:
        """How often the running thread is inside."""
        return self.depth if self.lock._is_owned() else 0  # type: ignore[attr-defined]

    def let_go(self) -> None:
        """An interrupt between taking the lock and noting it must not keep it for ever."""
        if not self.depth and self.lock._is_owned():  # type: ignore[attr-defined]
            self.lock.release()


def _running_task() -> asyncio.Task[Any] | None:
    running = getattr(sys.modules.get("asyncio.events"), "_get_running_loop", _none)
    loop = running()
    if loop is None:
        return None
    import asyncio

    return asyncio.current_task(loop)


def _none() -> None: ...
