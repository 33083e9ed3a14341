"""Tables that streams feed: each batch once, whatever its rows say and whatever is killed."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("pyspark")
import pyarrow as pa
import pyarrow.parquet as pq

from reactive import Collect, Count, Database, PlanError, SourceError, Sum, TableError
from reactive.engine.remote.remote import FrameBatch
from spark_backend import SparkOffload
from tests.budget import TIMES

PATIENCE = 120


@dataclass(frozen=True, slots=True)
class Order:
    id: int
    customer: str | None
    amount: float


@pytest.fixture
def db(session: Any, offload: Any) -> Iterator[Database]:
    with Database(offload=offload) as made:
        yield made


def put(folder: Path, name: str, rows: list[Order], **more: list[Any]) -> None:
    """A file that is there whole or not at all."""
    folder.mkdir(exist_ok=True)
    columns = {"id": pa.int64(), "customer": pa.string(), "amount": pa.float64()}
    made = {n: pa.array([getattr(r, n) for r in rows], kind) for n, kind in columns.items()}
    pq.write_table(pa.table({**made, **more}), folder / f".{name}")
    (folder / f".{name}").rename(folder / f"{name}.parquet")


def caught_up(table: Any) -> None:
    """Wait until the available rows are applied: for a source that ends then."""
    table.source.wait(timeout=PATIENCE)


def totals(orders: Any) -> Any:
    return orders.group_by(lambda o: o.customer).aggregate(Count(), Sum(lambda o: o.amount))


def wanted(rows: Counter[Any]) -> dict[Any, tuple[int, float]]:
    found: dict[Any, list[float]] = {}
    for row, n in rows.items():
        found.setdefault(row.customer, []).extend([row.amount] * n)
    return {c: (len(v), sum(v)) for c, v in found.items() if v}


def test_folders_of_rows_that_come_and_rows_that_go(db: Database, tmp_path: Path) -> None:
    comes, goes, random = tmp_path / "comes", tmp_path / "goes", Random(1)
    goes.mkdir()
    rows: Counter[Any] = Counter()
    put(comes, "0", [])
    orders: Any = db.spark_stream(
        str(comes), Order, name="orders", deletes=str(goes), trigger="available now", start=False
    )
    towns = db.table(tuple, name="towns")
    towns.add_all([("c0", "north"), ("c1", "south")])
    view = totals(orders).materialize()
    joined = (
        orders.join(towns, on=lambda o, t: o.customer == t[0])
        .group_by(lambda o, t: t[1])
        .aggregate(Count())
        .materialize()
    )
    for turn in range(3 if TIMES else 2):
        new = [Order(n, f"c{random.randrange(3)}", float(n)) for n in range(5 * turn, 5 * turn + 5)]
        old = random.sample(list(rows), min(len(rows), 2))
        put(comes, f"{turn + 1}", new)
        put(goes, f"{turn + 1}", old)
        rows.update(new)
        rows.subtract(old)
        rows = +rows
        orders.source.start()
        caught_up(orders)
        assert dict(view) == wanted(rows)
        assert Counter(orders) == rows
        by_town = Counter({"c0": "north", "c1": "south"}.get(r.customer) for r in rows)
        assert dict(joined) == {town: n for town, n in by_town.items() if town}
    assert orders.source.state == "ended" and orders.source.batches >= 2
    assert db.tokens == {"orders": orders.source.token}


def test_rows_of_a_stream_cannot_be_changed_by_hand(db: Database, tmp_path: Path) -> None:
    put(tmp_path / "in", "0", [Order(1, "a", 1.0)])
    orders: Any = db.spark_stream(str(tmp_path / "in"), Order, name="orders", key="id", start=False)
    row = Order(2, "b", 1.0)
    attempts = (
        lambda: orders.add(row),
        lambda: orders.add_all([row]),
        lambda: orders.remove(row),
        lambda: orders.upsert(row),
        lambda: orders.clear(),
        lambda: orders.add_frame(None),
        lambda: orders.replace_frame(None),
        lambda: db.ingest(None, {Order: orders}, name="mine"),
    )
    for attempt in attempts:
        with pytest.raises((TableError, PlanError), match=r"come by its stream|has its rows else"):
            attempt()
    with pytest.raises(TableError), db.transaction():
        orders.add(row)
    assert len(orders) == 0 and orders.source.state == "new" and orders.source.token is None


# What rows say.

Change = tuple[str, Order | None, Order | None]
"""`c`, `u` or `d`, with the row before and after."""
FIELDS = "id long, customer string, amount double"


class History:
    """Rows by key that come, change and go; at most one change of a key in a batch."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.rows: dict[int, Order] = {}

    def batch(self) -> list[Change]:
        found: list[Change] = []
        for key in self._random.sample(range(9), 6):
            old, new = self.rows.get(key), self._row(key)
            if old is None:
                found.append(("c", None, new))
                self.rows[key] = new
            elif self._random.random() < 0.5 and new != old:
                found.append(("u", old, new))
                self.rows[key] = new
            else:
                found.append(("d", old, None))
                del self.rows[key]
        return found

    def _row(self, key: int) -> Order:
        return Order(key, self._random.choice(["a", "b", None]), self._random.choice([0.5, 2.0]))


