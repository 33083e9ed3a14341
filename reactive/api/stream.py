"""Streams: tables of events that come in the order of their times, or a bit later.

    events = db.stream(Click, at=lambda c: c.at, lateness=timedelta(seconds=10))

      time    12:00:05   12:00:30   12:00:21   12:00:10
      comes   in time    in time    in time    late: before the watermark, 12:00:20

Events flow through and are not stored, as with `stored=False`, and are not removed. What is older
than the watermark changes no more, so operators can drop the state that only earlier events would
read (docs/time.md).

State:  the watermark.
Cost:   of an event, a comparison, and the work of the views that depend on the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.expr import Lifted, Parameter, constant
from optimizer.expressions.knowledge import Shape
from optimizer.plans.declared_kinds import declared_classes
from optimizer.plans.nodes.groups import kept_by
from optimizer.rewriting.columns import field, known_shapes
from optimizer.subqueries.keyed_rows import as_expression
from reactive.api.columns import take_callable
from reactive.api.table import Table
from reactive.engine.collections.zset import Pair, Row
from reactive.engine.operators.event_time import EventClock, EventTimes, Watermark
from reactive.engine.runtime.boundary import boundary, hide
from reactive.engine.transactions.statements import Statements
from reactive.engine.transactions.transaction import Transaction
from reactive.errors import TableError

if TYPE_CHECKING:
    from reactive.api.view import View
    from reactive.engine.transactions.engine import Engine

T = TypeVar("T")
Late: TypeAlias = Literal["keep", "raise"]


@boundary
class Stream(Table[T, Any], Generic[T]):
    """A table of events, which flow through; `Database.stream` creates it.

    >>> from reactive import Count, Database, tumbling
    >>> db = Database()
    >>> clicks = db.stream(tuple[str, int], at=lambda c: c[1], lateness=5, name="clicks")
    >>> per_ten = clicks.window(tumbling(10), at=lambda c: c[1])
    >>> counts = per_ten.group_by(lambda c, w: w.start).aggregate(Count()).materialize()
    >>> late = clicks.late.materialize()
    >>> clicks.add_all([("home", 3), ("home", 12)])
    >>> clicks.watermark.first()
    7
    >>> clicks.add_all([("home", 8), ("home", 6)])
    >>> sorted(counts), list(late)
    ([(0, 2), (10, 1)], [('home', 6)])
    """

    _keeps_events: ClassVar[bool] = True
    watermark: View[Any]
    """The view of one row: the greatest time so far, less the lateness; empty before an event."""
    late: Table[T, Any]
    """The events that came too late: a table whose rows flow through, too."""

    def __init__(
        self,
        engine: Engine,
        number: int,
        row_type: Any,
        name: str | None,
        at: Callable[[T], Any] | str,
        lateness: Any,
        late: Late,
        replaces: Table[Any] | None = None,
    ) -> None:
        self._at = at
        self._clock = EventClock(_checked_lateness(lateness), "")
        if late not in ("keep", "raise"):
            raise PlanError(f'a stream takes late="keep" or late="raise", not {late!r:.60}')
        super().__init__(engine, number, row_type, name, None, False, False, replaces)
        assert self.plan.time is not None
        _check_distance(self._called(), lateness, declared_classes(self.plan.time, self.plan))
        self._clock.name = self.name
        self._times = EventTimes(as_expression(self.plan.time))
        self._do: _Arrivals = _Arrivals(self, engine, self._times)
        self._do.move_to(self._store)
        self._do.refuses = late == "raise"

    def _plan_of(self, number: int, key: Any, stored: bool) -> Any:
        """Return the plan of the table, with the time of its events."""
        made = super()._plan_of(number, key, stored)
        role = "the at of stream"
        if isinstance(self._at, str):
            time: Any = field(self._at, known_shapes(made), role)
        else:
            time = take_callable(self._at, 1, role)
        return plan.Table(number, self.name, None, stored, self.row_type, time, self._clock)

    @property
    def _time(self) -> Any:
        return self.plan.time

    def _contents(self) -> Sequence[Pair]:
        """Return the events of the log, and keep all state over them until the next event."""
        self._clock.is_replayed = self._log is not None
        return super()._contents()

    # Events: late ones go elsewhere.

    def add(self, row: T, count: int = 1) -> None:
        """Add an event, `count` times; a late one goes to `late`, or is refused.

        Raises
        ------
        TableError: the row is not of the stream's row type, or not hashable; or it is late, with
            `late="raise"`.
        """
        try:
            super().add(row, count)
        except _LateEvents:
            self._write_some_late(partial(super().add, row, count))
        except Exception as error:
            hide(error)
            raise

    def add_all(self, rows: Iterable[T]) -> None:
        """Add events, in one commit; late ones go to `late`, or all are refused."""
        some = list(rows)
        if len(some) == 1:
            self.add(some[0])
        else:
            self._write_many(self._do.add_all, some)

    def _write_many(self, statement: Callable[..., Sequence[Pair]], *arguments: Any) -> None:
        """Write what a statement over many rows changes."""
        try:
            super()._write_many(statement, *arguments)
        except _LateEvents:
            self._write_some_late(partial(super()._write_many, statement, *arguments))

    def _write_some_late(self, write: Callable[[], object]) -> None:
        """Write events again, with the late ones to `late`, in one commit."""
        with Transaction(self._engine):
            late = self._do.set_aside = []
            try:
                write()
            finally:
                self._do.set_aside = None
            for row, count in late:
                self.late.add(row, count)

    def _called(self) -> str:
        return f"stream {self.name!r}"

    def __repr__(self) -> str:
        return f"Stream({self.name!r}, watermark {self._clock.watermark})"


class LateTable(Table[T, Any], Generic[T]):
    """The late events of a stream, which flow through, too."""

    _keeps_events: ClassVar[bool] = True


class _LateEvents(Exception):
    """Some events of a statement are late, and nobody has said what to do with them."""


class _Arrivals(Statements):
    """The statements of a stream: they add events in time, and refuse all else."""

    __slots__ = ("_add_checked", "_clock", "_times", "refuses", "set_aside")

    def __init__(self, table: Stream[Any], engine: Engine, times: EventTimes) -> None:
        super().__init__(table, engine)
        self._clock = table._clock
        self._times = times
        self.refuses = False
        """True if late events raise."""
        self.set_aside: list[Pair] | None = None
        """Receives the late events of a statement, while there is one to receive them."""

    def move_to(self, store: Any) -> None:
        super().move_to(store)
        self.remove_one = self.remove

    def _make_ones(self) -> None:
        super()._make_ones()
        self.remove_one = self.remove
        if self.add_one != self.add:  # a generated statement, which judges no time
            self._add_checked, self.add_one = self.add_one, self._add_event

    def _add_event(self, row: Row) -> list[Pair]:
        """Add one event by the generated statement, as `add` does."""
        delta: list[Pair] = self._in_time(self._add_checked(row))
        return delta

    def add(self, row: Row, count: int = 1, **options: Any) -> list[Pair]:
        delta: list[Pair] = self._in_time(super().add(row, count, **options))
        return delta

    def add_all(self, rows: Iterable[Row], known: Any = None, **options: Any) -> Sequence[Pair]:
        delta: Sequence[Pair] = self._in_time(super().add_all(rows, known, **options))
        return delta

    def remove(self, row: Row, count: int = 1, **options: Any) -> list[Pair]:
        raise self._no_removal(row)

    def remove_all(self, rows: Iterable[Row]) -> Sequence[Pair]:
        for row in rows:
            raise self._no_removal(row)
        return ()

    def _in_time(self, delta: Sequence[Pair]) -> Any:
        """Return the events that are not late; the others are set aside, or raise."""
        clock, is_late = self._clock, self._clock.is_late
        clock.is_replayed = False
        first, newest = self._times.span(delta)
        if not is_late(first):
            if self._engine.pending is None:
                clock.judged = (delta, newest)
            return delta
        read = self._times.read
        late = [pair for pair in delta if is_late(read(pair[0]))]
        if self.refuses:
            raise self._too_late(late[0][0])
        if self.set_aside is None:
            raise _LateEvents
        self.set_aside += late
        return [pair for pair in delta if not is_late(read(pair[0]))]

    def _too_late(self, row: Row) -> TableError:
        return TableError(
            f"cannot add {row!r:.200} to stream {self._table.name!r}: its time, "
            f"{self._times.read(row)!r:.60}, is before the watermark, "
            f"{self._clock.watermark!r:.60}\n"
            '  late="keep" passes late events to the table `late`, a greater lateness accepts them'
        )

    def _no_removal(self, row: Row) -> TableError:
        return TableError(
            f"cannot remove {row!r:.200} from stream {self._table.name!r}: events are not removed\n"
            "  db.table has rows that change"
        )


class _WatermarkGroup:
    """The function of the plan that stands for the watermark of a stream (`Watermark`)."""

    shape: Shape = None
    is_bounded = is_watermark = True

    def __init__(self, clock: EventClock, name: str, times: EventTimes) -> None:
        self._clock, self._name, self._times = clock, name, times

    def __call__(self, key: Any, rows: Any) -> Any:
        """Return the watermark of all events."""
        _, newest = self._times.span([(row, 1) for row in rows])
        return [] if newest is None else [newest - self._clock.lateness]

    def operator(self, key: Any, new: Callable[[], Any]) -> Watermark:
        """Return the operator, in place of groups."""
        return new()  # type: ignore[no-any-return]

    def kept(self) -> Callable[[], Watermark]:
        return lambda: Watermark(self._clock, self._name, self._times)

    def limited(self, item: int, most: int) -> Any:
        """Return None: there are no rows to leave out."""
        return None

    def dropping(self) -> Any:
        """Return itself: it has no callables."""
        return self


def _checked_lateness(lateness: Any) -> Any:
    """Return a lateness; refuse one that is no distance of times."""
    try:
        is_distance = not isinstance(lateness, bool) and bool(lateness >= lateness - lateness)
    except TypeError:
        is_distance = False
    if not is_distance:
        raise PlanError(
            f"the lateness of a stream is a distance of times from 0 on, not {lateness!r:.60}\n"
            "  such as timedelta(seconds=10), or 5 for times that are numbers"
        )
    return lateness


SAMPLES: dict[type, Any] = {
    **{kind: kind() for kind in (bool, int, float, Decimal, str, bytes, timedelta)},
    date: date(2000, 1, 1),
    datetime: datetime(2000, 1, 1),
    time: time(),
}
"""A value of each class that times may be declared to have."""


def _check_distance(called: str, lateness: Any, kinds: Iterable[type]) -> None:
    """Refuse a lateness that is no distance of the times of declared classes; none are unknown."""
    names = []
    for kind in kinds:
        try:
            SAMPLES[kind] - lateness
        except TypeError:
            names.append(kind.__name__)
        except Exception:  # too long a time, or a signal of Decimal: but a distance
            return
        else:
            return
    if names:
        raise PlanError(
            f"{called} has times of class {' or '.join(sorted(names))}, of which {lateness!r:.60} "
            "is no distance\n"
            "  give a timedelta for dates and datetimes, a number for numbers"
        )


def begin(stream: Stream[Any], late: Table[Any, Any]) -> None:
    """Start the watermark of a new stream, and set the table of its late events."""
    stream.late = late
    watermark = _WatermarkGroup(stream._clock, stream.name, stream._times)
    group = kept_by(watermark, f"watermark of {stream.name}")
    moved = plan.Reduce(stream.plan, Lifted(constant(()), ("event",), (), 1), group)
    mark = plan.Select(moved, Lifted(Parameter(1), ("key", "watermark"), (), 2))
    stream._clock.mark = mark
    stream.watermark = stream._new(mark).materialize(f"watermark of {stream.name}")
