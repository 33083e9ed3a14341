"""Nested data: one row into an inner bag, by its size.

    python -m asv_benchmarks.nested [sizes]
    python -m asv_benchmarks.nested patch [sizes]       one row into a bag of a row of a table, with
                                                        each of several views over it

The baseline is a dictionary of dictionaries by hand: it shows a group by its current contents, and
keeps no earlier bag. That is the least cost of a change of a group, but not the same result.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from statistics import median
from time import process_time
from typing import Any

from asv_benchmarks.coming_and_going import coming_and_going
from asv_benchmarks.measure import ENGINE, TWIN
from reactive import Bag, Collect, Database, Patch, Relation, Table, live

SIZES = (10, 100, 10_000, 1_000_000)
CHANGES, REPEATS = 200, 7

Change = Callable[[int, int], None]


def engine(size: int) -> tuple[Change, Callable[[], Any]]:
    """Return a change of a group of `Collect`, and a function that reads the result."""
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
    taken = coming_and_going(sides, size, changes=CHANGES, repeats=REPEATS)
    shown = [show() for _, show in sides.values()]
    if shown[0] != shown[1]:
        raise AssertionError(f"a group of {size}: the engine and the program by hand differ")
    return taken


Rows = Table[Any]
EMPTY: Bag[Any] = Bag()


def of_a_join(rows: Rows) -> Relation[Any]:
    others = rows.select(lambda row: (row[0], "b"))
    joined = rows.join(others, on=lambda row, other: row[0] == other[0])
    return joined.unnest(lambda row, other: row[1]).select(lambda row, other, o: (other[1], o[0]))


def of_two_levels(rows: Rows) -> Relation[Any]:
    return (
        rows.unnest(lambda row: row[1])
        .unnest(lambda row, o: o[1])
        .select(lambda row, o, value: value[0])
    )


VIEWS: dict[str, Callable[[Rows], Any]] = {
    "unnest": lambda rows: rows.unnest(lambda row: row[1]).select(lambda row, o: o[0]),
    "unnest, patch_all": lambda rows: rows.unnest(lambda row: row[1]).select(lambda row, o: o[0]),
    "unnest of a join": of_a_join,
    "sum": lambda rows: rows.select(lambda row: sum(o[0] for o in row[1])),
    "max": lambda rows: rows.select(lambda row: max(o[0] for o in row[1])),
    "list": lambda rows: live((row[0], [o[0] for o in row[1] if o[0] % 2]) for row in rows),
    "2: unnest": of_two_levels,
    "2: sum of sums": lambda rows: rows.select(
        lambda row: sum(sum(value[0] for value in o[1]) for o in row[1])
    ),
    "2: list of lists": lambda rows: live(
        (row[0], [(o[0], [value[0] for value in o[1]]) for o in row[1]]) for row in rows
    ),
}
"""The views whose names begin with 2 read patches of the second level."""


def patch(values: Bag[Any], name: str) -> Callable[[int, int], float]:
    """Return a function that inserts or deletes a value in a bag of a row and returns the seconds.

    The bag is that of the row, or one inside a value; a view is over it.
    """
    table = Database().table(tuple, key=lambda row: row[0])
    view = VIEWS[name](table).materialize()
    is_second = name.startswith("2")
    inner = (-1, values)
    table.add((0, values.plus({inner: 1}) if is_second else values))
    held = [inner]

    def change(value: int, weight: int) -> float:
        changed: dict[str, Any] = {"added" if weight > 0 else "removed": [(value, EMPTY)]}
        path = (1, held[0], 1) if is_second else 1
        old: Any = table[0]
        before = process_time()
        if name.endswith("patch_all"):
            table.patch_all([Patch(0, path, **changed)])
        else:
            table.patch(0, path, **changed)
        taken = process_time() - before
        if is_second:
            new: Any = table[0]
            held[0] = next(v for v, w in new[1].difference(old[1]).items() if w > 0)
        assert len(view) > 0
        return taken

    return change


def patched(sizes: Sequence[int]) -> dict[tuple[str, int], float]:
    """View and size -> microseconds of a patch of one value, with that view over it, in turns."""
    bags = {size: Bag([(n, EMPTY) for n in range(size)]) for size in sizes}
    sides = {(name, size): patch(bags[size], name) for name in VIEWS for size in sizes}
    taken: dict[tuple[str, int], list[float]] = {side: [] for side in sides}
    for (_, size), change in sides.items():
        change(size, 1)
        change(size, -1)
    gc.collect()
    gc.freeze()
    for _ in range(REPEATS):
        for side, change in sides.items():
            values = range(side[1], side[1] + CHANGES)
            times = [change(value, weight) for weight in (1, -1) for value in values]
            taken[side].append(median(times) * 1e6)
    return {side: median(times) for side, times in taken.items()}


def main(arguments: Sequence[str]) -> None:
    if arguments[:1] == ["patch"]:
        sizes = list(map(int, arguments[1:])) or SIZES[1:]
        figures = patched(sizes)
        heads = " | ".join(f"{size:,} values" for size in sizes)
        print(f"| a view over the bag | us per patch, {heads} | ratio |")
        print("|---" * (len(sizes) + 2) + "|")
        for name in VIEWS:
            times = [figures[name, size] for size in sizes]
            shown = " | ".join(f"{time:.1f}" for time in times)
            print(f"| {name} | {shown} | {times[-1] / times[0]:.2f} |")
        return
    print("| values of the group | us, a change of one | by hand |\n|---|---|---|")
    for each in map(int, arguments or SIZES):
        found = measured(each)
        print(f"| {each:,} | {found[ENGINE]:.1f} | {found[TWIN]:.1f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