def fields(row: Order | None) -> tuple[Any, ...] | None:
    return None if row is None else (row.id, row.customer, row.amount)


def as_weights(changes: list[Change]) -> list[tuple[Any, ...]]:
    return [
        (*(fields(row) or ()), weight)
        for _, old, new in changes
        for row, weight in ((old, -1), (new, 1))
        if row is not None
    ]


def as_feed(names: tuple[str, str, str, str]) -> Any:
    def rows(changes: list[Change]) -> list[tuple[Any, ...]]:
        said = {("c", 1): names[0], ("d", -1): names[1], ("u", -1): names[2], ("u", 1): names[3]}
        return [
            (*(fields(row) or ()), said[kind, weight], number, "then")
            for number, (kind, old, new) in enumerate(changes)
            for row, weight in ((new, 1), (old, -1))
            if row is not None
        ]

    return rows


def as_events(changes: list[Change]) -> list[tuple[Any, ...]]:
    return [(kind, fields(old), fields(new), 7) for kind, old, new in changes] + [(None,) * 4]


DELTA = as_feed(("insert", "delete", "update_preimage", "update_postimage"))
ICEBERG = as_feed(("INSERT", "DELETE", "UPDATE_BEFORE", "UPDATE_AFTER"))
EVENT = f"op string, before struct<{FIELDS}>, after struct<{FIELDS}>, ts_ms long"
FORMS: dict[str, tuple[Any, Any, str]] = {
    "weight": ("weight", as_weights, f"{FIELDS}, weight int"),
    "Delta": (
        "cdf",
        DELTA,
        f"{FIELDS}, _change_type string, _commit_version long, _commit_timestamp string",
    ),
    "Iceberg": (
        "cdf",
        ICEBERG,
        f"{FIELDS}, _change_type string, _change_ordinal long, _commit_snapshot_id string",
    ),
    "debezium": ("debezium", as_events, EVENT),
}


KEYS = {"bag": None, "keyed": "id"}
CASES = [(form, key) for form in FORMS for key in KEYS]


@pytest.mark.parametrize(("form", "named"), CASES if TIMES else CASES[::3])
def test_a_table_is_what_the_changes_that_were_said_add_up_to(
    db: Database, spark: Any, form: str, named: str
) -> None:
    key = KEYS[named]
    changes, said, schema = FORMS[form]
    began = history_of(form)
    frame = spark.createDataFrame(said(began[0]), schema)
    orders: Any = db.spark_stream(
        frame, Order, name="orders", key=key, changes=changes, start=False, on_error="drop"
    )
    rows: dict[int, Order] = {}
    for number, batch in enumerate(began):
        frame = spark.createDataFrame(said(batch), schema)
        take(orders, frame, number)
        for _, old, new in batch:
            if old is not None:
                del rows[old.id]
            if new is not None:
                rows[new.id] = new
        assert sorted(map(repr, orders)) == sorted(map(repr, rows.values()))
    assert take(orders, frame, number) == 0
    assert sorted(map(repr, orders)) == sorted(map(repr, rows.values()))
    assert list(orders.source.errors) == [] and orders.source.token == number


