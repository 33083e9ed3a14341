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

State:  none, beside the index of R by key.
Cost:   O(|dL| + matches).
Source: [dbsp] the join of a stream with an integral.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, ClassVar, Protocol

from optimizer.expr import Attribute, Constant, Item, Lifted, Local, Parameter, substitute
from reactive.engine.codegen.functions import callable_of
from reactive.engine.codegen.loop_expressions import column
from reactive.engine.collections import whole_rows
from reactive.engine.collections.index import KeyedPair, itself, match_key
from reactive.engine.collections.instants import in_elapsed_time
from reactive.engine.collections.zset import Pair, Pairs, Row, UniformDelta, canonical, is_nan
from reactive.engine.operators.index_by import IndexBy
from reactive.engine.runtime.interrupts import reraise_asynchronous
from reactive.errors import TableError

NUMBERS = frozenset({int, float})
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
        *("_at_flush", "_followers", "is_replayed", "judged", "lateness", "lookups", "mark"),
        "name",
        "watermark",
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
        self.judged: tuple[Pairs, Any] | None = None
        """A delta without late events, which is to be committed next, and its greatest time."""
        self._followers: list[weakref.ref[DropsClosed]] = []
        self._at_flush: EventClock | None = None

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

    @property
    def at_flush(self) -> EventClock:
        """The clock of operators whose input comes with flushes: the watermark of the last one."""
        if self._at_flush is None:
            self._at_flush = EventClock(self.lateness, self.name)
        return self._at_flush

    def finish_flush(self, mark: Any) -> None:
        """Record that a flush has brought all changes up to a watermark."""
        if self._at_flush is not None and mark is not None:
            self._at_flush.set(mark)

    def is_late(self, time: Any) -> bool:
        """Return True if a time is before the watermark; a time that is None or NaN is not."""
        mark = self.watermark
        return mark is not None and time is not None and bool(time < mark)


def _restored_clock(lateness: Any, name: str, watermark: Any) -> EventClock:
    """Return a copy of a clock, which nobody follows."""
    clock = EventClock(lateness, name)
    clock.watermark = watermark
    return clock


class EventTimes:
    """Read the times of events, in the form in which they are compared.

    >>> from optimizer.expr import Item, Parameter, constant
    >>> times = EventTimes(Lifted(Item(Parameter(0), constant(1)), ("click",), (), 1))
    >>> times.read(("home", 3)), times.span([(("home", 3), 1), (("shop", 12), 1)])
    (3, (3, 12))
    """

    __slots__ = ("_field", "_read", "_read_all", "_time")

    def __init__(self, time: Lifted) -> None:
        self._time = time
        match time.body:
            case Attribute(Parameter(), field) | Item(Parameter(), Constant(field)):
                self._field = field
            case _:
                self._field = None
        self._read = callable_of(time)
        self._read_all: Callable[[Sequence[Row]], list[Any]] | None = None

    def __reduce__(self) -> Any:
        return EventTimes, (self._time,)

    def read(self, row: Row) -> Any:
        """Return the time of an event; None if it has none, or NaN."""
        time = self._read(row)
        kind = time.__class__
        if kind is int or (kind is datetime and time.tzinfo is None):
            return time
        time = in_elapsed_time(canonical(time))
        return None if is_nan(time) else time

    def span(self, delta: Pairs) -> tuple[Any, Any]:
        """Return the least and the greatest time of the inserted events; None if there is none."""
        rows = None if type(delta) is list else whole_rows.uniform_rows(delta, 1)
        if rows is None:
            rows = [row for row, weight in delta if weight > 0]
        if len(rows) == 1:
            time = self.read(rows[0])
            return time, time
        times = self._plain_times(rows, getattr(delta, "fields", None))
        if times is None:
            times = [time for time in map(self.read, rows) if time is not None]
        return (min(times), max(times)) if times else (None, None)

    def _plain_times(
        self, rows: Sequence[Row], fields: Mapping[Any, type] | None
    ) -> list[Any] | None:
        """Return the times if they are compared as they are; None if `read` must decide.

        `fields` are the classes of fields of plain rows, if they are known to be plain.
        """
        if self._read_all is None:
            self._read_all = column(substitute(self._time.body, (Local("row"),)), ("row",))
        try:
            times = self._read_all(rows)
        except Exception as error:
            reraise_asynchronous(error)
            return None
        if fields is not None and self._field in fields:
            return times
        kinds = set(map(type, times))
        if kinds <= NUMBERS:  # a sum with a NaN is unequal to itself
            return times if float not in kinds or (total := sum(times)) == total else None
        if kinds == {datetime}:
            return times if {time.tzinfo for time in times} == {None} else None
        return times if kinds == {str} or kinds == {date} else None


