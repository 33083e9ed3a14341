"""A folder of rows: one moment, few files written, another query in the place of the first."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest

from reactive import Count, Database, OffloadError, Sink
from spark_backend import RowsFolder
from spark_backend.sinks import rows_folder


class Item(NamedTuple):
    """A row with a key."""

    number: int
    name: str | None


def begin(folder: Path, rows: list[Item], key: tuple[str, ...] = ()) -> tuple[Any, Sink]:
    db = Database()
    table = db.table(Item, name="items")
    table.add_all(rows)
    sink = table.where(lambda i: i.number >= 0).materialize().write_to(RowsFolder(folder, key=key))
    return table, sink


def rows_in(folder: Path) -> Counter[Any]:
    columns = RowsFolder(folder).read().to_pydict().values()
    return Counter(zip(*columns, strict=True))


def files_in(folder: Path) -> set[str]:
    """The files that count."""
    lines = (folder / "_spark_metadata" / "0").read_text().split("\n")
    return {json.loads(line)["reactive"]["name"] for line in lines[1:]}


def test_a_batch_writes_the_buckets_anew_whose_keys_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_folder, "PER_BUCKET", 10)
    rows = [Item(n, f"{n}") for n in range(200)]
    table, sink = begin(tmp_path / "out", rows, ("number",))
    sink.flush()
    before = files_in(tmp_path / "out")
    assert len(before) == 21, "20 buckets, and the file with the columns"
    table.remove(rows[7])
    table.add(Item(7, None))
    sink.flush()
    after = files_in(tmp_path / "out")
    assert len(after - before) == 2, "one bucket and the columns"
    assert rows_in(tmp_path / "out") == Counter([*rows[:7], *rows[8:], (7, None)])
    held = {path.name for path in (tmp_path / "out").glob("_b=*")}
    assert held == before | after, "who reads by the list before has its files"
    table.add_all(Item(n, "more") for n in range(200, 1000))
    sink.flush()
    assert len(files_in(tmp_path / "out")) == 101, "more buckets for more rows"
    assert sum(rows_in(tmp_path / "out").values()) == 1000


def test_two_rows_of_a_key_are_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    table, sink = begin(tmp_path, [Item(1, "one")], ("number",))
    sink.flush()
    table.add(Item(1, "uno"))
    with pytest.raises(OffloadError, match=r"two rows have the key number of Item\(number=1"):
        sink.flush()
    assert rows_in(tmp_path) == Counter([(1, "one")])
    table.remove(Item(1, "one"))
    sink.flush()
    assert rows_in(tmp_path) == Counter([(1, "uno")])
    _, other = begin(tmp_path / "other", [Item(1, "one")], ("nummer",))
    with pytest.raises(OffloadError, match="'nummer' is none of the columns number, name"):
        other.flush()


def test_the_rows_of_another_query_take_the_place_of_the_first(tmp_path: Path) -> None:
    _, first = begin(tmp_path, [Item(1, "one"), Item(2, "two"), Item(2, "two")])
    first.flush()
    db = Database()
    table = db.table(Item, name="items")
    table.add_all([Item(2, "two"), Item(3, None)])
    same_columns = table.where(lambda i: i.number > 1).materialize()
    with same_columns.write_to(RowsFolder(tmp_path)) as sink:
        assert sink.position is not None and sink.position.batch == 0
    assert rows_in(tmp_path) == Counter([(2, "two"), (3, None)])
    others = table.group_by(lambda i: i.number).aggregate(Count()).materialize()
    with others.write_to(RowsFolder(tmp_path)) as sink:
        table.add(Item(3, "three"))
    assert rows_in(tmp_path) == Counter([(2, 1), (3, 2)])
    assert sink.position is not None and sink.position.batch == 2
    with others.write_to(RowsFolder(tmp_path, key=("_1",))) as sink:
        table.add(Item(4, "four"))
    assert rows_in(tmp_path) == Counter([(2, 1), (3, 2), (4, 1)]), "buckets of another key"


def test_a_view_that_becomes_empty_leaves_a_folder_with_columns(tmp_path: Path) -> None:
    table, sink = begin(tmp_path, [])
    assert sink.flush() is None
    with pytest.raises(OffloadError, match="no rows of a sink yet"):
        RowsFolder(tmp_path).read()
    table.add(Item(1, "one"))
    sink.flush()
    table.remove(Item(1, "one"))
    sink.flush()
    found = RowsFolder(tmp_path).read()
    assert (found.num_rows, found.column_names) == (0, ["number", "name"])


def test_who_does_not_know_the_list_sees_no_files(tmp_path: Path) -> None:
    table, sink = begin(tmp_path, [Item(1, "one")])
    sink.flush()
    table.add(Item(2, "two"))
    sink.flush()
    assert pq.read_table(tmp_path).num_rows == 0


def test_what_somebody_else_has_changed_is_mended(tmp_path: Path) -> None:
    rows = [Item(1, "one"), Item(2, "two")]
    table, sink = begin(tmp_path, rows)
    sink.flush()
    _, other = begin(tmp_path, [Item(2, "two")])
    other.flush()
    table.remove(Item(1, "one"))
    with pytest.raises(OffloadError, match="is to go"):
        sink._target.open("")
        sink.flush()
    table.add(Item(3, "three"))
    sink.flush()
    assert rows_in(tmp_path) == Counter([(2, "two"), (3, "three")])


def test_a_list_that_is_none_of_ours_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("rows")
    with pytest.raises(OffloadError, match=r"has 'mine\.csv'"):
        begin(tmp_path, [])
    _, sink = begin(tmp_path / "out", [Item(1, "one")])
    sink.flush()
    listed = tmp_path / "out" / "_spark_metadata" / "0"
    text = listed.read_text()
    for changed in ("", "v2" + text[2:], text.replace("_b=0", "../b=0"), text.replace("_b=0", "x")):
        listed.write_text(changed)
        with pytest.raises(OffloadError, match="none that a sink has written"):
            begin(tmp_path / "out", [])


def test_a_view_that_is_empty_from_the_start_can_be_read_where_its_types_are_declared(
    tmp_path: Path,
) -> None:
    db = Database()
    table = db.table(Item, name="items")
    with table.materialize().write_to(RowsFolder(tmp_path, row_type=Item)) as sink:
        position = sink.flush()
        assert position is not None and position.batch == 0
        assert sink.flush() == position, "once"
        found = RowsFolder(tmp_path).read()
        assert (found.num_rows, found.column_names) == (0, ["number", "name"])
        table.add(Item(1, None))
    assert rows_in(tmp_path) == Counter([(1, None)])


def test_two_sinks_of_a_folder_of_rows_are_told(tmp_path: Path) -> None:
    one, first = begin(tmp_path, [Item(1, "one")])
    two, second = begin(tmp_path, [Item(2, "two")])
    first.flush()
    second.flush()
    one.add(Item(3, "three"))
    for _ in range(2):
        with pytest.raises(OffloadError, match="another sink writes to the same folder"):
            first.flush()
    assert rows_in(tmp_path) == Counter([(2, "two")])
    two.add(Item(4, "four"))
    second.flush()
    assert rows_in(tmp_path) == Counter([(2, "two"), (4, "four")])
