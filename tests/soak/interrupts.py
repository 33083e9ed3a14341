"""Exceptions from outside: Ctrl-C once, Ctrl-C twice, and a time limit."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.moments import Moments, interrupt


class OutOfTime(Exception):
    """Exception of a signal handler, like the time limits of job queues."""


def expire(number: int, frame: Any) -> None:
    raise OutOfTime


def out_of_time() -> None:
    """Raise as a job queue does in the thread of a job that takes too long."""
    raise OutOfTime


THROWN = (interrupt, out_of_time)
"""Functions that raise in a thread."""
ACTS: tuple[Callable[[], object], ...] = (
    interrupt,
    lambda: signal.raise_signal(signal.SIGINT),
    lambda: signal.raise_signal(signal.SIGUSR1),
)


@contextmanager
def interrupted(moment: int | None) -> Iterator[None]:
    """Interrupt at a moment, if the block has enough moments; the moment selects the exception."""
    if moment is None:
        yield
        return
    before = signal.signal(signal.SIGUSR1, expire)
    try:
        with Moments(moment, ACTS[moment % len(ACTS)]):
            yield
    finally:
        signal.signal(signal.SIGUSR1, before)


@contextmanager
def thrown_into(moment: int | None) -> Iterator[None]:
    """Interrupt a thread, which handles no signals."""
    if moment is None:
        yield
        return
    with Moments(moment, THROWN[moment % len(THROWN)]):
        yield
