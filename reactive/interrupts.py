"""Ctrl-C comes later while something is put back: what is put back by half is worse than either."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def surely(put_back: Callable[[], None]) -> None:
    """Do it, once; have what Ctrl-C does, whatever that is, happen after it.

    Also if that comes while it is about to be put off. Only in the main thread, where it would
    come: what is raised in a thread by other means comes at once.
    """
    has_begun, early = False, None
    while not has_begun:
        try:
            with _put_off():
                has_begun = True
                put_back()
        except BaseException as error:
            if has_begun:
                raise
            early = error
    if early is not None:
        raise early


@contextmanager
def _put_off() -> Iterator[None]:
    handler = _handler()
    if handler is None:
        yield
        return
    came: list[Any] = []
    try:
        signal.signal(signal.SIGINT, lambda *given: came.append(given))
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
