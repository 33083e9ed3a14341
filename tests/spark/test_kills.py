"""Whatever is killed, and whenever: nothing is lost, and nothing comes twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from reactive import Database
from reactive.remote.fragments import Fragment, part_of
from spark_backend import SparkOffload
from spark_backend.incremental.bucketed import BucketedRemote
from tests.budget import cases
from tests.spark.histories import History, Twins

pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning",  # sockets of what was killed
    "ignore::pytest.PytestUnhandledThreadExceptionWarning",
)
SCRIPT = Path(__file__).parent / "driver.py"


def key(row: Any) -> Any:
    return row[0]


def kills_its_worker_once(a: Any, b: Any) -> bool:
    """A condition in which the process that evaluates it dies, if a file says so."""
    path = Path(a[1])
    if path.exists():
        path.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return True


def distinct() -> Fragment:
    return part_of(Database().table(tuple, name="t").distinct().plan)


def jvm(session: Any) -> int:
    pid: int = session.spark.sparkContext._gateway.proc.pid
    return pid


def after(seconds: float, do: Callable[[], None]) -> threading.Timer:
    timer = threading.Timer(seconds, do)
    timer.start()
    return timer


def test_a_python_worker_that_is_killed_is_replaced(
    session: Any, offload: SparkOffload, tmp_path: Any
) -> None:
    db = Database()
    a, b = db.table(tuple, name="a"), db.table(tuple, name="b")
    condition = type("Hidden", (), {"__call__": lambda self, a, b: kills_its_worker_once(a, b)})()
    of = part_of(a.join(b, on=condition, left_key=key, right_key=key).plan)
    remote = BucketedRemote(offload.session, of, str(tmp_path / "part"), stable=True)
    marker = tmp_path / "marker"
    left, right = (1, str(marker)), (1, "b")
    given = [(place, *remote.pack(place, 1, row), 1) for place, row in enumerate((left, right))]
    marker.touch()
    assert list(remote.apply(0, given)) == [((left, right), 1)]
    assert not marker.exists()
    assert list(remote.contents()) == [((left, right), 1)]
    remote.close()


@pytest.mark.parametrize("seconds", cases(0.05, None, 0.4))
def test_a_jvm_that_is_killed_is_replaced(
    seconds: float | None, session: Any, offload: SparkOffload, tmp_path: Any
) -> None:
    """Before a flush, or so many seconds after its beginning."""
    of, history = distinct(), History(3, 1)
    twins = Twins(of, BucketedRemote(offload.session, of, str(tmp_path), stable=True))
    twins.apply(history.changes(30), quiet=True)
    twins.apply(history.changes(5))
    pid = jvm(session)
    if seconds is None:
        os.kill(pid, signal.SIGKILL)
        twins.apply(history.changes(5))
    else:
        timer = after(seconds, lambda: os.kill(pid, signal.SIGKILL))
        twins.apply(history.changes(5))
        timer.join()
    twins.apply(history.changes(5))
    assert jvm(session) != pid
    twins.remote.close()


def test_what_a_flush_wrote_without_its_manifest_does_not_count(
    session: Any, offload: SparkOffload, tmp_path: Any
) -> None:
    """As when this process was killed between the end of the job and the manifest."""
    of, history = distinct(), History(4, 1)
    remote = BucketedRemote(offload.session, of, str(tmp_path), stable=True)
    twins = Twins(of, remote)
    twins.apply(history.changes(30), quiet=True)
    changes = history.changes(5)
    stopped = patch.object(remote._tables._manifests, "put", side_effect=KeyboardInterrupt)
    with stopped, pytest.raises(KeyboardInterrupt):
        remote.apply(twins.number, twins.entries(remote, changes))
    later = BucketedRemote(offload.session, of, str(tmp_path), stable=True, trust=True)
    assert later.resumed == 0
    twins.remote = later
    twins.check()
    twins.apply(changes)
    twins.apply(history.changes(5))
    remote.close()


def test_a_driver_that_is_killed_is_gone_on_with(tmp_path: Any) -> None:
    """Its rows are of a class of the script itself, which no worker can import."""
    with started(tmp_path, "begin") as first:
        assert first.stdout is not None
        assert json.loads(first.stdout.readline()) == {"resumed": None, "rows": 20}
        manifests = next(tmp_path.rglob("manifest"))
        wait(lambda: (manifests / "000000000002.json").exists())
        first.kill()
    with started(tmp_path, "go on") as second:
        out, _ = second.communicate(timeout=120)
    found = [json.loads(line) for line in out.splitlines()]
    assert found == [{"resumed": 2, "rows": 25}, {"delta": [[4, -1], [100, 1]], "rows": 25}]


def started(folder: Path, what: str) -> subprocess.Popen[str]:
    root = str(SCRIPT.parent.parent.parent)
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", str(SCRIPT), str(folder), what],
        env={**os.environ, "PYTHONPATH": root},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def wait(until: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not until():
        assert time.monotonic() < end
        time.sleep(0.02)
