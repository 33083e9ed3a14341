"""Deliver deltas to subscribers, in the order of the commits.

    commit --> queue --> the thread that holds the turn notifies subscribers, up to its own commit
                          --> then the next waiting writer gets the turn

A writer waits until its commit is delivered, possibly by another thread. A thread delivers few
commits of others, since each waiting writer has one in the queue. A thread inside a callback, or
one that runs an event loop, never waits, because others may wait for it. Its commit is delivered by
the next holder of the turn, by the event loop, or by a thread of the queue.

A subscriber may write. That commit is delivered to the subscriber after its callback returns. A
subscriber that writes the relation it listens to may never end, so the queue counts the commits
that subscribers made in reaction to each other: after `MOST_ROUNDS` the subscription is ended.

If a callback runs long, waiting writers log it; if it runs too long, they stop waiting.

State:  the deltas not delivered yet; the waiting writers; per commit of a subscriber, the number of
        commits that led to it; the callback that writers wait for, and since when.
Cost:   O(1) per delta; one look-up more while subscribers write.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from threading import get_ident
from typing import Any

from reactive.engine.dataflow.delta import Delta
from reactive.engine.dataflow.discrimination import (
    Counts,
    Delivery,
    QueueLimits,
    Subscribers,
    check_delivery,
    merge_deliveries,
)
from reactive.engine.runtime.interrupts import is_asynchronous
from reactive.engine.runtime.lock import running_loop
from reactive.engine.runtime.timer import Timer

SLOW = 5.0
"""Seconds of one callback after which a waiting writer logs a warning."""
STUCK = 60.0
"""Seconds after that warning until the writer stops waiting."""
log = logging.getLogger("reactive")


def patience(until: float | None) -> float:
    """Return the seconds to wait until the next check of the running callback."""
    return SLOW if until is None else max(min(SLOW, until - time.monotonic()), 0.0)


class Writer:
    """A writer that waits until its commit is delivered."""

    __slots__ = ("has_turn", "is_woken", "takes_turn", "version", "wake")

    def __init__(
        self, version: int, wake: Callable[[], object], *, takes_turn: bool = False
    ) -> None:
        self.version = version
        self.wake = wake
        self.takes_turn = takes_turn
        """True if the writer may be handed the turn; others try to take the turn when woken."""
        self.has_turn = False
        self.is_woken = False


class SlowCallback:
    """The callback that writers wait for."""

    __slots__ = ("_call", "_is_told", "_since")

    def __init__(self) -> None:
        self._call: tuple[Any, Any] = (None, None)
        self._since = 0.0
        self._is_told = False

    def is_late(self, call: tuple[Any, Any], until: float | None) -> bool:
        """Return True if the writer shall stop waiting; log which callback runs long.

        `call` is the subscription whose callback runs, if any, and the delta that the callback
        received.
        """
        now, (subscription, delta) = time.monotonic(), call
        if subscription is None or subscription is not self._call[0] or delta is not self._call[1]:
            self._call, self._since, self._is_told = call, now, False
        elif now - self._since >= STUCK:
            log.error(_STUCK, subscription, STUCK)
            return True
        elif not self._is_told:
            self._is_told = True
            log.warning(_SLOW, subscription, SLOW)
        return until is not None and now >= until


_SLOW = (
    "a writer waits for the callback of %s, which has been running for %g s\n"
    "  if that waits for a lock which the writer holds, neither goes on: commit without the lock, "
    "or make Database(deliver='background'), or subscribe(on=executor)"
)
_STUCK = (
    "a writer goes on without the callback of %s, which has been running for %g s more\n"
    "  subscribers are told of its commit when the callback has returned"
)


NOBODY: Subscribers = ()
MOST_ROUNDS = 100_000
"""Commits in a row, each by a subscriber that heard of the one before, that end a subscription."""


class _Here(threading.local):
    telling = 0
    """Number of queues whose subscribers this thread is notifying."""


_here = _Here()


class DeliveryQueue(deque[Delivery]):
    """Deltas, each with the subscribers at the time of its commit."""

    __slots__ = (
        *("_by", "_calls", "_has_written", "_is_left", "_lock", "_own", "_popping", "_round"),
        *("_rounds", "_timer", "_turn", "_slow", "_writers", "alone", "counts"),
        *("in_background", "limits", "timeout"),
    )

    def __init__(self) -> None:
        super().__init__()
        self._turn = [None]  # who pops the item may deliver; faster than trying a lock
        self._by = 0  # the thread that delivers, or 0
        self._own = -1  # the newest commit made by a subscriber that this thread notifies
        self._has_written = False  # True if the notified subscriber has made a commit
        self._round = 0  # commits of subscribers that led to the commit being delivered
        self._rounds: dict[int, int] = {}  # `_round` of each undelivered commit, by version
        self._lock = threading.Lock()  # for the list of writers
        self._writers: list[Writer] = []  # by their versions
        self._popping = threading.Lock()  # held to remove the oldest delta or to merge others
        self._calls: Any = None  # the subscription whose callback runs
        self._slow = SlowCallback()
        self._timer = Timer()
        self._is_left = False  # True once the timer is scheduled, until it runs
        self.in_background = False
        """True if writers do not wait: a thread of the queue notifies subscribers."""
        self.timeout: float | None = None
        """Seconds that a writer waits at most; None for no limit."""
        self.limits = QueueLimits()
        self.alone: Callable[[], AbstractContextManager[None]] = nullcontext
        """Excludes commits while deltas are merged."""
        self.counts = Counts()

    def set_up(self, deliver: str, timeout: float | None, limits: QueueLimits) -> None:
        """Set the thread that delivers, the time that writers wait, and the size of the queue."""
        check_delivery(deliver, timeout)
        self.in_background, self.timeout, self.limits = deliver == "background", timeout, limits

    def has_untold(self, version: int) -> bool:
        """Return True if a commit up to `version` is not delivered yet."""
        try:
            return self[0][1].version <= version
        except IndexError:
            return False

    def deliver(self, version: int) -> None:
        """Deliver all commits up to `version`, or wait until another thread has.

        version: that of the commit just made, or of the database.
        """
        if self.in_background:
            self.deliver_in_background(version)
            return
        self.deliver_here(version, self.timeout)

    def deliver_in_background(self, version: int) -> None:
        """Let a thread of the queue deliver; wait only if too many deltas are queued."""
        if self._by == get_ident():
            self._note_written(version)
            return
        self._leave_to_timer()
        self._look_at_limits()

    def deliver_here(self, version: int, timeout: float | None) -> None:
        """Do as `deliver`, but wait `timeout` seconds at most.

        An interrupt is raised after a call or at its start, so code between two calls runs
        completely.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while self and self.has_untold(version):
            try:
                self._turn.pop()
            except IndexError:  # another thread delivers
                if self._by == get_ident():
                    self._note_written(version)
                    return
                if not self._may_wait(version):
                    self._look_at_limits()
                    return
                ready = threading.Lock()
                ready.acquire()
                writer = Writer(version, ready.release, takes_turn=True)
                try:
                    goes_on = self._wait(writer, ready, until)
                except BaseException:
                    self._withdraw(writer)
                    raise
                if not goes_on:
                    return
                if not writer.has_turn:
                    continue
            except BaseException:  # an interrupt, raised after the call
                self._turn.append(None)
                raise
            done, subscribers, delta, callback = 0, NOBODY, None, None
            heir: Writer | None = None
            before = _here.telling
            try:
                self._by, self._own, _here.telling = get_ident(), version, before + 1
                while self:
                    subscribers, delta = self[0]
                    if delta.version > version and (self._writers or delta.version > self._own):
                        delta = None
                        break
                    done, callback = 0, None
                    if self._rounds or self._round:
                        self._begin_round(delta.version)
                    for reference in subscribers:
                        subscription = reference()
                        done += 1  # from here to the callback nothing else is called
                        callback = None
                        if subscription is None or subscription.closed:
                            continue
                        try:
                            self._calls = subscription
                            callback = subscription._callback
                            result = callback(delta)
                            if result is not None:
                                subscription._heard(result)
                        except BaseException as error:
                            if not isinstance(error, Exception | _cancelled_error()):
                                raise
                            if isinstance(error, Exception) and is_asynchronous(error):
                                raise  # a time limit belongs to the writer
                            subscription._record_failure(error)
                        if self._round >= MOST_ROUNDS and self._has_written:
                            self._has_written = False
                            subscription._end_endless(self._round)
                    delta = None
                    with self._popping:
                        self.popleft()
            except BaseException:  # an interrupt: the others must still get this delta
                if delta is not None:
                    done -= getattr(callback, "is_repeatable", False)
                    self[0] = (subscribers[done:], delta)
                raise
            finally:
                self._by, self._calls, _here.telling = 0, None, before
                try:
                    if self._writers:
                        heir = self._next_writer()
                finally:
                    if heir is None:
                        self._turn.append(None)
                    else:
                        heir.has_turn = True
            if heir is not None:
                heir.wake()
            elif self._writers:  # a writer has arrived meanwhile
                self._pass_on()

    # Delivery.

    def _note_written(self, version: int) -> None:
        """Record the commit that a subscriber made while it was notified.

        Other subscribers must receive it. The rounds of such a chain of commits are
        counted.
        """
        self._own = max(self._own, version)
        if self[-1][1].version == version:
            self._rounds[version], self._has_written = self._round + 1, True

    def _begin_round(self, version: int) -> None:
        """Start to deliver a commit, possibly one made by a subscriber."""
        self._round, self._has_written = self._rounds.get(version, 0), False
        for told in [each for each in self._rounds if each < version]:
            del self._rounds[told]

    # Waiting.

    def _may_wait(self, version: int) -> bool:
        """Return True if this thread may wait; otherwise leave the delivery to another thread."""
        loop = running_loop()
        if loop is None and not _here.telling:
            return True
        self._leave(version, loop)
        return False

    def _wait(self, writer: Writer, ready: threading.Lock, until: float | None) -> bool:
        """Wait for the turn or for the delivery; return False if that takes too long."""
        self._add(writer)
        while not ready.acquire(timeout=patience(until)):
            if self._is_late(until):
                self._withdraw(writer)
                return False
            if not self.has_untold(writer.version) or writer.has_turn:
                break
            if writer.is_woken or self._turn:  # an interrupt prevented its wake-up
                self._take_back(writer)
                break
        return True

    def _leave(self, version: int, loop: Any = None) -> None:
        """Leave the delivery of `version` to the event loop or to the thread of the queue."""
        wake = self._leave_to_timer
        if loop is not None:
            wake = partial(loop.call_soon_threadsafe, self.deliver_here, version, None)
        self._add(Writer(version, wake))

    async def until_told(self, version: int, timeout: float | None) -> None:
        """Wait as `deliver_here` does, without blocking the event loop.

        If the task is cancelled, the commit stands, and its subscribers are notified later.
        """
        import asyncio

        if _here.telling:
            return
        loop = asyncio.get_running_loop()
        until = None if timeout is None else time.monotonic() + timeout
        while self.has_untold(version):
            ready = asyncio.Event()
            writer = Writer(version, partial(loop.call_soon_threadsafe, ready.set))
            self._add(writer)
            try:
                async with asyncio.timeout(patience(until)):
                    await ready.wait()
            except TimeoutError:
                if self._is_late(until):
                    self._withdraw(writer)
                    return
            except BaseException:
                self._withdraw(writer)
                raise
            else:
                self.deliver_here(version, timeout)
                continue
            self._take_back(writer)

    def _leave_to_timer(self) -> None:
        """Schedule a delivery of all deltas in a thread of the queue, unless one is scheduled."""
        if not self._is_left:
            self._is_left = True
            self._timer.call(time.monotonic(), self._tell_the_rest)

    def _tell_the_rest(self) -> None:
        """Deliver all queued deltas, in a thread of the queue."""
        self._is_left = False  # deltas queued after this line schedule another delivery
        while (first := self._first()) is not None:
            self.deliver_here(first.version, None)

    def _add(self, writer: Writer) -> None:
        """Add a writer in the order of versions, and pass the turn on if it is free."""
        with self._lock:
            place = len(self._writers)
            while place and self._writers[place - 1].version > writer.version:
                place -= 1
            self._writers.insert(place, writer)
        if self._turn:  # the previous holder may have released the turn before the writer was added
            self._pass_on()

    def _next_writer(self) -> Writer | None:
        """Wake the writers whose commits are delivered; return the writer that gets the turn.

        Return None if no writer takes the turn: writers that look for it themselves are
        only woken.
        """
        with self._lock:
            first = self._first()
            last = sys.maxsize if first is None else first.version
            told = sum(each.version < last for each in self._writers)
            woken = self._writers[: told + 1]  # sorted by version
            del self._writers[: told + 1]
            for writer in woken:
                writer.is_woken = True
        heir = woken.pop() if len(woken) > told and woken[-1].takes_turn else None
        for writer in woken:
            try:
                writer.wake()
            except RuntimeError:  # its event loop is closed
                self._leave_to_timer()
        return heir

    def _pass_on(self) -> None:
        """Give the free turn to the next writer."""
        heir = self._next_writer()
        if heir is not None:
            heir.wake()

    def _withdraw(self, writer: Writer) -> None:
        """Remove a writer that stops waiting; a thread of the queue delivers its commit."""
        self._take_back(writer)
        if writer.has_turn:
            writer.has_turn = False
            self._turn.append(None)
        if writer.is_woken and self._writers and self._turn:
            self._pass_on()
        if self.has_untold(writer.version):
            self._leave(writer.version)

    def _take_back(self, writer: Writer) -> None:
        """Remove a writer from the waiting ones, unless it is woken already."""
        with self._lock:
            if not writer.is_woken and writer in self._writers:
                self._writers.remove(writer)

    # Time limits.

    def _is_late(self, until: float | None) -> bool:
        """Return True if a writer shall stop waiting; log which callback runs long."""
        is_late = self._slow.is_late((self._calls, self._first()), until)
        self.counts.late += is_late
        return is_late

    def _first(self) -> Delta[Any] | None:
        """Return the delta of the oldest commit in the queue; None if it is empty."""
        try:
            return self[0][1]
        except IndexError:
            return None

    # Size limits.

    def _look_at_limits(self) -> None:
        """Wait, merge or close, if more deltas are queued than allowed."""
        limits = self.limits
        if not limits.are_exceeded(len(self), lambda: [delta for _, delta in list(self)]):
            return
        if limits.when_full == "close":
            slow = self._calls
            if slow is not None and not slow.closed:
                slow._end_slow(len(self))
                return
        elif limits.when_full == "block" and running_loop() is None:
            if not _here.telling:
                self.counts.blocked += 1
                with suppress(IndexError):
                    self.deliver_here(self[len(self) // 2][1].version, None)
            return
        self._merge()

    def _merge(self) -> None:
        """Merge queued deltas of equal subscribers, except the oldest, which may be in delivery."""
        with self.alone(), self._popping:
            waiting = list(self)[1:]
            several = merge_deliveries(waiting)
            for _ in waiting:
                self.pop()
            self.extend(several)
            self.counts.merged += len(waiting) - len(self) + 1
            self.limits.note_merged(len(self))


def _cancelled_error() -> type[BaseException]:
    """Return the exception class of cancelled tasks, or `Exception` if asyncio is not imported."""
    exceptions = sys.modules.get("asyncio.exceptions")
    return Exception if exceptions is None else exceptions.CancelledError
