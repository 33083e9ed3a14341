"""Ctrl-C comes later while something is put back: what is put back by half is worse than either."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def put_off() -> Iterator[None]:
    """Have what Ctrl-C does, whatever that is, happen at the end.

    Only in the main thread, where it would come. What is raised in a thread by other means comes at
    once.
    """
    handler = _handler()
    if handler is None:
        yield
        return
    came: list[Any] = []
    signal.signal(signal.SIGINT, lambda *given: came.append(given))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            handler(*came[0])


def _handler() -> Any:
    """What Ctrl-C does here; None if it cannot be told, or be kept from it."""
    if threading.current_thread() is not threading.main_thread():
        return None
    handler = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, handler)
    except (TypeError, ValueError):  # not set by Python; not in the main interpreter
        return None
    return handler if callable(handler) else None
