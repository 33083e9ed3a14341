"""None in a field that is not optional is refused by ways into a table other than its methods."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reactive import Batch, Database, SourceError, TableError, VerificationError
from reactive.engine.collections.frozen_dict import FrozenDict
from reactive.engine.collections.long_tuple import FrozenList


class Named(NamedTuple):
    id: int
    word: str
    note: str | None = None


Way = Callable[[Any, Any, list[Named], Path], object]
GOOD = [Named(n, f"w{n}") for n in range(1, 4)]
BAD = Named(7, None)  # type: ignore[arg-type]


def frame(rows: list[Named]) -> pa.Table:
    kinds = pa.schema([("id", pa.int64()), ("word", pa.string()), ("note", pa.string())])
    return pa.Table.from_pylist([row._asdict() for row in rows], kinds)


def parquet(rows: list[Named], path: Path) -> Path:
    pq.write_table(frame(rows), path / "rows.parquet")
    return path / "rows.parquet"


def lines(rows: list[Named], path: Path) -> Path:
    texts = [json.dumps(row._asdict()) for row in rows]
    (path / "rows.jsonl").write_text("\n".join(texts) + "\n")
    return path / "rows.jsonl"


def sql(db: Any, rows: list[Named]) -> None:
    for row in rows:
        word = "null" if row.word is None else f"'{row.word}'"
        db.execute(f"insert into rows (id, word) values ({row.id}, {word})")


WAYS: dict[str, Way] = {
    "load rows": lambda db, table, rows, path: table.load(iter(rows)),
    "load a frame": lambda db, table, rows, path: table.load(frame(rows)),
    "load Parquet": lambda db, table, rows, path: table.load(parquet(rows, path)),
    "load lines": lambda db, table, rows, path: table.load(lines(rows, path)),
    "add_arrow": lambda db, table, rows, path: table.add_arrow(frame(rows)),
    "add_arrow of a batch": lambda db, table, rows, path: table.add_arrow(
        frame(rows).to_batches()[0]
    ),
    "sync": lambda db, table, rows, path: table.sync(frame(rows)),
    "sync of dictionaries": lambda db, table, rows, path: table.sync(
        [row._asdict() for row in rows]
    ),
}


@pytest.mark.parametrize("count", [1, 200])
@pytest.mark.parametrize("key", [None, "id"])
@pytest.mark.parametrize("way", WAYS)
def test_frames_are_refused(way: str, key: str | None, count: int, tmp_path: Path) -> None:
    db = Database()
    table = db.table(Named, name="rows", key=key)
    rows = [Named(n, "a") for n in range(100, 100 + count)]
    with pytest.raises(TableError, match="'rows': field 'word' is None") as refused:
        WAYS[way](db, table, [*rows, BAD, *GOOD], tmp_path)
    assert "id=7, word=None" in str(refused.value)
    assert "declare `word: str | None`" in str(refused.value)
    assert len(table) == 0
    WAYS[way](db, table, [*rows, *GOOD], tmp_path)
    assert sorted(table) == sorted([*rows, *GOOD])


@pytest.mark.parametrize("key", [None, "id"])
def test_sql_is_refused(key: str | None) -> None:
    db = Database()
    table = db.table(Named, name="rows", key=key)
    sql(db, GOOD)
    with pytest.raises(TableError, match="word"):
        sql(db, [BAD])
    assert sorted(table) == GOOD


def test_a_batch_before_the_refused_one_stays(tmp_path: Path) -> None:
    table = Database().table(Named, name="rows")
    with pytest.raises(TableError, match="field 'word' is None"):
        table.load([*GOOD, GOOD[0], BAD], batch=3)
    assert sorted(table) == GOOD


def test_a_frame_with_none_makes_an_optional_field() -> None:
    table = Database().table_from(frame([*GOOD, BAD]), name="rows")
    assert {row.word for row in table} == {"w1", "w2", "w3", None}
    table.add(table.row_type(9, None, None))
    exact = Database().table_from([{"id": 1, "word": "a"}], name="rows")
    with pytest.raises(TableError, match="field 'word' is None"):
        exact.add(exact.row_type(1, None))


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_a_watched_file_is_refused_or_has_a_refused_row(suffix: str, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("id,word,note\n1,w1,\n,w7,\n")
    lines([GOOD[0], BAD], tmp_path)
    column = "word" if suffix == "jsonl" else "id"  # a text may be empty, a number may not
    path, db = tmp_path / f"rows.{suffix}", Database()
    with pytest.raises(SourceError, match=column):
        db.watch(path, Named, name="rows", poll=60)
    assert db.tables() == []
    watched = db.watch(path, Named, name="rows", poll=60, on_error="drop")
    assert list(watched) == GOOD[:1]
    (error,) = watched.source.errors
    assert f"column {column!r}" in error.error.message
    db.close()


@pytest.mark.parametrize("policy", ["raise", "drop"])
def test_a_source_stops_or_has_a_refused_row(policy: Any) -> None:
    def rows(since: Any, stop: Any) -> Any:
        yield Batch([*GOOD, BAD], token=1)

    db = Database()
    table = db.table(Named, name="rows")
    source = db.ingest(rows, table, on_error=policy)
    if policy == "raise":
        with pytest.raises(TableError, match="field 'word' is None"):
            source.wait(timeout=30)
        assert len(table) == 0
    else:
        source.wait(timeout=30)
        assert sorted(table) == GOOD
        (error,) = source.errors
        assert error.row == BAD
        assert "declare `word: str | None`" in error.error.message
    db.close()


class Inner(NamedTuple):
    word: str
    counts: tuple[int, ...] = ()


VALUES: list[tuple[Any, list[Any], list[Any]]] = [
    (int, [1, True], ["1", 1.5, b"1"]),
    (float, [1, 1.5, True], ["1"]),
    (str, ["a", type("Text", (str,), {})("b")], [1, b"a"]),
    (int | None, [None, 1], ["a"]),
    (tuple[int, ...], [(1,), ()], [("a",)]),
    (Any, [1, None, "a"], []),
    (tuple[int | None, ...], [(1, None)], [("a",)]),
    (tuple[str, int], [("a", 1)], [("a", None), (None, 1)]),
    (frozenset[int], [frozenset({1})], [frozenset({None})]),
    (Inner, [Inner("a", (1,))], [Inner("a", (1, None)), Inner(None)]),  # type: ignore[arg-type]
    (Inner | None, [None, Inner("a")], [Inner("a", (None,))]),  # type: ignore[arg-type]
    (tuple[Inner, ...], [(Inner("a"),)], [(Inner("a"), Inner("b", (1, None)))]),  # type: ignore[arg-type]
    (Mapping[str, int], [FrozenDict({"a": 1})], [FrozenDict({"a": None})]),
    (list[int], [FrozenList([1])], [FrozenList([1, None])]),
    (tuple[tuple[int, ...], ...], [((1,), ())], [((1,), (2, None)), (None,)]),
]


@pytest.mark.parametrize(("hint", "good", "bad"), VALUES, ids=lambda each: str(each))
def test_verify_of_a_table_tells_values_of_other_classes(
    hint: Any, good: list[Any], bad: list[Any]
) -> None:
    kind: Any = NamedTuple("kind", [("id", int), ("value", hint)])
    table = Database().table(kind, name="rows")
    table.add_all([kind(n, value) for n, value in enumerate(good)])
    table.verify()
    view = table.select(lambda row: row.id).materialize()
    for value in bad:
        table.add(kind(50, value))
        with pytest.raises(VerificationError, match=r"'rows' has the row .*: field 'value' is"):
            table.verify()
        view.verify()
        table.remove(kind(50, value))
        table.verify()


def test_verify_of_a_strict_view_tells_rows_of_an_older_file(tmp_path: Path) -> None:
    with Database(tmp_path / "old.db") as db:
        table = db.table(Named, name="rows")
        table.add_all([*GOOD, Named(8, 5)])  # type: ignore[arg-type]
    for strict in (False, True):
        with Database(tmp_path / "old.db", strict=strict) as db:
            view = db.table(Named, name="rows").where(lambda row: row.id < 3).materialize()
            if strict:
                with pytest.raises(VerificationError, match="field 'word' is the int 5"):
                    view.verify()
            else:
                view.verify()
