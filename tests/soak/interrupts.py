"""Exceptions from outside: Ctrl-C once, Ctrl-C twice, and a time limit."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.moments import Moments, interrupt


class OutOfTime(Exception):
    """What the handler of a signal raises, as time limits of job queues do."""


def expire(number: int, frame: Any) -> None:
    raise OutOfTime


def out_of_time() -> None:
    """As a queue of jobs does in the thread of one that takes too long."""
    raise OutOfTime


THROWN = (interrupt, out_of_time)
"""What may be thrown into a thread."""
ACTS: tuple[Callable[[], object], ...] = (
    interrupt,
    lambda: signal.raise_signal(signal.SIGINT),
    lambda: signal.raise_signal(signal.SIGUSR1),
)


@contextmanager
def interrupted(moment: int | None) -> Iterator[None]:
    """One of these comes at a moment, where there are so many; which one, the moment says too."""
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
    """The same in a thread, in which no signal is handled."""
    if moment is None:
        yield
        return
    with Moments(moment, THROWN[moment % len(THROWN)]):
        yield
