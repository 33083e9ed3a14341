"""Deltas on their way to subscribers, in the order of the commits.

    commit --> queue --> one thread at a time has the turn, and tells subscribers
                          --> up to its own commit; then who waits next has the turn

A writer waits until subscribers were told of its commit: another thread may be telling them. What a
thread tells for others is bounded, since each of the others has one commit in the queue. Nobody
waits who could be waited for: a thread inside of a callback, or one that runs an event loop. What
such a thread leaves is told by whoever has the turn next, by the loop, or by a thread of the queue.

A subscriber may write: that is a commit, of which it is told when it has returned. One that writes
what it listens to has no end by itself. So the commits are counted of which each was made by a
subscriber that heard of the one before; a subscription that has made `MOST_ROUNDS` is ended.

State:  deltas that wait, and who waits for them; of commits that subscribers made, how many came
        before, one of another.
Cost:   of counting, a look-up for each delta while subscribers write, else none.

Writers that wait for subscribers to be told of their commit, and how long they do.

A callback that takes long is told of in the log; of one that takes too long, writers wait no more.

State:  the call that writers wait for, and since when.
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
    checked_delivery,
    merged,
)
from reactive.engine.runtime.interrupts import is_asynchronous
from reactive.engine.runtime.lock import running_loop
from reactive.engine.runtime.timer import Timer

SLOW = 5.0
"""Seconds of one callback after which a writer that waits for it says so in the log."""
STUCK = 60.0
"""Seconds more after which the writer waits no longer."""
log = logging.getLogger("reactive")


def patience(until: float | None) -> float:
    """Return the seconds to wait before looking what it is that takes so long."""
    return SLOW if until is None else max(min(SLOW, until - time.monotonic()), 0.0)


class Writer:
    """A writer that waits for subscribers to be told of a commit."""

    __slots__ = ("has_turn", "is_woken", "takes_turn", "version", "wake")

    def __init__(
        self, version: int, wake: Callable[[], object], *, takes_turn: bool = False
    ) -> None:
        self.version = version
        self.wake = wake
        self.takes_turn = takes_turn
        """True if it may be given the turn; others try to take it when they are woken."""
        self.has_turn = False
        self.is_woken = False


class SlowCallback:
    """The call that writers wait for."""

    __slots__ = ("_call", "_is_told", "_since")

    def __init__(self) -> None:
        self._call: tuple[Any, Any] = (None, None)
        self._since = 0.0
        self._is_told = False

    def is_late(self, call: tuple[Any, Any], until: float | None) -> bool:
        """Return whether to wait no longer; say in the log what takes so long.

        call: the subscription whose callback runs, if one does, and the delta it is told of.
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
"""Commits, one made by a subscriber that heard of the other, after which it is to hear no more."""


class _Here(threading.local):
    telling = 0
    """Number of queues that this thread is telling subscribers of."""


_here = _Here()


