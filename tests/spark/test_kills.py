"""A kill of any process at any time loses nothing, and repeats nothing.

Starting a JVM takes as long as many flushes: one JVM is killed for all views that must survive it,
and the script that is killed continues in the JVM of the tests. `make soak` kills at random.
At each moment between two files a process stops in `tests/faults`, without Spark.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from reactive import Bag, Count, Database, OffloadError, Sum
from reactive.engine.remote.fragments import offloaded_fragment
from spark_backend import SparkOffload
from spark_backend.bucketed.remote import BucketedRemote
from tests.nests.play import added_up
from tests.replica import Replica

pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning",  # sockets of what was killed
    "ignore::pytest.PytestUnhandledThreadExceptionWarning",
)
SCRIPT = Path(__file__).parent / "driver.py"


def key(row: Any) -> Any:
    return row[0]


def kills_its_worker_once(a: Any, b: Any) -> bool:
    """A condition that kills its own process, if a file exists."""
    path = Path(a[1])
    if path.exists():
        path.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return True


def test_a_python_worker_that_is_killed_is_replaced(
    session: Any, offload: SparkOffload, tmp_path: Any
) -> None:
    db = Database()
    a, b = db.table(tuple, name="a"), db.table(tuple, name="b")
    condition = type("Hidden", (), {"__call__": lambda self, a, b: kills_its_worker_once(a, b)})()
    of = offloaded_fragment(a.join(b, on=condition, left_key=key, right_key=key).plan)
    remote = BucketedRemote(offload.session, of, str(tmp_path / "part"), stable=True)
    marker = tmp_path / "marker"
    left, right = (1, str(marker)), (1, "b")
    given = [(place, *remote.pack(place, 1, row), 1) for place, row in enumerate((left, right))]
    marker.touch()
    assert list(remote.apply(0, given)) == [((left, right), 1)]
    assert not marker.exists()
    assert list(remote.contents()) == [((left, right), 1)]
    remote.close()


def test_a_driver_that_is_killed_after_one_of_its_executors_was_is_gone_on_with(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Its rows are of a class of the script itself, which no worker can import."""
    with started(tmp_path) as first:
        assert first.stdout is not None
        found = json.loads(first.stdout.readline())
        assert found.pop("told") == "/proc/self/cwd/apart is not one folder for all machines"
        assert found == {"resumed": None, "executors": 2, "rows": 20}
        manifests = next(tmp_path.rglob("manifest"))
        wait(lambda: (manifests / "000000000002.json").exists())
        first.kill()
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), str(tmp_path), "go-on"])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert found == [{"resumed": 2, "rows": 25}, {"delta": [[4, -1], [100, 1]], "rows": 25}]


def started(folder: Path) -> subprocess.Popen[str]:
    root = str(SCRIPT.parent.parent.parent)
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", str(SCRIPT), str(folder), "begin"],
        env={**os.environ, "PYTHONPATH": root},
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def wait(until: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not until():
        assert time.monotonic() < end
        time.sleep(0.02)


class World:
    """A fragment in columns, an operator of buckets, and a view of the process."""

    def __init__(self, offload: SparkOffload) -> None:
        self.db = Database(offload=offload)
        self.orders: Any = self.db.table(tuple[int, float], name="orders")
        self.rows: Any = self.db.table(tuple, name="rows")
        totals = self.orders.distinct().group_by(key).aggregate(Count(), Sum(lambda o: o[1]))
        self.totals: Any = totals.materialize("totals")
        self.distinct: Any = self.rows.distinct().materialize("distinct")
        nest = self.orders.nest(same=lambda o: self.orders.where(lambda other: other[0] == o[0]))
        self.nest: Any = nest.materialize("nest")
        self.near: Any = self.orders.where(lambda o: o[1] > 0.2).materialize("near")
        self.replicas = [Replica(view) for view in (self.totals, self.distinct, self.near)]
        self.told: list[Any] = []
        self.hears = self.nest.subscribe(self.told.append, snapshot=True)
        self.add(0.1)
        for view in self.moved:
            view.offload()
        assert "level rows by o[0]: Spark" in self.nest.explain()
        assert "one job per flush" in self.totals.explain()

    @property
    def moved(self) -> tuple[Any, Any, Any]:
        """The views on Spark; the levels of the last one are parts of their own."""
        return self.totals, self.distinct, self.nest

    def add(self, amount: float, key: int | None = None) -> None:
        rows = [(n, amount) for n in range(5)] if key is None else [(key, amount)]
        self.orders.add_all(rows)
        self.rows.add_all(rows)

    def remove(self, key: int, amount: float) -> None:
        self.orders.remove((key, amount))
        self.rows.remove((key, amount))

    def check(self) -> None:
        for replica in self.replicas:
            replica.view.verify()
            replica.check()
        self.nest.verify()
        assert added_up(self.told) == Bag(self.nest), self.hears.error


@pytest.mark.kills_the_jvm
@pytest.mark.usefixtures("by_jobs")
def test_views_go_on_after_the_jvm_was_killed_in_a_flush_but_for_those_of_a_borrowed_session(
    session: Any, spark: Any, offload: SparkOffload
) -> None:
    """The error names the views of the borrowed session, which are moved back to the process."""
    borrowed, own = World(SparkOffload(session=spark)), World(offload)
    for world in (borrowed, own):
        world.add(0.2)
        world.check()
    before = [sorted(view) for view in (borrowed.totals, borrowed.distinct)]
    own.add(0.3, 1)
    borrowed.add(0.3, 1)
    process = spark.sparkContext._gateway.proc
    timer = threading.Timer(0.1, process.kill)
    timer.start()
    own.db.flush()
    timer.join()
    own.remove(1, 0.3)
    own.add(5.0, 2)
    own.check()
    assert own.totals[2] == (3, 5.3) and own.totals[1] == (2, 0.30000000000000004)
    assert session.spark.sparkContext._gateway.proc is not process
    refused(borrowed, before)
    for view in borrowed.moved:
        view.recall()
    borrowed.add(0.4, 3)
    borrowed.check()
    for world in (borrowed, own):
        world.db.close()


def refused(world: World, before: list[Any]) -> None:
    """A flush names the views that are not current; their rows of the last flush can still be
    read."""
    for _ in range(2):
        with pytest.raises(OffloadError) as caught:
            len(world.totals)
        told = str(caught.value)
        assert re.search(r"session .* is gone(.|\n)*not up to date: view 'totals'", told)
    assert [sorted(v.read(stale_ok=True)) for v in (world.totals, world.distinct)] == before
    assert len(world.near) == 1
