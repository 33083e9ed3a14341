"""Deltas on their way to subscribers, in the order of the commits."""

from __future__ import annotations

import sys
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Any

from reactive.dataflow.delta import Delta
from reactive.runtime.interrupts import is_asynchronous

Subscribers = Sequence["weakref.ref[Any]"]
NOBODY: Subscribers = ()
Delivery = tuple[Subscribers, Delta[Any]]


class DeliveryQueue(deque[Delivery]):
    """Deltas, each with those who subscribed when its commit was made."""

    __slots__ = ("_turn",)

    def __init__(self) -> None:
        super().__init__()
        self._turn = [None]  # who takes what is in it delivers; faster than to try a lock

    def deliver(self) -> None:
        """Tell subscribers; one thread at a time does it for all."""
        while self:
            try:
                self._turn.pop()
            except IndexError:  # somebody is at it, and will see what has come
                return
            except BaseException:  # an interrupt, which comes after the call
                self._turn.append(None)
                raise
            done, subscribers, delta, callback = 0, NOBODY, None, None
            try:
                while self:
                    subscribers, delta = self[0]
                    done = 0
                    for reference in subscribers:
                        subscription = reference()
                        done += 1  # from here on nothing is called before the callback
                        callback = None
                        if subscription is None or subscription.closed:
                            continue
                        try:
                            callback = subscription._callback
                            result = callback(delta)
                            if result is not None:
                                subscription._heard(result)
                        except BaseException as error:
                            if not isinstance(error, Exception | _cancelled()):
                                raise
                            if isinstance(error, Exception) and is_asynchronous(error):
                                raise  # a time limit is the writer's
                            subscription._failed(error)
                    delta = None
                    self.popleft()
            except BaseException:  # an interrupt: the others are still to hear of this
                if delta is not None:
                    done -= getattr(callback, "is_repeatable", False)
                    self[0] = (subscribers[done:], delta)
                raise
            finally:
                self._turn.append(None)


def _cancelled() -> type[BaseException]:
    """What a cancelled task raises; who has not imported asyncio has none."""
    exceptions = sys.modules.get("asyncio.exceptions")
    return Exception if exceptions is None else exceptions.CancelledError
