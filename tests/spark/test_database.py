"""A database over Spark: several with one session, errors, and what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from reactive import ClosedError, Count, Database, OffloadError, Sum
from spark_backend import SparkOffload
from tests.spark.conftest import SMALL
from tests.spark.plans import Hidden


class Unlike:
    """Equal to nothing but itself."""


def totals(db: Database, name: str = "totals") -> tuple[Any, Any]:
    table: Any = db.table(tuple, name="orders")
    groups = table.group_by(lambda o: o[0])
    return table, groups.aggregate(Count(), Sum(lambda o: o[1])).materialize(name)


def test_databases_that_share_a_session_do_not_mix(session: Any, offload: Any) -> None:
    first, second = Database(offload=offload), Database(offload=offload)
    made = [totals(db) for db in (first, second)]
    for n, (table, view) in enumerate(made):
        table.add((n, n))
        view.offload()
        table.add((n, 10))
    assert [list(view) for _, view in made] == [[(0, 2, 10)], [(1, 2, 11)]]
    first.close()
    made[1][0].add((7, 7))
    assert made[1][1][7] == (1, 7)
    second.close()
    assert offload.session.is_alive()


def test_a_borrowed_session_is_left_alone(session: Any, spark: Any) -> None:
    before = dict(spark.conf.getAll)
    with Database(offload=SparkOffload(session=spark)) as db:
        table, view = totals(db)
        view.offload()
        table.add((1, 2))
        assert view[1] == (1, 2)
    assert spark.range(3).count() == 3
    assert dict(spark.conf.getAll) == before
    assert not [query.name for query in spark.streams.active]


@pytest.mark.quick
def test_folders_and_queries_are_freed_at_the_end(session: Any, spark: Any) -> None:
    offload = SparkOffload(master="local[2]", config=SMALL)
    db = Database(offload=offload)
    table, view = totals(db)
    distinct = table.distinct().materialize("distinct")
    for each in (view, distinct):
        each.offload()
    table.add((1, 2))
    assert len(distinct) == 1
    folder = Path(offload._folder)
    assert len(list(folder.iterdir())) == 3  # with the table, which nobody else reads
    distinct.close()
    table.add((1, 3))
    db.flush()
    assert len(list(folder.iterdir())) == 2 and len(db.offload_status()) == 1
    view.recall()
    assert len(list(folder.rglob("*.parquet"))) == 0 and not db.offload_status()
    view.offload()
    db.close()
    assert not folder.exists()
    with pytest.raises(ClosedError):
        view.read()


def test_a_callable_that_raises_on_spark_stops_the_flush_and_not_the_commits(
    session: Any, offload: Any
) -> None:
    with Database(offload=offload) as db:
        left: Any = db.table(tuple, name="left")
        right: Any = db.table(tuple, name="right")
        ratio = Hidden(lambda a, b: 6 // b[1] > 1)
        keys = {"left_key": lambda a: a[0], "right_key": lambda b: b[0]}
        view = left.join(right, on=ratio, **keys).materialize("pairs")
        count = left.aggregate(Count()).materialize("count")
        view.offload()
        left.add_all([(1, 1), (2, 2)])
        right.add((1, 2))
        assert list(view) == [((1, 1), (1, 2))]
        right.add((2, 0))
        right.add((1, 1))
        for _ in range(2):
            with pytest.raises(OffloadError, match=r"ZeroDivisionError(.|\n)*'pairs'"):
                len(view)
            assert view.read(stale_ok=True) == [((1, 1), (1, 2))]
        assert count.value == 2
        right.remove((2, 0))
        assert sorted(view) == [((1, 1), (1, 1)), ((1, 1), (1, 2))]
        view.verify()


def test_a_callable_above_a_part_that_raises_stops_the_flush_as_itself(
    session: Any, offload: Any
) -> None:
    with Database(offload=offload) as db:
        table, view = totals(db)
        share = view.relation.where(lambda key, n, total: 6 // total > 0).materialize("share")
        view.offload()
        table.add_all([(1, 2), (2, 0)])
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                db.flush()
        assert view.read(stale_ok=True) == share.read(stale_ok=True) == []
        table.add((2, 1))
        assert sorted(view) == [(1, 1, 2), (2, 2, 1)]
        share.verify()


def test_rows_that_cannot_be_sent_are_refused_by_the_commit(session: Any, offload: Any) -> None:
    with Database(offload=offload) as db:
        table: Any = db.table(tuple, name="rows")
        view = table.distinct().materialize("distinct")
        table.add((1, 2))
        view.offload()
        with pytest.raises(OffloadError, match="cannot be sent"):
            table.add_all([(2, 2), (3, Unlike())])
        assert len(table) == len(view) == 1
        view.recall()
        table.add((3, Unlike()))
        assert len(view) == 2
        with pytest.raises(OffloadError, match="cannot be sent"):
            view.offload()
        assert len(view) == 2
        view.verify()


def test_a_row_that_cannot_be_sent_is_refused_where_its_table_has_gone_too(
    session: Any, offload: Any
) -> None:
    with Database(offload=offload) as db:
        table: Any = db.table(tuple, name="rows")
        view = table.distinct().materialize("distinct")
        table.add((1, 2))
        view.offload()
        local = type("Local", (tuple,), {})()
        with pytest.raises(OffloadError, match="cannot be sent"):
            table.add((4, local))
        assert len(table) == len(view) == 1 and table.count((4, local)) == 0


def test_what_has_no_sum_is_refused_by_the_commit(session: Any, offload: Any) -> None:
    with Database(offload=offload) as db:
        table, view = totals(db)
        view.offload()
        with pytest.raises(TypeError):
            table.add((1, "two"))
        table.add((1, 2))
        assert view[1] == (1, 2)


def test_status_and_explain_say_where_everything_runs(session: Any, offload: Any) -> None:
    with Database(offload=offload) as db:
        table, view = totals(db)
        ordered = table.order_by(lambda o: o[1]).materialize("ordered")
        assert "in the process, can move" in str(view.explain())
        view.offload()
        table.add((1, 2))
        (line,) = db.offload_status()
        assert (line.view, line.lag, line.flushes) == ("view 'totals'", 1, 0)
        db.flush()
        (line,) = db.offload_status()
        assert (line.rows, line.lag, line.flushes) == (1, 0, 1)
        assert line.bytes > 0 and line.seconds > 0 and "Spark" in line.where
        assert "Spark, state tables of sums by group" in str(view.explain())
        assert "Spark, state tables of sums by group" in str(view.explain(analyze=True))
        assert "in the process: its rows are in one order" in str(ordered.explain())
        assert view.stats().rows == 0


def test_subscribers_that_raise_or_read_do_no_harm(session: Any, offload: Any) -> None:
    with Database(offload=offload) as db:
        table, view = totals(db)
        view.offload()
        read: list[Any] = []
        subscription = view.subscribe(lambda delta: read.append(sorted(view)))
        wrong = view.subscribe(lambda delta: 1 // 0)
        table.add((1, 2))
        assert view[1] == (1, 2)
        table.add((1, 3))
        db.flush()
        assert read == [[(1, 1, 2)], [(1, 2, 5)]]
        assert subscription.error is None and isinstance(wrong.error, ZeroDivisionError)


def test_what_is_done_inside_a_transaction(session: Any, offload: Any) -> None:
    with Database(offload=offload) as db:
        table, view = totals(db)
        with db.transaction():
            table.add((1, 2))
            view.offload()
            table.add((1, 3))
            assert view.read() == []
        assert view[1] == (2, 5)
        with pytest.raises(ZeroDivisionError), db.transaction():
            table.add((1, 4))
            view.recall()
            raise ZeroDivisionError
        assert view.read(stale_ok=True) == [(1, 2, 5)]
        view.recall()
        view.offload()
        view.offload()
        table.add((2, 2))
        view.verify()
        assert len(db.offload_status()) == 1