class Watermark:
    """Move the watermark of a stream.

    >>> clock = EventClock(5)
    >>> from optimizer.expr import Parameter
    >>> watermark = Watermark(clock, "clicks", EventTimes(Lifted(Parameter(0), ("at",), (), 1)))
    >>> watermark.step([(10, 1), (12, 1)])
    [(((), 7), 1)]
    >>> watermark.commit()
    >>> watermark.step([(20, 1)]), clock.watermark
    ([(((), 7), -1), (((), 15), 1)], 7)
    """

    __slots__ = ("_clock", "_name", "_new", "_times", "touched")

    def __init__(self, clock: EventClock, name: str, times: EventTimes) -> None:
        self._clock = clock
        self._name = name
        self._times = times
        self._new: Any = None
        self.touched = 0

    def step(self, delta: Pairs) -> list[Pair]:
        """Return the change of the watermark.

        Raises
        ------
        TableError: an event became late while its transaction was open.
        """
        self.touched += len(delta)
        clock, old = self._clock, self._clock.watermark
        judged, clock.judged = clock.judged, None
        if judged is not None and judged[0] is delta:
            newest = judged[1]
        else:
            first, newest = self._times.span(delta)
            if clock.is_late(first):
                raise TableError(
                    f"an event of stream {self._name!r} became late before it was committed: "
                    f"{first!r:.60} is before the watermark, {old!r:.60}\n"
                    "  another commit has moved the watermark; add the event again"
                )
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
    """Pair the events `(row, key)` with the rows of an index, which steps before.

    Parameters
    ----------
    rows: the rows of the right, by key.
    pair: event, and a row -> row.
    alone: event, and None -> row, for an event without a row; None to drop these.
    below, above: the chains below the events and above the pairs.
    log: keeps what is emitted, and has what was; None for a stream that is not durable.

    >>> drinks = IndexBy(lambda drink: drink[1])
    >>> lookup = EventLookup(drinks, lambda event, row: (event, row))
    >>> lookup.step([], drinks.step([(("tea", 1), 1)]))
    []
    >>> lookup.step([(("sale", 1), 1)], drinks.step([(("tea", 1), -1), (("rum", 1), 1)]))
    [(('sale', ('rum', 1)), 1)]
    """

    forgets: ClassVar[bool] = True
    """Nobody holds what it has emitted."""
    __slots__ = ("_above", "_alone", "_below", "_log", "_pair", "_rows", "touched")

    def __init__(
        self,
        rows: IndexBy,
        pair: Callable[[Row, Row], Row],
        alone: Callable[[Row, None], Row] | None = None,
        below: Callable[[Pairs], Pairs] = itself,
        above: Callable[[Pairs], Pairs] = itself,
        *,
        log: NotedLookups | None = None,
    ) -> None:
        self._below = below
        self._above = above
        self._log = log
        self._pair = pair
        self._alone = alone
        self._rows = rows
        self.touched = 0

    def step(self, left: Pairs, right: Sequence[KeyedPair]) -> Pairs:
        """Pair the new events with the current rows."""
        pair, found = self._pair, list[Pair]()
        for (row, key), weight in self._below(left):
            others = [each for each in self._rows.index.pairs(match_key(key)) if each[1] > 0]
            for other, times in others:
                found.append((pair(row, other), weight * times))
            if not others and self._alone is not None:
                found.append((self._alone(row, None), weight))
        self.touched += len(left) + len(right) + len(found)
        out = self._above(found)
        if out and self._log is not None:
            self._log.note(out)
        return out

    @property
    def has_dropped(self) -> bool:
        """True if nothing has the pairs of earlier events."""
        return self._log is None

    def contents(self) -> Iterable[Pair]:
        """Return the pairs of the log; without one, no rows, as before the first event."""
        return () if self._log is None else self._log.pairs()


class LookupLoops:
    """Run a look-up, the chain below the events and the chain above as a generated loop.

    Parameters
    ----------
    rows: the rows of the right, by key.
    loop: pairs of events, and the look-up -> pairs.
    made: returns the loop from a batch of events to a batch; that one returns None if rows of the
        right have several weights.
    plain: the same by plain operators, which run if a loop raises.
    log: as of `EventLookup`; the one of `plain` is None.
    """

    forgets: ClassVar[bool] = True
    __slots__ = (
        *("_batch", "_is_left", "_log", "_loop", "_made", "_plain", "_rows", "source", "touched"),
    )

    def __init__(
        self,
        rows: IndexBy,
        loop: Callable[..., list[Pair]],
        made: Callable[[], Callable[..., list[Row] | None]],
        plain: EventLookup,
        source: str,
        *,
        is_left: bool,
        log: NotedLookups | None = None,
    ) -> None:
        self._log = log
        self._rows = rows
        rows.index  # noqa: B018 (built now: the first event would wait for it)
        self._loop = loop
        self._made = made
        self._batch: Callable[..., list[Row] | None] | None = None
        self._plain = plain
        self._is_left = is_left
        self.source = source
        self.touched = 0

    def step(self, left: Pairs, right: Sequence[KeyedPair]) -> Sequence[Pair]:
        """Pair the new events with the current rows."""
        count = len(left)
        self.touched += count + len(right)
        if not count:
            return ()
        out = self._paired(left, right)
        if out and self._log is not None:
            self._log.note(out)
        return out

    def _paired(self, left: Pairs, right: Sequence[KeyedPair]) -> Sequence[Pair]:
        """Return the pairs of the new events, by the loops or by the plain operators."""
        try:
            rows = self._rows
            find = rows.look_up or rows.find(before=False)
            if self._is_left:
                find = _find_or_none(find)
            found = self._of_batch(left, find) if type(left) is UniformDelta else None
            out = self._loop(left, find) if found is None else found
            self.touched += len(out)
        except Exception as error:  # the plain operators raise it, or find that it is ignored
            reraise_asynchronous(error)
            return self._plain.step(left, right)
        return out

    def _of_batch(self, left: UniformDelta, find: Callable[..., Any]) -> UniformDelta | None:
        """Return the batch of all pairs; None if they have several weights."""
        if self._batch is None:
            self._batch = self._made()
        rows = self._batch(left.rows, find)
        return None if rows is None else UniformDelta(rows, left.weight)

    @property
    def has_dropped(self) -> bool:
        """True if nothing has the pairs of earlier events."""
        return self._log is None

    def contents(self) -> Iterable[Pair]:
        """Return the pairs of the log; without one, no rows, as before the first event."""
        return () if self._log is None else self._log.pairs()


def _find_or_none(find: Callable[..., Any]) -> Callable[..., Any]:
    """Return the look-up that finds None, as a row, where there is no row."""
    return lambda key, default: find(key, None)
