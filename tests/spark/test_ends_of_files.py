"""Ends of files tell the number of rows and nulls of a table; a scan checks the rest."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("pyspark")
import pyarrow as pa
import pyarrow.parquet as pq

from spark_backend.codec.schema import Typed, kept_as
from spark_backend.tables.frames import rows_by_ends

SESSION: Any = None
"""Files of this machine are read without one."""


@dataclass(frozen=True)
class Sale:
    number: int
    customer: str | None


class Day(NamedTuple):
    day: date


class Place(NamedTuple):
    at: tuple[int, int]


def said(of: Any, *files: Path) -> int | None:
    kept = kept_as(of)
    assert isinstance(kept, Typed)
    return rows_by_ends(SESSION, [file.as_uri() for file in files], kept)


def written(path: Path, columns: dict[str, list[Any]], **options: Any) -> Path:
    pq.write_table(pa.table(columns), path, **options)
    return path


@pytest.mark.parametrize("name", ["a.parquet", "50% of [a], b?.parquet"])
def test_rows_are_counted_where_no_value_is_null_that_may_not_be(tmp_path: Path, name: str) -> None:
    numbers: dict[str, list[Any]] = {"number": list(range(9)), "customer": [None, *"abcdefgh"]}
    one = written(tmp_path / name, numbers, row_group_size=4)
    other = written(tmp_path / "other", {**numbers, "more": [None] * 9})
    assert said(Sale, one, other) == 18


@pytest.mark.quick
def test_what_ends_do_not_say_is_left_to_a_scan(tmp_path: Path) -> None:
    sales: dict[str, list[Any]] = {"number": [1, 2], "customer": ["a", "b"]}
    good = written(tmp_path / "good", sales)
    null = written(tmp_path / "null", {**sales, "number": [None, 2]}, row_group_size=1)
    mute = written(tmp_path / "mute", sales, write_statistics=False)
    less = written(tmp_path / "less", {"customer": ["a"]})
    day = written(tmp_path / "day", {"day": [date(2026, 1, 1)]})
    place = written(tmp_path / "place", {"at": [{"_1": 1, "_2": 2}]})
    (tmp_path / "text").write_text("number,customer")
    for wrong in (null, mute, less, tmp_path / "text", tmp_path / "gone"):
        assert said(Sale, good, wrong) is None
    assert said(Day, day) is said(Place, place) is said(int, good) is said(Sale) is None
