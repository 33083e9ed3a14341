"""Random edits of files, and the rows of all files when they are read from scratch."""

from __future__ import annotations

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from reactive import Database, View, WatchedTable

NAMES = ("a", "b", "c", "d/e", "d/f")


class Row(NamedTuple):
    """A row of a line."""

    id: int
    text: str | None


class Read(NamedTuple):
    """The contents of a file: its rows in order, and the number of bad lines."""

    rows: list[Row]
    refused: int


class Files:
    """Files of a format in a folder, which are edited at random."""

    def __init__(self, folder: Path, suffix: str, random: Random) -> None:
        self.folder, self.suffix, self._random = folder, suffix, random
        self._number = 0
        (folder / "d").mkdir(parents=True)

    @property
    def pattern(self) -> str:
        return str(self.folder / "**" / f"*{self.suffix}")

    def paths(self) -> list[Path]:
        return sorted(self.folder.rglob(f"*{self.suffix}"))

    def edit(self, *, grow_only: bool = False) -> str:
        """Edit a file; return a description of the edit."""
        grow = [self.append, self.half, self.create]
        edits: list[Callable[[Path], object]] = [
            *(self.write, self.append, self.append, self.half, self.replace, self.rename),
            *(self.delete, self.touch, self.truncate, self.again, self.change_a_byte, self.grow),
        ]
        edit = self._random.choice(grow if grow_only else edits)
        path = self.folder / f"{self._random.choice(NAMES)}{self.suffix}"
        edit(path)
        return f"{edit.__name__} {path.name}"

    def write(self, path: Path) -> None:
        path.write_bytes(self.head() + self.lines())

    def create(self, path: Path) -> None:
        if not path.exists():
            self.write(path)

    def append(self, path: Path) -> None:
        with path.open("ab") as file:
            if file.tell() == 0:
                file.write(self.head())
            file.write(self.lines())

    def half(self, path: Path) -> None:
        """Write a line in two halves; the second half may arrive later, or never."""
        if not path.exists():
            return
        line = self.line()
        with path.open("ab") as file:
            file.write(line[: self._random.randrange(len(line))])

    def replace(self, path: Path) -> None:
        beside = path.with_suffix(".new")
        before = path.read_bytes() if path.exists() and self._random.random() < 0.5 else self.head()
        beside.write_bytes(before + self.lines())
        beside.replace(path)

    def rename(self, path: Path) -> None:
        if path.exists():
            path.replace(self.folder / f"{self._random.choice(NAMES)}{self.suffix}")

    def delete(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def touch(self, path: Path) -> None:
        if path.exists():
            os.utime(path)

    def truncate(self, path: Path) -> None:
        if path.exists():
            os.truncate(path, self._random.randrange(path.stat().st_size + 1))

    def again(self, path: Path) -> None:
        if path.exists():
            path.write_bytes(path.read_bytes())

    def change_a_byte(self, path: Path) -> None:
        """Change a byte in place, with the same size."""
        if path.exists() and (data := bytearray(path.read_bytes())):
            place = self._random.randrange(len(data))
            data[place] = self._random.choice(b'17,x"\n')
            with path.open("r+b") as file:
                file.write(data)

    def grow(self, path: Path) -> None:
        """Insert a line into a file, and so change its existing part."""
        if path.exists():
            lines = path.read_bytes().splitlines(keepends=True)
            at = self._random.randrange(len(lines) + 1)
            path.write_bytes(b"".join([*lines[:at], self.line(), *lines[at:]]))

    def head(self) -> bytes:
        return b"id,text\n" if self.suffix == ".csv" else b""

    def lines(self) -> bytes:
        return b"".join(self.line() for _ in range(self._random.choice((0, 1, 1, 2, 5))))

    def line(self) -> bytes:
        """A line, now and then one that is no row."""
        self._number += 1
        number = self._random.choice((self._number, 7))
        if self.suffix == ".csv":
            texts = ("x", "", '"a ""b"""', '"two\nlines"', "ä", "x,y")
            return f"{number},{self._random.choice(texts)}\n".encode()
        objects: tuple[Any, ...] = (
            {"id": number},
            {"id": number, "text": "ä\u2028"},
            {"id": "x"},
            {},
            5,
        )
        chosen = self._random.choice((*objects[:2], *objects))
        return (json.dumps(chosen, ensure_ascii=False) + self._random.choice("\n\n ")).encode()


def read(path: Path) -> Read:
    """Return the contents of a file, read by plain Python."""
    text = path.read_bytes().decode(errors="surrogateescape")
    return _of_csv(text) if path.suffix == ".csv" else _of_lines(text)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _of_lines(text: str) -> Read:
    *lines, last = text.split("\n")
    rows, refused = [], 0
    for line in (line for line in lines if line.strip()):
        row = _of_object(line)
        rows += [] if row is None else [row]
        refused += row is None
    row = _of_object(last)
    return Read([*rows, *([] if row is None else [row])], refused)


def _of_object(line: str) -> Row | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    is_row = _is_text(line) and isinstance(value, dict) and type(value.get("id")) is int
    text = value.get("text") if is_row else None
    return Row(value["id"], text) if is_row and isinstance(text, str | None) else None


def _of_csv(text: str) -> Read:
    records: list[list[str] | None] = []
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    while True:
        try:
            records.append(next(reader))
        except StopIteration:
            break
        except csv.Error as error:
            records.append(None)
            if "unexpected end" in str(error):
                break
    records = [record for record in records if record != []]
    broken = sum(record is None for record in records)
    header, *cells = [record for record in records if record is not None] or [[]]
    if "id" not in (names := [cell.strip() for cell in header]):
        return Read([], 1 if header else broken)
    found = [_of_cells(names, each) for each in cells]
    rows = [row for row in found if row is not None]
    return Read(rows, len(found) - len(rows) + broken)


def _of_cells(names: list[str], cells: list[str]) -> Row | None:
    if len(cells) != len(names) or not _is_text("".join(cells)):
        return None
    record = dict(zip(names, cells, strict=True))
    try:
        return Row(int(record["id"]), record.get("text") or None)
    except ValueError:
        return None


def check(table: WatchedTable[Row], files: Files, done: list[str]) -> None:
    """Check that the table equals the files."""
    table.catch_up(timeout=60)
    found = {path.as_posix(): read(path) for path in files.paths()}
    origins = {path: tuple(each.rows) for path, each in found.items() if each.rows}
    assert {**table.source.origins} == origins, done
    assert Counter(table) == Counter(row for rows in origins.values() for row in rows), done
    refused = sum(each.refused for each in found.values())
    assert len(table.source.errors) == refused, (done, list(table.source.errors))


def run(folder: Path, suffix: str, seed: int, length: int = 12) -> None:
    """Run a history of random edits.

    Several edits may be found together; some happen while no database follows the files, and some
    in another process.
    """
    random = Random(seed)
    files, done = Files(folder, suffix, random), []
    store = folder.parent / "rows.db" if seed % 2 else None
    for _ in range(random.randrange(4)):
        done.append(files.edit())
    db, table, view = follow(files, store)
    try:
        check(table, files, done)
        for _ in range(length):
            done.append(files.edit())
            if random.random() < 0.1:
                table.source.stop()
                table.source.start()
            if random.random() < 0.2 and store is not None:
                db.close()
                done.append("restart")
                db, table, view = follow(files, store)
            if random.random() < 0.7:
                check(table, files, done)
        check(table, files, done)
        view.verify()
    finally:
        db.close()


def follow(files: Files, store: Path | None) -> tuple[Database, WatchedTable[Row], View[Any]]:
    db = Database(store)
    table = db.watch(files.pattern, Row, poll=60, on_error="drop")
    return db, table, table.group_by(lambda r: r.id).rows().materialize()
