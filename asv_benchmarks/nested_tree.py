"""Nests as trees: changes of one inner row, by depth and by size; memory and a snapshot.

    python -m asv_benchmarks.nested_tree [sizes]
    python -m asv_benchmarks.nested_tree flat [roots]     beside flat views: memory, a snapshot

The baseline is a program by hand: a dictionary of rows per label, and one of the rows that show it,
so that a change finds the path of its edit. It stores tables as the engine does, too: rows by key,
and the row itself for deletes. The twin in the engine is the same nest with bags as values. All
three must end with the same rows.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable
from time import process_time
from typing import Any, NamedTuple
from unittest.mock import patch

from asv_benchmarks.coming_and_going import coming_and_going
from asv_benchmarks.measure import ENGINE, TWIN
from reactive import Database
from reactive.engine.compiler import queries as compiler
from reactive.engine.compiler.choices import CHOICES
from reactive.engine.compiler.choices.shred_nest import shred_nest

SIZES = (10, 100, 10_000, 1_000_000)
CHANGES, REPEATS, ROOTS, SNAPSHOTS = 200, 5, 20_000, 2
READS: dict[str, Callable[[Any], Any] | None] = {
    "nothing": None,
    "edits": lambda delta: delta.edits,
    "rows": lambda delta: delta.updated,
}
Change = Callable[[int, int], None]
Side = tuple[Change, Callable[[], Any]]
"""The function that makes a change, and the rows of the innermost label."""
VALUES = "bags as values"


class Item(NamedTuple):
    id: int
    above: int


def engine(depth: int, size: int, read: Callable[[Any], Any] | None) -> Side:
    """Return a nest whose innermost level has a label with `size` rows; outer ones have one row."""
    db = Database()
    tables = [db.table(Item, name=f"level{n}", key="id") for n in range(depth + 1)]
    view = _nested(tables[0], tables[1:]).materialize()
    for table in tables[:-1]:
        table.add(Item(0, 0))
    tables[-1].add_all([Item(n, 0) for n in range(size)])
    held = None if read is None else view.subscribe(read)

    def change(value: int, weight: int) -> None:
        row = Item(value, 0)
        tables[-1].add(row) if weight > 0 else tables[-1].remove(row)

    def innermost() -> Any:
        assert held is None or held.error is None
        rows = view[0]
        for _ in range(depth):
            inside = rows.inside
            (rows, *_) = inside
        return Counter(dict(inside.items()))

    return change, innermost


def as_values(depth: int, size: int, read: Callable[[Any], Any] | None) -> Side:
    """Return the same nest without trees."""
    others = [rule for rule in CHOICES if rule is not shred_nest]
    with patch.object(compiler, "CHOICES", tuple(others)):
        return engine(depth, size, read)


def _nested(table: Any, others: list[Any]) -> Any:
    """Return the rows of a table with the rows of the next table nested, and so on."""
    if not others:
        return table
    below, *more = others
    return table.nest(inside=lambda t: _nested(below.where(lambda row: row.above == t.id), more))


def by_hand(depth: int, size: int, read: Callable[[Any], Any] | None) -> Side:
    rows: list[dict[int, dict[Item, int]]] = [{0: {Item(0, 0): 1}} for _ in range(depth)]
    shown: list[dict[int, dict[Item, int]]] = [{0: {Item(0, 0): 1}} for _ in range(depth)]
    rows[-1][0] = {Item(n, 0): 1 for n in range(size)}
    table = {row.id: row for row in rows[-1][0]}
    told: list[Any] = []

    def paths(level: int, label: int) -> list[tuple[Any, ...]]:
        if level < 0:
            return [()]
        return [
            (*path, row.id, "inside")
            for row in shown[level].get(label, ())
            for path in paths(level - 1, row.above)
        ]

    def change(value: int, weight: int) -> None:
        row = Item(value, 0)
        if weight > 0:
            if row.id in table:
                raise KeyError(row)
            table[row.id] = row
        else:
            found = table.get(row.id)
            if found is not row and found != row:
                raise KeyError(row)
            del table[row.id]
        held = rows[-1].setdefault(row.above, {})
        now = held.get(row, 0) + weight
        if now:
            held[row] = now
        else:
            del held[row]
        if read is not None:
            told[:] = [(path, None, row, weight) for path in paths(depth - 1, row.above)]

    return change, lambda: Counter(rows[-1][0])


def measured(depth: int, size: int, reads: str) -> dict[str, float]:
    """Side -> microseconds of a row inside, in turns."""
    read = READS[reads]
    makers = {ENGINE: engine, VALUES: as_values, TWIN: by_hand}
    sides = {name: make(depth, size, read) for name, make in makers.items()}
    taken = coming_and_going(sides, size, changes=CHANGES, repeats=REPEATS)
    found = [rows() for _, rows in sides.values()]
    if any(each != found[0] for each in found):
        raise AssertionError("the sides have different rows")
    return taken


def beside_flat(roots: int) -> dict[str, tuple[float, float, float]]:
    """Return for each form the MB of its views, and the seconds to make and to read them.

    The forms are the nest, the flat join, and the levels of the nest as flat views.
    """
    db = Database()
    tops, rows = db.table(Item, name="tops", key="id"), db.table(Item, name="rows", key="id")
    tops.add_all([Item(n, 0) for n in range(roots)])
    rows.add_all([Item(n, n % roots) for n in range(20 * roots)])
    shown = rows.semi_join(tops, on=lambda row, t: row.above == t.id)
    forms: dict[str, list[Any]] = {
        "nest": [tops.nest(inside=lambda t: rows.where(lambda row: row.above == t.id))],
        "flat join": [tops.join(rows, on=lambda t, row: t.id == row.above)],
        "flat levels": [tops.where(lambda t: t.id >= 0), shown],
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in forms}
    for _ in range(SNAPSHOTS):
        for name, queries in forms.items():
            times[name].append(_made_and_read(queries))
    return {
        name: (_held(queries), *map(min, zip(*times[name], strict=True)))
        for name, queries in forms.items()
    }


def _made_and_read(queries: list[Any]) -> tuple[float, float]:
    gc.collect()
    begin = process_time()
    views = [query.materialize() for query in queries]
    made = process_time()
    for view in views:
        for row in view:
            len(row)
    return made - begin, process_time() - made


def _held(queries: list[Any]) -> float:
    """MB of views."""
    gc.collect()
    tracemalloc.start()
    views = [query.materialize() for query in queries]
    gc.collect()
    held = tracemalloc.get_traced_memory()[0] / 1e6
    tracemalloc.stop()
    del views
    return held


def print_beside_flat(roots: int) -> None:
    """Print the figures of `roots` rows, and the ratios, each of which should be at most 1.5."""
    print(f"\n| {roots:,} rows, 20 inside of each | MB | s, made | s, read |\n|---|---|---|---|")
    found = beside_flat(roots)
    for form, (size, made, read) in found.items():
        print(f"| {form} | {size:.1f} | {made:.2f} | {read:.2f} |")
    nest, join, levels = found.values()
    print(f"memory: {nest[0] / levels[0]:.2f} of the flat levels")
    print(f"snapshot: {sum(nest[1:]) / sum(join[1:]):.2f} of the flat join")


if __name__ == "__main__":
    if sys.argv[1:2] == ["flat"]:
        print_beside_flat(int(sys.argv[2]) if sys.argv[2:] else ROOTS)
        sys.exit()
    print(f"| levels inside | read | rows | us, a change of one | {VALUES} | by hand |")
    print("|---|---|---|---|---|---|")
    for levels in (1, 2, 3):
        for what in READS:
            for each in map(int, sys.argv[1:] or SIZES):
                times = measured(levels, each, what)
                figures = " | ".join(f"{time:.1f}" for time in times.values())
                print(f"| {levels} | {what} | {each:,} | {figures} |", flush=True)
    print_beside_flat(ROOTS)
