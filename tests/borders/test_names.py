"""Columns of any name are fields by one rule at each border; an empty cell of CSV is one value."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from optimizer.kinds.texts import columns_of, field_names
from reactive import Database, PlanError, SourceError

NAMES = ("class", "from", "unit price", "2024", "mro", "ﬁx", "naïve", "a-b", "__x", "")
FIELDS = ("class_", "from_", "unit_price", "column_2024", "mro", "fix", "naïve", "a_b")


class Row(NamedTuple):
    """A row whose fields are called as the columns are mended."""

    class_: int
    from_: str
    unit_price: float
    column_2024: int
    mro: int
    fix: int
    naïve: int
    a_b: int


@dataclass(frozen=True, slots=True)
class Inner:
    """A record inside of a row."""

    unit_price: int
    class_: int


@dataclass(frozen=True, slots=True)
class Outer:
    """A row with such a record."""

    id: int
    inner: Inner


VALUES = (1, "Bonn", 2.5, 4, 5, 6, 7, 8)
RECORD = dict(zip((*NAMES[:8], "other"), (*VALUES, "left out"), strict=True))


def _csv(path: Path, record: dict[str, Any]) -> Path:
    with path.with_suffix(".csv").open("w", newline="") as file:
        csv.writer(file).writerows([record, record.values()])
    return path.with_suffix(".csv")


def _jsonl(path: Path, record: dict[str, Any]) -> Path:
    path.with_suffix(".jsonl").write_text(json.dumps(record) + "\n")
    return path.with_suffix(".jsonl")


def _json(path: Path, record: dict[str, Any]) -> Path:
    path.with_suffix(".json").write_text(json.dumps([record]))
    return path.with_suffix(".json")


def _parquet(path: Path, record: dict[str, Any]) -> Path:
    pq.write_table(pa.Table.from_pylist([record]), path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


def _feather(path: Path, record: dict[str, Any]) -> Path:
    feather.write_feather(pa.Table.from_pylist([record]), str(path.with_suffix(".arrow")))
    return path.with_suffix(".arrow")


FILES = {f.__name__[1:]: f for f in (_csv, _jsonl, _json, _parquet, _feather)}
READ: dict[str, tuple[Callable[[Database, Any, Path], Any], tuple[str, ...]]] = {
    "watch": (
        lambda db, kind, path: db.watch(path, kind, name="t"),
        ("csv", "jsonl", "json", "parquet"),
    ),
    "load": (
        lambda db, kind, path: _filled(db, kind, lambda t: t.load(path)),
        ("csv", "jsonl", "parquet", "feather"),
    ),
    "sync": (
        lambda db, kind, path: _filled(db, kind, lambda t: t.sync(path)),
        ("csv", "jsonl", "parquet", "feather"),
    ),
    "add_arrow": (
        lambda db, kind, path: _filled(db, kind, lambda t: t.add_arrow(path)),
        ("csv", "jsonl", "parquet", "feather"),
    ),
}
WAYS = [(way, file) for way, (_, files) in READ.items() for file in files]


def _filled(db: Database, kind: Any, fill: Callable[[Any], Any]) -> Any:
    table = db.table(kind, name="t")
    fill(table)
    return table


@pytest.mark.parametrize(("way", "file"), WAYS)
def test_columns_of_any_name_are_fields(way: str, file: str, tmp_path: Path) -> None:
    path = FILES[file](tmp_path / "rows", RECORD)
    assert list(READ[way][0](Database(), Row, path)) == [Row(*VALUES)]


@pytest.mark.parametrize("file", ["csv", "jsonl", "parquet", "feather"])
def test_a_class_that_is_made_of_a_file_has_the_same_names(file: str, tmp_path: Path) -> None:
    table = Database().table_from(FILES[file](tmp_path / "rows", RECORD), name="t")
    (row,) = table
    assert [getattr(row, name) for name in FIELDS] == list(VALUES)


@pytest.mark.parametrize(("way", "file"), [w for w in WAYS if w[1] != "csv"])
def test_fields_of_records_inside_are_found_alike(way: str, file: str, tmp_path: Path) -> None:
    path = FILES[file](tmp_path / "rows", {"id": 1, "inner": {"unit price": 2, "class": 3}})
    assert list(READ[way][0](Database(), Outer, path)) == [Outer(1, Inner(2, 3))]


def test_a_field_is_its_own_column_before_one_that_is_mended() -> None:
    assert columns_of(["a_b"], ["a b", "a_b"]) == {"a_b": 1}
    assert columns_of(["a", "a_2"], ["a", "a"]) == {"a": 0, "a_2": 1}
    assert columns_of(["id"], ["_id"]) == {"id": 0}
    with pytest.raises(ValueError, match="several are called a"):
        columns_of(["a"], ["a", "a"])


def test_names_are_mended_once_and_stay_apart() -> None:
    for of_tuple in (False, True):
        names = field_names([*NAMES, *NAMES, "_x", "x"], of_tuple=of_tuple)
        assert len({*names}) == len(names) and all(map(str.isidentifier, names))
        assert field_names(names, of_tuple=of_tuple) == names
        assert not of_tuple or not any(name.startswith("_") for name in names)


class Two(NamedTuple):
    """A row with a field that is there twice."""

    a: int


@pytest.mark.parametrize("way", ["watch", "load", "sync", "add_arrow"])
def test_a_column_that_is_there_twice_is_refused(way: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,a\n1,2\n")
    with pytest.raises((PlanError, SourceError), match="several are called a"):
        READ[way][0](Database(), Two, path)


class Texts(NamedTuple):
    """A row with a text that may be None."""

    id: int
    always: str
    perhaps: str | None
    number: int | None


@pytest.mark.parametrize("way", READ)
def test_an_empty_cell_is_none_where_none_is_declared(way: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('id,always,perhaps,number\n1,,,\n2,"","",7\n3,NULL,NA,\n')
    found = sorted(READ[way][0](Database(), Texts, path))
    assert found == [(1, "", None, None), (2, "", None, 7), (3, "NULL", "NA", None)]


def test_an_empty_cell_of_a_class_that_is_made_is_none(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('id,s,n\n1,,\n2,"",3\n3,x,4\n')
    table = Database().table_from(path, name="t")
    assert sorted((r.id, r.s, r.n) for r in table) == [(1, None, None), (2, None, 3), (3, "x", 4)]
    assert table.row_type.__annotations__["s"] == str | None
    found: Any = duckdb.sql(f"from '{path}'")
    assert found.fetchall() == sorted((r.id, r.s, r.n) for r in table)
