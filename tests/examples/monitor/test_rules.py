"""Alerts, means and notices equal those of plain Python after every commit of random histories."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from examples.monitor.monitor import Monitor
from examples.monitor.outbox import Outbox, read_notices
from examples.monitor.rows import Limit, Reading, Sensor
from reactive import Database
from tests.budget import seeds
from tests.examples.monitor.model import Model

BEGIN = datetime(2024, 5, 1, 12, tzinfo=UTC)
SENSORS = ("a", "b")
LOW, HIGH = 10.0, 20.0
VALUES = (None, None, 5.0, 10.0, 15.0, 15.0, 20.0, 25.0)
JUMPS = (0, 1, 5, 5, 20, 60, 170, 300, 900, 7 * 3600)
"""Seconds by which the clock advances."""
AGES = (0, 0, 1, 3, 10, 30, 31, 60, 200, 300, 899, 900, -10, -30, -31)
"""Seconds of a reading when it comes."""


def open_monitor(path: Path) -> tuple[Database, Outbox, Monitor]:
    db = Database(path)
    outbox = Outbox(path.with_suffix(".jsonl"))
    return db, outbox, Monitor(db, BEGIN, outbox)


@pytest.mark.parametrize("seed", seeds(60, 20))
def test_a_monitor_equals_its_rules_evaluated_from_scratch(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    path = tmp_path / "monitor.db"
    db, outbox, monitor = open_monitor(path)
    monitor.watch([(Sensor(s, s, "", BEGIN), Limit(s, LOW, HIGH)) for s in SENSORS], BEGIN)
    model = Model(BEGIN, dict.fromkeys(SENSORS, (LOW, HIGH)))
    model.commit()
    for step in range(60):
        match random.choices(["take", "limits", "acknowledge", "restart"], [20, 2, 4, 1])[0]:
            case "take":
                _take(random, monitor, model)
            case "limits":
                sensor, low = random.choice(SENSORS), random.choice((4.0, 10.0, 15.0))
                monitor.set_limits(Limit(sensor, low, low + 5))
                model.set_limits(sensor, low, low + 5)
            case "acknowledge":
                waiting = sorted(a.id for a in monitor.alerts if a.by is None)
                if waiting:
                    id = random.choice(waiting)
                    monitor.acknowledge(id, "ann")
                    model.acknowledge(id, "ann")
            case "restart":
                monitor.close()
                outbox.close()
                db.close()
                db, outbox, monitor = open_monitor(path)
                model.restart()
        assert shown(monitor) == expected(model)
        assert told(path) == model.told
        if step % 10 == 0:
            for view in (monitor.alerts, monitor.notices, monitor.latest, monitor.cards):
                view.verify()
    monitor.close()
    outbox.close()
    db.close()


def _take(random: Random, monitor: Monitor, model: Model) -> None:
    at = model.now + timedelta(seconds=random.choice(JUMPS))
    batch = [
        (random.choice(SENSORS), at - timedelta(seconds=random.choice(AGES)), random.choice(VALUES))
        for _ in range(random.choice((0, 1, 1, 2, 4)))
    ]
    batch += random.sample(batch, random.randint(0, min(1, len(batch))))
    assert monitor.take([Reading(*each) for each in batch], at) == model.take(batch, at)


def shown(monitor: Monitor) -> Any:
    alerts = sorted((a.id, a.sensor, a.rule, a.since, a.by, a.is_escalated) for a in monitor.alerts)
    means = {(m.sensor, m.start): pytest.approx(m.mean) for m in monitor.minutes}
    cards = {card.id: (card.low, card.high, card.at, card.value) for card in monitor.cards}
    return alerts, means, cards


def expected(model: Model) -> Any:
    alerts = [
        (
            case.id,
            case.sensor,
            case.rule,
            case.since,
            case.by,
            case.by is None and model.now - case.since >= timedelta(minutes=3),
        )
        for case in model.cases.values()
        if case.ended is None
    ]
    cards = {}
    for sensor, limits in model.limits.items():
        own = [(at, value) for (of, at), value in model.readings.items() if of == sensor]
        cards[sensor] = (*limits, *max(own, key=lambda each: each[0], default=(None, None)))
    return sorted(alerts), model.means, cards


def told(path: Path) -> list[Any]:
    return [
        (datetime.fromisoformat(n["at"]), *list(n.values())[1:])
        for n in read_notices(path.with_suffix(".jsonl"))
    ]


def test_between_the_limits_an_alert_stays_as_it_is(tmp_path: Path) -> None:
    db, outbox, monitor = open_monitor(tmp_path / "monitor.db")
    with db, closing(outbox), closing(monitor):
        monitor.watch([(Sensor("a", "a", "", BEGIN), Limit("a", LOW, HIGH))], BEGIN)
        rows: list[int] = []
        for second, value in enumerate([15.0, 21.0, 19.0, 21.0, 11.0, 9.0, 15.0, 20.0, 21.0]):
            at = BEGIN + timedelta(seconds=second)
            monitor.take([Reading("a", at, value)], at)
            rows.append(len(monitor.alerts))
        assert rows == [0, 1, 1, 1, 1, 0, 0, 0, 1]
        assert [notice["what"] for notice in read_notices(tmp_path / "monitor.jsonl")] == [
            "raised",
            "ended",
            "raised",
        ]


def test_a_reading_that_comes_late_counts_at_its_time(tmp_path: Path) -> None:
    db, outbox, monitor = open_monitor(tmp_path / "monitor.db")
    with db, closing(outbox), closing(monitor):
        monitor.watch([(Sensor("a", "a", "", BEGIN), Limit("a", LOW, HIGH))], BEGIN)
        at = BEGIN + timedelta(minutes=10)
        monitor.take([Reading("a", at, 25.0)], at)
        monitor.take([Reading("a", at - timedelta(minutes=2), 5.0)])
        assert len(monitor.alerts) == 1  # it was below before it was above
        assert monitor.late.value == 1
        monitor.set_limits(Limit("a", 26.0, 30.0))
        assert len(monitor.alerts) == 0
