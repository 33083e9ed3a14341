"""The tables of the monitor, the views over them, and everything that writes.

sensors, limits, readings -> rules -> raised, ended        conditions of sensors
incidents, acknowledgements        -> to_open, to_close    where incidents differ from these
                                   -> alerts, notices      for people

Incidents are rows: `to_open` has the conditions without one, and whoever is told of it writes it.
Each write follows from the rows in the file alone, so that a process that is killed between a
reading and its incident leaves it to the next process, which finds it in `to_open`.

A transaction that takes readings also advances the clock. So the clock of the file is the position
of what was taken, and a sender that begins again after it loses nothing and repeats nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from examples.monitor.outbox import Outbox
from examples.monitor.rows import (
    Acknowledgement,
    Alert,
    Card,
    Incident,
    Limit,
    Minute,
    Notice,
    Reading,
    Sensor,
)
from examples.monitor.rules import make_rules
from reactive import (
    Avg,
    Count,
    Database,
    Delta,
    LastBy,
    Max,
    OrderedView,
    Relation,
    TableError,
    asc,
    desc,
    now,
    tumbling,
)

READINGS_STAY = timedelta(minutes=15)
MINUTES_STAY = timedelta(minutes=30)
INCIDENTS_STAY = timedelta(hours=6)
"""After the end of the incident."""
LATENESS = timedelta(seconds=30)
ESCALATION = timedelta(minutes=3)
"""The time for somebody to acknowledge an alert."""
SHOWN = 12
"""The notices on the page."""


class Refusal(Exception):
    """A request that the monitor cannot do, with the reason."""


class NotThere(Refusal):
    """A request about something that is not there."""


class Taken(NamedTuple):
    """The numbers of readings that were new, known already, too old, and ahead of the clock."""

    new: int
    known: int
    old: int
    ahead: int


class Monitor:
    """The monitor of a database.

    Parameters
    ----------
    db: a database, with a file if the monitor is to go on after a restart.
    begin: the moment at which the clock is set if it was not.
    outbox: receives the notices.
    """

    def __init__(self, db: Database, begin: datetime, outbox: Outbox) -> None:
        self.db = db
        self._make_tables()
        try:
            self.now  # noqa: B018
        except TableError:
            db.clock.advance(begin)
        self._make_views()
        # First tell what the last process has left untold, then let incidents follow.
        self._sink = self.notices.changes_to(outbox.write, name="outbox", trigger="commit")
        per_minute = (
            self.arrivals.window(tumbling(minutes=1), at="at")
            .group_by(lambda r, w: (r.sensor, w))
            .aggregate(Avg(lambda r, w: r.value, skip_none=True))
        )
        self._subscriptions: list[Any] = [
            per_minute.subscribe(self._keep_minutes),
            *(view.subscribe(self._settle) for view in (self._to_open, self._to_close)),
            self._forgotten.subscribe(self._settle),
        ]
        self._settle()
        self._read_again()

    @property
    def now(self) -> datetime:
        return self.db.clock.now

    def _make_tables(self) -> None:
        table = self.db.table
        self.sensors = table(Sensor, name="sensors", key="id")
        self.limits = table(Limit, name="limits", key="sensor")
        self.readings = table(
            Reading,
            name="readings",
            key=["sensor", "at"],
            expire_after=READINGS_STAY,
            at="at",
        )
        self.minutes = table(
            Minute,
            name="minutes",
            key=["sensor", "start"],
            expire_after=MINUTES_STAY,
            at="start",
        )
        self.incidents = table(
            Incident, name="incidents", key="id", expire_after=INCIDENTS_STAY, at="ended"
        )
        self.acknowledgements = table(Acknowledgement, name="acknowledgements", key="incident")
        self._last_id = self.db.parameter(0, name="last_incident")
        self.arrivals = self.db.stream(Reading, at="at", lateness=LATENESS, name="arrivals")

    def _make_views(self) -> None:
        incidents, acknowledged = self.incidents, self.acknowledgements
        lasting = incidents.where(ended=None)
        raised, ended = make_rules(self.sensors, self.limits, self.readings)
        same = ["sensor", "rule"]
        self._to_open = raised.anti_join(lasting, on=same).materialize("to_open")
        self._to_close = lasting.semi_join(ended, on=same).materialize("to_close")
        self._forgotten = acknowledged.anti_join(incidents, on=("incident", "id")).materialize()
        waiting = lasting.anti_join(acknowledged, on=("id", "incident"))
        escalated = waiting.where(lambda i: now() - i.since >= ESCALATION)
        alerts = (
            lasting.left_join(acknowledged, on=("id", "incident"))
            .left_join(escalated, on=lambda i, a, e: i.id == e.id)
            .select(
                lambda i, a, e: Alert(
                    i.id, i.sensor, i.rule, i.since, a.by if a else None, e is not None
                )
            )
        )
        self.alerts: OrderedView[Alert] = alerts.order_by(
            asc(lambda alert: alert.by is not None), desc("since"), desc("id")
        ).materialize("alerts")
        told = self._make_notices(escalated)
        self.notices = told.materialize("notices")
        self.latest: OrderedView[Notice] = (
            told.order_by(desc("at"), desc("incident"), asc("what"))
            .limit(SHOWN)
            .materialize("latest")
        )
        last = self.readings.group_by("sensor").aggregate(
            at=Max("at"), value=LastBy("at", of="value")
        )
        self.cards: OrderedView[Card] = (
            self.sensors.join(self.limits, on=("id", "sensor"))
            .left_join(last, on=lambda s, limit, r: s.id == r.sensor)
            .select(
                lambda s, limit, r: Card(
                    s.id,
                    s.name,
                    s.unit,
                    limit.low,
                    limit.high,
                    r.at if r else None,
                    r.value if r else None,
                )
            )
            .order_by("id")
            .materialize("cards")
        )
        self.late = self.arrivals.late.aggregate(Count()).materialize("late")

    def _make_notices(self, escalated: Relation[Incident]) -> Relation[Notice]:
        acknowledged = self.incidents.join(self.acknowledgements, on=("id", "incident"))
        return (
            self.incidents.select(lambda i: Notice(i.since, i.id, "raised", i.sensor, i.rule, None))
            + escalated.select(
                lambda i: Notice(i.since + ESCALATION, i.id, "escalated", i.sensor, i.rule, None)
            )
            + acknowledged.select(
                lambda i, a: Notice(a.at, i.id, "acknowledged", i.sensor, i.rule, a.by)
            )
            + self.incidents.where(lambda i: i.ended is not None).select(
                lambda i: Notice(i.ended, i.id, "ended", i.sensor, i.rule, None)  # type: ignore[arg-type]
            )
        )

    # What others write.

    def watch(self, sensors: Iterable[tuple[Sensor, Limit]], at: datetime) -> None:
        """Watch these sensors from a moment on; limits that the file has stay."""
        with self.db.transaction():
            self.db.clock.advance(at)
            for sensor, limit in sensors:
                self.sensors.upsert(replace(sensor, watched=at))
                if self.limits.get(sensor.id) is None:
                    self.limits.add(limit)

    def take(self, readings: Iterable[Reading], at: datetime | None = None) -> Taken:
        """Take readings in one commit, which also sets the clock to `at`.

        A reading that is known, too old, or ahead of the clock is left out. One that is late, but
        not too old, counts for alerts, and for the mean of its minute if that may still change.

        Raises
        ------
        NotThere: a reading is of a sensor that is not watched; none of the readings is taken.
        """
        new: list[Reading] = []
        known = old = ahead = 0
        with self.db.transaction():
            if at is not None:
                self.db.clock.advance(at)
            moment = self.now
            for reading in readings:
                if self.sensors.get(reading.sensor) is None:
                    raise NotThere(f"there is no sensor {reading.sensor!r:.50}")
                if self.readings.get((reading.sensor, reading.at)) is not None:
                    known += 1
                elif reading.at <= moment - READINGS_STAY:
                    old += 1
                elif reading.at > moment + LATENESS:
                    ahead += 1
                else:
                    self.readings.add(reading)
                    new.append(reading)
            self.arrivals.add_all(new)
        return Taken(len(new), known, old, ahead)

    def acknowledge(self, incident: int, by: str) -> None:
        """Write that somebody has seen an alert.

        Raises
        ------
        NotThere: no alert has the number, or it has ended.
        Refusal: it was acknowledged before.
        """
        with self.db.transaction():
            found = self.incidents.get(incident)
            if found is None or found.ended is not None:
                raise NotThere(f"no alert has the number {incident}")
            seen = self.acknowledgements.get(incident)
            if seen is not None:
                raise Refusal(f"{seen.by} has acknowledged it already")
            self.acknowledgements.add(Acknowledgement(incident, by, self.now))

    def set_limits(self, limit: Limit) -> None:
        """Change the limits of a sensor; its alert follows in the same moment.

        Raises
        ------
        NotThere: the sensor is not watched.
        """
        if self.sensors.get(limit.sensor) is None:
            raise NotThere(f"there is no sensor {limit.sensor!r:.50}")
        self.limits.upsert(limit)

    def close(self) -> None:
        """End the sink and the subscriptions; the database stays open."""
        self._sink.stop()
        for subscription in self._subscriptions:
            subscription.close()

    # What follows from the rows.

    def _settle(self, delta: Delta[Any] | None = None) -> None:
        """Open and close the incidents that the views ask for, and drop what belongs to none."""
        if delta is not None and not delta.added:
            return
        with self.db.transaction():
            for condition in sorted(self._to_open.snapshot()):
                number = self._last_id() + 1
                self._last_id.set(number)
                self.incidents.add(Incident(number, *condition, since=self.now))
            for incident in self._to_close.snapshot():
                self.incidents.upsert(replace(incident, ended=self.now))
            for acknowledgement in self._forgotten.snapshot():
                self.acknowledgements.remove(acknowledgement)

    def _keep_minutes(self, delta: Delta[Any]) -> None:
        """Store the means that have changed; the stream itself keeps none of a closed minute."""
        changed = [*delta.added, *(new for _, new in delta.updated)]
        with self.db.transaction():
            for (sensor, window), mean in changed:
                if mean is not None:
                    self.minutes.upsert(Minute(sensor, window.start, mean))

    def _read_again(self) -> None:
        """Give the stream, which is not stored, the readings of the minutes that may change."""
        last = max((reading.at for reading in self.readings), default=None)
        if last is not None:
            begin = (last - LATENESS).replace(second=0, microsecond=0)
            self.arrivals.add_all([r for r in self.readings if r.at >= begin])
