"""The rules: what raises an alert of a sensor, and what ends it.

rule      is raised by                                     is ended by
high      a reading above `high`                           a reading below `low`
silent    no reading for five minutes                      a reading
failing   three failures within a minute                   a minute without a failure

Between the two nothing changes: this is hysteresis. It needs no state of its own, as a rule and its
end are two queries, and an incident is open from the one to the other (`monitor.py`). They read the
readings by their times, so that one that comes late counts as if it had come in time.

Cost: of a reading, one look-up of its limits; of a tick, the readings that come of age; of a limit
that moves, the readings of its sensor.
"""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from examples.monitor.rows import Condition, Limit, Reading, Sensor
from reactive import Count, LastBy, Relation, now

HIGH, SILENT, FAILING = "high", "silent", "failing"
SILENCE = timedelta(minutes=5)
FAILURES = 3
WITHIN = timedelta(minutes=1)


class Rules(NamedTuple):
    """The conditions that raise alerts, and those that end them; never both of one rule."""

    raised: Relation[Condition]
    ended: Relation[Condition]


def make_rules(
    sensors: Relation[Sensor], limits: Relation[Limit], readings: Relation[Reading]
) -> Rules:
    """Return the rules over these tables."""
    parts = (
        _of_limits(limits, readings),
        _of_silence(sensors, readings),
        _of_failures(sensors, readings),
    )
    raised = [each.raised for each in parts]
    ended = [each.ended for each in parts]
    return Rules(raised[0] + raised[1] + raised[2], ended[0] + ended[1] + ended[2])


def _of_limits(limits: Relation[Limit], readings: Relation[Reading]) -> Rules:
    """Return the rule of `high`: the last reading outside of the limits decides."""
    above = readings.join(
        limits,
        on=lambda r, limit: (
            r.sensor == limit.sensor and r.value is not None and r.value > limit.high
        ),
    )
    below = readings.join(
        limits,
        on=lambda r, limit: (
            r.sensor == limit.sensor and r.value is not None and r.value < limit.low
        ),
    )
    outside = above.select(lambda r, limit: (r.sensor, r.at, True)) + below.select(
        lambda r, limit: (r.sensor, r.at, False)
    )
    last = outside.group_by(lambda o: o[0]).aggregate(LastBy(lambda o: o[1], of=lambda o: o[2]))
    return Rules(
        last.where(lambda sensor, is_high: is_high).select(lambda s, _: Condition(s, HIGH)),
        last.where(lambda sensor, is_high: not is_high).select(lambda s, _: Condition(s, HIGH)),
    )


def _of_silence(sensors: Relation[Sensor], readings: Relation[Reading]) -> Rules:
    recent = readings.where(lambda r: now() - r.at < SILENCE)
    watched = sensors.where(lambda s: now() - s.watched >= SILENCE)
    return Rules(
        watched.anti_join(recent, on=("id", "sensor")).select(lambda s: Condition(s.id, SILENT)),
        sensors.semi_join(recent, on=("id", "sensor")).select(lambda s: Condition(s.id, SILENT)),
    )


def _of_failures(sensors: Relation[Sensor], readings: Relation[Reading]) -> Rules:
    failures = readings.where(lambda r: r.value is None and now() - r.at < WITHIN)
    counts = failures.group_by("sensor").aggregate(Count())
    many = counts.where(lambda sensor, n: n >= FAILURES)
    calm = sensors.anti_join(failures, on=("id", "sensor"))
    return Rules(
        many.select(lambda sensor, n: Condition(sensor, FAILING)),
        calm.select(lambda s: Condition(s.id, FAILING)),
    )