def history_of(form: str) -> list[list[Change]]:
    history = History(len(form))
    return [history.batch() for _ in range(3)]


def take(table: Any, frame: Any, number: int, query: str = "q") -> int:
    """A batch as the query would hand it over."""
    found: int = table.source._commit(FrameBatch(frame, query, number, 0.0), False)
    return found


def test_of_several_changes_of_a_key_the_last_counts_if_one_knows_it(
    db: Database, spark: Any
) -> None:
    schema = f"{FIELDS}, weight int, at long"
    rows = [
        (1, "a", 1.0, 1, 5),
        (1, "b", 2.0, 1, 7),
        (1, "b", 2.0, 1, 7),
        (2, "a", 1.0, 1, 1),
        (2, "a", 1.0, -1, 2),
        (3, None, 0.5, -1, 1),
        (3, "c", 3.0, 1, 2),
    ]
    frame = spark.createDataFrame(rows, schema)
    given: Any = {"changes": "weight", "key": "id", "start": False}
    orders: Any = db.spark_stream(frame, Order, name="ordered", order="at", **given)
    take(orders, frame, 0)
    assert sorted(o.id for o in orders) == [1, 3] and orders[1] == Order(1, "b", 2.0)
    unknown: Any = db.spark_stream(frame.drop("at"), Order, name="unordered", **given)
    with pytest.raises(TableError, match=r"the key id 1 has 2 changes|the key id . has 2 changes"):
        take(unknown, frame.drop("at"), 0)
    assert unknown.source.token is None and len(unknown) == 0


# Rows that do not fit.


def odd_rows(spark: Any) -> Any:
    rows = [
        (1, "a", 1.0, "insert"),
        (None, "b", 1.0, "insert"),
        (2, "c", None, "insert"),
        (3, "d", 1.0, "upside down"),
        (4, None, 4.0, "insert"),
    ]
    return spark.createDataFrame(rows, f"{FIELDS}, _change_type string")


def test_a_row_that_does_not_fit_stops_the_source_before_its_batch(
    db: Database, spark: Any
) -> None:
    orders: Any = db.spark_stream(odd_rows(spark), Order, name="orders", changes="cdf")
    with pytest.raises(TableError, match="in 3 rows of a batch, such as"):
        orders.source.wait(timeout=PATIENCE)
    source = orders.source
    assert (source.state, source.token, source.batches) == ("failed", None, 0)
    assert isinstance(source.error, TableError) and len(orders) == 0
    with pytest.raises(PlanError, match="leaves no rows out"):
        _ = source.errors


@pytest.mark.parametrize("key", [None, "id"], ids=["bag", "keyed"])
def test_rows_that_do_not_fit_are_left_out_and_told_until_they_are_mended(
    db: Database, spark: Any, key: str | None
) -> None:
    orders: Any = db.spark_stream(
        odd_rows(spark), Order, name="orders", changes="cdf", key=key, on_error="drop"
    )
    caught_up(orders)
    view = totals(orders).materialize()
    assert sorted(o.id for o in orders) == [1, 4]
    errors = orders.source.errors
    assert sorted(e.error.message for e in errors) == [
        "column amount is null, which float is not",
        "column id is null, which int is not",
        "it does not say whether it comes or goes",
    ]
    shown = next(e for e in errors if "amount" in e.error.message)
    assert shown.row == '{"id":2,"customer":"c"}' and shown.operator == "stream orders"
    mended = spark.createDataFrame(
        [(2, "c", 2.0, "insert"), (1, "a", None, "insert")]
        if key
        else [(2, "c", None, "delete"), (2, "c", 2.0, "insert")],
        f"{FIELDS}, _change_type string",
    )
    take(orders, mended, 1, "rows")
    assert sorted(o.id for o in orders) == ([2, 4] if key else [1, 2, 4])
    assert sum("amount" in e.error.message for e in errors) == (1 if key else 0)
    assert len(errors) == (3 if key else 2)
    assert dict(view) == wanted(Counter(orders))


