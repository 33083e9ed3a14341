"""The clock of a database: the moment that `now()` is in queries, and what happens as it advances.

    recent = events.where(lambda e: now() - e.at < timedelta(hours=1)).materialize()
    db.clock.advance(moment)      a commit: events that have become an hour old leave the view

The clock is a parameter of one value, and a query that calls `now()` is a join with it. So a tick
touches the rows that enter or leave (`operators/moved_bounds.py`). A tick also deletes the rows of
tables whose time is up, in the same commit (`expiry.py`).

State:  the moment.
Cost:   of `advance`: the rows of the views for which the new moment makes a difference.
Source: temporal filters of Materialize; [dbsp] section 7.5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

from optimizer.errors import PlanError
from reactive.api import wall_clock
from reactive.api.columns import Live
from reactive.api.over_time import CLOCK_NOT_SET, HOW_TO_SET
from reactive.api.parameter import Parameter
from reactive.engine.collections.zset import Pair
from reactive.engine.dataflow import clock_readers
from reactive.engine.runtime.boundary import boundary, hide
from reactive.engine.runtime.closeable import Uncopyable
from reactive.engine.transactions.transaction import Transaction, run_in_transaction
from reactive.errors import TableError

if TYPE_CHECKING:
    from reactive.api.expiry import Expiry
    from reactive.api.view import AnyView
    from reactive.engine.transactions.engine import Engine

NAME = "now()"
"""The name of the clock's table: no identifier, so that other tables have other names."""


class Now(Live):
    """The moment of the clock of the database whose tables a query reads.

    >>> from datetime import datetime, timedelta
    >>> from reactive import Database, now
    >>> db = Database()
    >>> starts = db.table(datetime, name="starts")
    >>> db.clock.advance(datetime(2024, 5, 1, 12))
    >>> ahead = starts.where(lambda start: start > now()).materialize()
    >>> starts.add(datetime(2024, 5, 1, 13))
    >>> len(ahead)
    1
    >>> db.clock.advance(datetime(2024, 5, 1, 13))
    >>> len(ahead)
    0
    """

    _is_parameter: ClassVar[bool] = True
    name = NAME
    _copy_instead = _pickle_instead = "import it where it is called: from reactive import now"

    def __call__(self) -> datetime:
        """Return the moment of the clock, inside a callable or comprehension of a query.

        Raises
        ------
        PlanError: the call is outside of a query.
        """
        error = PlanError(
            "now() is called outside of a query, so that it has no database\n"
            "  db.clock.now is the moment of a database's clock"
        )
        hide(error)
        raise error

    def __repr__(self) -> str:
        return "now"

    def _called(self) -> str:
        return "now"

    def _relation_of(self, engine: Any) -> Any:
        """Return the clock's parameter.

        Raises
        ------
        PlanError: the clock was not set.
        """
        return parameter_of(clock_of(engine))

    def _kept_views(self) -> tuple[AnyView, ...]:
        return ()


now = Now()


