"""Bisection of a sorted base finds the same rows as a scan."""

from __future__ import annotations

from random import Random

import pytest

pytest.importorskip("pyspark")
import pyarrow as pa

from spark_backend.state import one_job
from spark_backend.state.one_job import SortedBases

COLUMN = ("row", "id")
KIND = pa.struct([("id", pa.int64()), ("name", pa.string())])


def table_of(draw: Random, count: int) -> pa.Table:
    """Rows in two pieces, with null rows, null keys and keys that come several times."""
    rows = [
        None if draw.random() < 0.1 else {"id": draw.choice([None, *range(50)]), "name": str(n)}
        for n in range(count)
    ]
    whole = pa.table({"row": pa.array(rows, KIND), "weight": pa.array(range(count), pa.int64())})
    return pa.concat_tables([whole.slice(0, count // 2), whole.slice(count // 2)])


@pytest.mark.quick
@pytest.mark.parametrize("count", [0, 1, 5, 1_000])
def test_rows_are_found_by_their_keys(count: int) -> None:
    draw = Random(count)
    rows, bases = table_of(draw, count), SortedBases()
    assert bases.of("t", "first", COLUMN, lambda: rows) is None, (
        "the first time it is looked through"
    )
    copy = bases.of("t", "first", COLUMN, lambda: rows)
    assert copy is not None
    for many in (0, 1, 7, 40):
        asked = draw.sample(range(-5, 60), many)
        expected = [r["weight"] for r in rows.to_pylist() if r["row"] and r["row"]["id"] in asked]
        assert sorted(copy.having(pa.array(asked, pa.int64()))["weight"].to_pylist()) == expected


def test_another_base_or_column_has_another_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, bases = table_of(Random(1), 100), SortedBases()
    for _ in range(2):
        bases.of("t", "first", COLUMN, lambda: rows)
    assert bases.of("t", "first", COLUMN, None) is not None
    assert bases.of("t", "second", COLUMN, None) is None
    assert bases.of("t", "first", ("row", "name"), None) is None
    for _ in range(2):
        assert bases.of("t", "second", ("row", "name"), lambda: rows) is None, "no integers"
    monkeypatch.setattr(one_job, "MOST_SORTED", rows.nbytes - 1)
    for _ in range(2):
        assert bases.of("t", "third", COLUMN, lambda: rows) is None, "too large"
