"""Other places to commit and to receive deltas: threads, and an event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

PATIENCE = 10.0
"""Seconds to wait for a delta elsewhere, before it counts as lost."""
PAUSE = 0.0002


class Elsewhere:
    """A thread that reads, another one that writes, and a loop; each is started when needed."""

    @cached_property
    def hears(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1)

    @cached_property
    def writes(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1)

    @cached_property
    def loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.new_event_loop()

    def run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in the loop."""
        self.loop.run_until_complete(coroutine)

    def wait(self, is_done: Callable[[], bool]) -> None:
        """Let threads and the loop have turns until something is done; not for ever."""
        end = time.monotonic() + PATIENCE
        while not is_done() and time.monotonic() < end:
            if "loop" in vars(self):
                self.run(asyncio.sleep(0))
            if not is_done():
                time.sleep(PAUSE)

    def close(self) -> None:
        for name in ("hears", "writes"):
            if name in vars(self):
                vars(self)[name].shutdown()
        if "loop" in vars(self):
            for task in asyncio.all_tasks(self.loop):
                task.cancel()
            self.run(asyncio.sleep(0))
            self.loop.close()