class DeliveryQueue(deque[Delivery]):
    """Deltas, each with those who subscribed when its commit was made."""

    __slots__ = (
        *("_by", "_calls", "_has_written", "_is_left", "_lock", "_own", "_popping", "_round"),
        *("_rounds", "_timer", "_turn", "_slow", "_writers", "alone", "counts"),
        *("in_background", "limits", "timeout"),
    )

    def __init__(self) -> None:
        super().__init__()
        self._turn = [None]  # who takes what is in it delivers; faster than to try a lock
        self._by = 0  # the thread that delivers, 0 if none does
        self._own = -1  # the newest commit of a subscriber that this thread tells
        self._has_written = False  # whether a subscriber has, that was told of the same
        self._round = 0  # commits of subscribers that led to the one that is told of
        self._rounds: dict[int, int] = {}  # the same, by the version of commits that are to be told
        self._lock = threading.Lock()  # for the list of writers
        self._writers: list[Writer] = []  # by their versions
        self._popping = threading.Lock()  # held while the oldest is taken out, or others are merged
        self._calls: Any = None  # the subscription whose callback runs
        self._slow = SlowCallback()
        self._timer = Timer()
        self._is_left = False  # whether the timer has been asked, and has not begun
        self.in_background = False
        """True if writers do not wait, and a thread of the queue tells subscribers."""
        self.timeout: float | None = None
        """Seconds that a writer waits at most."""
        self.limits = QueueLimits()
        self.alone: Callable[[], AbstractContextManager[None]] = nullcontext
        """Keeps commits out while deltas are merged."""
        self.counts = Counts()

    def set_up(self, deliver: str, timeout: float | None, limits: QueueLimits) -> None:
        """Say who tells subscribers, how long that is waited for, and how much may wait."""
        checked_delivery(deliver, timeout)
        self.in_background, self.timeout, self.limits = deliver == "background", timeout, limits

    def has_untold(self, version: int) -> bool:
        """Return whether subscribers are still to be told of commits up to a version."""
        try:
            return self[0][1].version <= version
        except IndexError:
            return False

    def deliver(self, version: int) -> None:
        """Tell subscribers of all commits up to a version, or wait until others have done so.

        version: of the commit that has just been made, or that of the database.
        """
        if self.in_background:
            self.deliver_in_background(version)
            return
        self.deliver_here(version, self.timeout)

    def deliver_in_background(self, version: int) -> None:
        """Have a thread of the queue tell subscribers; wait only if too much waits."""
        if self._by == get_ident():
            self._note_written(version)
            return
        self._leave_to_timer()
        self._look_at_limits()

    def deliver_here(self, version: int, timeout: float | None) -> None:
        """Do as `deliver`; wait `timeout` seconds at most.

        An interrupt comes after a call, or at the beginning of one: what is between calls is whole.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while self.has_untold(version):
            try:
                self._turn.pop()
            except IndexError:  # somebody is at it
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
            except BaseException:  # an interrupt, which comes after the call
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
                        done += 1  # from here on nothing is called before the callback
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
                            if not isinstance(error, Exception | _cancelled()):
                                raise
                            if isinstance(error, Exception) and is_asynchronous(error):
                                raise  # a time limit is the writer's
                            subscription._failed(error)
                        if self._round >= MOST_ROUNDS and self._has_written:
                            self._has_written = False
                            subscription._end_endless(self._round)
                    delta = None
                    with self._popping:
                        self.popleft()
            except BaseException:  # an interrupt: the others are still to hear of this
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
            elif self._writers:  # by now
                self._pass_on()

    # Telling.

    def _note_written(self, version: int) -> None:
        """A subscriber has made a commit, of which others are to be told."""
        self._own = max(self._own, version)
        if self[-1][1].version == version:
            self._rounds[version], self._has_written = self._round + 1, True

    def _begin_round(self, version: int) -> None:
        """Tell of a commit, which may be that of a subscriber."""
        self._round, self._has_written = self._rounds.get(version, 0), False
        for told in [each for each in self._rounds if each < version]:
            del self._rounds[told]

    # Waiting.

    def _may_wait(self, version: int) -> bool:
        """Return whether this thread can wait; have others tell of the commit if not."""
        loop = running_loop()
        if loop is None and not _here.telling:
            return True
        self._leave(version, loop)
        return False

    def _wait(self, writer: Writer, ready: threading.Lock, until: float | None) -> bool:
        """Wait for the turn, or until subscribers were told; return False if that is too long."""
        self._add(writer)
        while not ready.acquire(timeout=patience(until)):
            if self._is_late(until):
                self._withdraw(writer)
                return False
            if not self.has_untold(writer.version) or writer.has_turn:
                break
            if writer.is_woken or self._turn:  # an interrupt has kept it from being woken
                self._take_back(writer)
                break
        return True

    def _leave(self, version: int, loop: Any = None) -> None:
        """Have the loop, or the thread of the queue, tell what nobody waits for, in its turn."""

        wake = self._leave_to_timer
        if loop is not None:
            wake = partial(loop.call_soon_threadsafe, self.deliver_here, version, None)
        self._add(Writer(version, wake))

    async def until_told(self, version: int, timeout: float | None) -> None:
        """Wait as `deliver_here` does, without stopping the event loop.

        If the task is cancelled, the commit stands, and its subscribers are told later.
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
        """Have a thread of the queue tell what is there, if it has not been asked to already."""
        if not self._is_left:
            self._is_left = True
            self._timer.call(time.monotonic(), self._tell_the_rest)

    def _tell_the_rest(self) -> None:
        """Tell all that is there, in a thread of the queue."""
        self._is_left = False  # what comes from here on asks again
        while (first := self._first()) is not None:
            self.deliver_here(first.version, None)

    def _add(self, writer: Writer) -> None:
        with self._lock:
            place = len(self._writers)
            while place and self._writers[place - 1].version > writer.version:
                place -= 1
            self._writers.insert(place, writer)
        if self._turn:  # who had it may have gone before the writer was there
            self._pass_on()

    def _next_writer(self) -> Writer | None:
        """Wake who waits for what has been told; return who is to be given the turn.

        Who looks for the turn by itself is woken.
        """
        with self._lock:
            first = self._first()
            last = sys.maxsize if first is None else first.version
            told = sum(each.version < last for each in self._writers)
            woken = self._writers[: told + 1]  # they stand by their versions
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
        """Have who waits next take the turn, which is free."""
        heir = self._next_writer()
        if heir is not None:
            heir.wake()

    def _withdraw(self, writer: Writer) -> None:
        """Have a writer wait no longer; what it waited for is told by a thread of the queue."""
        self._take_back(writer)
        if writer.has_turn:
            writer.has_turn = False
            self._turn.append(None)
        if writer.is_woken and self._writers and self._turn:
            self._pass_on()
        if self.has_untold(writer.version):
            self._leave(writer.version)

    def _take_back(self, writer: Writer) -> None:
        with self._lock:
            if not writer.is_woken and writer in self._writers:
                self._writers.remove(writer)

    # How long.

    def _is_late(self, until: float | None) -> bool:
        """Return whether to wait no longer; say what takes so long."""
        is_late = self._slow.is_late((self._calls, self._first()), until)
        self.counts.late += is_late
        return is_late

    def _first(self) -> Delta[Any] | None:
        try:
            return self[0][1]
        except IndexError:
            return None

    # How much.

    def _look_at_limits(self) -> None:
        """Wait, merge or close, if more deltas wait than may."""
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
        """Merge the deltas that wait for the same subscribers, but the oldest, which may be told of
        just now."""
        with self.alone(), self._popping:
            waiting = list(self)[1:]
            several = merged(waiting)
            for _ in waiting:
                self.pop()
            self.extend(several)
            self.counts.merged += len(waiting) - len(self) + 1
            self.limits.note_merged(len(self))


def _cancelled() -> type[BaseException]:
    """What a cancelled task raises; who has not imported asyncio has none."""
    exceptions = sys.modules.get("asyncio.exceptions")
    return Exception if exceptions is None else exceptions.CancelledError
