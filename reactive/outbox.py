"""What is to be told to subscribers, in the order of the commits."""

from __future__ import annotations

import threading
import weakref
from asyncio import CancelledError
from collections import deque
from collections.abc import Sequence
from typing import Any

from reactive.delta import Delta

NOBODY: Sequence[weakref.ref[Any]] = ()
Delivery = tuple[Sequence["weakref.ref[Any]"], Delta[Any]]


class Outbox(deque[Delivery]):
    """Deltas, each with those who subscribed when its commit was made."""

    def __init__(self) -> None:
        super().__init__()
        self._delivering = threading.Lock()

    def deliver(self) -> None:
        """Tell subscribers; one thread at a time does it for all."""
        while self and self._delivering.acquire(False):
            done, subscribers, delta = 0, NOBODY, None
            try:
                while self:
                    subscribers, delta = self.popleft()
                    done = 0
                    for reference in subscribers:
                        done += 1
                        subscription = reference()
                        if subscription is None or subscription.closed:
                            continue
                        try:
                            subscription._callback(delta)
                        except (Exception, CancelledError) as error:
                            subscription._failed(error)
            except BaseException:  # an interrupt: the others are still to hear of this
                if delta is not None:
                    self.appendleft((subscribers[done:], delta))
                raise
            finally:
                self._delivering.release()
