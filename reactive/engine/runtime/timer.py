"""Timer: run calls when they are due, in one thread.

    call(later, job)  -->  heap of times  -->  the thread calls one job after the other

The thread is a daemon, starts with the first job, and ends when there has been none for a while, or
at `close`. It refers to jobs weakly: a job whose object is no longer referenced is not called.

State:  an entry per job that is due.
Cost:   O(log entries) per job.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
import weakref
from collections.abc import Callable

log = logging.getLogger("reactive")
LINGERS = 1.0
"""Seconds that the idle thread stays alive."""
Job = Callable[[], object]


class Timer:
    """Calls methods when they are due, in order.

    >>> import threading
    >>> class Bell:
    ...     done = threading.Event()
    ...     def ring(self): self.done.set()
    >>> bell, timer = Bell(), Timer()
    >>> timer.call(time.monotonic() + 0.001, bell.ring)
    >>> bell.done.wait(10)
    True
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.RLock())
        self._due: list[tuple[float, int, weakref.WeakMethod[Job]]] = []
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None
        self._closed = False

    def call(self, when: float, job: Job) -> None:
        """Call a method at a time of `time.monotonic`, if its object still exists then."""
        with self._changed:
            if self._closed:
                return
            heapq.heappush(self._due, (when, next(self._numbers), weakref.WeakMethod(job)))
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="reactive timer", daemon=True)
                thread.start()
                self._thread = thread
            self._changed.notify()

    def close(self) -> None:
        """End the thread, and drop all jobs."""
        with self._changed:
            self._closed = True
            self._due.clear()
            self._changed.notify()

    def _run(self) -> None:
        """Run due jobs until there have been none for a while; an error of a job is logged."""
        while (job := self._next()) is not None:
            found = job()
            try:
                if found is not None:
                    found()
            except BaseException:  # the other jobs must still run
                log.exception("a timed call failed")
            del found

    def _next(self) -> weakref.WeakMethod[Job] | None:
        """Wait for the next due job and return it; None to end the thread."""
        with self._changed:
            while not self._closed:
                left = self._due[0][0] - time.monotonic() if self._due else LINGERS
                if left <= 0:
                    return heapq.heappop(self._due)[2]
                if not self._changed.wait(left) and not self._due:
                    break
            self._thread = None
            return None