@boundary
class Clock(Uncopyable):
    """The clock of a database: `now()` of its queries. `Database.clock` is it.

    It stands until `advance` sets it, which is what tests want, or `run` lets it follow the time of
    the machine. All moments have a time zone, and are kept as UTC; or all are without one, if the
    first was. It never goes back.

    >>> from datetime import datetime, timedelta, timezone
    >>> from reactive import Database, now
    >>> db = Database()
    >>> logins = db.table(tuple[str, datetime], name="logins")
    >>> noon = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)
    >>> db.clock.advance(noon)
    >>> recent = logins.where(lambda row: now() - row[1] < timedelta(minutes=5)).materialize()
    >>> logins.add_all([("ann", noon), ("bob", noon + timedelta(minutes=1))])
    >>> db.clock.advance(noon + timedelta(minutes=5))
    >>> [name for name, _ in recent]
    ['bob']
    """

    _copy_instead = _pickle_instead = "read db.clock.now, and advance the clock of another database"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._expiring: dict[int, Expiry] = {}
        """The tables whose rows expire, by their numbers in plans."""
        self._wall: wall_clock.WallClock | None = None
        """The thread that lets it follow the time of the machine."""
        self._parameter: ClockParameter = engine.add_table(
            lambda number, _: ClockParameter(engine, number), None, (None, None, None)
        )

    @property
    def now(self) -> datetime:
        """The moment of the clock, as the running thread or task sees it.

        Raises
        ------
        TableError: it was not set.
        """
        found = self._now()
        if found is None:
            raise TableError(f"the clock of the database was not set\n{HOW_TO_SET}")
        return found

    def advance(self, to: datetime) -> None:
        """Set the clock, in one commit or as part of the open transaction.

        Views that read `now()` change by the rows that enter or leave. Rows whose time is up are
        deleted from their tables, see `expire_after` of `Database.table`. Deltas of the commit have
        the moment as their `tick`. The same moment as before changes nothing but such rows.

        Parameters
        ----------
        to: the moment, not before the present one; with a time zone, or without one if the first
            one had none.

        Raises
        ------
        TableError: the moment is before the present one, is no datetime, or has a time zone where
            the present one has none, or the other way round.
        """
        try:
            moment = instant_of(to)
            if self._expiring and moment != self._now():
                transaction = Transaction(self._engine)
                run_in_transaction(transaction, lambda: self._advance(moment))
            else:
                self._parameter.set(moment)
        except Exception as error:
            hide(error)
            raise

    def run(self, every: float = 1.0) -> None:
        """Follow the time of the machine in a thread, until `stop` or the end of the database.

        A tick is a commit if a row enters or leaves a view, or expires; else the clock stands. If
        the time of the machine goes back, it stands until the time is later again. A tick that a
        view refuses is logged. A clock that runs already continues with the new interval.

        Parameters
        ----------
        every: the seconds between two ticks.

        Raises
        ------
        PlanError: `every` is not a positive number.
        """
        if not isinstance(every, int | float) or not 0 < every < math.inf:
            raise PlanError(f"every= takes a positive number of seconds, not {every!r}")
        self._engine.check_open()
        self.stop()
        self._follow()
        self._wall = wall_clock.WallClock(self, every)

    def stop(self) -> None:
        """Follow the time of the machine no longer; the clock stands where it is."""
        wall, self._wall = self._wall, None
        if wall is not None:
            wall.stop(wait=self._engine.mine is None)

    @property
    def next(self) -> datetime | None:
        """The earliest moment at which a tick may change rows; None if nothing waits.

        It is the first moment at which a row enters or leaves a view because of its time, to the
        microsecond, or a row expires. It is the present moment while a view shows `now()` itself,
        or reads it in another way than by comparing it: such a view may change at each tick.

        Cost: O(log n) for each join with the clock; a view of 1,000 rows takes some 50 us.
        """
        moment = self._now()
        if moment is None:
            return None
        with self._engine.inside():
            found = clock_readers.next_change(self._parameter._node, moment)
            if found == moment:
                return moment
            known = [found, *[expiry.next(moment) for expiry in self._expiries()]]
        return min((each for each in known if each is not None), default=None)

    def _follow(self) -> None:
        """Advance to the present time of the machine, if that changes something."""
        now = self._now()
        present = datetime.now(UTC if now is None or now.tzinfo is not None else None)
        if now is None or (present > now and (due := self.next) is not None and due <= present):
            self.advance(present)

    def __repr__(self) -> str:
        moment = self._now()
        return "Clock(not set)" if moment is None else f"Clock({moment.isoformat(' ')})"

    def _called(self) -> str:
        return "a clock"

    def _now(self) -> datetime | None:
        return next(iter(self._parameter), None)

    def _advance(self, to: datetime) -> None:
        """Set the clock, and delete the rows whose time is up, inside a transaction."""
        self._parameter.set(to)
        for expiry in self._expiries():
            expiry.delete_until(to)

    def _expiries(self) -> list[Expiry]:
        """Return the expiries of the tables that were not dropped."""
        tables = self._engine.tables
        for number in [number for number in self._expiring if number not in tables]:
            del self._expiring[number]
        return [*self._expiring.values()]


class ClockParameter(Parameter[datetime]):
    """The parameter of a clock: it has no value until the clock is set, and only grows."""

    def __init__(self, engine: Engine, number: int) -> None:
        super().__init__(engine, number, datetime, NAME, None)
        self._node.tracers[self] = None  # its moves are noted without subscribers, too: ticks
        engine.updates.clock = self

    def set(self, value: datetime) -> None:
        """Change the moment, as `Clock.advance` does, but for rows that expire."""
        super().set(instant_of(value))

    def _refusal_of(self, delta: Sequence[Pair]) -> str | None:
        changed = {weight: moment for moment, weight in delta}
        return _refusal_of_move(changed[-1], changed[1]) if len(changed) == 2 else None

    def _called(self) -> str:
        return "the clock"


def instant_of(moment: datetime) -> datetime:
    """Return a moment with a time zone as UTC; one without as it is."""
    if not isinstance(moment, datetime):
        raise TableError(f"the clock is advanced to a datetime, not to {moment!r:.100}")
    return moment if moment.tzinfo is None else moment.astimezone(UTC)


def _refusal_of_move(before: datetime, after: datetime) -> str | None:
    """Return why a clock cannot be set from one moment to another; None if it can."""
    if (before.tzinfo is None) is not (after.tzinfo is None):
        had, has = ("no", "a") if before.tzinfo is None else ("a", "no")
        return (
            f"the clock has moments with {had} time zone, and {after} has {has} time zone\n"
            "  advance it by moments of the kind of the first one"
        )
    if after < before:
        return f"the clock cannot go back from {before} to {after}"
    return None


def parameter_of(clock: Clock) -> ClockParameter:
    """Return the parameter that holds the moment of a clock.

    Raises
    ------
    PlanError: the clock was not set.
    """
    if clock._now() is None:
        raise PlanError(CLOCK_NOT_SET)
    return clock._parameter


def expire_at_ticks(clock: Clock, number: int, expiry: Expiry) -> None:
    """Let each tick delete rows of the table of a number."""
    clock._expiring[number] = expiry


def clock_of(engine: Engine) -> Clock:
    """Return the clock of a database; it is made on its first use."""
    found: Clock | None = engine.clock
    if found is None:
        with engine.inside():
            if engine.clock is None:
                engine.clock = Clock(engine)
            found = engine.clock
    return found
