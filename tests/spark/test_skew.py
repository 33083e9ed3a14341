"""A key may have any share of the rows: its bucket is several files, which all readers find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")
from pyspark.sql import functions as F
from pyspark.sql import types as T

from reactive import Count, Database, Sum
from spark_backend import SparkOffload
from spark_backend.cluster import session as sessions
from spark_backend.cluster.session import ADAPTIVE, PARTITIONS, Session
from spark_backend.state import tables
from spark_backend.state.one_job import BUCKET, TableSpec
from spark_backend.state.tables import StateTables

ROWS, LIGHT, HEAVY = 8_000, 20, 7
COALESCED = "spark.sql.adaptive.coalescePartitions.enabled"
SCHEMA = T.StructType(
    [
        T.StructField("hash", T.LongType()),
        T.StructField("id", T.LongType()),
        T.StructField("weight", T.LongType()),
    ]
)
SPEC = TableSpec("kept", SCHEMA, ("hash", "id"), ("weight",), lambda: F.col("hash"), "hash")


@dataclass(frozen=True)
class Order:
    id: int
    customer: int


@dataclass(frozen=True)
class Client:
    id: int
    region: int


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buckets of few rows, and tasks of few bytes."""
    monkeypatch.setattr(tables, "PER_BUCKET", ROWS // 10)
    monkeypatch.setattr(sessions, "PIECE", 8_000)


@pytest.fixture
def state(session: Session, tmp_path: Path) -> StateTables:
    return StateTables(session, str(tmp_path), "plan", {"kept": SPEC})


@pytest.fixture
def many_tasks(session: Session) -> Iterator[None]:
    """Few rows are as many tasks as many rows are."""
    conf, before = session.spark.conf, session.spark.conf.get(PARTITIONS)
    conf.set(PARTITIONS, "8")
    conf.set(COALESCED, "false")
    yield
    conf.set(PARTITIONS, before)
    conf.unset(COALESCED)


def hash_of(number: int) -> int:
    """Half of the rows are of one key."""
    return HEAVY if number % 2 else number % LIGHT


def rows(session: Session, first: int = 0, weight: int = 1) -> Any:
    hashed = f"if(id % 2 = 1, {HEAVY}L, id % {LIGHT}) as hash"
    frame = session.spark.range(first, first + ROWS, numPartitions=8)
    return frame.selectExpr(hashed, "id", f"{weight}L as weight")


def expected(first: int = 0) -> Counter[tuple[int, int]]:
    return Counter((hash_of(n), n) for n in range(first, first + ROWS))


def summed(pieces: Iterable[pa.Table]) -> Counter[tuple[int, int]]:
    found = Counter[tuple[int, int]]()
    for piece in pieces:
        for row in piece.to_pylist():
            found[row["hash"], row["id"]] += row["weight"]
    return Counter({row: weight for row, weight in found.items() if weight})


def files(state: StateTables) -> Counter[str]:
    """Return the number of files of each bucket of the base."""
    base = state.manifest.tables["kept"][0]
    assert base.is_base
    return Counter(name.partition("/")[0] for name in base.files)


def check(state: StateTables, wanted: Counter[tuple[int, int]]) -> None:
    """All ways to read give the same rows."""
    of_heavy = Counter({row: n for row, n in wanted.items() if row[0] == HEAVY})
    assert summed([state.all_rows(SPEC)]) == wanted
    assert summed(state.pieces(SPEC)) == wanted
    assert summed(part.toArrow() for part in state.parts(SPEC)) == wanted
    assert summed([state.look_up(SPEC, HEAVY)]) == of_heavy
    for found in (
        summed([state.sought(SPEC, [HEAVY], None)]),
        summed([state.near(SPEC, [HEAVY]).toArrow()]),
    ):
        assert of_heavy == Counter({row: n for row, n in found.items() if row[0] == HEAVY})
        assert sum(found.values()) < sum(wanted.values()), "only some buckets are read"


def test_a_heavy_bucket_of_a_first_load_is_several_files_and_light_ones_are_one(
    state: StateTables, session: Session, tmp_path: Path
) -> None:
    state.flush(0, {"kept": rows(session)}, rows=ROWS)
    found = files(state)
    assert found.pop(f"{BUCKET}={HEAVY % state.buckets(SPEC)}") > 2
    assert set(found.values()) == {1}
    assert max(state.manifest.tables["kept"][0].each) < ROWS // 4
    check(state, expected())
    check(StateTables(session, str(tmp_path), "plan", {"kept": SPEC}), expected())


@pytest.mark.usefixtures("many_tasks")
def test_so_is_one_of_a_new_base(state: StateTables, session: Session) -> None:
    state.flush(0, {"kept": rows(session)}, rows=ROWS)
    state.flush(1, {"kept": rows(session, ROWS)}, rows=ROWS)
    state.flush(2, {"kept": rows(session, weight=-1).limit(1)}, rows=1)
    state.compact()
    assert state.is_added_up(SPEC)
    assert files(state)[f"{BUCKET}={HEAVY % state.buckets(SPEC)}"] > 2
    written = state.written(2, SPEC)
    assert written is not None
    gone = summed([written])
    wanted = expected() + expected(ROWS)
    wanted.update(gone)
    check(state, +wanted)


@pytest.mark.quick
def test_spark_is_asked_to_look_only_while_much_is_written(
    state: StateTables, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, adaptive = list[int](), session.adaptive

    def noted(times: int) -> AbstractContextManager[None]:
        asked.append(times)
        return adaptive(times)

    monkeypatch.setattr(session, "adaptive", noted)
    state.flush(0, {"kept": rows(session)}, rows=ROWS)
    state.flush(1, {"kept": rows(session, ROWS).limit(3)}, rows=3)
    assert asked == [1]
    assert session.spark.conf.get(ADAPTIVE) == "false"


def test_views_of_a_table_with_a_heavy_key_are_those_of_their_queries(
    session: Session, tmp_path: Path
) -> None:
    frame = rows(session).selectExpr("id", "hash as customer")
    frame.write.parquet(str(tmp_path / "orders"))
    config = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
    db = Database(offload=SparkOffload(session=session.spark, config=config))
    orders = db.spark_table(str(tmp_path / "orders"), Order)
    clients = db.spark_table(
        session.spark.range(LIGHT).selectExpr("id", "id % 3 as region"), Client
    )
    joined = orders.join(clients, on=lambda o, c: o.customer == c.id)
    by_region = joined.group_by(lambda o, c: c.region).aggregate(Count(), Sum(lambda o, c: o.id))
    view = by_region.materialize()
    view.verify()
    assert sum(count for _, count, _ in view) == ROWS
    for change in (orders.add, orders.remove):
        change(Order(ROWS, HEAVY))
        view.verify()
    with db.transaction():
        clients.remove(Client(HEAVY, HEAVY % 3))
        clients.add(Client(HEAVY, 5))
    view.verify()
    assert view[5][0] == ROWS // 2
    db.close()
