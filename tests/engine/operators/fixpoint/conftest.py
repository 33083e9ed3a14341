"""An endless recursion fails its test, instead of blocking all others."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from types import FrameType

import pytest

from tests.budget import TIMES

MINUTES = 5 * max(TIMES, 1)


class EndlessError(BaseException):
    """No `Exception`, so that Hypothesis does not go on with other examples."""


@pytest.fixture(autouse=True)
def ends() -> Iterator[None]:
    """Stop a test that does not end, if the system has alarms."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise EndlessError(f"not at an end after {MINUTES} minutes")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60 * MINUTES)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
