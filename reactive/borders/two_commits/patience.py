"""Await what is to be done to its end, also if the task is cancelled meanwhile.

A COMMIT that is cancelled has an unknown outcome, and most take a millisecond. So a cancellation
waits for it; but not longer than `PATIENCE`, as a server may never answer.

State:  none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

PATIENCE = 5.0
"""Seconds that a cancellation waits."""


async def surely(act: Coroutine[Any, Any, None]) -> BaseException | None:
    """Await it, in a task of its own; the cancellation that came meanwhile, if one did.

    Raises
    ------
    BaseException: what it raises; `CancelledError` when it has been waited for long enough.
    """
    loop = asyncio.get_running_loop()
    task = loop.create_task(act)
    cancelled, until = None, 0.0
    while not task.done():
        left = None if cancelled is None else until - loop.time()
        if left is not None and left <= 0:
            task.cancel()
            raise cancelled or asyncio.CancelledError
        try:
            await asyncio.wait([task], timeout=left)
        except asyncio.CancelledError as error:
            if cancelled is None:
                cancelled, until = error, loop.time() + PATIENCE
    task.result()
    return cancelled


def comes_again() -> None:
    """Have a cancellation that was waited for come where the task waits the next time."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
        task.cancel()
