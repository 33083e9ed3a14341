"""Sinks with Spark: plain reads of what they write, names in the catalog, frames, restarts."""

from __future__ import annotations

import importlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from reactive import Count, Database, OffloadError, Sum
from spark_backend import SparkOffload
from spark_backend.state.tables import StateTables


@dataclass(frozen=True, slots=True)
class Order:
    town: str
    amount: int


ORDERS = [Order("abc"[n % 3], n) for n in range(9)]


def begin(spark: Any, folder: Path, orders: list[Order], **options: Any) -> Any:
    """A process: its database, its orders, and what they come to per town."""
    db = Database(offload=SparkOffload(session=spark, threshold_rows=None, **options))
    table = db.table(Order, name="orders")
    table.add_all(orders)
    towns = table.distinct().group_by(lambda o: o.town)
    totals = towns.aggregate(Count(), Sum(lambda o: o.amount))
    return db, table, totals.materialize("per town")


def bag(frame: Any) -> Counter[Any]:
    return Counter(map(tuple, frame.collect()))


def test_what_is_written_is_read_as_it_is_with_every_kind_of_read(
    spark: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "a földer"
    db, table, view = begin(spark, tmp_path, ORDERS)
    sinks = [view.write_to(folder / "rows"), view.write_to(folder / "changes", "changes")]
    named = view.write_to("per_town_rows")
    db.flush()
    rows = spark.read.parquet(str(folder / "rows"))
    held = rows.collect()
    view.offload()
    table.remove(ORDERS[0])
    table.add(Order("d", 7))
    db.flush()
    assert Counter(map(tuple, held)) != Counter(view)
    assert bag(spark.read.parquet(str(folder / "rows"))) == Counter(view)
    assert bag(rows) == Counter(map(tuple, held)), "who has read the list has its files"
    other = spark.newSession()
    assert bag(other.sql(f"SELECT * FROM parquet.`{folder / 'rows'}`")) == Counter(view)
    changes = spark.read.parquet(str(folder / "changes"))
    assert changes.columns == ["_1", "_2", "_3", "weight", "batch"]
    net = changes.groupBy("_1", "_2", "_3").sum("weight").filter("`sum(weight)` <> 0")
    assert bag(net.drop("sum(weight)")) == Counter(view)
    assert bag(spark.sql("SELECT * FROM per_town_rows")) == Counter(view)
    stream = Database(offload=SparkOffload(session=spark, threshold_rows=None))

    def follow(spark: Any) -> Any:
        files = spark.readStream.schema(changes.schema).parquet(str(folder / "changes"))
        return files.drop("batch")

    of: Any = tuple[str, int, int]
    read: Any = stream.spark_stream(follow, of, changes="weight", trigger="available now")
    read.source.wait()
    assert Counter(map(tuple, read.to_spark().collect())) == Counter(view)
    stream.close()
    for sink in (*sinks, named):
        sink.stop()
    spark.sql("DROP VIEW per_town_rows")
    spark.sql("CREATE VIEW per_town_rows AS SELECT 1")
    with pytest.raises(OffloadError, match="MERGE of yours"):
        view.write_to("per_town_rows")
    spark.sql("DROP VIEW per_town_rows")
    db.close()


def test_a_function_of_frames_has_each_batch_once_across_processes(
    spark: Any, tmp_path: Path
) -> None:
    found: Counter[Any] = Counter()
    numbers: list[int] = []
    fails = [False]

    def receive(frame: Any, number: int) -> None:
        if fails[0]:
            raise ConnectionError("nobody is there")
        if number not in numbers:
            numbers.append(number)
            for *row, weight in frame.collect():
                found[tuple(row)] += weight

    db, table, view = begin(spark, tmp_path, ORDERS, checkpoint=tmp_path)
    view.offload()
    sink = view.changes_to(receive, frames=True)
    sink.flush()
    assert +found == Counter(view)
    table.add(Order("d", 1))
    fails[0] = True
    with pytest.raises(ConnectionError):
        sink.flush()
    db.close()
    fails[0] = False
    db, table, view = begin(spark, tmp_path, [*ORDERS[1:], Order("d", 1)], checkpoint=tmp_path)
    view.offload(adopt="process")
    view.changes_to(receive, frames=True).flush()
    assert +found == Counter(view)
    assert numbers == [0, 1, 2], "what was begun, and then the difference"
    db.close()
    db, table, _ = begin(spark, tmp_path, ORDERS, checkpoint=tmp_path)
    changed = table.where(lambda o: o.amount > 1).materialize("per town")
    with pytest.raises(OffloadError, match="another query, up to batch 2"):
        changed.changes_to(receive, frames=True)
    db.close()


class Fetched:
    """How many rows come from Spark and its files into the driver."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.rows = 0
        for name in ("collect", "toArrow", "toPandas", "take"):
            self._spy(patch, type_of_frames(), name)
        self._spy(patch, StateTables, "_fetched")

    def _spy(self, patch: pytest.MonkeyPatch, of: Any, name: str) -> None:
        real = getattr(of, name)

        def fetch(*given: Any, **named: Any) -> Any:
            found = real(*given, **named)
            self.rows += len(found)
            return found

        patch.setattr(of, name, fetch)


def type_of_frames() -> Any:
    return importlib.import_module("pyspark.sql.classic.dataframe").DataFrame


def test_no_row_of_a_view_on_spark_passes_the_driver(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a földer"
    db, table, view = begin(spark, tmp_path, ORDERS)
    view.offload()
    sinks = [view.write_to(folder / "changes", "changes")]
    with monkeypatch.context() as patch:
        fetched = Fetched(patch)
        db.flush()
        table.remove(ORDERS[0])
        table.add(Order("d", 7))
        db.flush()
        assert fetched.rows == 0
        assert len(list(view)) == 4
        assert fetched.rows >= 4, "the spy sees what is fetched"
    changes = spark.read.parquet(str(folder / "changes"))
    assert changes.columns == ["_1", "_2", "_3", "weight", "batch"]
    assert changes.schema["_3"].dataType.simpleString() == "bigint", "as in files of the process"
    net = changes.groupBy("_1", "_2", "_3").sum("weight").filter("`sum(weight)` <> 0")
    assert bag(net.drop("sum(weight)")) == Counter(view)
    table.add_all([Order("e", 2**62), Order("e", 2**62 + 1)])
    for sink in sinks:
        with pytest.raises(OffloadError, match="9223372036854775809 is beyond 64 bits"):
            sink.flush()
    table.remove(Order("e", 2**62))
    db.flush()
    net = spark.read.parquet(str(folder / "changes")).groupBy("_1", "_2", "_3").sum("weight")
    assert bag(net.filter("`sum(weight)` <> 0").drop("sum(weight)")) == Counter(view)
    db.close()
