"""Files as a source: formats, errors, files that only grow, and files whose rows disappear."""

from __future__ import annotations

import gc
import gzip
import json
import os
import subprocess
import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reactive import (
    Database,
    Ingestion,
    PlanError,
    SourceError,
    TableError,
    TransactionError,
    files,
    tracked,
)
from reactive.borders.sources.files import reading, source
from reactive.borders.sources.files.row_maker import make_row_maker
from reactive.engine.runtime import progress
from tests.borders.sources.files.histories import Row, run
from tests.budget import stride
from tests.thresholds import LOWEST, thresholds


class Color(Enum):
    """The color of a cell."""

    RED = "red"


@dataclass(frozen=True, slots=True)
class Line:
    """A record inside of a row."""

    what: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Order:
    """A row with values of many classes."""

    id: int
    total: Decimal
    day: date | None
    color: Color = Color.RED
    paid: bool = False
    lines: tuple[Line, ...] = ()


@pytest.fixture
def db() -> Iterator[Database]:
    with Database() as made:
        yield made


@pytest.mark.long
@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
@pytest.mark.parametrize("seed", range(0, 24, stride(1, 3)))
def test_a_table_is_what_its_files_say_after_all_edits(
    tmp_path: Path, suffix: str, seed: int
) -> None:
    with thresholds(LOWEST):
        run(tmp_path / "in", suffix, seed)


def test_values_become_what_the_class_says(db: Database, tmp_path: Path) -> None:
    expected = Order(1, Decimal("2.10"), date(2026, 1, 2), Color.RED, True, (Line("tea"),))
    given = {"id": 1, "total": "2.10", "day": "2026-01-02", "paid": True, "x": 0}
    given |= {"color": "red", "lines": [{"what": "tea"}]}
    (tmp_path / "a.jsonl").write_text(json.dumps(given))
    (tmp_path / "b.json").write_text(json.dumps([given, {"id": 2, "total": 3}]))
    text = 'paid;day;total;id;lines\nyes;2026-01-02;2.10;1;"[{""what"": ""tea""}]"\n0;;3;2;[]\n'
    (tmp_path / "c.csv").write_bytes(text.encode("utf-8-sig"))
    (tmp_path / "d.jsonl.gz").write_bytes(gzip.compress(json.dumps(given).encode()))
    columns = {"id": [1], "total": [Decimal("2.10")], "day": [date(2026, 1, 2)]}
    columns |= {"paid": [True], "color": ["red"], "lines": [[{"what": "tea", "count": 1}]]}
    pq.write_table(pa.table(columns), tmp_path / "e.parquet")
    second = Order(2, Decimal(3), None)
    for number, (name, rows) in enumerate(
        {"a.jsonl": 1, "b.json": 2, "c.csv": 2, "d.jsonl.gz": 1, "e.parquet": 1}.items()
    ):
        options: Any = {"delimiter": ";"} if ".csv" in name else {}
        found = db.watch(tmp_path / name, Order, name=str(number), poll=60, **options)
        assert [*found] == [expected, second][:rows], name


