"""Malicious or careless files: an error with file and line, and linear time."""

from __future__ import annotations

import gzip
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from optimizer.errors import PlanError
from reactive import Database
from reactive.borders.sources.files import source
from reactive.borders.sources.files.reading import TICK, read_news
from reactive.borders.sources.files.source import files
from reactive.borders.sources.files.texts import ReadLimits
from reactive.errors import SourceError

PATIENCE = 20


class Named(NamedTuple):
    id: int
    s: str


class Loose(NamedTuple):
    id: int
    s: object


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report a file that cannot be read after 10 ms."""
    monkeypatch.setattr(source, "GRACE", 0.01)


def refused(path: Path, kind: Any = Named, **options: Any) -> tuple[list[Any], list[str]]:
    """Return the rows that are read from a file, and the error texts of the other lines."""
    with Database() as db:
        table = db.watch(path, kind, name="t", on_error="drop", **options)
        return sorted(table), [str(each.error) for each in table.source.errors]


def unread(path: Path, **options: Any) -> str:
    """Return the error text of a file that is not read at all."""
    with Database() as db, pytest.raises(SourceError) as found:
        db.watch(path, Named, name="t", **options)
    return str(found.value)


@pytest.mark.parametrize("lines", [20, 80_000, 160_000])
@pytest.mark.parametrize("before", [0, 3])
def test_an_open_quote_is_told_where_it_begins(tmp_path: Path, lines: int, before: int) -> None:
    path = tmp_path / "a.csv"
    rows = "".join(f"{n},x\n" for n in range(before))
    path.write_text(f'id,s\n{rows}9,"' + "x\n" * lines)
    os.utime(path, (1e9, 1e9))
    found, errors = refused(path)
    assert [row.id for row in found] == list(range(before))
    (error,) = errors
    assert f"{path}, line {before + 2}: a quote that begins here is not closed" in error


def test_an_open_quote_in_the_header_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('id,"s\n' + "1,x\n" * 50_000)
    found, (error,) = refused(path)
    assert not found
    assert f"{path}, line 1: a quote that begins here is not closed" in error


def test_a_cell_that_is_too_long_costs_its_own_row(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('id,s\n1,a\n2,"' + "x\n" * 80_000 + '"\n3,c\n4,"' + "y\n" * 80_000 + '"\n5,e\n')
    found, errors = refused(path)
    assert found == [Named(1, "a"), Named(3, "c"), Named(5, "e")]
    assert len(errors) == 2
    assert all("more than 131,072 characters" in error for error in errors)


def long_lines(suffix: str, letters: int) -> str:
    long = "x" * letters
    match suffix:
        case ".csv":
            return f"id,s\n1,a\n2,{long}\n3,c\n"
        case ".json":
            return json.dumps([{"id": 1, "s": "a"}, {"id": 2, "s": long}, {"id": 3, "s": "c"}])
    return f'{{"id": 1, "s": "a"}}\n{{"id": 2, "s": "{long}"}}\n{{"id": 3, "s": "c"}}\n'


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_line_that_is_too_long_is_refused_and_no_other(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_text(long_lines(suffix, 5_000))
    found, (error,) = refused(path, max_line=4_000)
    assert found == [Named(1, "a"), Named(3, "c")]
    assert f"{path}, line {3 if suffix == '.csv' else 2}: 5,0" in error
    assert "letters are more than max_line=4,000 of a row" in error
    assert len(refused(path, max_line=6_000)[0]) == 3


def test_an_element_of_a_list_that_is_too_long_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(long_lines(".json", 5_000))
    assert "letters are more than max_line=4,000" in unread(path, max_line=4_000)
    assert len(refused(path, max_line=6_000)[0]) == 3


def test_a_last_line_without_an_end_is_refused_once_it_is_too_long(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 1, "s": "a"}\n{"id": 2, "s": "' + "x" * 5_000)
    os.utime(path, (1e9, 1e9 + 0.5))
    time.sleep(2 * TICK / 1e9)  # a file that was changed within a tick is read again, and told
    found, (error,) = refused(path, max_line=4_000)
    assert found == [Named(1, "a")]
    assert f"{path}, line 2: 5,0" in error


def test_a_last_line_that_is_too_long_is_reported_once(tmp_path: Path) -> None:
    """The line is reported when the file has not changed for a while, as its end may follow."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 1, "s": "a"}\n{"id": 2, "s": "' + "x" * 5_000)
    with Database() as db:
        table = db.watch(path, Named, name="t", on_error="drop", max_line=4_000)
        for _ in range(3):
            assert until(lambda: bool(table.source.errors))
            table.catch_up()
            (error,) = table.source.errors
        assert f"{path}, line 2: 5,0" in str(error.error)


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b" " * 4_000_000 + b'{"id": 1, "s": "a"}\n'))
    error = unread(path, max_line=100_000)
    assert f"cannot unpack {path}: it has more than max_ratio=200 times its" in error
    assert "max_bytes=1,000,000" in unread(path, max_bytes=1_000_000)
    assert refused(path, max_line=5_000_000) == ([Named(1, "a")], [])
    assert refused(path, max_line=4_100_000, max_ratio=5_000) == ([Named(1, "a")], [])


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,s\n" + "1,x\n" * 1_000)
    assert f"cannot read {path}: 4,005 bytes are more than max_bytes=4,000" in unread(
        path, max_bytes=4_000
    )
    assert len(refused(path, max_bytes=4_005)[0]) == 1_000