@pytest.mark.parametrize("format", ["csv", "json"])
def test_lines_that_cannot_be_read_are_left_out_as_they_are(
    db: Database, tmp_path: Path, format: str
) -> None:
    texts = {
        "csv": "id,customer,amount\n1,a,1.5\nx,b,1.0\n99999999999999999999,c,1\n2,,2.5\n",
        "json": '{"id":1,"customer":"a","amount":1.5}\n{"id":\n'
        '{"id":99999999999999999999,"amount":1}\n{"id":2,"amount":2.5}\n',
    }
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / f"1.{format}").write_text(texts[format])
    orders: Any = db.spark_stream(
        str(tmp_path / "in"),
        Order,
        name="orders",
        format=format,
        on_error="drop",
        trigger="available now",
    )
    caught_up(orders)
    assert sorted(orders, key=lambda o: o.id) == [Order(1, "a", 1.5), Order(2, None, 2.5)]
    lines = texts[format].splitlines()
    odd = lines[2:4] if format == "csv" else lines[1:3]
    assert sorted(e.row for e in orders.source.errors) == sorted(odd)
    assert {e.error.message for e in orders.source.errors} == {"it is malformed"}


# Once.


def test_a_batch_that_spark_runs_again_and_a_later_process_go_on_exactly(
    session: Any, tmp_path: Path
) -> None:
    """Simulate a kill after the table had the batch, and before Spark's query recorded it."""

    def database() -> Database:
        return Database(offload=SparkOffload(session=session.spark, checkpoint=tmp_path / "kept"))

    def opened(db: Database) -> tuple[Any, Any]:
        orders: Any = db.spark_stream(
            str(tmp_path / "in"), Order, name="orders", trigger="available now"
        )
        view = totals(orders).materialize("totals")
        ids = orders.group_by(lambda o: o.customer).aggregate(Collect(lambda o: o.id))
        by_itself = ids.materialize("ids")
        caught_up(orders)
        assert {who: sorted(found) for who, found in by_itself} == {
            "a": sorted(o.id for o in orders)
        }
        return orders, view

    put(tmp_path / "in", "1", [Order(1, "a", 1.0)])
    with database() as db:
        _, view = opened(db)
        assert dict(view) == {"a": (1, 1.0)}
    put(tmp_path / "in", "2", [Order(2, "a", 2.0)])
    for done in next((tmp_path / "kept").glob("table-*")).glob("query/commits/*"):
        done.unlink()
    with database() as db:
        orders, view = opened(db)
        assert sorted(o.id for o in orders) == [1, 2] and orders.source.token == 1
        orders.source.wait(token=0, timeout=PATIENCE)  # it came in the process before
        assert dict(view) == {"a": (2, 3.0)}
    shutil.rmtree(next((tmp_path / "kept").glob("table-*/query")))
    with (
        database() as db,
        pytest.raises(SourceError, match="has the rows of another query, up to its batch 1"),
    ):
        opened(db)


def test_a_stream_stops_starts_and_tells_how_it_is_doing(db: Database, spark: Any) -> None:
    ticks: Any = db.spark_stream(
        lambda spark: (
            spark.readStream.format("rate").option("rowsPerSecond", 50).load().select("value")
        ),
        int,
        name="ticks",
        trigger=0.2,
    )
    source = ticks.source
    with pytest.raises(SourceError, match="running already"):
        source.start()
    while not source.rows:
        source.wait(token=(source.token or 0) + 1, timeout=PATIENCE)
    source.stop(timeout=PATIENCE)
    assert source.state == "stopped" and source.error is None and source.lag.seconds is not None
    first, token = Counter(ticks), source.token
    source.start()
    source.wait(token=token + 1, timeout=PATIENCE)
    source.stop(timeout=PATIENCE)
    found = sorted(ticks)
    assert len(found) >= first.total() and found == list(range(len(found)))


