"""Parts above the threshold move to Spark without a request, and return, while commits continue."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pyspark")

from reactive import Count, Database, Max, Sum, TableError
from reactive.engine.storage.store import BagStore
from spark_backend import SparkOffload
from tests.replica import Replica
from tests.spark.conftest import SMALL

pytestmark = pytest.mark.usefixtures("either_way")


def settle(db: Database) -> None:
    assert db._offloading.overflow is not None
    db._offloading.overflow.background.settle()


@pytest.fixture
def small(session: Any) -> Iterator[Any]:
    """Makes databases whose operators move above some rows."""
    made: list[Database] = []

    def make(**options: Any) -> Database:
        db = Database(offload=SparkOffload(master="local[2]", config=SMALL, **options))
        made.append(db)
        return db

    yield make
    for db in made:
        db.close()


def totals(db: Database) -> tuple[Any, Any]:
    table: Any = db.table(tuple, name="orders")
    groups = table.group_by(lambda o: o[0])
    return table, groups.aggregate(Count(), Sum(lambda o: o[1])).materialize("totals")


def test_a_view_moves_and_comes_back_in_the_middle_of_a_history(small: Any) -> None:
    db = small(threshold_rows=100)
    table, view = totals(db)
    largest = table.group_by(lambda o: o[0] % 5).aggregate(Max(lambda o: o[1])).materialize()
    replicas = [Replica(view), Replica(largest)]
    table.add_all((n, 0.1 * n) for n in range(90))
    settle(db)
    assert not db.offload_status()
    for n in range(90, 150):
        table.add((n, 0.1 * n))
    settle(db)
    assert any(line.operator.startswith("aggregate Count") for line in db.offload_status())
    for n in range(30):
        table.remove((n, 0.1 * n))
        table.add((n, 1.5))
    for each, replica in zip((view, largest), replicas, strict=True):
        each.verify()
        replica.check()
    assert view[3] == (1, 1.5) and view[100] == (1, 10.0) and 1000 not in view
    table.replace_all((n, 2) for n in range(10))
    db.flush()
    for n in range(10, 50):
        table.add((n % 10, n))
        table.remove((n % 10, n))
    settle(db)
    assert not db.offload_status()
    assert sorted(view.read(stale_ok=True)) == [(n, 1, 2) for n in range(10)]
    table.add((3, 4))
    assert view[3] == (2, 6)
    for each, replica in zip((view, largest), replicas, strict=True):
        each.verify()
        replica.check()


def test_a_table_goes_with_the_view_that_alone_reads_it_and_comes_back(small: Any) -> None:
    db = small(threshold_rows=None)
    table, view = totals(db)
    table.add_all((n % 50, n) for n in range(500))
    table.add((7, 7))
    view.offload()
    assert not isinstance(table._store, BagStore)
    assert len(table) == 501 and table.count((7, 7)) == 2 and (500, 1) not in table
    table.add((51, 1.0))
    table.remove((51, True))  # as equal as in the process
    with pytest.raises(TableError):
        table.remove((51, 1))
    with pytest.raises(ZeroDivisionError), db.transaction():
        table.remove((7, 7), 2)
        assert table.count((7, 7)) == 0
        raise ZeroDivisionError
    assert table.count((7, 7)) == 2
    table.add((None, 3))
    view.verify()
    recent = table.where(lambda o: o[1] > 490).distinct().materialize("recent")
    assert isinstance(table._store, BagStore)
    table.remove((7, 7), 2)
    assert len(recent) == 9
    for each in (view, recent):
        each.verify()
    view.recall()
    table.clear()
    assert len(view) == len(recent) == len(table) == 0


def test_a_writer_waits_where_spark_lags(small: Any) -> None:
    db = small(threshold_rows=None, max_waiting=50)
    table, view = totals(db)
    table.add((0, 0))
    view.offload()
    for n in range(130):
        table.add((n, 1))
        assert db.offload_status()[0].lag <= 50
    assert db.offload_status()[0].flushes == 2
    view.verify()


@pytest.mark.quick
def test_writers_and_readers_go_on_while_flushes_and_moves_are_under_way(small: Any) -> None:
    db = small(threshold_rows=None)
    table, view = totals(db)
    other = table.where(lambda o: o[0] == 1).materialize("other")
    table.add_all((n, 0) for n in range(10))
    failed: list[BaseException] = []
    done = threading.Event()

    def write(own: int) -> None:
        try:
            for n in range(200):
                with db.transaction():
                    table.add((own, n))
                    table.add((own, -n))
        except BaseException as error:
            failed.append(error)

    def read() -> None:
        try:
            while not done.is_set():
                rows = dict(view)
                assert all(total == 0 and count % 2 for count, total in rows.values()), rows
        except BaseException as error:
            failed.append(error)

    writers = [threading.Thread(target=write, args=(own,)) for own in (1, 2)]
    reader = threading.Thread(target=read)
    for thread in (*writers, reader):
        thread.start()
    view.offload()
    for writer in writers:
        writer.join()
    view.recall()
    done.set()
    reader.join()
    assert not failed
    assert view[1] == view[2] == (401, 0) and len(other) == 401
    view.verify()


def test_flushes_come_by_themselves_at_intervals(small: Any) -> None:
    db = small(threshold_rows=None, flush_interval=0.1)
    table, view = totals(db)
    view.offload()
    heard = threading.Event()
    subscription = view.subscribe(lambda delta: heard.set())
    table.add((1, 1))
    assert heard.wait(60)
    assert view.read(stale_ok=True) == [(1, 1, 1)]
    assert not subscription.closed