@pytest.mark.parametrize("name", ["max_line", "max_bytes", "max_ratio"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "7", None])
def test_a_limit_is_a_number_from_1_on(name: str, value: Any) -> None:
    with pytest.raises(PlanError, match=f"{name}=.* is no limit"):
        files("*.csv", Named, **{name: value})


DEEP = {
    "lists": "[" * 100_000 + "]" * 100_000,
    "objects": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "not closed": "[" * 100_000,
    "501": "[" * 501 + "]" * 501,
}


@pytest.mark.parametrize("name", DEEP)
def test_json_that_is_nested_too_deep_is_an_error_of_its_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        f'{{"id": 1, "s": "a"}}\n{{"id": 2, "s": {DEEP[name]}}}\n{{"id": 3, "s": []}}\n'
    )
    found, (error,) = refused(path, Loose)
    assert [row.id for row in found] == [1, 3]
    assert f"{path}, line 2: a value is nested more than 500 deep" in error


@pytest.mark.parametrize("name", DEEP)
def test_a_list_that_is_nested_too_deep_is_an_error_of_its_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(DEEP[name])
    assert f"{path} is no JSON: a value is nested more than 500 deep" in unread(path)


def test_brackets_in_a_text_are_not_nested(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"id": 1, "s": '["\\' * 1_000}) + "\n")
    assert refused(path) == ([Named(1, '["\\' * 1_000)], [])


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".json"])
def test_an_integer_of_a_million_digits_is_an_error(tmp_path: Path, suffix: str) -> None:
    path, digits = tmp_path / f"a{suffix}", "7" * 1_000_000
    if suffix == ".csv":
        path.write_text(f"id,s\n1,a\n{digits},b\n")
    elif suffix == ".jsonl":
        path.write_text(f'{{"id": 1, "s": "a"}}\n{{"id": {digits}, "s": "b"}}\n')
    else:
        path.write_text(f'[{{"id": {digits}, "s": "b"}}]')
        assert len(unread(path)) < 1_000
        return
    found, (error,) = refused(path)
    assert found == [Named(1, "a")]
    assert f"{path}, line {3 if suffix == '.csv' else 2}: " in error
    assert len(error) < 1_500


LISTS = [
    "[]",
    " [ ] ",
    "[1]",
    "[1,2 , 3]\n",
    "[",
    "[1",
    "[1,",
    "[1,]",
    "[1 2]",
    "[]x",
    "{}",
    "",
    "x",
]


@pytest.mark.parametrize("text", LISTS)
def test_a_list_is_read_as_json_has_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    try:
        expected = json.loads(text)
    except ValueError:
        expected = None
    try:
        taken = read_news(
            str(path),
            None,
            files(path, int)._format,
            time.time_ns(),
            ReadLimits(),
            append_only=False,
        ).taken.rows
    except Exception as error:
        assert not isinstance(expected, list), error
    else:
        assert taken == expected


def test_a_source_is_stopped_while_a_reader_is_in_the_middle_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("")
    is_asked, given, is_closed = threading.Event(), list[int](), threading.Event()

    def slowly(_: Path) -> Iterator[int]:
        try:
            for n in range(1_000_000):
                given.append(n)
                yield n
                if n == 10:
                    is_asked.set()
                    time.sleep(0.05)
        finally:
            is_closed.set()

    with Database() as db:
        table = db.watch(tmp_path / "*.txt", int, name="t", reader=slowly, start=False)
        table.source.start()
        assert is_asked.wait(PATIENCE)
        table.source.stop(PATIENCE)
        assert is_closed.is_set()
        assert table.source.state == "stopped"
        assert len(given) < 1_000_000
        assert not list(table)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".json"])
def test_a_source_is_stopped_within_some_lines(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    lines = [{"id": n, "s": ""} for n in range(5_000)]
    if suffix == ".csv":
        path.write_text("id,s\n" + "".join(f"{n},\n" for n in range(5_000)))
    elif suffix == ".jsonl":
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    else:
        path.write_text(json.dumps(lines))
    is_read, may_go_on, made = threading.Event(), threading.Event(), list[int]()

    @dataclass(frozen=True)
    class Slow:
        id: int
        s: str

        def __post_init__(self) -> None:
            made.append(self.id)
            if len(made) == 1_000:
                is_read.set()
                assert may_go_on.wait(PATIENCE)

    with Database() as db:
        table = db.watch(path, Slow, name="t", start=False)
        table.source.start()
        assert is_read.wait(PATIENCE)
        stopping = threading.Thread(target=table.source.stop)
        stopping.start()
        assert until(lambda: table.source._stop.is_set())
        may_go_on.set()
        stopping.join(PATIENCE)
        assert table.source.state == "stopped"
        assert len(made) <= 1_300
        assert not list(table)


def until(is_so: Callable[[], bool]) -> bool:
    end = time.monotonic() + PATIENCE
    while not is_so() and time.monotonic() < end:
        time.sleep(0.001)
    return is_so()
