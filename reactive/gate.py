"""The one lock of a database: reentrant, and owned by a thread or by an asyncio task.

A thread's lock is not enough under asyncio: a transaction may wait in the middle, and another
task of the same thread must then not slip into it, nor wait for it and so stop the event loop.
"""

from __future__ import annotations

import asyncio
import threading
from asyncio.events import _get_running_loop
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from types import TracebackType
from typing import Any

from reactive.errors import TransactionError

LONGEST_SLEEP = 0.01


class Gate:
    """Enter it with `with`; the owner may enter again.

    Raises `TransactionError` instead of waiting for another task of the same event loop, which
    could never leave while we wait.
    """

    __slots__ = ("_depth", "_lock", "_task", "_thread")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread = 0
        self._task: asyncio.Task[Any] | None = None
        self._depth = 0

    def __enter__(self) -> None:
        if self._lock.acquire(False):
            self._own()
        elif self._is_mine():
            self._depth += 1
        elif self._thread == get_ident():
            raise TransactionError(
                "another task of this event loop has a transaction open\n"
                "  use `async with db.transaction()`, which waits for it to end"
            )
        else:
            self._lock.acquire()
            self._own()

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
        if self._thread == get_ident():
            yield
            return
        with self:
            yield

    def try_enter(self) -> bool:
        """Enter only if nobody is inside, the caller neither."""
        if not self._lock.acquire(False):
            return False
        self._own()
        return True

    def leave(self) -> bool:
        """Leave once; True if this was the outermost time."""
        self._depth -= 1
        if self._depth:
            return False
        self._thread = 0
        self._task = None
        self._lock.release()
        return True

    async def enter_async(self) -> None:
        """Enter as the running task; wait without stopping the event loop."""
        pause = 0.0
        while not self._lock.acquire(False):
            if self._is_mine():
                self._depth += 1
                return
            await asyncio.sleep(pause)
            pause = min(pause * 2 + 0.0005, LONGEST_SLEEP)
        self._own()

    def _own(self) -> None:
        self._thread = get_ident()
        self._depth = 1
        if _get_running_loop() is not None:
            self._task = _running_task()

    def _is_mine(self) -> bool:
        return self._thread == get_ident() and self._task is _running_task()


def _running_task() -> asyncio.Task[Any] | None:
    loop = _get_running_loop()
    return None if loop is None else asyncio.current_task(loop)