def test_rows_may_be_tuples_and_values(db: Database, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,x\n2,y\n", encoding="utf-16")
    (tmp_path / "a.jsonl").write_text('[1, "x"]\n[2, "y"]\n')
    (tmp_path / "b.csv").write_text("7\n8\n")
    pairs: Any = tuple[int, str]
    options: Any = {"header": False, "poll": 60}
    of_csv = db.watch(tmp_path / "a.csv", pairs, name="csv", encoding="utf-16", **options)
    of_lines = db.watch(tmp_path / "a.jsonl", pairs, name="lines", poll=60)
    assert [*of_csv] == [*of_lines] == [(1, "x"), (2, "y")]
    assert [*db.watch(tmp_path / "b.csv", int, name="numbers", **options)] == [7, 8]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", '{"id": 1}\n{"id": "x"}\n', "a.jsonl, line 2: column 'id': 'x' is no int"),
        ("a.jsonl", '{"text": "x"}\n', "a.jsonl, line 1: no 'id' in"),
        ("a.jsonl", "{\n", "a.jsonl, line 1: JSONDecodeError"),
        ("a.csv", 'id,text\n1,"a\nb"\n?,x\n', "a.csv, line 4: column 'id': '?' is no int"),
        ("a.csv", "id,text\n1\n", "a.csv, line 2: 1 cells, not 2"),
        ("a.csv", "number\n1\n", "a.csv, line 1: no column 'id' among number"),
        ("a.json", '[{"id": true}]', "a.json, row 1: column 'id': True is no int"),
    ],
)
def test_what_is_no_row_is_told_with_its_place(
    db: Database, tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(SourceError) as raised:
        db.watch(tmp_path / f"*.{name[2:]}", Row, poll=60)
    assert message in str(raised.value)
    assert db.tables() == [] and db.tokens == {}
    found = db.watch(tmp_path / f"*.{name[2:]}", Row, poll=60, on_error="drop")
    assert [message in error.error.message for error in found.source.errors] == [True]
    (tmp_path / name).unlink()
    found.catch_up()
    assert [*found.source.errors] == [*found] == []


def test_files_that_change_together_are_one_commit(db: Database, tmp_path: Path) -> None:
    table = db.watch(tmp_path / "*.jsonl", Row, poll=60)
    for name in "abc":
        (tmp_path / f"{name}.jsonl").write_text('{"id": 1}\n')
    table.catch_up()
    assert (len(table), db.version) == (3, 1)
    changes: list[Any] = []
    with table.subscribe(changes.append):
        (tmp_path / "a.jsonl").rename(tmp_path / "d.jsonl")
        table.catch_up()
        os.utime(tmp_path / "b.jsonl")
        (tmp_path / "c.jsonl").write_text('{"id": 1}\n')
        version = db.version
        table.catch_up()
    assert changes == [], "a file that was renamed or written again is no change of rows"
    assert db.version == version


def test_lines_at_the_end_cost_what_they_are(db: Database, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"id": {n}}}\n' for n in range(2000)))
    table = db.watch(path, Row, key="id", poll=60)
    seen: list[int] = []
    for number in range(2000, 2040):
        with path.open("a") as file:
            file.write(f'{{"id": {number}}}\n')
        table.catch_up()
        entries = db._engine.ledgers["Row"].parts(path.as_posix())
        seen.append(sum(len(rows) for part in entries[1:] for rows in (part.rows or {}).values()))
    assert table.source.rows == 2040, "no row was taken again"
    assert seen[-1] == 40 and len(entries) <= 8, "they are beside the others, in few parts"
    with path.open("a") as file:
        file.write('{"id": 7, "text": "again"}\n')
    table.catch_up()
    assert table[7] == Row(7, "again") and len(table) == 2040


def test_two_files_cannot_have_rows_of_one_key(db: Database, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1, "text": "x"}\n')
    (tmp_path / "b.jsonl").write_text('{"id": 1, "text": "y"}\n')
    with pytest.raises(TableError, match="1"):
        db.watch(tmp_path / "*.jsonl", Row, key="id", poll=60)


@pytest.mark.parametrize("key", [None, "id"])
@pytest.mark.parametrize("seed", range(0, 12, stride(1, 3)))
def test_files_that_grow_and_files_of_rows_that_go(tmp_path: Path, key: Any, seed: int) -> None:
    random, rows, db = Random(seed), Counter[Row](), Database()
    gone = tmp_path / "gone"
    gone.mkdir()
    table = db.watch(tmp_path / "*.jsonl", Row, key=key, deletions=gone, poll=60)
    for number in range(20):
        folder, row = tmp_path, Row(random.randrange(5), str(number))
        if rows and random.random() < 0.4:
            folder, row = gone, random.choice([*rows])
            rows -= Counter([row])
        else:
            if key:
                rows = Counter({each: n for each, n in rows.items() if each.id != row.id})
            rows[row] += 1
        path = folder / f"{random.choice('ab')}.jsonl"
        with path.open("a") as file:
            file.write(json.dumps(row._asdict()) + "\n")
        if random.random() < 0.2:
            path.rename(folder / f"{number}.jsonl")
        if random.random() < 0.2:
            (folder / f"{random.randrange(20)}.jsonl").unlink(missing_ok=True)
            table.catch_up()
        table.catch_up()
        assert Counter(table) == rows
    db.close()


