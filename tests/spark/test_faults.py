"""Files and sessions that are removed, full or stopped: errors say what to do, and views recover.

The protocol of files is tried at each of its moments in `tests/faults`, without Spark.
"""

from __future__ import annotations

import resource
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

pytest.importorskip("pyspark")

from reactive import Collect, Count, Database, OffloadError
from spark_backend import SparkOffload
from spark_backend.cluster.session import Session
from spark_backend.state.tables import StateTables


@dataclass(frozen=True, slots=True)
class Order:
    town: int
    amount: float


class World:
    """A part of columns, without sums, which take long to plan; an operator in Python workers; and
    a view of the process."""

    def __init__(self, offload: SparkOffload) -> None:
        self.db = Database(offload=offload)
        self.orders: Any = self.db.table(Order, name="orders")
        self.towns: Any = self.db.table(tuple[int, str], name="towns")
        both = self.orders.join(self.towns, on=lambda o, t: o.town == t[0])
        groups = both.group_by(lambda o, t: t[1])
        self.columns: Any = groups.aggregate(Count()).materialize("counts")
        rows = self.orders.group_by(lambda o: o.town).aggregate(Collect(lambda o: o.amount))
        self.workers: Any = rows.materialize("amounts")
        self.near: Any = self.orders.where(lambda o: o.amount > 2).materialize("near")
        self.towns.add_all([(0, "a"), (1, "b")])
        self.orders.add_all(Order(n % 2, float(n)) for n in range(6))

    @property
    def views(self) -> tuple[Any, Any]:
        """The views that move."""
        return self.columns, self.workers

    def move(self) -> None:
        for view in self.views:
            view.offload()

    def check(self) -> None:
        for view in (*self.views, self.near):
            view.verify()


@pytest.fixture
def world(spark: Any, tmp_path: Path) -> Iterator[World]:
    made = World(SparkOffload(session=spark, checkpoint=tmp_path / "state", threshold_rows=None))
    made.move()
    yield made
    made.db.close()


def test_state_that_is_removed_is_told_and_made_anew(world: World, tmp_path: Path) -> None:
    world.check()
    shutil.rmtree(tmp_path / "state")
    for view in world.views:
        with pytest.raises(OffloadError, match=r"cannot be read(.|\n)*view.recall\(\)"):
            view.read(stale_ok=True)
    assert any("cannot be read" in line.error for line in world.db.offload_status())
    world.orders.add(Order(1, 9.0))
    assert len(world.near) == 4
    with pytest.raises(OffloadError, match=r"is missing; (.|\n)*view.recall\(\) computes"):
        world.db.flush()
    world.orders.add(Order(0, 5.0))
    for view in world.views:
        view.recall()
    world.check()
    world.move()
    world.orders.remove(Order(0, 5.0))
    world.check()


@contextmanager
def full(session: Session) -> Iterator[None]:
    """The JVM can write no files meanwhile."""
    pid = session.spark.sparkContext._gateway.proc.pid
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process")
@pytest.mark.usefixtures("by_jobs")
def test_a_flush_that_cannot_write_changes_nothing_and_is_made_up_for(
    world: World, session: Session
) -> None:
    before = [sorted(view.read()) for view in world.views]
    world.orders.add(Order(1, 9.0))
    with full(session):
        with pytest.raises(OffloadError, match=r"File too large(.|\n)*will be tried again"):
            world.db.flush()
        assert [sorted(view.read(stale_ok=True)) for view in world.views] == before
        world.orders.add(Order(1, 8.0))
        assert len(world.near) == 5
    world.orders.remove(Order(1, 9.0))
    world.check()


@pytest.mark.quick
def test_two_that_share_a_session_do_not_share_a_checkpoint(spark: Any, tmp_path: Path) -> None:
    first, second, other = (
        SparkOffload(session=spark, checkpoint=tmp_path / name, threshold_rows=None)
        for name in ("one", "one", "two")
    )
    with Database(offload=first):
        for _ in range(2):
            with pytest.raises(OffloadError, match="in use\n  one SparkOffload at a time"):
                Database(offload=second)
        Database(offload=other).close()
    Database(offload=second).close()


@contextmanager
def stopping(spark: Any) -> Iterator[None]:
    """The session is stopped when a flush, which has been planned, is about to write."""
    real = StateTables._job

    def job(state: StateTables, *of: Any) -> None:
        spark.stop()
        real(state, *of)

    with patch.object(StateTables, "_job", job):
        yield


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("by_jobs")
def test_a_session_that_its_user_stops_in_a_flush_is_told_and_what_is_kept_is_still_read(
    spark: Any, tmp_path: Path
) -> None:
    """And told again, where it has been stopped. Those after it begin with another context."""
    world = World(SparkOffload(session=spark, checkpoint=tmp_path, threshold_rows=None))
    heard: list[Any] = []
    subscription = world.columns.subscribe(heard.append)
    world.move()
    world.orders.add(Order(1, 9.0))
    world.check()
    before = [sorted(view.read()) for view in world.views]
    world.orders.add(Order(0, 7.0))
    for _ in range(2):
        with pytest.raises(OffloadError) as caught, stopping(spark):
            world.db.flush()
        told = str(caught.value)
        assert "is gone" in told and "make a new one" in told and "view.recall()" in told
        assert "not up to date: view 'counts', view 'amounts'" in told
        assert [sorted(view.read(stale_ok=True)) for view in world.views] == before
    assert len(world.near) == 5
    with pytest.raises(OffloadError, match="is gone"):
        world.columns.to_spark()
    for view in world.views:
        view.recall()
    world.orders.add(Order(0, 1.0))
    world.check()
    assert len(heard) == 3 and not subscription.closed
    world.db.close()
