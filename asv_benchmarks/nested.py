"""Nested data: one row into an inner bag, by its size.

    python -m asv_benchmarks.nested [sizes]
    python -m asv_benchmarks.nested patch [sizes]       one row into a bag of a row of a table

The judge is a dictionary of dictionaries by hand: it shows a group by what it holds, and so keeps
no bag of before. That is the least that the change of a group can cost, and not the same result.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
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


def patch(size: int, levels: int) -> tuple[Change, Callable[[], Any]]:
    """A row whose bags within bags have that many values on each level, and a view over the last
    of them."""
    table = Database().table(tuple, key=lambda row: row[0])
    outer = table.unnest(lambda row: row[1])
    inner = outer.unnest(lambda row, value: value[1])
    first, second = outer.select(lambda row, o: o[0]), inner.select(lambda row, o, i: i[0])
    view = (first if levels == 1 else second).materialize()
    values: Bag[Any] = Bag([(n, Bag()) for n in range(size)])
    table.add((0, values if levels == 1 else values.plus({(-1, values): 1})))
    held = [(-1, values)]

    def change(value: int, weight: int) -> None:
        changed: dict[str, Any] = {"added" if weight > 0 else "removed": [(value, Bag())]}
        path = 1 if levels == 1 else (1, held[0], 1)
        row = table.patch(0, path, **changed)
        if levels == 2:
            held[0] = (-1, held[0][1].plus({(value, Bag()): weight}))
            assert held[0] in row[1]

    return change, view.snapshot


def patched(sizes: Sequence[int]) -> dict[tuple[int, int], float]:
    """Size and levels -> microseconds of a patch of one value, with a view over it, in turns."""
    sides = {(size, levels): patch(size, levels) for size in sizes for levels in (1, 2)}
    taken: dict[tuple[int, int], list[float]] = {side: [] for side in sides}
    for (size, _), (change, _) in sides.items():
        change(size, 1)
        change(size, -1)
    for _ in range(REPEATS):
        for side, (change, _) in sides.items():
            before = process_time()
            for weight in (1, -1):
                for value in range(side[0], side[0] + CHANGES):
                    change(value, weight)
            taken[side].append((process_time() - before) / (2 * CHANGES) * 1e6)
    return {side: median(times) for side, times in taken.items()}


def main(arguments: Sequence[str]) -> None:
    if arguments[:1] == ["patch"]:
        sizes = list(map(int, arguments[1:])) or SIZES
        figures = patched(sizes)
        print("| values of a bag | us, a patch of one, and a view over it | on the second level |")
        print("|---|---|---|")
        for each in sizes:
            print(f"| {each:,} | {figures[each, 1]:.1f} | {figures[each, 2]:.1f} |")
        return
    print("| values of the group | us, a change of one | by hand |\n|---|---|---|")
    for each in map(int, arguments or SIZES):
        found = measured(each)
        print(f"| {each:,} | {found[ENGINE]:.1f} | {found[TWIN]:.1f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
