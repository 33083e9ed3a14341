"""The monitor as plain Python: the rules of its README, evaluated over lists after each commit."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import fmean

MINUTE = timedelta(minutes=1)
Told = tuple[datetime, int, str, str, str, str | None]


@dataclass
class Case:
    """An incident."""

    id: int
    sensor: str
    rule: str
    since: datetime
    ended: datetime | None = None
    by: str | None = None
    seen: datetime | None = None


@dataclass
class Model:
    now: datetime
    limits: dict[str, tuple[float, float]]
    readings: dict[tuple[str, datetime], float | None] = field(default_factory=dict)
    cases: dict[int, Case] = field(default_factory=dict)
    told: list[Told] = field(default_factory=list)
    last_id: int = 0
    watched: datetime = field(init=False)
    current: set[Told] = field(default_factory=set)
    watermark: datetime | None = None
    in_time: list[tuple[str, datetime, float | None]] = field(default_factory=list)
    means: dict[tuple[str, datetime], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.watched = self.now

    def take(
        self, batch: list[tuple[str, datetime, float | None]], at: datetime
    ) -> tuple[int, int, int, int]:
        self.now = at
        new = known = old = ahead = 0
        for sensor, moment, value in batch:
            if at - moment >= 15 * MINUTE:
                old += 1
            elif (sensor, moment) in self.readings:
                known += 1
            elif moment - at > MINUTE / 2:
                ahead += 1
            else:
                new += 1
                self.readings[sensor, moment] = value
                if self.watermark is None or moment >= self.watermark:
                    self.in_time.append((sensor, moment, value))
        self._follow_stream()
        self.commit()
        return new, known, old, ahead

    def acknowledge(self, id: int, by: str) -> None:
        self.cases[id].by, self.cases[id].seen = by, self.now
        self.commit()

    def set_limits(self, sensor: str, low: float, high: float) -> None:
        self.limits[sensor] = low, high
        self.commit()

    def restart(self) -> None:
        """Begin the stream anew with the readings of the minutes that may change."""
        last = max((at for _, at in self.readings), default=None)
        self.in_time, self.watermark = [], None
        if last is not None:
            begin = (last - MINUTE / 2).replace(second=0)
            self.in_time = [(s, at, v) for (s, at), v in self.readings.items() if at >= begin]
        self._follow_stream()
        self.commit()

    def _follow_stream(self) -> None:
        by_minute: dict[tuple[str, datetime], list[float]] = {}
        for sensor, at, value in self.in_time:
            if value is not None:
                by_minute.setdefault((sensor, at.replace(second=0)), []).append(value)
        self.means |= {key: fmean(values) for key, values in by_minute.items()}
        newest = max((at for _, at, _ in self.in_time), default=None)
        if newest is not None:
            mark = newest - MINUTE / 2
            self.watermark = mark if self.watermark is None else max(mark, self.watermark)

    def commit(self) -> None:
        """Expire, tell, let the incidents follow, and tell again."""
        age = self.now - 15 * MINUTE
        self.readings = {key: v for key, v in self.readings.items() if key[1] > age}
        self.means = {key: v for key, v in self.means.items() if key[1] > self.now - 30 * MINUTE}
        self.cases = {
            id: case
            for id, case in self.cases.items()
            if case.ended is None or self.now - case.ended < timedelta(hours=6)
        }
        self._tell()
        raised, ended = self.conditions()
        open_ = {(case.sensor, case.rule): case for case in self.cases.values() if not case.ended}
        for condition in sorted(raised - set(open_)):
            self.last_id += 1
            self.cases[self.last_id] = Case(self.last_id, *condition, since=self.now)
        for condition in ended & set(open_):
            open_[condition].ended = self.now
        self._tell()

    def conditions(self) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
        """Return the conditions that raise alerts, and those that end them."""
        raised: set[tuple[str, str]] = set()
        ended: set[tuple[str, str]] = set()
        for sensor, (low, high) in self.limits.items():
            own = sorted((at, value) for (of, at), value in self.readings.items() if of == sensor)
            outside = [v for _, v in own if v is not None and not low <= v <= high]
            if outside:
                (raised if outside[-1] > high else ended).add((sensor, "high"))
            if any(self.now - at < 5 * MINUTE for at, _ in own):
                ended.add((sensor, "silent"))
            elif self.now - self.watched >= 5 * MINUTE:
                raised.add((sensor, "silent"))
            failures = sum(value is None and self.now - at < MINUTE for at, value in own)
            if failures == 0:
                ended.add((sensor, "failing"))
            elif failures >= 3:
                raised.add((sensor, "failing"))
        return raised, ended

    def _tell(self) -> None:
        before, self.current = self.current, set(self._due())
        self.told += sorted(self.current - before)

    def _due(self) -> list[Told]:
        found: list[Told] = []
        for case in self.cases.values():
            about = case.sensor, case.rule
            found.append((case.since, case.id, "raised", *about, None))
            if case.seen is not None:
                found.append((case.seen, case.id, "acknowledged", *about, case.by))
            if case.ended is not None:
                found.append((case.ended, case.id, "ended", *about, None))
            elif case.seen is None and self.now - case.since >= 3 * MINUTE:
                found.append((case.since + 3 * MINUTE, case.id, "escalated", *about, None))
        return found
