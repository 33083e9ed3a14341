"""The size from which a tree should cache the bags that were read: inner bags by thresholds.

    python -m asv_benchmarks.nested_sizes [sizes]
    python -m asv_benchmarks.nested_sizes order [sizes]     nested rows in an order

unread     a row is inserted or deleted in a row that was read once, without reading it
seldom     ten of these, and then the outer row is read by its key
read       one of these, and then the outer row is read
edits      one of these, and the edits of its delta are read
all, MB    every row is read by its key once, of 20,000 inner rows: microseconds of an inner row,
           and the memory held for them in addition to that of the view

All in microseconds of CPU per inserted or deleted row. Sides of one size take turns.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from statistics import median
from time import process_time
from typing import Any, NamedTuple
from unittest.mock import patch

from optimizer.plans import shredding
from reactive import Database

SIZES = (1, 10, 32, 64, 128, 256, 1_000, 10_000)
NEVER = 10**9
THRESHOLDS = (1, 8, 16, 32, 64, 128, 256, NEVER)
CHANGES, REPEATS, TOTAL = 60, 5, 20_000


class Item(NamedTuple):
    id: int
    above: int


class Side:
    """One row around a number of others, in a tree with a threshold."""

    def __init__(self, size: int, large: int, roots: int = 1, form: str = "a bag") -> None:
        db = Database()
        within = FORMS[form]
        self.tops = db.table(Item, name="tops", key="id")
        self.rows = db.table(Item, name="rows", key="id")
        with patch.object(shredding, "LARGE", large):
            self.view: Any = self.tops.nest(
                inside=lambda t: within(self.rows.where(lambda row: row.above == t.id))
            ).materialize()
        self.tops.add_all([Item(n, 0) for n in range(roots)])
        self.rows.add_all([Item(n, n % roots) for n in range(size * roots)])

    def changes(self, after: Callable[[int], Any]) -> float:
        """Return the microseconds of an inserted or deleted row."""
        begin = process_time()
        for number in range(CHANGES):
            self.rows.add(Item(-1 - number, 0))
            after(2 * number)
        for number in range(CHANGES):
            self.rows.delete(-1 - number)
            after(2 * number + 1)
        return (process_time() - begin) / (2 * CHANGES) * 1e6

    def read(self, number: int = 0) -> None:
        len(self.view[0].inside)

    def seldom(self, number: int) -> None:
        if not number % 10:
            self.read()

    def measured(self) -> dict[str, float]:
        """Way -> microseconds."""
        self.read()
        found = {"unread": self.changes(int), "seldom": self.changes(self.seldom)}
        found["read"] = self.changes(self.read)
        with self.view.subscribe(lambda delta: delta.edits):
            found["edits"] = self.changes(int)
        return found


def all_read(size: int, large: int) -> tuple[float, float]:
    """Microseconds per row inside of reading all by their keys, and MB that are held then."""
    side = Side(size, large, max(1, TOTAL // size))
    keys = side.view.keys()
    gc.collect()
    tracemalloc.start()
    for key in keys:
        len(side.view[key].inside)
    gc.collect()
    held = tracemalloc.get_traced_memory()[0] / 1e6
    tracemalloc.stop()
    side = Side(size, large, max(1, TOTAL // size))
    keys = side.view.keys()
    begin = process_time()
    for key in keys:
        len(side.view[key].inside)
    return (process_time() - begin) / (size * len(keys)) * 1e6, held


def measured(size: int) -> None:
    """Print a table of one size."""
    sides = {large: Side(size, large) for large in THRESHOLDS}
    runs: dict[int, list[dict[str, float]]] = {large: [] for large in THRESHOLDS}
    for _ in range(REPEATS):
        for large, side in sides.items():
            runs[large].append(side.measured())
    for large, each in runs.items():
        ways = [f"{median(run[way] for run in each):.0f}" for way in each[0]]
        taken, held = all_read(size, large)
        name = "never" if large == NEVER else str(large)
        print(f"| {size:,} | {name} | {' | '.join(ways)} | {taken:.2f} | {held:.1f} |", flush=True)


FORMS: dict[str, Callable[[Any], Any]] = {
    "a bag": lambda rows: rows,
    "in order": lambda rows: rows.order_by(lambda row: (row.id * 7919) % 1_000_003),
    "the first 5": lambda rows: rows.order_by(lambda row: (row.id * 7919) % 1_000_003).limit(5),
}


def measured_in_order(sizes: list[int]) -> None:
    """Print a table of nested rows in an order, and of bags beside them; all take turns."""
    every = [(form, size) for form in FORMS for size in sizes]
    sides = {(form, size): Side(size, shredding.LARGE, form=form) for form, size in every}
    runs: dict[tuple[str, int], list[dict[str, float]]] = {side: [] for side in sides}
    for _ in range(REPEATS + 1):
        for which, side in sides.items():
            runs[which].append(side.measured())
    for (form, size), each in runs.items():
        ways = [f"{median(run[way] for run in each[1:]):.0f}" for way in each[0]]
        print(f"| {form} | {size:,} | {' | '.join(ways)} |", flush=True)


if __name__ == "__main__" and sys.argv[1:2] == ["order"]:
    print("| inside | rows | unread | seldom | read | edits |\n|---|---|---|---|---|---|")
    measured_in_order([*map(int, sys.argv[2:] or (100, 10_000, 1_000_000))])
elif __name__ == "__main__":
    print("| rows inside | kept from | unread | seldom | read | edits | all | MB |")
    print("|---|---|---|---|---|---|---|---|")
    for size in map(int, sys.argv[1:] or SIZES):
        measured(size)
