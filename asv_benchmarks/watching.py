"""The cost of following files, beside reading them by hand with `json.loads` and `add_all`.

    python -m asv_benchmarks.watching [--rows 200000] [--files 100] [--repeats 3]

CPU seconds of this process, the median of some turns. One file that is replaced, and one line more
at the end of a file of 100,000 lines, are beside reading that file by hand. Of many small files
one is replaced: by the whole of it, and by its commit alone, of a durable database too.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, NamedTuple

from reactive import Database, Sum

LONG = 100_000
"""Lines of the long file."""
MANY = 10_000
"""Small files."""


class Sale(NamedTuple):
    """A row of a line."""

    id: int
    customer: str
    total: float


def line(number: int) -> str:
    sale = {"id": number, "customer": f"customer {number % 1000}", "total": number / 8}
    return json.dumps(sale) + "\n"


def by_hand(files: list[Path]) -> list[Sale]:
    rows = []
    for path in files:
        with path.open() as file:
            for text in file:
                found = json.loads(text)
                rows.append(Sale(found["id"], found["customer"], found["total"]))
    return rows


def spent(table: Any) -> Any:
    return table.group_by("customer").aggregate(Sum("total")).materialize()


def seconds(action: Callable[[], object]) -> float:
    before = process_time()
    action()
    return process_time() - before


class Folder:
    """Files of lines, and a way to follow them."""

    def __init__(self, path: Path, rows: int, files: int) -> None:
        self.path, self.rows, self.each = path, rows, rows // files
        self.files = [path / f"{number:04}.jsonl" for number in range(files)]
        for number, file in enumerate(self.files):
            self.write(file, number * self.each, self.each)
        self.next = rows

    def write(self, file: Path, first: int, count: int) -> None:
        file.write_text("".join(line(number) for number in range(first, first + count)))

    def load(self, keys: dict[str, Any]) -> float:
        """Load all files, and return the seconds."""
        with Database() as db:
            return seconds(lambda: db.watch(self.path / "*.jsonl", Sale, poll=3600, **keys))

    def load_by_hand(self, keys: dict[str, Any]) -> float:
        with Database() as db:
            table = db.table(Sale, **keys)
            return seconds(lambda: table.add_all(by_hand(self.files)))

    def change(self, how: str, **options: Any) -> float:
        """One file, which is changed as a whole, in a line, or appended to."""
        with Database() as db:
            table = db.watch(self.path / "*.jsonl", Sale, key="id", poll=3600, **options)
            view = spent(table)
            times = []
            for _ in range(5):
                if how == "replaced":
                    self.write(self.files[0], self.next, self.each)
                elif how == "edited":
                    lines = self.files[0].read_text().splitlines(keepends=True)
                    lines[len(lines) // 2] = line(self.next)
                    self.files[0].write_text("".join(lines))
                else:
                    with self.files[0].open("a") as file:
                        file.write(line(self.next))
                self.next += self.each
                times.append(seconds(table.catch_up))
            assert len(view) == min(1000, len(table))
            return median(times)


def one_of_many(folder: Path, database: Path | None) -> tuple[float, float, int]:
    """Return the CPU seconds of the round after a change of one file, and of its commit.

    The last figure is the bytes that are written to the file of the database.
    """
    files = Folder(folder, MANY, MANY)
    with Database(database) as db:
        table = db.watch(folder / "*.jsonl", Sale, poll=3600)
        commit: Any = table.source._commit
        commits: list[float] = []

        def timed(batch: Any, drops: bool) -> int:
            commits.append(seconds(lambda: commit(batch, drops)))
            return 0

        table.source._commit = timed
        time.sleep(1)
        table.catch_up()
        commits.clear()
        before, rounds = _written(), []
        for _ in range(5):
            files.write(files.files[7], files.next, 1)
            files.next += 1
            rounds.append(seconds(table.catch_up))
        return median(rounds), median(commits), (_written() - before) // len(commits)


def _written() -> int:
    """Bytes that this process has written."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("wchar")).split()[1])


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rows", type=int, default=200_000)
    arguments.add_argument("--files", type=int, default=100)
    arguments.add_argument("--repeats", type=int, default=3)
    given = arguments.parse_args()
    told: dict[str, list[float]] = {}
    for name in (None, "rows.db"):
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as beside:
            path = None if name is None else Path(beside) / name
            whole, commit, written = one_of_many(Path(folder), path)
            kept = "in memory" if name is None else "durable"
            print(
                f"one of {MANY:,} files replaced, {kept}: {whole * 1000:.2f} ms of CPU, its commit "
                f"{commit * 1000:.2f}, {written:,} bytes written"
            )

    def tell(name: str, took: float) -> None:
        told.setdefault(name, []).append(took)

    for _ in range(given.repeats):
        with tempfile.TemporaryDirectory() as folder:
            files = Folder(Path(folder), given.rows, given.files)
            for keys in ({}, {"key": "id"}):
                named = "with a key" if keys else "without"
                tell(f"first load {named}, by hand", files.load_by_hand(keys))
                tell(f"first load {named}", files.load(keys))
            tell("one of the files replaced, by hand", seconds(partial(by_hand, files.files[:1])))
            tell("one of the files replaced", files.change("replaced"))
        with tempfile.TemporaryDirectory() as folder:
            long = Folder(Path(folder), LONG, 1)
            tell("a line more of 100,000, by hand", seconds(partial(by_hand, long.files)))
            tell("a line more of 100,000", long.change("appended"))
            tell("a line of 100,000 edited", long.change("edited"))
            tell("a line more of 100,000, append_only", long.change("appended", append_only=True))
    for name, times in told.items():
        print(f"{name:40} {median(times) * 1000:10.2f} ms of CPU")


if __name__ == "__main__":
    main()
