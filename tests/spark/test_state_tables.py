"""State tables: a flush counts by its manifest, files are put together, and nothing is lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")
from pyspark.sql import functions as F
from pyspark.sql import types as T

from spark_backend.cluster.session import Session
from spark_backend.state import tables
from spark_backend.state.manifest import Manifest
from spark_backend.state.one_job import TableSpec
from spark_backend.state.tables import StateTables

SCHEMA = T.StructType([T.StructField("k", T.LongType()), T.StructField("weight", T.LongType())])
NUMBERS = TableSpec("numbers", SCHEMA, ("k",), ("weight",), lambda: F.xxhash64("k"))
OTHERS = TableSpec("others", SCHEMA, ("k",), ("weight",))
SPECS = {spec.name: spec for spec in (NUMBERS, OTHERS)}


@pytest.fixture
def state(session: Session, tmp_path: Path) -> StateTables:
    return StateTables(session, str(tmp_path), "plan", SPECS)


def frame(session: Session, pairs: list[tuple[int, int]]) -> Any:
    return session.spark.createDataFrame(pairs, SCHEMA)


def held(state: StateTables, spec: TableSpec = NUMBERS) -> Counter[int]:
    found: Counter[int] = Counter()
    for part in state.parts(spec):
        for k, weight in part.select("k", "weight").collect():
            found[k] += weight
    return Counter({k: n for k, n in found.items() if n})


def test_a_flush_adds_to_several_tables_at_once(state: StateTables, session: Session) -> None:
    state.flush(0, {"numbers": frame(session, [(1, 2)]), "others": frame(session, [(7, 1)])})
    assert held(state) == {1: 2}
    assert held(state, OTHERS) == {7: 1}
    assert state.number == 0


@pytest.mark.quick
def test_a_flush_without_a_manifest_has_not_happened(
    state: StateTables, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state.flush(0, {"numbers": frame(session, [(1, 1)])})

    def fail(*given: Any) -> None:
        raise OSError("killed")

    monkeypatch.setattr(state._manifests, "put", fail)
    with pytest.raises(OSError, match="killed"):
        state.flush(1, {"numbers": frame(session, [(2, 1)])})
    again = StateTables(session, str(tmp_path), "plan", SPECS)
    assert again.number == 0
    assert held(again) == {1: 1}
    again.flush(1, {"numbers": frame(session, [(3, 1)])})
    assert held(again) == {1: 1, 3: 1}


def test_a_number_counts_once(state: StateTables, session: Session) -> None:
    for _ in range(2):
        state.flush(0, {"numbers": frame(session, [(1, 1)])})
    assert held(state) == {1: 1}


def test_bases_that_are_apart_have_no_columns_of_others(
    state: StateTables, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "PER_BUCKET", 10)
    added = {name: frame(session, [(n, 1) for n in range(40)]) for name in SPECS}
    state.flush(0, added, rows=80, apart={"numbers": 40})
    assert held(state) == held(state, OTHERS) == Counter(range(40))
    assert state.buckets(NUMBERS) == 4
    for name in SPECS:
        files = list(tmp_path.glob(f"flush/*/t={name}/b=*/*.parquet"))
        assert files
        columns = {column for file in files for column in pq.read_schema(file).names}
        assert columns == {f"{name}_k", f"{name}_weight"}


def test_groups_are_first_put_into_fewer_buckets(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "PER_BUCKET", 10)
    of_groups = replace(NUMBERS, of_groups=True)
    state = StateTables(session, str(tmp_path), "plan", {"numbers": of_groups})
    state.flush(0, {"numbers": frame(session, [(n, 1) for n in range(5)])}, rows=160)
    assert state.buckets(of_groups) == 2
    assert held(state, of_groups) == Counter(range(5))


def test_files_stay_few_and_rows_the_same(
    state: StateTables, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MOST_SEGMENTS", 2)
    monkeypatch.setattr(tables, "PER_BUCKET", 10)
    draw, expected = Random(1), Counter[int]()
    for number in range(12):
        pairs = [(draw.randrange(30), draw.choice([1, 1, -1])) for _ in range(8)]
        for k, weight in pairs:
            expected[k] += weight
        state.flush(number, {"numbers": frame(session, pairs)})
        state.compact()
        assert len(state.manifest.tables["numbers"]) <= 4
        assert held(state) == {k: n for k, n in expected.items() if n}
    assert held(StateTables(session, str(tmp_path), "plan", SPECS)) == held(state)


def test_what_the_last_flush_added_is_there_after_files_are_put_together(
    state: StateTables, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "SHARE", 0)
    for number in range(3):
        state.flush(number, {"numbers": frame(session, [(number, 1)])})
        state.compact()
        found = state.written(number, NUMBERS)
        assert found is not None
        assert found.to_pylist() == [{"k": number, "weight": 1}]
    assert held(state) == {0: 1, 1: 1, 2: 1}


def test_rows_that_come_to_nothing_leave_no_file(
    state: StateTables, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "SHARE", 0)
    state.flush(0, {"numbers": frame(session, [(1, 1)])})
    state.flush(1, {"numbers": frame(session, [(1, -1)])})
    state.flush(2, {"others": frame(session, [(7, 1)])})
    state.compact()
    assert state.parts(NUMBERS) == []


def test_a_manifest_counts_rows_by_what_is_added_up() -> None:
    assert Manifest("plan").rows("numbers") == (0, 0)
