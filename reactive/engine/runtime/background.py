"""A background thread for jobs, and the intervals of `trigger=`.

`Background` runs jobs that callers need not wait for: moves, and flushes at intervals. Its thread
starts with the first job, refers to its owner weakly, and ends with the owner.

`seconds` reads a `trigger=` of sinks, and of streams on Spark.

    2, 0.5                        seconds
    "10s", "500 ms", "5 minutes"  a number and a unit; the words also as plurals

State:  none.
"""

from __future__ import annotations

import logging
import math
import queue
import re
import threading
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from optimizer.errors import PlanError
from reactive.errors import OffloadError

T = TypeVar("T")
log = logging.getLogger("reactive")


class Background(Generic[T]):
    """Runs jobs for `of`, one after the other; and `regularly` every `interval` seconds."""

    def __init__(self, of: T, regularly: Callable[[T], object], interval: float | None) -> None:
        self._of = weakref.ref(of)
        self._regularly = regularly
        self._interval = interval
        self._jobs: queue.Queue[Callable[[T], object] | None] = queue.Queue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self.is_over = False
        """True if no further jobs are run."""
        self.error: Exception | None = None
        """The exception of the last job, or None."""

    def do(self, job: Callable[[T], object]) -> None:
        """Queue a job, unless the thread is stopped."""
        if not self.is_over:
            self._jobs.put(job)
            self.start()

    def start(self) -> None:
        """Start the thread, unless it runs or is stopped."""
        with self._lock:
            owner = self._of()
            if self._thread is None and owner is not None and not self.is_over:
                weakref.finalize(owner, self._jobs.put, None)
                self._thread = threading.Thread(target=self._run, daemon=True, name="reactive")
                self._thread.start()

    def settle(self) -> None:
        """Wait for all jobs queued so far."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._jobs.join()

    def stop(self) -> None:
        """Run no further jobs; wait for the running one."""
        with self._lock:
            self.is_over = True
            thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            if thread is not threading.current_thread():
                thread.join()

    def _run(self) -> None:
        """Run jobs until `None` is queued; each interval without a job, run the regular one."""
        while True:
            try:
                job = self._jobs.get(timeout=self._interval)
            except queue.Empty:
                self._do(self._regularly)
                continue
            if job is not None and not self.is_over:
                self._do(job)
            self._jobs.task_done()
            if job is None:
                return

    def _do(self, job: Callable[[T], object]) -> None:
        """Run a job with the owner, if it still exists; an error is logged and kept in `error`."""
        owner = self._of()
        try:
            if owner is not None:
                job(owner)
                self.error = None
        except OffloadError as error:  # the message says what to do; the traceback adds nothing
            self.error = error
            log.error("offloading: %s", error)
        except Exception as error:
            self.error = error
            log.exception("offloading: what was to be done in the background raised")


UNITS = {
    **dict.fromkeys(("ms", "millisecond"), 0.001),
    **dict.fromkeys(("s", "sec", "second"), 1.0),
    **dict.fromkeys(("min", "minute"), 60.0),
    **dict.fromkeys(("h", "hour"), 3600.0),
    **dict.fromkeys(("d", "day"), 86400.0),
}
"""Seconds of each unit; in text a unit may end with an s."""


def seconds(trigger: Any, *, otherwise: str, may_be_zero: bool = False) -> float:
    """Return an interval in seconds.

    Parameters
    ----------
    otherwise: the other possible arguments, for the error.
    may_be_zero: True if 0 is allowed, which means "as soon as possible".

    Raises
    ------
    PlanError: it is not an interval.

    >>> [seconds(given, otherwise="") for given in ("10s", "500 ms", "2 hours", 0.5)]
    [10.0, 0.5, 7200.0, 0.5]
    """
    found = _seconds_of_text(trigger) if isinstance(trigger, str) else _of_number(trigger)
    if found is None or not (0 < found < math.inf or (may_be_zero and found == 0)):
        raise PlanError(
            f"trigger={trigger!r} is no interval\n"
            f'  give seconds, or a number with one of {", ".join(UNITS)}, such as "10s" or '
            f'"5 minutes"; {otherwise}'
        )
    return found


def _seconds_of_text(text: str) -> float | None:
    """Return the seconds of a text such as "500 ms"; None if it is no number with a unit."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]+)", text.strip().lower(), re.ASCII)
    if match is None:
        return None
    unit = UNITS.get(match[2], UNITS.get(match[2].removesuffix("s")))
    return None if unit is None else float(match[1]) * unit


def _of_number(given: Any) -> float | None:
    """Return a number as a float; None for a truth value, or any other object."""
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    return float(given) if is_number else None
