"""The rows of the monitor's tables and views. Moments have a time zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Sensor:
    id: str
    name: str
    unit: str
    watched: datetime
    """The moment since when the sensor could be heard: silence before it means nothing."""


@dataclass(frozen=True, slots=True)
class Limit:
    sensor: str
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Reading:
    sensor: str
    at: datetime
    value: float | None
    """None: the sensor answered, but could not measure."""


@dataclass(frozen=True, slots=True)
class Minute:
    """The mean of the readings of a sensor in the minute from `start` on."""

    sensor: str
    start: datetime
    mean: float


@dataclass(frozen=True, slots=True)
class Incident:
    """One alert, from its begin to its end; `ended` is None while it lasts."""

    id: int
    sensor: str
    rule: str
    since: datetime
    ended: datetime | None = None


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    incident: int
    by: str
    at: datetime


class Condition(NamedTuple):
    """A rule that a sensor breaks, or keeps."""

    sensor: str
    rule: str


class Alert(NamedTuple):
    """An incident that lasts, for the page."""

    id: int
    sensor: str
    rule: str
    since: datetime
    by: str | None
    is_escalated: bool


class Card(NamedTuple):
    """A sensor with its limits and its last reading, for the page."""

    id: str
    name: str
    unit: str
    low: float
    high: float
    at: datetime | None
    value: float | None


class Notice(NamedTuple):
    """A notice that people get: an incident was raised, escalated, acknowledged, or ended."""

    at: datetime
    incident: int
    what: str
    sensor: str
    rule: str
    by: str | None