def test_a_file_that_is_said_to_grow_only_may_be_rotated_but_not_edited(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "GRACE", 0.0)
    path = tmp_path / "a.log"
    path.write_text('{"id": 1}\n{"id": 2}\n')
    options: Any = {"format": "jsonl", "append_only": True, "poll": 60}
    table = db.watch(path, Row, **options)
    path.rename(tmp_path / "a.log.1")
    path.write_text('{"id": 3}\n')
    table.catch_up()
    assert sorted(row.id for row in table) == [1, 2, 3]
    path.write_text('{"id": 4}\n{"id": 5}\n')
    with pytest.raises(SourceError, match="not only appended to"):
        table.catch_up()


def test_a_file_that_cannot_be_read_is_tried_again(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "GRACE", 0.0)
    good, bad = tmp_path / "a.parquet", tmp_path / "b.parquet"
    data = pa.table({"id": [1], "text": ["x"]})
    pq.write_table(data, good)
    pq.write_table(data, bad)
    whole = bad.read_bytes()
    table = db.watch(tmp_path / "*.parquet", Row, poll=60, on_error="drop")
    assert len(table) == 2
    bad.write_bytes(whole[:-5])
    table.catch_up()
    table.catch_up()
    assert len(table) == 2, "its rows stay as they were"
    assert [error.row for error in table.source.errors] == [bad.as_posix()]
    bad.write_bytes(whole)
    table.catch_up()
    assert len(table) == 2 and [*table.source.errors] == []
    strict = db.watch(tmp_path / "*.parquet", Row, name="strict", poll=60)
    bad.write_bytes(b"no parquet")
    with pytest.raises(SourceError, match=r"b\.parquet is no Parquet"):
        strict.catch_up()
    assert strict.source.state == "failed" and len(strict) == 2
    bad.write_bytes(whole)
    strict.source.start()
    strict.catch_up()
    assert strict.source.error is None


