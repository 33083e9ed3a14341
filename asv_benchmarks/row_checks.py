"""Cost of the check of rows: `python -m asv_benchmarks.row_checks [ROWS]`.

    checked     a table of six fields that may not be None
    twin        the same fields declared `| None`, which need no check

Rows are added to both in turns: row by row before and after a first load, and by batches into an
empty table, or into one whose first rows were added one by one. Times are CPU seconds.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import make_dataclass
from statistics import median
from time import process_time
from typing import Any, NamedTuple

from asv_benchmarks.table import markdown
from reactive import Database

TURNS = 15
FIRST = 500
"""Rows that are there before."""
TYPES: Sequence[type] = (int, str, int, str, int, str)
NAMES = "abcdef"


def _dataclass(types: Sequence[Any]) -> Any:
    return make_dataclass("Data", zip(NAMES, types, strict=True), frozen=True, slots=True)


def _named(types: Sequence[Any]) -> Any:
    return NamedTuple("Named", list(zip(NAMES, types, strict=True)))


KINDS: Mapping[str, Callable[[Sequence[Any]], Any]] = {"dataclass": _dataclass, "named": _named}
WAYS = ("add", "add, loaded", "add_all", "add_all, begun")
CASES = [f"{kind}, {way}" for kind in KINDS for way in WAYS]


def ratio(case: str, rows: int, turns: int = TURNS) -> float:
    """Return the time of adding rows over that of the twin: the median of pairs."""
    name, _, way = case.partition(", ")
    checked = KINDS[name](TYPES)
    twin = KINDS[name]([kind | None for kind in TYPES])
    found = []
    for turn in range(turns):
        sides = (checked, twin) if turn % 2 else (twin, checked)
        took = {side: _seconds(side, way, rows) for side in sides}
        found.append(took[checked] / took[twin])
    return median(found)


def _seconds(kind: Any, way: str, count: int) -> float:
    table: Any = Database().table(kind, name="rows")
    rows = [kind(n, "x", n, "y", n, "z") for n in range(count)]
    first = [kind(-n, "x", n, "y", n, "z") for n in range(1, FIRST + 1)]
    if way.endswith("loaded"):
        table.add_all(first)
    elif way != "add_all":
        for row in first:
            table.add(row)
    gc.collect()
    start = process_time()
    if way.startswith("add_all"):
        table.add_all(rows)
    else:
        for row in rows:
            table.add(row)
    return process_time() - start


def main() -> None:
    """Measure and print."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    lines = [[case, f"{ratio(case, rows):.2f}"] for case in CASES]
    print("\n".join(markdown(["rows of six fields", "times the twin"], lines)))


if __name__ == "__main__":
    main()
