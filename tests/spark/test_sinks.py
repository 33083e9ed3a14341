"""Sinks with Spark: plain reads of their files, names in the catalog, frames, restarts."""

from __future__ import annotations

import importlib
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from py4j.protocol import Py4JNetworkError

from reactive import Count, Database, OffloadError, Sum
from spark_backend import KafkaTopic, RowsFolder, SparkOffload
from spark_backend.sinks import frame_rows
from spark_backend.sinks.frame_rows import refusals
from spark_backend.state.tables import StateTables


@dataclass(frozen=True, slots=True)
class Order:
    town: str
    amount: int


ORDERS = [Order("abc"[n % 3], n) for n in range(9)]


def begin(spark: Any, folder: Path, orders: list[Order], **options: Any) -> Any:
    """Return the database of a process, its orders, and their totals per town."""
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
    with pytest.raises(OffloadError, match="write a MERGE in a function of frames"):
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
    """Count the rows that pass from Spark and its files into the driver."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.rows = 0
        for name in ("collect", "toArrow", "toPandas", "take"):
            self._spy(patch, type_of_frames(), name)
        self._spy(patch, StateTables, "_fetch_rows")

    def _spy(self, patch: pytest.MonkeyPatch, of: Any, name: str) -> None:
        real = getattr(of, name)

        def fetch(*given: Any, **named: Any) -> Any:
            found = real(*given, **named)
            self.rows += len(found)
            return found

        patch.setattr(of, name, fetch)


def type_of_frames() -> Any:
    return importlib.import_module("pyspark.sql.classic.dataframe").DataFrame


def jobs(spark: Any) -> int:
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


@pytest.mark.usefixtures("by_jobs")
def test_no_row_of_a_view_on_spark_passes_the_driver(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a földer"
    db, table, view = begin(spark, tmp_path, ORDERS)
    view.offload()
    sinks = [view.write_to(folder / "changes", "changes")]
    sinks.append(view.write_to(folder / "rows", key="_1"))
    with monkeypatch.context() as patch:
        fetched = Fetched(patch)
        db.flush()
        table.remove(ORDERS[0])
        table.add(Order("d", 7))
        view._engine.offloading.flush()
        before = jobs(spark)
        sinks[0].flush()
        assert jobs(spark) == before + 1, "the changes"
        sinks[1].flush()
        assert jobs(spark) == before + 3, "the changes by bucket, and the buckets"
        assert fetched.rows == 0
        assert len(list(view)) == 4
        assert fetched.rows >= 4, "the spy sees what is fetched"
    changes = spark.read.parquet(str(folder / "changes"))
    assert changes.columns == ["_1", "_2", "_3", "weight", "batch"]
    assert changes.schema["_3"].dataType.simpleString() == "bigint", "as in files of the process"
    net = changes.groupBy("_1", "_2", "_3").sum("weight").filter("`sum(weight)` <> 0")
    assert bag(net.drop("sum(weight)")) == Counter(view)
    rows = RowsFolder(folder / "rows")
    assert bag(spark.read.parquet(str(folder / "rows"))) == Counter(view)
    assert rows.read().schema.types == [pa.string(), pa.int64(), pa.int64()]
    with pytest.raises(OffloadError, match=r"two rows have the key _2 of \{"):
        view.write_to(folder / "others", key="_2").flush()
    table.add_all([Order("e", 2**62), Order("e", 2**62 + 1)])
    for sink in sinks:
        with pytest.raises(OffloadError, match="9223372036854775809 is beyond 64 bits"):
            sink.flush()
    table.remove(Order("e", 2**62))
    for sink in sinks:
        sink.flush()
    assert Counter(zip(*rows.read().to_pydict().values(), strict=True)) == Counter(view)
    net = spark.read.parquet(str(folder / "changes")).groupBy("_1", "_2", "_3").sum("weight")
    assert bag(net.filter("`sum(weight)` <> 0").drop("sum(weight)")) == Counter(view)
    db.close()


def test_messages_have_the_row_of_now_of_each_key_or_none(spark: Any, tmp_path: Path) -> None:
    changes = [("a", 1, None, -1), ("a", 2, "ü", 1), ("b", 3, "x", -1), ("c", 4, None, 1)]
    frame = spark.createDataFrame(changes, "town string, count int, note string, weight long")

    def read(topic: KafkaTopic) -> list[tuple[Any, ...]]:
        made = topic.messages(frame, 7)
        assert [name for name, _ in made.dtypes] == ["key", "value", "headers"]
        return [
            (r.key, r.value, {h.key: bytes(h.value) for h in r.headers}) for r in made.collect()
        ]

    values = [
        '{"town":"a","count":1,"note":null}',
        '{"town":"b","count":3,"note":"x"}',
        '{"town":"a","count":2,"note":"ü"}',
        '{"town":"c","count":4,"note":null}',
    ]
    plain = read(KafkaTopic("localhost:1", "towns"))
    assert [value for _, value, _ in plain[:2]] in (values[:2], values[1::-1]), "what goes is first"
    assert {value for _, value, _ in plain} == set(values)
    weights = {headers["weight"] for _, _, headers in plain}
    assert weights == {b"1", b"-1"} and {h["batch"] for _, _, h in plain} == {b"7"}
    keyed = {
        key: (value, headers["weight"])
        for key, value, headers in read(KafkaTopic("localhost:1", "towns", key="town"))
    }
    assert keyed == {
        '{"town":"a"}': (values[2], b"1"),
        '{"town":"b"}': (None, b"-1"),
        '{"town":"c"}': (values[3], b"1"),
    }
    with pytest.raises(OffloadError, match="'city' is none of the columns town, count, note"):
        read(KafkaTopic("localhost:1", "towns", key="city"))
    with pytest.raises(OffloadError, match=r"spark\.jars\.packages"):
        KafkaTopic("localhost:1", "towns")(frame, 7)


def test_a_topic_has_each_batch_once_also_where_one_is_tried_again(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame_rows, "FORMAT", "parquet")  # stands for a broker: it appends
    log = str(tmp_path / "log")
    topic = KafkaTopic("localhost:1", "towns", key="_1", options={"path": log})
    db, table, view = begin(spark, tmp_path, ORDERS)
    view.offload()
    sink = view.changes_to(topic)
    sink.flush()
    table.remove(ORDERS[0])
    for order in ORDERS[1::3]:
        table.remove(order)
    monkeypatch.setattr(frame_rows, "FORMAT", "none")
    with pytest.raises(Exception, match="none"):
        sink.flush()
    monkeypatch.setattr(frame_rows, "FORMAT", "parquet")
    sink.flush()
    messages = [
        (int(bytes(headers[0].value)), json.loads(key)["_1"], value and json.loads(value))
        for key, value, headers in spark.read.parquet(log).collect()
    ]
    assert sorted((n, key) for n, key, _ in messages) == [
        *[(0, "a"), (0, "b"), (0, "c")],
        *[(1, "a"), (1, "b")],
    ]
    last = {key: value for _, key, value in sorted(messages, key=lambda m: m[0])}
    assert Counter(tuple(v.values()) for v in last.values() if v) == Counter(view)
    assert last["b"] is None, "a tombstone"
    twice = spark.createDataFrame([("a", 1, 1), ("a", 2, 1)], "_1 string, n int, weight long")
    with pytest.raises(OffloadError, match=r'two rows have the key {"_1":"a"}'):
        topic(twice, 2)
    db.close()


class Merging:
    """A session whose one table is changed as MERGE would."""

    def __init__(self, spark: Any, table: dict[Any, Any]) -> None:
        self._spark, self._table = spark, table

    def sql(self, text: str) -> None:
        source = text.partition("USING (")[2].partition(") AS s")[0]
        rows = self._spark.sql(source).collect()
        assert len({row.length for row in rows}) == len(rows), "else MERGE refuses them"
        for length, words, is_there in rows:
            if is_there:
                self._table[length] = words
            else:
                self._table.pop(length, None)


@pytest.mark.quick
def test_the_merge_of_the_docs_has_each_change_once_also_where_it_is_done_again(
    spark: Any, tmp_path: Path
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "writing.md").read_text()
    body = page.partition("```text\ndef merge")[2].partition("\n\n")[0]
    given: dict[str, Any] = {}
    exec(f"def merge{body}", given)
    table: dict[Any, Any] = {}
    merging = Merging(spark, table)

    def merge(frame: Any, number: int) -> None:
        stands = SimpleNamespace(
            createOrReplaceTempView=frame.createOrReplaceTempView, sparkSession=merging
        )
        given["merge"](stands, number)
        given["merge"](stands, number)

    states: list[dict[int | None, int]] = [{2: 1, None: 1}, {2: 5, 3: 1}, {3: 1, None: 2}, {}]
    for number, after in enumerate(states):
        before: dict[Any, int] = dict(table)
        changes = [(length, n, 1) for length, n in after.items() if before.get(length) != n]
        changes += [(length, n, -1) for length, n in before.items() if after.get(length) != n]
        merge(spark.createDataFrame(changes, "length int, words int, weight long"), number)
        assert table == after


def test_spark_that_goes_while_a_batch_is_written_is_an_error_of_the_library() -> None:
    with pytest.raises(OffloadError, match=r"Spark has gone[^$]*kept"), refusals():
        raise Py4JNetworkError("Answer from Java side is empty")
    with pytest.raises(ValueError, match="another"), refusals():
        raise ValueError("another")
