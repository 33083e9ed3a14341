"""The command: what it prints, and that a notice is told once however often it is killed."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from examples.monitor import __main__ as command
from examples.monitor.__main__ import BEGIN
from examples.monitor.monitor import Monitor
from examples.monitor.outbox import Outbox, read_notices
from examples.monitor.rows import Sensor
from examples.monitor.sensors import (
    acknowledge_some,
    moment_of,
    readings_at,
    sensors_at,
    tick_of,
)
from reactive import Database
from tests.budget import TIMES
from tests.examples.shop.running import PATIENCE, ROOT, until

SEED = 3


def start(file: Path, *options: str, killed_at: int | None = None) -> subprocess.Popen[str]:
    command = ["examples.monitor"]
    if killed_at is not None:
        command = ["tests.examples.monitor.killed", str(killed_at)]
    arguments = ["--file", str(file), "--seed", str(SEED), *options]
    return subprocess.Popen(
        [sys.executable, "-m", *command, *arguments],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def tell_until(file: Path, end: datetime) -> list[dict[str, Any]]:
    """Return the notices of a monitor up to a moment, going on with what the file has."""
    told = file.with_suffix(".jsonl")
    with (
        Database(file) as db,
        closing(Outbox(told)) as outbox,
        closing(Monitor(db, BEGIN, outbox)) as monitor,
    ):
        if not monitor.sensors:
            monitor.watch(sensors_at(monitor.now), monitor.now)
        while monitor.now < end:
            acknowledge_some(monitor, SEED)
            tick = tick_of(monitor.now) + 1
            monitor.take(readings_at(tick, SEED), moment_of(tick))
    return list(read_notices(told))


@pytest.mark.long
def test_each_notice_is_told_once_however_often_the_monitor_is_killed(tmp_path: Path) -> None:
    random = Random(SEED)
    file = tmp_path / "killed.db"
    told = file.with_suffix(".jsonl")
    for _ in range(12 if TIMES else 5):
        before = told.stat().st_size if told.exists() else 0
        process = start(file, "--fast")
        until(lambda: told.exists() and told.stat().st_size > before)
        time.sleep(random.random() / 4)
        assert process.poll() is None
        process.kill()
        assert process.communicate()[1] == ""
    check_told_once(file)


@pytest.mark.long
def test_each_notice_is_told_once_if_the_monitor_is_killed_between_its_writes(
    tmp_path: Path,
) -> None:
    random = Random(SEED)
    file = tmp_path / "killed.db"
    for _ in range(20 if TIMES else 7):
        process = start(file, "--fast", killed_at=random.randint(1, 24))
        assert process.communicate(timeout=PATIENCE)[1] == ""
        assert process.returncode == -signal.SIGKILL
    check_told_once(file)


def check_told_once(file: Path) -> None:
    """Compare the notices of a monitor that was killed with those of one that was not."""
    with Database(file) as db:
        db.table(Sensor, name="sensors", key="id")
        end = moment_of(tick_of(db.clock.now) + 300)
    killed = tell_until(file, end)
    assert killed == tell_until(file.with_name("whole.db"), end)
    keys = [(notice["incident"], notice["what"]) for notice in killed]
    assert len(keys) == len(set(keys)) > 20
    lines = file.with_suffix(".jsonl").read_text().splitlines()
    batches = [json.loads(line)["batch"] for line in lines]
    assert batches == sorted(set(batches))


@pytest.mark.long
def test_a_page_goes_on_after_a_kill_with_the_same_alerts(tmp_path: Path) -> None:
    file, port = tmp_path / "monitor.db", _free_port()
    tell_until(file, BEGIN.replace(minute=9))
    options = ("--speed", "20", "--port", str(port))
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        process = start(file, *options)
        until(lambda: _state(client))
        waiting = [alert for alert in _state(client)["alerts"] if alert["by"] is None]
        seen = {"incident": waiting[0]["id"], "by": "Ann"}
        assert client.post("/acknowledge", json=seen).status_code == 200
        limits = {"sensor": "oven", "low": 1000, "high": 1001}
        assert client.post("/limits", json=limits).status_code == 200
        process.kill()
        process.communicate()
        process = start(file, *options)
        until(lambda: _state(client))
        state = _state(client)
        assert state["sensors"][3]["high"] == 1001
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=PATIENCE)[1] == ""
        assert process.returncode == 0
    notices = [(n["incident"], n["what"]) for n in read_notices(file.with_suffix(".jsonl"))]
    assert notices.count((seen["incident"], "acknowledged")) == 1
    assert len(notices) == len(set(notices))


def _state(client: httpx.Client) -> Any:
    try:
        return client.get("/state").json()
    except httpx.TransportError:
        return None


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_the_fast_monitor_prints_notices_and_goes_on_where_it_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = ["--file", str(tmp_path / "monitor.db"), "--fast", "--seed", str(SEED)]
    assert command.main([*file, "--seconds", "300"]) == 0
    first = capsys.readouterr().out.splitlines()
    assert "up to 12:05:00" in first[-1]
    assert command.main([*file, "--seconds", "300"]) == 0
    second = capsys.readouterr().out.splitlines()
    assert "up to 12:10:00" in second[-1]
    assert command.main(["--file", str(tmp_path / "b.db"), *file[2:], "--seconds", "600"]) == 0
    whole = capsys.readouterr().out.splitlines()
    assert whole[:-1] == first[:-1] + second[:-1]
    assert {line[0] for line in whole[:-1]} >= {"+", "-", "="}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--seconds", "0"], "0 is not a number from 1 on"),
        (["--fast", "--live"], "give one of them"),
        (["--file", "/no/such/folder/m.db"], "/no/such/folder"),
    ],
)
def test_wrong_usage_is_told(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        command.main(arguments)
    assert stopped.value.code == 2
    assert error in capsys.readouterr().err


def test_a_port_that_is_in_use_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        used.listen()
        port = used.getsockname()[1]
        with pytest.raises(SystemExit) as stopped:
            command.main(["--file", str(tmp_path / "monitor.db"), "--port", str(port)])
    assert stopped.value.code == 2
    assert f"no page at 127.0.0.1, port {port}: " in capsys.readouterr().err
