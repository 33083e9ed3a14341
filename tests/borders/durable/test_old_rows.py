"""A file and a pickle of an older release have the rows that were written, and go on."""

from __future__ import annotations

import pickle
import shutil
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from reactive import Database
from tests.borders.durable import old_rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return Path(shutil.copy(old_rows.FILE, tmp_path / "old.db"))


def values_in(value: Any) -> list[Any]:
    """Return the classes and texts of a value and of all values inside it.

    Equal values may differ in class or text, as an instant in two zones.
    """
    if isinstance(value, frozenset):
        return [type(value), sorted(map(repr, value))]
    return [type(value), repr(value)]


def fields(row: Any) -> list[Any]:
    names = getattr(row, "__dataclass_fields__", ())
    return [values_in(getattr(row, name)) for name in names] or values_in(row)


@pytest.mark.parametrize("name", old_rows.TABLES)
def test_an_old_file_has_the_rows_that_were_written(path: Path, name: str) -> None:
    _, rows = old_rows.TABLES[name]
    with Database(path) as db:
        found = sorted(old_rows.table_of(db, name), key=repr)
        assert found == sorted(rows, key=repr)
        assert [fields(row) for row in found] == [fields(row) for row in sorted(rows, key=repr)]


@pytest.mark.parametrize("name", old_rows.TABLES)
def test_an_old_file_goes_on_where_it_ended(path: Path, name: str) -> None:
    _, rows = old_rows.TABLES[name]
    with Database(path) as db:
        table = old_rows.table_of(db, name)
        table.remove(rows[0])
        table.add_all(rows[:1])
        table.remove(rows[-1])
    with Database(path) as db:
        assert sorted(old_rows.table_of(db, name), key=repr) == sorted(rows[:-1], key=repr)


def test_the_schema_of_an_old_file_is_that_of_a_new_one(path: Path, tmp_path: Path) -> None:
    old_rows.write(tmp_path / "new.db")
    query = "select name, text, sql_name, columns from reactive_tables order by rank"
    found = []
    for each in (path, tmp_path / "new.db"):
        connection = sqlite3.connect(each)
        found.append(connection.execute(query).fetchall())
        connection.close()
    assert found[0] == found[1]


def test_an_old_pickle_has_the_rows_that_were_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tests.durable.old_rows", old_rows)  # where it was then
    found = pickle.loads(old_rows.PICKLE.read_bytes())
    wanted = [rows for _, rows in old_rows.TABLES.values()]
    assert found == wanted
    for old, new in zip(found, wanted, strict=True):
        assert [fields(row) for row in old] == [fields(row) for row in new]
        kind: Any = type(new[0])
        table: Any = Database().table(kind, name="rows")
        table.add_all(old)
        table.remove(new[0])
        assert len(table) == len(new) - 1
