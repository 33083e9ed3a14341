"""Operators over streams: the watermark of a stream, and the look-up of each event.

Watermark: the greatest time of the events so far, less the lateness.

    W  =  max(time(L)) - lateness        it only grows

An event is late if its time is before the watermark that the last commit left: so all events of one
commit are judged alike, in whatever order they come. Late events do not reach the stream; one that
became late while its transaction was open refuses the commit.

State:  one time.
Cost:   O(|dL|).
Source: watermarks of the Dataflow model, Akidau et al., PVLDB 8(12), 2015; LATENESS of Feldera.

Look-up: each event with the rows of its key, as of the commit in which it came.

    dL lookup R  =  dL join (R + dR)

A change of R changes no pair of an earlier commit, so no event is kept.

State:  R, by key.
Cost:   O(|dL| + |dR| + matches).
Source: [dbsp] the join of a stream with an integral.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Protocol

from reactive.engine.collections.index import NO_MATCH, Index, match_key
from reactive.engine.collections.instants import in_elapsed_time
from reactive.engine.collections.zset import Pair, Pairs, Row, canonical, is_nan
from reactive.errors import TableError

SHOWN_KEY = ()
"""The key of the one group that a watermark is."""


class DropsClosed(Protocol):
    """An operator that drops the state that is below a watermark."""

    def drop_closed(self) -> None: ...


class EventClock:
    """The watermark of a stream as of the last commit; None before the first event.

    >>> clock = EventClock(5)
    >>> clock.move_to(12)
    >>> clock.watermark, clock.is_late(6), clock.is_late(7)
    (7, True, False)
    """

    __slots__ = (
        *("_followers", "is_replayed", "lateness", "lookups", "mark", "name", "watermark"),
    )

    def __init__(self, lateness: Any, name: str = "the stream") -> None:
        self.name = name
        self.lateness = lateness
        self.watermark: Any = None
        self.mark: Any = None
        """The plan of the watermark as a relation of one row."""
        self.is_replayed = False
        """True from a read of the log of a durable stream to its next event. Nothing is dropped
        meanwhile, so that views made one after the other share their state."""
        self.lookups: Any = None
        """The log of look-ups of a durable stream (`durable/event_log.py`)."""
        self._followers: list[weakref.ref[DropsClosed]] = []

    def __reduce__(self) -> Any:
        return _restored_clock, (self.lateness, self.name, self.watermark)

    def _fingerprinted(self) -> dict[str, Any]:
        """Return the lateness: queries are equal whatever the events so far."""
        return {"lateness": self.lateness}

    def move_to(self, newest: Any) -> None:
        """Set the watermark by the greatest time so far."""
        self.set(newest - self.lateness)

    def set(self, mark: Any) -> None:
        """Set the watermark, and tell the operators that drop what is below it."""
        self.watermark = mark
        for reference in self._followers:
            operator = reference()
            if operator is not None:
                operator.drop_closed()

    def follow(self, operator: DropsClosed) -> None:
        """Tell an operator, as long as it is used, when the watermark has moved."""
        alive = [each for each in self._followers if each() is not None]
        self._followers = [*alive, weakref.ref(operator)]

    def is_late(self, time: Any) -> bool:
        """Return True if a time is before the watermark; a time that is None or NaN is not."""
        mark = self.watermark
        return mark is not None and time is not None and bool(time < mark)


def _restored_clock(lateness: Any, name: str, watermark: Any) -> EventClock:
    """Return a copy of a clock, which nobody follows."""
    clock = EventClock(lateness, name)
    clock.watermark = watermark
    return clock


class Watermark:
    """Move the watermark of a stream; the rows of the input are times.

    >>> clock = EventClock(5)
    >>> watermark = Watermark(clock, "clicks")
    >>> watermark.step([(10, 1), (12, 1)])
    [(((), 7), 1)]
    >>> watermark.commit()
    >>> watermark.step([(20, 1)]), clock.watermark
    ([(((), 7), -1), (((), 15), 1)], 7)
    """

    __slots__ = ("_clock", "_name", "_new", "touched")

    def __init__(self, clock: EventClock, name: str) -> None:
        self._clock = clock
        self._name = name
        self._new: Any = None
        self.touched = 0

    def step(self, delta: Pairs) -> list[Pair]:
        """Return the change of the watermark.

        Raises
        ------
        TableError: an event became late while its transaction was open.
        """
        self.touched += len(delta)
        clock, old, newest = self._clock, self._clock.watermark, None
        for row, weight in delta:
            time = in_elapsed_time(canonical(row))
            if weight <= 0 or time is None or is_nan(time):
                continue
            if clock.is_late(time):
                raise TableError(
                    f"an event of stream {self._name!r} became late before it was committed: "
                    f"{time!r:.60} is before the watermark, {old!r:.60}\n"
                    "  another commit has moved the watermark; add the event again"
                )
            if newest is None or newest < time:
                newest = time
        self._new = None if newest is None else newest - clock.lateness
        if self._new is None or (old is not None and not old < self._new):
            self._new = None
            return []
        moved: list[Pair] = [((SHOWN_KEY, self._new), 1)]
        return moved if old is None else [((SHOWN_KEY, old), -1), *moved]

    def undo(self) -> None:
        self._new = None

    def commit(self) -> None:
        if self._new is not None:
            new, self._new = self._new, None
            self._clock.set(new)

    def contents(self) -> Iterable[Pair]:
        mark = self._clock.watermark
        return [] if mark is None else [((SHOWN_KEY, mark), 1)]

    def footprint(self) -> tuple[int, int]:
        """Return one stored value, and its bytes."""
        return 1, sys.getsizeof(self._clock.watermark)


class NotedLookups(Protocol):
    """The log of one look-up."""

    def note(self, pairs: Sequence[Pair]) -> None:
        """Add the pairs of the commit that steps."""

    def pairs(self) -> Sequence[Pair]:
        """Return the pairs of all commits."""


class EventLookup:
    """Pair the events `(row, key)` with the rows `(row, key)` of the right.

    Parameters
    ----------
    pair: event, and a row or None -> row.
    is_left: events without a row are emitted, with None.
    log: keeps what is emitted, and has what was; None for a stream that is not durable.

    >>> lookup = EventLookup(lambda event, row: (event, row))
    >>> lookup.step([], [(("tea", 1), 1)])
    []
    >>> lookup.step([(("sale", 1), 1)], [(("tea", 1), -1), (("rum", 1), 1)])
    [(('sale', 'rum'), 1)]
    """

    forgets: ClassVar[bool] = True
    """Nobody holds what it has emitted."""
    __slots__ = ("_changes", "_is_filled", "_is_left", "_log", "_pair", "_rows", "touched")

    def __init__(
        self,
        pair: Callable[[Row, Any], Row],
        *,
        is_left: bool = False,
        log: NotedLookups | None = None,
    ) -> None:
        self._log = log
        self._is_filled = log is None
        """False until the first step, over all events, of which the log has the pairs."""
        self._pair = pair
        self._is_left = is_left
        self._rows = Index()
        self._changes: list[tuple[Any, Row, int]] = []
        self.touched = 0

    def step(self, left: Pairs, right: Pairs) -> list[Pair]:
        """Change the rows, then pair the new events with them."""
        for (row, key), weight in right:
            change = (match_key(canonical(key)), row, weight)
            self._rows.add(*change)
            self._changes.append(change)
        if not self._is_filled:
            self._is_filled = True
            return []
        pair, found = self._pair, list[Pair]()
        for (row, key), weight in left:
            others = self._find(match_key(canonical(key)))
            for other, times in others:
                found.append((pair(row, other), weight * times))
            if not others and self._is_left:
                found.append((pair(row, None), weight))
        self.touched += len(left) + len(right) + len(found)
        if found and self._log is not None:
            self._log.note(found)
        return found

    @property
    def has_dropped(self) -> bool:
        """True if nothing has the pairs of earlier events."""
        return self._log is None

    def _find(self, key: Any) -> Sequence[Pair]:
        """Return the rows of a key."""
        pairs = () if key is NO_MATCH else self._rows.pairs(key)
        return [pair for pair in pairs if pair[1] > 0]

    def undo(self) -> None:
        """Revert the last step."""
        for key, row, weight in reversed(self._changes):
            self._rows.add(key, row, -weight)
        self._changes = []

    def commit(self) -> None:
        self._changes = []

    def contents(self) -> Iterable[Pair]:
        """Return the pairs of the log; without one, no rows, as before the first event."""
        return () if self._log is None else self._log.pairs()

    def footprint(self) -> tuple[int, int]:
        """Return the number of stored rows, and the approximate bytes of the state."""
        return self._rows.rows, sys.getsizeof(self._rows.buckets)
