"""A damaged file is opened with an error that names the damage: never another exception."""

from __future__ import annotations

import sqlite3
from datetime import date
from decimal import Decimal
from enum import Enum
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from reactive import Batch, Database, DurabilityError, ReactiveError
from tests.borders.durable.history import PATTERNS
from tests.budget import drawing, share_of


class Colour(Enum):
    """A member by its name."""

    RED = 1


class Inner(NamedTuple):
    """A record in a row."""

    day: date
    prices: tuple[Decimal, ...]


class Wide(NamedTuple):
    """A row with a column of each kind."""

    id: int
    ok: bool
    price: Decimal
    colour: Colour
    day: date | None
    inner: Inner
    anything: Any


class Later(NamedTuple):
    """The rows of `wide` with a field more, which has a default."""

    id: int
    ok: bool
    price: Decimal
    colour: Colour
    day: date | None
    inner: Inner
    anything: Any
    more: int = 0


ROW = Wide(1, True, Decimal("1.5"), Colour.RED, date(2026, 1, 1), Inner(date(2026, 1, 1), ()), (1,))
DEEP = b"\xff" + b"[" * 200_000
NOT_WRITTEN: tuple[Any, ...] = (
    *(None, 0, -1, 2**40, 1.5, float("inf"), "", "x", "{}", "[", b"", b"\xff", DEEP),
    *(b"\xff" + text for text in (b"[]", b"[[]]", b"{}", b"{", b"nan", b'"x', b"1e999", b"\xfe")),
    *(
        b"\xff" + text
        for text in (
            *(
                b'{"Decimal": "x"}',
                b'{"Decimal": []}',
                b'{"date": 1}',
                b'{"datetime": ["x", 1, 2]}',
            ),
            *(b'{"tuple": 1}', b'{"tuple": [[]]}', b'{"frozenset": [[]]}', b'{"Bag": [1]}'),
            *(b'{"record": ["Inner", {}]}', b'{"record": ["Inner", []]}', b'{"record": 1}'),
            *(b'{"record": ["Nobody", {}]}', b'{"enum": ["Colour", "BLUE"]}', b'{"enum": []}'),
            *(b'{"range": [1, 2, 0]}', b'{"int": "zz"}', b'{"a": 1, "b": 2}', b'{"never": 1}'),
            *(b'{"dict": [1]}', b'{"object": [[[], 1]]}', b'{"bytes": "z"}', b'{"complex": "x"}'),
            b'{"time": ["00:00", "Nowhere/Else", 0]}',
        )
    ),
)
TABLES = ("wide", "words", "patterns", "source words", "sink words")


def made(path: Path, *, later: bool = False) -> Any:
    """Create or open the file; return its rows, and the rows of bags with their weights."""
    with Database(path, keep=10) as db:
        wide = db.table(Later if later else Wide, key="id", name="wide")
        words = db.table(tuple, name="words")
        patterns = db.table(object, name="patterns", codec=PATTERNS)
        db.ingest(None, words, name="words")
        sink = words.materialize("words").changes_to(lambda number, changes: None)
        sink.flush()
        list(db.history(since=0))
        bags = [each.zset().items() for each in (words, patterns)]  # a weight may be huge
        return [*map(repr, wide), *(repr(item) for bag in bags for item in bag)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "x.db"
    made(path)
    with Database(path, keep=10) as db:
        db.table(Wide, key="id", name="wide").add(ROW)
        words = db.table(tuple, name="words")
        words.add(("to",), 2)
        words.add(("be",))
        db.ingest(None, words, name="words").take(Batch([("or",)], token=1))
    made(path)
    return path.read_bytes()


def columns(whole: bytes, folder: Path) -> list[tuple[str, str]]:
    """The SQL tables with their columns."""
    path = folder / "y.db"
    path.write_bytes(whole)
    other = sqlite3.connect(path)
    names = [n for (n,) in other.execute("select name from sqlite_master where type = 'table'")]
    found = [(n, row[1]) for n in names for row in other.execute(f'pragma table_info("{n}")')]
    other.close()
    return found


@pytest.mark.parametrize("later", [False, True])
def test_what_is_damaged_is_told(whole: bytes, tmp_path: Path, later: bool) -> None:
    every = [(t, c, value) for t, c in columns(whole, tmp_path) for value in NOT_WRITTEN]
    assert len(every) > 1000
    told = 0
    for table, column, value in share_of(every, f"damage {later}", 12):
        path = tmp_path / "x.db"
        path.write_bytes(whole)
        other = sqlite3.connect(path)
        try:
            other.execute(f'update "{table}" set "{column}" = ?', (value,))
        except sqlite3.Error:  # the key is not to be so
            continue
        finally:
            other.commit()
            other.close()
        try:
            made(path, later=later)
        except ReactiveError as error:
            told += 1
            assert isinstance(error, DurabilityError) or "\n" in str(error)
        except BaseException as error:
            error.add_note(f"{table}.{column} = {value!r:.50}")
            raise
    assert told > 20


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("update wide set anything = x'ff5b'", r"'wide' in .*: its row \(1, 1, "),
        ("update wide set price = 'x'", r"'wide' in .*: its row \(1, 1, 'x'"),
        ("update words set weight = null", "'words' in .*says how often"),
        (
            "update reactive_tables set text = '{}' where name = 'wide'",
            "'reactive_tables' in .*'wide'",
        ),
        ("update reactive_tables set columns = null", "'reactive_tables' in .*'columns': None"),
        ("update reactive_state set value = 'x' where name = 'version'", "'reactive_state' in "),
        ("delete from reactive_state", "'reactive_state' in "),
        ("update reactive_changes set row = '['", "'reactive_changes' in "),
    ],
)
def test_the_error_names_the_table_and_the_row(
    whole: bytes, tmp_path: Path, statement: str, named: str
) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(whole)
    other = sqlite3.connect(path)
    other.execute(statement)
    other.commit()
    other.close()
    with pytest.raises(DurabilityError, match=f"cannot read table {named}"):
        made(path)


def test_a_file_that_was_cut_or_written_over_is_told(whole: bytes, tmp_path: Path) -> None:
    path, random = tmp_path / "x.db", drawing()
    with Database(path) as db:
        words = db.table(str, name="words")
        words.add_all(f"{n} " + "x" * random.randrange(3000) for n in range(300))
        words.add("to", 2)
    assert path.stat().st_size > 300_000
    there, wanted, told = path.read_bytes(), _words(path), 0
    for _ in range(12):
        path.write_bytes(_harmed(there, random))
        for beside in ("-wal", "-shm"):
            path.with_name(f"x.db{beside}").unlink(missing_ok=True)
        try:
            assert _words(path) == wanted  # the overwritten bytes were unused
        except DurabilityError as error:
            assert "x.db" in str(error)
            told += 1
    assert told > 6


def _words(path: Path) -> list[str]:
    with Database(path) as db:
        return sorted(db.table(str, name="words"))


def _harmed(there: bytes, random: Random) -> bytes:
    """A file without some pages in the middle or at its end, or with nothing in their place."""
    pages = len(there) // 2048
    first = random.randrange(3, pages)
    at, until = first * 2048, random.randrange(first + 1, pages + 1) * 2048
    kind = random.choice(["out", "nothing", "end"])
    if kind == "end":
        return there[:at]
    return there[:at] + (bytes(until - at) if kind == "nothing" else b"") + there[until:]
