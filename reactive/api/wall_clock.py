"""A thread that lets a clock follow the time of the machine.

    every second:   advance to datetime.now(UTC), if a view reads now() or a row expires

Ticks keep their distance whatever a commit takes. After the machine has slept, and after its time
was corrected forward, the next tick is at the present time. If its time was corrected back, the
clock stands until the time is later again. A tick that is refused is logged.

State:  a daemon thread, which refers to the clock weakly.
Cost:   of a tick without readers: a look at the first row of each table whose rows expire.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from typing import Protocol

from reactive.errors import ClosedError

log = logging.getLogger("reactive")


class Ticking(Protocol):
    """A clock that can follow the time of the machine."""

    def _follow(self) -> None:
        """Advance to the present time, if that changes something."""
        ...


class WallClock:
    """Lets a clock follow the time of the machine, until it is stopped."""

    def __init__(self, clock: Ticking, every: float) -> None:
        self._clock = weakref.ref(clock)
        self._every = every
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="reactive clock")
        self._thread.start()

    def stop(self, *, wait: bool) -> None:
        """Tick no longer; with `wait`, return after the running tick."""
        self._stopped.set()
        if wait and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stopped.wait(max(0.0, due - time.monotonic())):
            due = max(due + self._every, time.monotonic())
            clock = self._clock()
            if clock is None:
                return
            try:
                clock._follow()
            except ClosedError:
                return
            except Exception:  # a view refuses the tick: the next one may stand
                log.exception("the clock could not be advanced")
            del clock
