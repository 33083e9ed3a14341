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
