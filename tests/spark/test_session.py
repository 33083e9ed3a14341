"""Sessions: errors without Spark, and ownership of sessions."""

from __future__ import annotations

from typing import Any

import pytest

from reactive import Database, OffloadError
from reactive.engine.remote.fragments import Fragment, offloaded_fragment
from spark_backend import SparkOffload
from spark_backend.cluster import session as sessions
from spark_backend.cluster.session import Session
from tests.spark.histories import History, Twins


def distinct() -> Fragment:
    return offloaded_fragment(Database().table(tuple, name="t").distinct().plan)


def test_without_java_it_says_what_to_install(monkeypatch: Any, tmp_path: Any) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(OffloadError, match="no Java found\n  install Java 17 or later"):
        SparkOffload()


def test_without_pyspark_it_says_what_to_install(monkeypatch: Any) -> None:
    monkeypatch.setattr(sessions, "find_spec", lambda name: None)
    with pytest.raises(OffloadError, match=r"pip install '\.\[spark\]'"):
        SparkOffload()


def test_old_java_is_told(monkeypatch: Any) -> None:
    monkeypatch.setattr(sessions, "_java_version", lambda: 8)
    with pytest.raises(OffloadError, match="Java 8 is too old"):
        SparkOffload()


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("local", "local[1,4]"),
        ("local[2]", "local[2,4]"),
        ("local[*]", "local[*,4]"),
        ("local[2,9]", "local[2,9]"),
        ("spark://host:7077", "spark://host:7077"),
    ],
)
def test_local_masters_try_tasks_again(given: str, used: str) -> None:
    assert Session(master=given)._master == used


@pytest.mark.quick
def test_a_session_that_was_given_is_left_alone(spark: Any, tmp_path: Any) -> None:
    given = spark.newSession()
    given.conf.set("spark.sql.shuffle.partitions", "7")
    rate = given.readStream.format("rate").load()
    other = rate.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    before = dict(given.conf.getAll)
    offload = SparkOffload(session=given)
    offload.open()
    twins = Twins(distinct(), offload.begin(distinct(), "a"))
    twins.apply(History(1, 1).changes(10))
    offload.close()
    assert dict(given.conf.getAll) == before
    assert given.range(3).count() == 3
    assert other.isActive
    other.stop()


def test_a_shuffle_has_as_many_partitions_as_tasks_run_at_a_time(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "spark.sql.shuffle.partitions"
    assert spark.conf.get(name) == str(spark.sparkContext.defaultParallelism)
    monkeypatch.setattr(type(spark.sparkContext), "defaultParallelism", 7)
    assert Session(session=spark).spark.conf.get(name) == "7"
    assert Session(session=spark, config={name: "3"}).spark.conf.get(name) == "3"
    assert spark.conf.get(name) == "2", "that of others stays"


def test_a_session_that_was_given_and_has_gone_is_not_replaced(monkeypatch: Any) -> None:
    session = Session(session=object())
    session._own = object()
    monkeypatch.setattr(sessions.Session, "is_alive", lambda self: False)
    with pytest.raises(OffloadError, match="that was given is gone"):
        session.restart()


def test_two_at_once_do_not_disturb_each_other(session: Any) -> None:
    """Databases with the same queries, in the one JVM that a process can have."""
    mine, other = (SparkOffload(master="local[2]") for _ in range(2))
    mine.open()
    other.open()
    history = History(2, 1)
    one = Twins(distinct(), mine.begin(distinct(), "a"))
    two = Twins(distinct(), other.begin(distinct(), "a"))
    third = Twins(distinct(), other.begin(distinct(), "a"))
    for twins in (one, two, third):
        twins.apply(history.changes(5), quiet=True) if twins is one else twins.apply([])
    one.apply([(0, (1, 1), 1)])
    mine.close()
    two.apply([(0, (2, 2), 1)])
    third.apply([(0, (3, 3), 1)])
    other.close()
    assert session.is_alive()


def test_a_checkpoint_is_used_by_one_at_a_time(tmp_path: Any) -> None:
    first, second = (SparkOffload(checkpoint=tmp_path) for _ in range(2))
    first.open()
    with pytest.raises(OffloadError, match="is in use"):
        second.open()
    first.close()
    second.open()
    second.close()


def test_a_part_is_gone_on_with_after_it_was_closed(session: Any, tmp_path: Any) -> None:
    history = History(5, 1)
    offload = SparkOffload(checkpoint=tmp_path)
    offload.open()
    first = Twins(distinct(), offload.begin(distinct(), "a"))
    first.apply(history.changes(20), quiet=True)
    offload.close()
    offload.open()
    second = Twins(distinct(), offload.begin(distinct(), "a"))
    assert second.remote.resumed == 0
    second.reference = first.reference
    second.check()
    second.apply(history.changes(5))
    assert offload.begin(distinct(), "another name").resumed is None
    offload.close()


def test_a_callable_that_cannot_be_sent_is_a_reason_to_refuse(offload: SparkOffload) -> None:
    db = Database()
    a, b = db.table(tuple, name="a"), db.table(tuple, name="b")
    lock = __import__("threading").Lock()
    held = (lock,)

    def condition(a: Any, b: Any) -> bool:
        return held[0] is not None

    part = offloaded_fragment(a.join(b, left_key=lambda r: r[0], right_key=lambda r: r[0]).plan)
    assert offload.refuse(part) is None
    part = offloaded_fragment(
        a.join(b, on=condition, left_key=lambda r: r[0], right_key=lambda r: r[0]).plan
    )
    assert "cannot pickle '_thread.lock' object" in str(offload.refuse(part))


def test_a_view_moves_to_spark_and_back(session: Any) -> None:
    offload = SparkOffload(threshold_rows=None)
    db = Database(offload=offload)
    a, b = db.table(tuple, name="a"), db.table(tuple, name="b")
    view = a.join(b, left_key=lambda r: r[0], right_key=lambda r: r[0]).materialize()
    a.add((1, "x"))
    b.add((1, "y"))
    view.offload()
    a.add((1, "z"))
    assert sorted(view) == [((1, "x"), (1, "y")), ((1, "z"), (1, "y"))]
    a.remove((1, "x"))
    view.recall()
    assert list(view) == [((1, "z"), (1, "y"))]
    db.close()
