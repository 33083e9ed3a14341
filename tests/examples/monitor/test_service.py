"""The routes of the page: its state, its events, and requests that are refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from examples.monitor import service
from examples.monitor.monitor import Monitor
from examples.monitor.outbox import Outbox
from examples.monitor.rows import Limit, Reading, Sensor
from reactive import Database
from tests.examples.shop.running import PATIENCE, until

BEGIN = datetime(2024, 5, 1, 12, tzinfo=UTC)
NAME = "<b>Kiln</b> & co"


@dataclass
class Served:
    monitor: Monitor
    client: httpx.Client

    def post(self, path: str, body: Any, **headers: str) -> tuple[int, Any]:
        answer = self.client.post(path, content=json.dumps(body), headers=headers)
        return answer.status_code, answer.json()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A monitor of one sensor, which is above its limit, and its page."""
    with (
        Database(tmp_path / "monitor.db") as db,
        closing(Outbox(tmp_path / "monitor.jsonl")) as outbox,
        closing(Monitor(db, BEGIN, outbox)) as monitor,
        service.serve(monitor, "127.0.0.1", 0) as address,
        httpx.Client(base_url=address, timeout=PATIENCE, trust_env=False) as client,
    ):
        monitor.watch([(Sensor("kiln", NAME, "°C", BEGIN), Limit("kiln", 10.0, 20.0))], BEGIN)
        monitor.take([Reading("kiln", BEGIN, 25.0)])
        yield Served(monitor, client)


def test_the_state_has_alerts_sensors_with_means_and_notices(served: Served) -> None:
    state = served.client.get("/state").json()
    at = BEGIN.isoformat()
    assert state["alerts"] == [
        {
            "id": 1,
            "sensor": "kiln",
            "rule": "high",
            "since": at,
            "by": None,
            "is_escalated": False,
        }
    ]
    (sensor,) = state["sensors"]
    assert (sensor["name"], sensor["low"], sensor["high"]) == (NAME, 10.0, 20.0)
    assert (sensor["value"], sensor["at"], sensor["means"]) == (25.0, at, [[at, 25.0]])
    assert [notice["what"] for notice in state["notices"]] == ["raised"]
    assert state["clock"] == {"now": at, "late": 0}


@pytest.mark.parametrize("path", ["/", "/page.css", "/page.js"])
def test_the_page_loads_nothing_from_elsewhere(served: Served, path: str) -> None:
    answer = served.client.get(path)
    assert answer.status_code == 200
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    assert "://" not in answer.text


def test_events_have_all_parts_first_and_then_those_that_change(served: Served) -> None:
    with served.client.stream("GET", "/events") as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        events = _events(answer.iter_lines())
        first = dict(next(events) for _ in range(4))
        assert sorted(first) == ["alerts", "clock", "notices", "sensors"]
        assert served.post("/acknowledge", {"incident": 1, "by": " Ann "}) == (200, None)
        later: dict[str, Any] = {}
        while "alerts" not in later or "notices" not in later:
            name, part = next(events)
            later[name] = part
        assert later["alerts"][0]["by"] == "Ann"
        assert later["notices"][0]["what"] == "acknowledged"
        assert "sensors" not in later


