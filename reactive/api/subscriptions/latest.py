"""Readers of `changes(latest=True)`: the readers of one relation share their waiting changes.

    commit --> one subscription --> stretches, each from the version of some readers to the next
                                     |  v3: a, b   +to -be  |  v7: c   +or  |  now
    a reader reads    -->    its stretch and all later ones as one delta, made once for all readers
                             at that version; then the reader is at the end

A commit costs the same whether one reader is idle or a thousand are.

State:  a merged stretch per version that a reader has read last: a weight per changed row.
Cost:   O(|d|) per commit, and O(1) per reader that waits for it; O(state after it) per reading.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from typing_extensions import TypeVar

from reactive.api.subscriptions.observe import Changes, Subscription
from reactive.engine.dataflow.delta import Delta
from reactive.engine.dataflow.merge_deltas import DeltaAccumulator

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine

T = TypeVar("T", default=Any)
Subscribe = Callable[[Callable[[Delta[Any]], object], bool], Subscription[Any]]
"""(callback, whether to begin with a snapshot) -> subscription."""


class _Stretch:
    """The change from the version that some readers have read to that of the next readers."""

    __slots__ = ("is_read", "readers", "result", "since")

    def __init__(self) -> None:
        self.since: Delta[Any] | DeltaAccumulator | None = None
        self.readers = 0
        self.result: tuple[int, Delta[Any] | None] = (-1, None)
        """Version and result of the last reading from here."""

    def add(self, delta: Delta[Any]) -> None:
        """Merge a delta into the stretch; `since` is None when nothing is left of it."""
        if self.since is None:
            self.since = delta
            return
        if not isinstance(self.since, DeltaAccumulator):
            self.since = DeltaAccumulator(self.since)
        self.since.add(delta)
        if self.since.is_nothing:
            self.since = None

    def delta(self) -> Delta[Any] | None:
        return self.since.delta() if isinstance(self.since, DeltaAccumulator) else self.since


class LatestFeed:
    """The changes of a relation for all readers of the latest ones."""

    def __init__(self, subscribe: Subscribe) -> None:
        self.lock = threading.RLock()
        self._stretches: list[_Stretch] = []
        self._starting: list[Latest[Any]] = []
        """Readers that may or may not get the next delta: that is not known yet."""
        self._left: deque[_Stretch] = deque()
        """Stretches of collected readers."""
        self._version = -1
        self.readers: weakref.WeakSet[Latest[Any]] = weakref.WeakSet()
        """Open readers."""
        self.waiting: set[Latest[Any]] = set()
        """Readers to be woken."""
        self.subscription = subscribe(self._put, False)
        self.subscription._on_close = self.rouse
        self.subscription._feed = self

    def _put(self, delta: Delta[Any]) -> None:
        """Add a delta to the last stretch, and wake readers; a delta put before is skipped."""
        with self.lock:
            if delta.version <= self._version:  # put again after an interrupt
                return
            self._look_after()
            for reader in [each for each in self._starting if each.start < delta.version]:
                self._starting.remove(reader)
                reader.stretch = self._end()
            if self._stretches:
                self._stretches[-1].add(delta)
            self._version = delta.version
        self.rouse()

    _put.is_repeatable = True  # type: ignore[attr-defined]

    def rouse(self) -> None:
        """Wake all waiting readers."""
        with self.lock:
            waiting, self.waiting = self.waiting, set()
        for reader in waiting:
            reader._rouse()

    def begin(self, reader: Latest[Any]) -> None:
        """Register a reader for the commits after its start."""
        with self.lock:
            self._starting.append(reader)

    def read(self, reader: Latest[Any]) -> Delta[Any] | None:
        """Return all changes that a reader has not read, and move the reader to the end.

        Return None if there are none, or if the changes cancel out.
        """
        with self.lock:
            self._look_after()
            stretch = reader.stretch
            if stretch is None:
                return None
            if stretch.result[0] != self._version:
                stretch.result = (self._version, self._since(stretch))
            found = stretch.result[1]
            reader.stretch = self._end()
            self._leave(stretch)
            return found

    def leave(self, reader: Latest[Any]) -> None:
        """Release a reader's stretch. The garbage collector may also call it, at any time."""
        stretch = reader.stretch
        reader.stretch = None
        if stretch is not None:
            self._left.append(stretch)

    def has_news(self, reader: Latest[Any]) -> bool:
        """Return True if there are commits that a reader has not read.

        Their changes may cancel out; `read` then returns None.
        """
        stretch = reader.stretch
        if stretch is None:
            return False
        return any(each.since is not None for each in self._stretches[self._place(stretch) :])

    def _place(self, stretch: _Stretch) -> int:
        return next(n for n, each in enumerate(self._stretches) if each is stretch)

    def _end(self) -> _Stretch:
        """Return the stretch that begins now, with one more reader."""
        if not self._stretches or self._stretches[-1].since is not None:
            self._stretches.append(_Stretch())
        self._stretches[-1].readers += 1
        return self._stretches[-1]

    def _since(self, stretch: _Stretch) -> Delta[Any] | None:
        """Return the change from a stretch on, as one delta; None if the changes cancel out."""
        whole = _Stretch()
        for each in self._stretches[self._place(stretch) :]:
            delta = each.delta()
            if delta is not None:
                whole.add(delta)
        return whole.delta()

    def _leave(self, stretch: _Stretch) -> None:
        """Remove a reader from a stretch; a stretch without readers joins the one before it."""
        stretch.readers -= 1
        if stretch.readers:
            return
        place = self._place(stretch)
        del self._stretches[place]
        delta = stretch.delta()
        if place and delta is not None:
            self._stretches[place - 1].add(delta)

    def _look_after(self) -> None:
        """Remove readers that have ended, and leave their stretches."""
        self._starting = [each for each in self._starting if each in self.readers]
        while self._left:
            self._leave(self._left.popleft())


