"""Simulated sensors, and a simulated person who acknowledges some of their alerts.

All of it follows from the seed and the number of the tick, so that a process that was killed goes
on with the next tick as if nothing had happened.

      values     waves with noise about the limits
      failures   at times a sensor answers without a value
      silence    at times for seven minutes
      delivery   some readings come up to half a minute late, some come twice
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

from examples.monitor.monitor import Monitor
from examples.monitor.rows import Limit, Reading, Sensor

EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
STEP = timedelta(seconds=5)
"""The time between two readings of a sensor, and of a tick."""
MOST_DELAYED = 6
"""Ticks."""
PERSON = "sim"


@dataclass(frozen=True, slots=True)
class Wave:
    """The values of a sensor: a wave of some minutes about `middle`, with noise."""

    id: str
    name: str
    unit: str
    middle: float
    swing: float
    minutes: float

    def limit(self) -> Limit:
        """Return limits near the top of the wave, further apart than the noise."""
        low, high = (round(self.middle + part * self.swing, 1) for part in (0.3, 0.8))
        return Limit(self.id, low, high)

    def value(self, tick: int, noise: float) -> float:
        turn = 2 * math.pi * tick * STEP / timedelta(minutes=self.minutes)
        return round(self.middle + self.swing * (math.sin(turn) + 0.1 * noise), 1)


WAVES = (
    Wave("boiler", "Boiler", "°C", 72.0, 20.0, 9.0),
    Wave("cellar", "Cellar humidity", "%", 55.0, 15.0, 23.0),
    Wave("fridge", "Fridge", "°C", 4.0, 2.5, 13.0),
    Wave("oven", "Oven", "°C", 210.0, 30.0, 17.0),
    Wave("pump", "Pump", "bar", 3.2, 1.1, 7.0),
    Wave("tank", "Tank", "m", 2.4, 0.9, 31.0),
)


def sensors_at(moment: datetime) -> Iterator[tuple[Sensor, Limit]]:
    """Yield the simulated sensors and their limits."""
    for wave in WAVES:
        yield Sensor(wave.id, wave.name, wave.unit, moment), wave.limit()


def tick_of(moment: datetime) -> int:
    """Return the number of the last tick up to a moment."""
    return (moment - EPOCH) // STEP


def moment_of(tick: int) -> datetime:
    return EPOCH + tick * STEP


def readings_at(tick: int, seed: int) -> list[Reading]:
    """Return the readings that arrive with a tick, of this one and of earlier ones."""
    found: list[Reading] = []
    for wave in WAVES:
        for made in range(tick - MOST_DELAYED - 1, tick + 1):
            random = Random(f"{seed} {wave.id} {made}")
            delay = random.randrange(1, MOST_DELAYED + 1) if random.random() < 0.1 else 0
            is_repeated = random.random() < 0.05
            if made + delay == tick or (is_repeated and made + delay + 1 == tick):
                found += _reading(wave, made, random, seed)
    return found


def _reading(wave: Wave, tick: int, random: Random, seed: int) -> list[Reading]:
    shifted = tick + 41 * WAVES.index(wave)
    if _is_in_spell(f"{seed} {wave.id} silent", shifted, every=240, length=84):
        return []
    fails = _is_in_spell(f"{seed} {wave.id} failing", shifted, every=100, length=9)
    fails = fails and random.random() < 0.6
    value = None if fails else wave.value(tick, random.gauss(0, 1))
    return [Reading(wave.id, moment_of(tick), value)]


def _is_in_spell(seed: str, tick: int, *, every: int, length: int) -> bool:
    """Return True at the begin of some of the parts of time, of `every` ticks each."""
    part, place = divmod(tick, every)
    return place < length and Random(f"{seed} {part}").random() < 0.25


def acknowledge_some(monitor: Monitor, seed: int) -> None:
    """Acknowledge, as a person would: after half a minute up to five, or never."""
    for alert in monitor.alerts.snapshot():
        random = Random(f"{seed} {alert.id}")
        wait = timedelta(seconds=random.randrange(30, 300))
        is_seen = random.random() < 0.7
        if is_seen and alert.by is None and monitor.now - alert.since >= wait:
            monitor.acknowledge(alert.id, PERSON)
