"""State tables written by Spark and by this process, one after the other: all readers read both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from reactive import OffloadError
from spark_backend.cluster.session import Session
from spark_backend.state import tables
from spark_backend.state.manifest import Segment
from spark_backend.state.one_job import TableSpec, arrow_schema
from spark_backend.state.tables import StateTables
from spark_backend.state.whole import read_whole

INNER = T.StructType(
    [T.StructField("at", T.TimestampNTZType()), T.StructField("amount", T.DecimalType(38, 18))]
)
COUNTED = T.StructType([T.StructField("value", INNER), T.StructField("weight", T.LongType())])
FIELDS = [
    T.StructField("number", T.LongType()),
    T.StructField("name", T.StringType()),
    T.StructField("price", T.DoubleType()),
    T.StructField("day", T.DateType()),
    T.StructField("wide", T.DecimalType(38, 0)),
    T.StructField("small", T.DecimalType(9, 2)),
    T.StructField("data", T.BinaryType()),
    T.StructField("side", T.ByteType()),
    T.StructField("is_new", T.BooleanType()),
    T.StructField("inner", INNER),
]
WITH_LIST = T.StructType([*FIELDS, T.StructField("several", T.ArrayType(COUNTED))])


def spec_of(name: str, row: T.StructType) -> TableSpec:
    schema = T.StructType(
        [
            T.StructField("hash", T.LongType()),
            T.StructField("row", row),
            T.StructField("weight", T.LongType()),
        ]
    )
    return TableSpec(name, schema, ("hash", "row"), ("weight",), lambda: F.col("hash"), "hash")


ROWS, LISTS = spec_of("rows", T.StructType(FIELDS)), spec_of("lists", WITH_LIST)
SPECS = {spec.name: spec for spec in (ROWS, LISTS)}


@pytest.fixture
def state(session: Session, tmp_path: Path) -> StateTables:
    return StateTables(session, str(tmp_path), "plan", SPECS)


def row_of(number: int, spec: TableSpec) -> dict[str, Any] | None:
    """Return a different row for each number, some with missing parts."""
    if number == 0:
        return None
    inner = {"at": datetime(1, 1, 1, 0, 0, 0, number), "amount": Decimal(number).scaleb(-18)}
    row: dict[str, Any] = {
        "number": -number,
        "name": f"é{number}" if number % 3 else None,
        "price": 0.1 * number if number % 4 else None,
        "day": date(1, 1, number),
        "wide": Decimal(10**37 + number),
        "small": Decimal(number).scaleb(-2),
        "data": b"\0" * number,
        "side": number,
        "is_new": number % 2 == 0,
        "inner": inner if number % 2 else None,
    }
    counted = [{"value": inner, "weight": 1}, {"value": None, "weight": 2}]
    several = [counted, [], None][number % 3]
    return row if spec is ROWS else {**row, "several": several}


def plain(value: Any) -> Any:
    """A value that can be counted."""
    if isinstance(value, dict):
        return tuple((name, plain(part)) for name, part in value.items())
    if isinstance(value, list):
        return tuple(map(plain, value))
    return bytes(value) if isinstance(value, bytearray) else value


def net(found: list[dict[str, Any]]) -> Counter[Any]:
    total: Counter[Any] = Counter()
    for one in found:
        total[one["hash"], plain(one["row"])] += one["weight"]
    return Counter({row: n for row, n in total.items() if n})


def of_frame(frame: DataFrame) -> list[dict[str, Any]]:
    rows = frame.select("hash", "row", "weight").collect()
    return [row.asDict(recursive=True) for row in rows]


def entries(draw: Random, spec: TableSpec, count: int = 6) -> list[dict[str, Any]]:
    numbers = [draw.randrange(8) for _ in range(count)]
    names = spec.schema.names
    return [
        dict(zip(names, (n % 5 - 2, row_of(n, spec), draw.choice([1, 1, -1])), strict=True))
        for n in numbers
    ]


def by_spark(session: Session, spec: TableSpec, given: list[dict[str, Any]]) -> DataFrame:
    table = pa.Table.from_pylist(given, arrow_schema(spec))
    frame: DataFrame = session.spark.createDataFrame(table, spec.schema)
    return frame


def here(spec: TableSpec, given: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(given, arrow_schema(spec))


class History:
    """A history of flushes, half of them written by this process."""

    def __init__(self, state: StateTables, session: Session) -> None:
        self.state, self._session = state, session
        self._draw = Random(1)
        self.all: dict[str, list[dict[str, Any]]] = {name: [] for name in SPECS}
        self.last: dict[str, list[dict[str, Any]]] = {}

    def flush(self, *, spark: bool, rows: int = 0) -> None:
        number = 0 if self.state.number is None else self.state.number + 1
        self.last = {name: entries(self._draw, spec) for name, spec in SPECS.items()}
        for name, given in self.last.items():
            self.all[name] += given
        if spark:
            frames = {n: by_spark(self._session, SPECS[n], g) for n, g in self.last.items()}
            self.state.flush(number, frames, rows=rows)
        else:
            self.state.put(number, {n: here(SPECS[n], g) for n, g in self.last.items()})

    def check(self, spec: TableSpec) -> None:
        """All readers read the same."""
        wanted = net(self.all[spec.name])
        parts = self.state.parts(spec)
        assert net([row for part in parts for row in of_frame(part)]) == wanted
        assert net(of_frame(self.state.near(spec))) == wanted
        assert net(self.state.all_rows(spec).to_pylist()) == wanted
        assert net([r for p in self.state.pieces(spec) for r in p.to_pylist()]) == wanted
        assert self.state.number is not None
        written = self.state.written(self.state.number, spec)
        assert written is not None and net(written.to_pylist()) == net(self.last[spec.name])
        for hash_of in (-2, 0, 1):
            some = Counter({row: n for row, n in wanted.items() if row[0] == hash_of})
            assert net(self.state.look_up(spec, hash_of).to_pylist()) == some
            near = of_frame(self.state.near(spec, [hash_of]))
            assert net([row for row in near if row["hash"] == hash_of]) == some
        found = read_whole(self.state, spec)
        assert found is not None
        each = of_frame(found)
        assert net(each) == wanted and len(each) == len(wanted)


@pytest.mark.parametrize("base", [False, True])
def test_all_readers_read_what_spark_and_what_this_process_wrote(
    base: bool, state: StateTables, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "PER_BUCKET", 10)
    monkeypatch.setattr(tables, "SHARE", 100)
    history = History(state, session)
    history.flush(spark=base, rows=30 * base)
    for spark in (False, True, False):
        history.flush(spark=spark)
    for spec in SPECS.values():
        assert state.buckets(spec) == (3 if base else 1)
        history.check(spec)
    again = StateTables(session, state._root, "plan", SPECS)
    assert again.all_rows(LISTS).equals(state.all_rows(LISTS))


@pytest.mark.parametrize("most", [0, 100_000])
def test_what_is_put_together_is_the_same_by_a_job_and_here(
    most: int, state: StateTables, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MOST_HERE", most)
    monkeypatch.setattr(tables, "MOST_SEGMENTS", 2)
    jobs = counted_jobs(state, monkeypatch)
    history = History(state, session)
    for number in range(8):
        history.flush(spark=number == 3)
        state.compact()
        assert all(len(found) <= 4 for found in state.manifest.tables.values())
    for spec in SPECS.values():
        history.check(spec)
    merged = [kind for kind in jobs if kind.startswith("merged")]
    assert bool(merged) == (most == 0)
    assert any(s.folder.startswith("merged/rows/") for s in state.manifest.tables["rows"])


def counted_jobs(state: StateTables, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that receives the folder of each later job."""
    found: list[str] = []
    job: Callable[..., None] = state._job

    def told(folder: str, *given: Any) -> None:
        found.append(folder)
        job(folder, *given)

    monkeypatch.setattr(state, "_job", told)
    return found