class Latest(Changes[T]):
    """The changes of a relation since the last read, as one delta each time."""

    def __init__(
        self, feed: LatestFeed, engine: Engine, subscribe: Subscribe, *, snapshot: bool
    ) -> None:
        self.stretch: _Stretch | None = None
        self.start = -1
        self._feed = feed
        self._lock = threading.Lock()
        self._wakes = []
        self._first: Delta[T] | None = None
        """The rows at the start, or the unread changes at the close."""
        self._beginning: Subscription[Any] | None = None
        self._subscription = feed.subscription
        feed.readers.add(self)
        if snapshot:
            self._beginning = subscribe(self._begin, True)
            if self.start >= 0:
                self._end_beginning()
            return
        with feed.lock, engine.inside():  # in the order of delivery
            self.start = engine.version
            feed.begin(self)

    def _begin(self, snapshot: Delta[T]) -> None:
        """Start with the snapshot, unless the reader has started already."""
        if self.start < 0:
            self.start, self._first = snapshot.version, snapshot
            self._feed.begin(self)
            self._end_beginning()
            self._rouse()

    def _end_beginning(self) -> None:
        """Close the subscription that delivered the snapshot."""
        if self._beginning is not None:
            self._beginning.close()
            self._beginning = None

    def waits(self) -> int:
        """Return the number of waiting deltas: 0 or 1."""
        with self._feed.lock:
            return int(self._first is not None or self._feed.has_news(self))

    def __repr__(self) -> str:
        return f"Changes({self._subscription._channel}, {self.waits()} waiting)"

    def __del__(self) -> None:
        feed = getattr(self, "_feed", None)
        if feed is not None:
            feed.leave(self)

    def close(self) -> None:
        """End the iteration, after the waiting changes."""
        self._first = self._next()
        self._end_beginning()
        self._feed.readers.discard(self)
        self._feed.leave(self)
        self._rouse()
        if not self._feed.readers:
            self._feed.subscription.close()

    def _is_over(self) -> bool:
        return self not in self._feed.readers or self._subscription.closed

    def _wait(self) -> bool:
        """Return True if the reader must wait to be woken; False if changes wait for it."""
        with self._feed.lock:
            if self.waits():
                return False
            self._feed.waiting.add(self)
            return True

    def _next(self) -> Delta[T] | None:
        """Take the waiting changes, and return them as one delta, with the first snapshot in it.

        Return None if there are none.
        """
        with self._feed.lock:
            first, self._first = self._first, None
            more = self._feed.read(self)
            if first is None or more is None:
                return more if first is None else first
            both = DeltaAccumulator(first)
            both.add(more)
            return both.delta()


def latest(engine: Engine, key: object, subscribe: Subscribe, *, snapshot: bool) -> Latest[Any]:
    """Return a reader of a relation, which shares the feed with all its other readers.

    key: equal for relations with the same changes.
    """
    with engine.inside():
        feed = engine.latest.get(key)
        if feed is None or feed.subscription.closed:
            feed = engine.latest[key] = LatestFeed(subscribe)
    return Latest(feed, engine, subscribe, snapshot=snapshot)