def _events(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    name = ""
    for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def test_a_browser_that_leaves_is_noticed(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "QUIET", 0.05)
    monkeypatch.setattr(service, "PAGES", 1)
    for _ in range(2):
        with served.client.stream("GET", "/events") as answer:
            next(answer.iter_lines())
            refused = served.client.get("/events")
            assert (refused.status_code, refused.json()["error"]) == (
                503,
                "more than 1 pages are open",
            )
        until(lambda: _may_follow(served))


def _may_follow(served: Served) -> bool:
    with served.client.stream("GET", "/events") as answer:
        return answer.status_code == 200


def test_moved_limits_end_an_alert_and_begin_it(served: Served) -> None:
    assert served.post("/limits", {"sensor": "kiln", "low": 26, "high": 30}) == (200, None)
    assert len(served.monitor.alerts) == 0
    assert served.post("/limits", {"sensor": "kiln", "low": 1, "high": 24.5}) == (200, None)
    assert len(served.monitor.alerts) == 1
    assert served.monitor.limits["kiln"] == Limit("kiln", 1.0, 24.5)


def test_readings_are_taken_and_counted(served: Served) -> None:
    def reading(seconds: int, value: float | None) -> dict[str, Any]:
        at = BEGIN + timedelta(seconds=seconds)
        return {"sensor": "kiln", "at": at.isoformat(), "value": value}

    readings = [reading(-5, 5), reading(-5, 5), reading(0, 1), reading(-900, 1), reading(31, 1)]
    counts = {"new": 2, "known": 2, "old": 1, "ahead": 1}
    assert served.post("/readings", [*readings, reading(5, None)]) == (200, counts)
    assert served.monitor.cards[0].at == BEGIN + timedelta(seconds=5)


ACKNOWLEDGE = {"incident": 1, "by": "Ann"}
LIMITS = {"sensor": "kiln", "low": 1, "high": 2}
READING = {"sensor": "kiln", "at": "2024-05-01T12:00:00Z", "value": 1}
REFUSED: list[tuple[str, Any, int, str]] = [
    ("/acknowledge", [], 400, "the request is no object with incident, by"),
    ("/acknowledge", {"incident": 1}, 400, "by is missing"),
    ("/acknowledge", ACKNOWLEDGE | {"at": 1}, 400, "'at' is none of incident, by"),
    ("/acknowledge", ACKNOWLEDGE | {"incident": "1"}, 400, 'incident is a whole number, not "1"'),
    ("/acknowledge", ACKNOWLEDGE | {"incident": True}, 400, "incident is a whole number, not true"),
    ("/acknowledge", ACKNOWLEDGE | {"by": "  "}, 400, "by is a name of 1 to 40 characters, not ''"),
    ("/acknowledge", ACKNOWLEDGE | {"by": "a\n"}, 200, ""),
    ("/acknowledge", ACKNOWLEDGE | {"by": "a\x1bb"}, 400, "by is a name of 1 to 40 characters"),
    ("/acknowledge", ACKNOWLEDGE | {"by": "a" * 41}, 400, "by is a name of 1 to 40 characters"),
    ("/acknowledge", ACKNOWLEDGE | {"incident": 7}, 404, "no alert has the number 7"),
    ("/acknowledge", ACKNOWLEDGE | {"incident": 10**30}, 404, "no alert has the number 1000"),
    ("/limits", LIMITS | {"sensor": "x"}, 404, "there is no sensor 'x'"),
    ("/limits", LIMITS | {"low": 3}, 400, "low, 3, is above high, 2"),
    ("/limits", LIMITS | {"low": None}, 400, "low is a number, not null"),
    ("/limits", LIMITS | {"low": float("nan")}, 400, "low is a number, not nan"),
    ("/limits", LIMITS | {"high": 10**400}, 400, "high is a number, not 1000"),
    ("/readings", READING, 400, "readings are a list of objects"),
    ("/readings", [READING, READING | {"sensor": "x"}], 404, "there is no sensor 'x'"),
    ("/readings", [READING | {"at": "noon"}], 400, "at is a moment such as 2026-05-01T12:00:00Z"),
    ("/readings", [READING | {"at": "2024-05-01T12:00"}], 400, "at has no time zone"),
    ("/readings", [READING | {"value": float("inf")}], 400, "value is a number, not inf"),
    ("/nothing", {}, 404, "nothing can be sent to '/nothing'"),
]


@pytest.mark.parametrize(
    ("path", "body", "status", "error"), REFUSED, ids=[f"{r[0]} {r[3][:40]}" for r in REFUSED]
)
def test_a_request_that_cannot_be_done_says_why(
    served: Served, path: str, body: Any, status: int, error: str
) -> None:
    before = served.monitor.db.version
    found, answer = served.post(path, body)
    assert found == status
    if error:
        assert answer["error"].startswith(error)
        assert served.monitor.db.version == before


def test_an_alert_is_acknowledged_once(served: Served) -> None:
    assert served.post("/acknowledge", ACKNOWLEDGE) == (200, None)
    again = served.post("/acknowledge", ACKNOWLEDGE | {"by": "Bob"})
    assert again == (409, {"error": "Ann has acknowledged it already"})


def test_requests_that_are_no_json_too_large_or_of_other_pages_are_refused(served: Served) -> None:
    client = served.client
    assert client.post("/limits", content=b"{").json() == {"error": "the request is not JSON"}
    assert client.post("/limits", content=b"[" * 90_000).status_code == 400
    assert client.post("/limits", content=b"\xff").status_code == 400
    assert client.post("/limits", content=iter([b"{}"])).status_code == 400
    large = client.post("/limits", content=b" " * (service.MOST + 1))
    assert large.status_code == 413
    for origin in ("http://evil.test", "null", "http://["):
        assert served.post("/acknowledge", ACKNOWLEDGE, origin=origin)[0] == 403
    assert len(served.monitor.acknowledgements) == 0
    own = str(client.base_url).rstrip("/")
    assert served.post("/acknowledge", ACKNOWLEDGE, origin=own)[0] == 200
    assert client.get("/limits").status_code == 405
    put = client.put("/state")
    assert (put.status_code, put.json()) == (501, {"error": "Unsupported method ('PUT')"})
    missing = client.get("/../monitor.db")
    assert (missing.status_code, "no page" in missing.json()["error"]) == (404, True)