def test_rows_that_come_to_nothing_leave_no_file(
    state: StateTables, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MOST_SEGMENTS", 0)
    given = entries(Random(2), ROWS)
    state.flush(0, {"rows": by_spark(session, ROWS, given)})
    state.put(1, {"rows": here(ROWS, given)})
    state.compact()
    opposite = [{**one, "weight": -one["weight"]} for one in given]
    for number, some in ((2, opposite), (3, given)):
        state.put(number, {"rows": here(ROWS, some)})
    state.compact()
    base, none, last = state.manifest.tables["rows"]
    assert base.is_base and not none.files and last.files
    assert net(state.all_rows(ROWS).to_pylist()) == net(given * 2)


def test_a_flush_that_writes_no_null_is_read_with_one_that_does(
    state: StateTables, session: Session
) -> None:
    """Spark declares columns, and parts of records and lists, as never null."""
    value = F.struct(F.lit(datetime(2000, 1, 1)).cast("timestamp_ntz").alias("at"))
    value = value.withField("amount", F.lit(Decimal(1)).cast("decimal(38,18)"))
    fields = [F.lit(1).cast(f.dataType).alias(f.name) for f in FIELDS[:3]]
    fields += [F.lit(date(2000, 1, 1)).alias("day")]
    fields += [F.lit(1).cast(f.dataType).alias(f.name) for f in FIELDS[4:6]]
    fields += [F.lit(b"x").alias("data"), F.lit(1).cast("tinyint").alias("side")]
    fields += [F.lit(True).alias("is_new"), value.alias("inner")]
    counted = F.struct(value.alias("value"), F.lit(1).cast("bigint").alias("weight"))
    row = F.struct(*fields, F.array(counted).alias("several"))
    whole_row = [F.lit(3).cast("bigint").alias("hash"), row.alias("row")]
    one = session.spark.range(1).select(*whole_row, F.lit(1).cast("bigint").alias("weight"))
    state.flush(0, {"lists": one})
    state.put(1, {"lists": here(LISTS, entries(Random(3), LISTS))})
    assert state.all_rows(LISTS).num_rows == state.near(LISTS).count() == 7
    assert state.all_rows(LISTS).schema == arrow_schema(LISTS)
    assert len(state.look_up(LISTS, 3)) == 1


def test_a_file_of_this_process_that_is_changed_is_told(
    state: StateTables, session: Session, tmp_path: Path
) -> None:
    state.put(0, {"rows": here(ROWS, entries(Random(4), ROWS))})
    (path,) = tmp_path.rglob("*.parquet")
    data = bytearray(path.read_bytes())
    first = pq.ParquetFile(path).metadata.row_group(0).column(0)
    start = first.dictionary_page_offset or first.data_page_offset
    data[start + first.total_compressed_size - 1] ^= 1  # the last byte of a page
    path.write_bytes(data)
    with pytest.raises(OffloadError, match="cannot be read"):
        state.all_rows(ROWS)
    with pytest.raises(Exception, match=r"(?i)crc|checksum|corrupt"):
        state.near(ROWS).collect()
    path.write_bytes(data[:-1] + b"x")
    with pytest.raises(OffloadError, match="cannot be read"):
        StateTables(session, str(tmp_path), "plan", SPECS)


def test_the_bounds_of_weights_and_the_ends_are_those_that_files_have(
    state: StateTables, session: Session
) -> None:
    given = entries(Random(5), ROWS)
    state.put(0, {"rows": here(ROWS, given)})
    (found,) = state.manifest.tables["rows"]
    assert found == state._segment(found.folder.rpartition("/")[0], "rows", {})
    weights = [one["weight"] for one in given]
    assert found.weights == (min(weights), max(weights)) and found.rows == len(given)
    state.check()


@pytest.mark.quick
def test_a_reader_keeps_the_files_that_are_put_together_meanwhile(
    state: StateTables, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MOST_SEGMENTS", 0)
    history = History(state, session)
    for _ in range(2):
        history.flush(spark=False)
    state.compact()
    for _ in range(2):
        history.flush(spark=False)
    before = net(state.all_rows(ROWS).to_pylist())
    hold = state.hold(ROWS)
    history.flush(spark=False)
    added = net(history.last["rows"])
    history.flush(spark=True)
    state.compact()
    assert len(state.manifest.tables["rows"]) == 3
    assert net(held(state, hold.first)) == before
    assert net(held(state, hold.later[:1])) == added
    assert net(held(state, (*hold.first, *hold.later))) == net(history.all["rows"])
    gone = [s for s in (*hold.first, *hold.later) if s not in state.manifest.tables["rows"]]
    assert gone and all(Path(state._root, s.folder).exists() for s in gone)
    hold.close()
    assert not any(Path(state._root, s.folder).exists() for s in gone)


def held(state: StateTables, segments: tuple[Segment, ...]) -> list[dict[str, Any]]:
    frames = state.split(ROWS, held=segments).values()
    return [row for frame in frames for row in of_frame(frame)]