def test_a_query_that_fails_is_told_and_goes_on_when_it_is_mended(
    db: Database, tmp_path: Path
) -> None:
    put(tmp_path / "in", "1", [Order(1, "a", 1.0)])
    (tmp_path / "in" / "2.parquet").write_text("no parquet")
    orders: Any = db.spark_stream(str(tmp_path / "in"), Order, name="orders", trigger=0)
    with pytest.raises(Exception, match=r"2\.parquet"):
        orders.source.wait(timeout=PATIENCE)
    assert orders.source.state == "failed" and len(orders) == 0
    put(tmp_path / "in", "2", [Order(2, "a", 1.0)])
    orders.source.start()
    orders.source.wait(token=0, timeout=PATIENCE)
    assert sorted(o.id for o in orders) == [1, 2]
    orders.source.stop()


def test_snapshots_change_what_differs(db: Database, tmp_path: Path) -> None:
    put(tmp_path / "now", "1", [Order(1, "a", 1.0), Order(2, "b", 2.0)])
    orders: Any = db.spark_stream(
        lambda spark: spark.read.parquet(str(tmp_path / "now")),
        Order,
        name="orders",
        key="id",
        changes="snapshot",
        trigger="available now",
    )
    caught_up(orders)
    heard: list[Any] = []
    view = orders.select(lambda o: (o.id, o.customer)).materialize()
    assert sorted(view) == [(1, "a"), (2, "b")]
    subscription = view.subscribe(heard.append)
    put(tmp_path / "now", "1", [Order(1, "a", 1.0), Order(2, "c", 2.0)])
    for _ in range(2):
        orders.source.start()
        caught_up(orders)
        db.flush()
    assert [(d.added, d.removed) for d in heard] == [(((2, "c"),), ((2, "b"),))]
    assert orders.source.token == 1 and not subscription.closed


def test_a_table_of_a_database_is_followed_by_jdbc(
    db: Database, spark: Any, tmp_path: Path
) -> None:
    log = str(tmp_path / "derby.log")
    spark._jvm.java.lang.System.setProperty("derby.stream.error.file", log)
    url = "jdbc:derby:memory:orders;create=true"  # the database that comes with Spark

    def write(rows: list[Any], mode: str) -> None:
        frame = spark.createDataFrame(rows, FIELDS).coalesce(1)
        frame.write.mode(mode).jdbc(url, "orders")

    write([(1, "a", 1.0), (2, "b", 2.0)], "overwrite")
    orders: Any = db.spark_stream(
        lambda spark: spark.read.jdbc(url, "orders"),
        Order,
        name="orders",
        key="id",
        changes="snapshot",
        trigger="available now",
    )
    caught_up(orders)
    assert Counter(orders) == Counter([Order(1, "a", 1.0), Order(2, "b", 2.0)])
    write([(2, None, 2.0), (3, "c", 3.0)], "overwrite")
    orders.source.start()
    caught_up(orders)
    assert Counter(orders) == Counter([Order(2, None, 2.0), Order(3, "c", 3.0)])


@pytest.mark.quick
@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"changes": "cdf"}, TableError, "no column _change_type says what changes"),
        ({"changes": "debezium", "change_column": "id"}, TableError, "has before and after"),
        ({"changes": "odd"}, PlanError, "is no form of changes"),
        ({"changes": "cdf", "deletes": "there"}, PlanError, "each row says itself"),
        ({"order": "when"}, TableError, "no column when orders"),
        ({"trigger": "soon"}, PlanError, "is no interval"),
        ({"key": "nr"}, PlanError, "no such field"),
        ({"on_error": "null"}, PlanError, "is no policy"),
    ],
)
def test_what_is_no_stream_is_refused_and_leaves_no_table(
    db: Database, spark: Any, given: Any, error: Any, message: str
) -> None:
    frame = spark.createDataFrame([], FIELDS)
    with pytest.raises(error, match=message):
        db.spark_stream(frame, Order, name="orders", **given)
    assert db.tables() == [] and db.tokens == {}
