"""Nested data: one row into an inner bag, by its size.

    python -m asv_benchmarks.nested [sizes]

The judge is a dictionary of dictionaries by hand: it shows a group by what it holds, and so keeps
no bag of before. That is the least that the change of a group can cost, and not the same result.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from statistics import median
from time import process_time
from typing import Any

from asv_benchmarks.measure import ENGINE, TWIN
from reactive import Bag, Collect, Database

SIZES = (10, 100, 10_000, 1_000_000)
CHANGES, REPEATS = 200, 7

Change = Callable[[int, int], None]


def engine(size: int) -> tuple[Change, Callable[[], Any]]:
    """A group of `Collect`, and what it shows."""
    rows = Database().table(tuple)
    view = rows.group_by(lambda r: r[0]).aggregate(Collect(lambda r: r[1])).materialize()
    rows.add_all([("a", n) for n in range(size)])

    def change(value: int, weight: int) -> None:
        rows.add(("a", value)) if weight > 0 else rows.remove(("a", value))

    return change, lambda: view["a"]


def by_hand(size: int) -> tuple[Change, Callable[[], Any]]:
    groups: dict[str, dict[int, int]] = {"a": dict.fromkeys(range(size), 1)}
    table = dict.fromkeys([("a", n) for n in range(size)], 1)

    def change(value: int, weight: int) -> None:
        row = ("a", value)
        _add(table, row, weight)
        _add(groups.setdefault(row[0], {}), row[1], weight)

    return change, lambda: Bag(groups["a"])


def _add(held: dict[Any, int], key: Any, weight: int) -> None:
    now = held.get(key, 0) + weight
    if now:
        held[key] = now
    else:
        del held[key]


def measured(size: int) -> dict[str, float]:
    """Side -> microseconds of the change of one value in a group of a size, in turns."""
    sides = {ENGINE: engine(size), TWIN: by_hand(size)}
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for change, _ in sides.values():
        change(-1, 1)  # the first one splits what was loaded
    for _ in range(REPEATS):
        for name, (change, _) in sides.items():
            before = process_time()
            for weight in (1, -1):
                for value in range(size, size + CHANGES):
                    change(value, weight)
            taken[name].append((process_time() - before) / (2 * CHANGES) * 1e6)
    shown = [show() for _, show in sides.values()]
    if shown[0] != shown[1]:
        raise AssertionError(f"a group of {size}: the engine and the program by hand differ")
    return {name: median(times) for name, times in taken.items()}


if __name__ == "__main__":
    print("| values of the group | us, a change of one | by hand |\n|---|---|---|")
    for each in map(int, sys.argv[1:] or SIZES):
        found = measured(each)
        print(f"| {each:,} | {found[ENGINE]:.1f} | {found[TWIN]:.1f} |", flush=True)
