"""Deltas on their way to subscribers, in the order of the commits.

A subscriber may write: that is a commit, of which it is told when it has returned. One that writes
what it listens to has no end by itself. So the commits are counted of which each was made by a
subscriber that heard of the one before; a subscription that has made `MOST_ROUNDS` is ended.

State:  deltas that wait; of commits that subscribers made, how many came before, one of another.
Cost:   of counting, a look-up for each delta while subscribers write, else none.
"""

from __future__ import annotations

import sys
import weakref
from collections import deque
from collections.abc import Sequence
from threading import get_ident
from typing import Any

from reactive.dataflow.delta import Delta
from reactive.runtime.interrupts import is_asynchronous

Subscribers = Sequence["weakref.ref[Any]"]
NOBODY: Subscribers = ()
Delivery = tuple[Subscribers, Delta[Any]]
MOST_ROUNDS = 100_000
"""Commits, one made by a subscriber that heard of the other, after which it is to hear no more."""


class DeliveryQueue(deque[Delivery]):
    """Deltas, each with those who subscribed when its commit was made."""

    __slots__ = ("_by", "_has_written", "_round", "_rounds", "_turn")

    def __init__(self) -> None:
        super().__init__()
        self._turn = [None]  # who takes what is in it delivers; faster than to try a lock
        self._by = 0  # the thread that delivers, or that did last
        self._has_written = False  # whether a subscriber has, that was told of the same
        self._round = 0  # commits of subscribers that led to the one that is told of
        self._rounds: dict[int, int] = {}  # the same, by the version of commits that are to be told

    def deliver(self, version: int = -1) -> None:
        """Tell subscribers; one thread at a time does it for all.

        version: the commit that has just been made, if it may be that of a subscriber.
        """
        while self:
            try:
                self._turn.pop()
            except IndexError:  # somebody is at it, and will see what has come
                if version >= 0 and self._by == get_ident():
                    self._note_written(version)
                return
            except BaseException:  # an interrupt, which comes after the call
                self._turn.append(None)
                raise
            done, subscribers, delta, callback = 0, NOBODY, None, None
            try:
                self._by = get_ident()
                while self:
                    subscribers, delta = self[0]
                    done, callback = 0, None
                    if self._rounds or self._round:
                        self._begin_round(delta.version)
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
                        if self._round >= MOST_ROUNDS and self._has_written:
                            self._has_written = False
                            subscription._end_endless(self._round)
                    delta = None
                    self.popleft()
            except BaseException:  # an interrupt: the others are still to hear of this
                if delta is not None:
                    done -= getattr(callback, "is_repeatable", False)
                    self[0] = (subscribers[done:], delta)
                raise
            finally:
                self._turn.append(None)

    def _note_written(self, version: int) -> None:
        """A subscriber has made a commit, of which others are to be told."""
        if self[-1][1].version == version:
            self._rounds[version], self._has_written = self._round + 1, True

    def _begin_round(self, version: int) -> None:
        """Tell of a commit, which may be that of a subscriber."""
        self._round, self._has_written = self._rounds.get(version, 0), False
        for told in [each for each in self._rounds if each < version]:
            del self._rounds[told]


def _cancelled() -> type[BaseException]:
    """What a cancelled task raises; who has not imported asyncio has none."""
    exceptions = sys.modules.get("asyncio.exceptions")
    return Exception if exceptions is None else exceptions.CancelledError