def test_a_file_that_is_being_written_is_waited_for(db: Database, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    whole = gzip.compress(b'{"id": 1}\n')
    path.write_bytes(whole[:-3])
    table = db.watch(tmp_path / "*.jsonl*", Row, format="jsonl", poll=60, start=False)
    table.source.start()
    time.sleep(0.1)
    assert table.source.state == "running" and len(table) == 0
    path.write_bytes(whole)
    (tmp_path / "b.jsonl").write_text('{"id": 2}\n')
    table.catch_up()
    assert [row.id for row in table] == [1, 2], "those that are compressed, and others"


@pytest.mark.parametrize("told", [True, False])
def test_changes_are_noticed_without_being_asked_for(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    monkeypatch.setattr(reading, "EVERY", 60 if told else 0.2)
    monkeypatch.setattr(reading, "PAUSE", 50)
    monkeypatch.setattr(source, "has_watchfiles", lambda: told)
    folder = tmp_path / "later" / "deep"
    table = db.watch(tmp_path / "later" / "**" / "*.jsonl", Row)
    assert len(table) == 0
    if not told:
        (tmp_path / "elsewhere.jsonl").write_text('{"id": 0}\n')
    folder.mkdir(parents=True)
    for count, name in enumerate("abc", 1):
        (folder / f"{name}.jsonl").write_text('{"id": 1}\n')
        _until(lambda count=count: len(table) == count)
    if not told:
        (folder / "d.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")
        _until(lambda: len(table) == 4)
        (tmp_path / "elsewhere.jsonl").write_text('{"id": 0}\n{"id": 1}\n')
        _until(lambda: len(table) == 5)
    folder.rename(tmp_path / "away")
    _until(lambda: len(table) == 0)


def test_a_first_load_comes_in_batches_of_whole_files(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "SIZE", 10)
    for number in range(10):
        lines = "".join(f'{{"id": {number}}}\n' for _ in range(4))
        (tmp_path / f"{number}.jsonl").write_text(lines)
    table = db.watch(tmp_path / "*.jsonl", Row, poll=60)
    assert (len(table), db.version, table.source.batches) == (40, 4, 4)
    assert table.source.lag.waiting == 0


def test_files_may_feed_several_tables(db: Database, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("to 1 be 2")
    words, numbers = db.table(str, name="words"), db.table(int, name="numbers")

    def parse(path: Path) -> list[Any]:
        return [int(word) if word.isdigit() else word for word in path.read_text().split()]

    found = files(str(tmp_path / "*.txt"), reader=parse, name="texts", poll=60)
    reading: Ingestion[Any] = db.ingest(found, {str: words, int: numbers})
    found.catch_up(60)
    assert ([*words], [*numbers]) == (["to", "be"], [1, 2])
    reading.stop()
    with pytest.raises(SourceError, match="has stopped before"):
        found.catch_up(60)


def test_a_source_goes_on_from_its_token(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 1}\n')
    with Database() as db:
        table = db.watch(path, Row, poll=60)
        token = json.loads(json.dumps(table.source.token))
        table.source.stop()
        with pytest.raises(SourceError, match="does not follow its files: it is stopped"):
            table.catch_up()
        with path.open("a") as file:
            file.write('{"id": 2}\n')
        table.source.start()
        table.catch_up()
        assert len(table) == 2 and table.source.batches == 2
    with Database() as db:
        later, found = db.table(Row), files(path, Row, poll=60)
        with db.ingest(found, later, since=token):
            found.catch_up(60)
            assert [row.id for row in later] == [2], "what was read before is not read again"


def test_a_commit_writes_what_is_new_of_files_that_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        (tmp_path / f"{number}.jsonl").write_text(f'{{"id": {number}}}\n')
    written: list[Any] = []
    with Database(tmp_path / "a.db") as db:
        table = db.watch(tmp_path / "*.jsonl", Row, poll=60)
        time.sleep(0.1)
        table.catch_up()
        store = db._engine.journal.store
        write = store.write

        def noting(records: Any) -> None:
            written.extend(records)
            write(records)

        monkeypatch.setattr(store, "write", noting)
        (tmp_path / "7.jsonl").write_text('{"id": 77}\n')
        table.catch_up()
        written.clear()  # it has the stamps of all, which are a moment old by now
        (tmp_path / "8.jsonl").write_text('{"id": 88}\n')
        table.catch_up()
        (record,) = written
        noted = [c for c in record.changes if c.table.startswith("source ")]
        owners = {row[0] for change in noted for row in change.come}
        assert len(noted) == 1 and 2 <= len(owners) <= 4
        assert len(table.source.token) == 50


@pytest.mark.parametrize(
    ("pattern", "options", "message"),
    [
        (".", {}, "is a folder"),
        ("*.xyz", {}, "no format is known"),
        ("*.csv", {"poll": 0}, "no interval"),
        ("", {}, "no pattern"),
        ("*.csv", {"delimiter": ";;"}, "delimiter=';;' is not one character"),
        ("*.csv", {"delimiter": ""}, "delimiter='' is not one character"),
        ("*.csv", {"encoding": "utf-99"}, "encoding='utf-99' is not known"),
        ("*.csv", {"format": "xlsx"}, "no format is known for format='xlsx'"),
        ("*.csv", {"reader": 3}, "reader=3 is no function"),
        ("*.csv", {"on_error": "skip"}, "on_error='skip' is no policy"),
        (None, {}, "no pattern"),
        (["a.csv"], {}, "no pattern"),
    ],
)
def test_what_cannot_be_watched_is_refused(
    db: Database, pattern: Any, options: Any, message: str
) -> None:
    with pytest.raises(PlanError, match=message):
        db.watch(pattern, Row, **options)
    assert db.tables() == []


def test_a_folder_is_looked_through_once_however_links_lead_back(
    db: Database, tmp_path: Path
) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    for name in ("here", "again", "more"):
        (inner / name).symlink_to(tmp_path)
    (inner / "a.jsonl").write_text('{"id": 1}\n')
    assert len(db.watch(tmp_path / "**" / "*.jsonl", Row)) == 1


@pytest.mark.parametrize("name", ["*.jsonl", "a[2].jsonl", "**/*.jsonl"])
def test_names_with_brackets_mean_what_is_there_by_them(
    db: Database, tmp_path: Path, name: str
) -> None:
    folder = tmp_path / "x[1]"
    folder.mkdir()
    (folder / "a[2].jsonl").write_text('{"id": 1}\n')
    assert len(db.watch(folder / name, Row)) == 1
    assert len(db.watch(tmp_path / "x[[]*" / "a[[]2].jsonl", Row)) == 1


def test_a_relative_path_stays_what_it_was_when_the_process_goes_elsewhere(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").write_text('{"id": 1}\n')
    tables = [db.watch(name, Row) for name in ("*.jsonl", "~/a.jsonl")]
    monkeypatch.chdir("/")
    for table in tables:
        table.catch_up()
        assert len(table) == 1


def test_a_table_whose_source_has_a_name_that_is_taken_is_not_made(tmp_path: Path) -> None:
    with Database(tmp_path / "rows.db") as db:
        db.ingest(None, db.table(int, name="numbers"), name="rows")
        before = set(db._engine.journal.kept)
        with pytest.raises(SourceError, match="give it another name"):
            db.watch(tmp_path / "*.jsonl", Row, name="rows")
        assert set(db._engine.journal.kept) == before and len(db.tables()) == 1


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Word:
    """A row that can be referenced weakly, to check whether it is alive."""

    text: str


def test_rows_of_a_table_that_was_replaced_are_given_up(db: Database, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text\ntea\n")
    table = db.watch(tmp_path / "*.csv", Word)
    (row,) = (weakref.ref(word) for word in table)
    table.source.stop()
    table = db.watch(tmp_path / "*.csv", Word, replace=True)
    gc.collect()
    assert row() is None and list(table) == [Word("tea")]


def test_a_quote_that_is_not_closed_is_told(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.csv"
    for text, line in (('what\nrum\n"tea\nale\n', 3), ('"what\nrum\n', 1)):
        path.write_text(text)
        os.utime(path, (1, 1))
        with pytest.raises(SourceError, match=f"line {line}: a quote .* is not closed"):
            db.watch(path, Line)
    path.write_text(f'what\n"{"x" * 200_000}"\nale\n')
    with pytest.raises(SourceError, match="line 2: a cell of more than 131,072 characters"):
        db.watch(path, Line)
    monkeypatch.setattr(reading, "CALM", 0)
    table = db.watch(path, Line, on_error="drop", name="lines")
    assert list(table) == [Line("ale")] and len(table.source.errors) == 1
    path.write_text('what\nrum\n"tea\nale')
    table.catch_up()
    assert list(table) == [Line("rum")] and len(table.source.errors) == 1
    with path.open("a") as file:
        file.write('"\n')
    table.catch_up()
    assert list(table) == [Line("rum"), Line("tea\nale")] and not table.source.errors


@pytest.mark.parametrize("durable", [False, True])
def test_a_table_that_is_dropped_or_replaced_ends_what_feeds_it(
    tmp_path: Path, durable: bool
) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1}\n{}\n')
    options: dict[str, Any] = {"name": "rows", "on_error": "drop"}
    store = tmp_path / "rows.db" if durable else None
    with Database(store) as db:
        first = db.watch(tmp_path / "*.jsonl", Row, **options)
        with pytest.raises(PlanError, match="replace=True"):
            db.watch(tmp_path / "*.jsonl", Row, **options)
        with pytest.raises(PlanError, match="no format"):
            db.watch(tmp_path / "*.xyz", Row, replace=True, **options)
        assert list(first) == [Row(1, None)]
        db.drop(first)
        assert db.tables() == []
        second = db.watch(tmp_path / "*.jsonl", Row, **options)
        view = second.materialize()
        third = db.watch(tmp_path / "*.jsonl", Row, replace=True, **options)
        assert db._engine.ingestions == {"rows": third.source} and view.closed
        (tmp_path / "a.jsonl").write_text('{"id": 2}\n')
        third.catch_up()
        assert list(third) == [Row(2, None)] and not third.source.errors
        for old in (first, second):
            old.source.wait(timeout=20)
            assert old.source.state == "stopped"
    with Database(store) as db:
        assert list(db.watch(tmp_path / "*.jsonl", Row, **options)) == [Row(2, None)]


def test_rows_of_a_class_with_keywords_only() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Named:
        id: int
        names: tuple[str, ...] = ()

    made = make_row_maker(Named)
    assert made.of_object({"id": 1, "names": ["a"]}) == Named(id=1, names=("a",))
    assert made.of_cells(["id", "names"])(["1", '["a"]']) == Named(id=1, names=("a",))
    assert made.of_cells(["id"])(["1"]) == Named(id=1)


def _until(condition: Any) -> None:
    for _ in range(2000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it was not noticed within 20 s")


def test_only_what_has_changed_since_is_read_after_a_restart(tmp_path: Path) -> None:
    path, store = tmp_path / "a.jsonl", tmp_path / "rows.db"
    path.write_text('{"id": 1}\n{"id": 2}\n')
    (tmp_path / "b.jsonl").write_text('{"id": "x"}\n{"id": 3}\n')
    for change, ids, rows in [
        (None, [1, 2, 3], 3),
        (None, [1, 2, 3], 0),
        ('{"id": 4}\n', [1, 2, 3, 4], 1),
        ("", [3], 3),
    ]:
        if change == "":
            path.unlink()
        elif change is not None:
            with path.open("a") as file:
                file.write(change)
        with Database(store) as db:
            table = db.watch(tmp_path / "*.jsonl", Row, poll=60, on_error="drop")
            assert sorted(row.id for row in table) == ids
            assert table.source.rows == rows
            assert [error.error.kind for error in table.source.errors] == ["SourceError"]


def test_a_first_load_that_fails_leaves_nothing_in_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "SIZE", 1)
    (tmp_path / "a.jsonl").write_text('{"id": 1}\n')
    (tmp_path / "b.jsonl").write_text('{"id": "x"}\n')
    with Database(tmp_path / "rows.db") as db, pytest.raises(SourceError, match="line 1"):
        db.watch(tmp_path / "*.jsonl", Row, poll=60)
    (tmp_path / "b.jsonl").unlink()
    with Database(tmp_path / "rows.db") as db:
        assert len(db.watch(tmp_path / "*.jsonl", Row, poll=60)) == 1


FOLLOWER = """
import sys
from reactive import Database
from tests.borders.sources.files.histories import Row
with Database(sys.argv[1] + "/rows.db") as db:
    table = db.watch(sys.argv[1] + "/*.jsonl", Row, poll=0.001)
    print("follows", flush=True)
    sys.stdin.read()
"""


@pytest.mark.long
def test_a_process_that_is_killed_while_files_change_loses_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    random, count = Random(1), 0
    for _ in range(3):
        command = [sys.executable, "-c", FOLLOWER, str(tmp_path)]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe) as follower:
            assert follower.stdout is not None
            follower.stdout.readline()
            for _ in range(random.randrange(20, 60)):
                with (tmp_path / f"{random.choice('ab')}.jsonl").open("a") as file:
                    file.write(f'{{"id": {count}}}\n')
                count += 1
                time.sleep(0.01 * random.random())
            follower.kill()
    with Database(tmp_path / "rows.db") as db:
        table = db.watch(tmp_path / "*.jsonl", Row, poll=60)
        assert sorted(row.id for row in table) == list(range(count))
        table.source.stop()


def test_a_file_that_goes_while_it_is_read_is_gone(db: Database, tmp_path: Path) -> None:
    def read(path: Path) -> list[Row]:
        if path.name == "b.txt":
            path.unlink()
        return [Row(1, path.read_text())]

    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(name)
    table = db.watch(tmp_path / "*.txt", Row, reader=read, poll=60)
    assert [*table] == [Row(1, "a.txt")]
    assert table.source.error is None


def test_a_file_that_may_not_be_read_is_told_with_the_reason(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "GRACE", 0.0)

    def refuse(*_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "a.jsonl").write_text('{"id": 1}\n')
    table = db.watch(tmp_path / "*.jsonl", Row, poll=60, on_error="drop")
    with monkeypatch.context() as refusing:
        refusing.setattr(source, "read_news", refuse)
        (tmp_path / "a.jsonl").write_text('{"id": 2}\n')
        table.catch_up()
        assert [row.id for row in table] == [1]
        (error,) = table.source.errors
        assert "a.jsonl cannot be read: [Errno 13] Permission denied" in error.error.message
    table.catch_up()
    assert [row.id for row in table] == [2] and [*table.source.errors] == []


def test_it_ends_with_its_database(tmp_path: Path) -> None:
    db = Database()
    db.watch(tmp_path / "*.jsonl", Row, key="id", name="followed")
    assert any("followed" in thread.name for thread in threading.enumerate())
    del db
    gc.collect()
    _until(lambda: not any("followed" in thread.name for thread in threading.enumerate()))


def test_it_is_not_made_in_a_transaction(db: Database, tmp_path: Path) -> None:
    with db.transaction(), pytest.raises(TransactionError):
        db.watch(tmp_path / "*.jsonl", Row)
    assert db.tables() == []
    table = db.watch(tmp_path / "*.jsonl", Row)
    with db.transaction(), pytest.raises(TransactionError):
        table.catch_up()


def test_an_interrupt_while_it_is_loaded_leaves_no_table(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> bool:
        raise KeyboardInterrupt

    (tmp_path / "a.jsonl").write_text('{"id": 1}\n')
    with monkeypatch.context() as broken, pytest.raises(KeyboardInterrupt):
        broken.setattr(source.FileSource, "_has_caught_up", interrupted)
        db.watch(tmp_path / "*.jsonl", Row)
    assert db.tables() == [] and db.tokens == {}
    assert len(db.watch(tmp_path / "*.jsonl", Row)) == 1


def test_a_long_load_shows_how_far_it_is(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    for number in range(5):
        (tmp_path / f"{number}.jsonl").write_text('{"id": 1}\n' * 300)
    db.watch(tmp_path / "*.jsonl", Row, name="followed", poll=60)
    assert "reading followed" in shown.getvalue() and "1,200 rows" in shown.getvalue()


def test_a_load_that_takes_long_does_not_put_off_the_next_look(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "has_watchfiles", lambda: False)
    monkeypatch.setattr(reading, "EVERY", 0.1)

    def slowly(path: Path) -> list[Row]:
        time.sleep(0.5)
        return [Row(1, path.name)]

    (tmp_path / "a.txt").write_text("")
    monkeypatch.setattr(reading, "SHARE", 100)
    table = db.watch(tmp_path / "*.txt", Row, reader=slowly)
    (tmp_path / "b.txt").write_text("")
    _until(lambda: len(table) == 2)


def test_classes_whose_objects_change_are_no_rows_of_files(tmp_path: Path) -> None:
    @tracked
    class Order:
        id: int

    with pytest.raises(PlanError, match="Order is @tracked\n  have a frozen class"):
        Database().watch(tmp_path / "*.csv", Order)


def test_a_folder_may_come_later_and_a_stop_is_told_and_mended(
    db: Database, tmp_path: Path
) -> None:
    folder = tmp_path / "later"
    stopped: list[str] = []
    table = db.watch(
        folder / "*.csv", Row, poll=0.02, on_stop=lambda reading: stopped.append(reading.state)
    )
    assert list(table) == []
    folder.mkdir()
    names = list(Row.__annotations__)
    (folder / "a.csv").write_text(",".join(names) + "\nnonsense\n")
    end = time.monotonic() + 30
    while not stopped and time.monotonic() < end:
        time.sleep(0.01)
    assert stopped == ["failed"] and isinstance(table.source.error, SourceError)
    (folder / "a.csv").unlink()
    table.source.start()
    table.catch_up(30)
    table.source.stop()
    assert stopped == ["failed", "stopped"]
