"""The cost of an edit of a list in a tracked object, by the length of the list.

    tracked      order.lines.append(x), the list in the object
    child table  lines.add((order, position, x)), a table of its own beside, kept by hand
    by hand      total += x.qty, as without a view

Views: the lines of all orders (`unnest`), a sum per order, sums per kind of line (`groups`).

Run: python -m asv_benchmarks.tracked_lists [LENGTHS, as 10,1000,20000]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import process_time
from typing import Any

from reactive import Database, Sum, tracked

LENGTHS = (10, 1_000, 20_000, 1_000_000)
TIMES = 200
KINDS = "abcd"


@dataclass(frozen=True)
class Line:
    what: str
    qty: int


@tracked
class Order:
    id: int
    town: str
    lines: list[Line]


Edit = Callable[[int], object]
VIEWS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "unnest": (
        lambda orders: orders.unnest(lambda o: o.lines).select(
            lambda o, x: (o.town, x.what, x.qty)
        ),
        lambda lines: lines.select(lambda x: (x[0], x[2].what, x[2].qty)),
    ),
    "sum": (
        lambda orders: orders.select(lambda o: (o.id, sum(x.qty for x in o.lines))),
        lambda lines: lines.group_by(lambda x: x[0]).aggregate(Sum(lambda x: x[2].qty)),
    ),
    "groups": (
        lambda orders: (
            orders.unnest(lambda o: o.lines)
            .select(lambda o, x: x)
            .group_by(lambda x: x.what)
            .aggregate(Sum(lambda x: x.qty))
        ),
        lambda lines: lines.group_by(lambda x: x[2].what).aggregate(Sum(lambda x: x[2].qty)),
    ),
}


def line(number: int) -> Line:
    return Line(KINDS[number % 4], number % 7)


def median(edit: Edit) -> float:
    """Microseconds of CPU, the median of several."""
    found = []
    for number in range(TIMES):
        start = process_time()
        edit(number)
        found.append(process_time() - start)
    return sorted(found)[TIMES // 2] * 1e6


def of_tracked(length: int, view: str) -> dict[str, float]:
    """Return the cost of each edit of a tracked list."""
    db = Database()
    orders = db.table(Order, key="id", name="orders")
    shown = VIEWS[view][0](orders).materialize()
    order = Order(1, "Bonn", [line(number) for number in range(length)])
    orders.add(order)
    lines, middle = order.lines, length // 2
    edits: dict[str, Edit] = {
        "append": lambda n: lines.append(line(n)),
        "assign": lambda n: lines.__setitem__(middle, Line("e", n)),
        "insert": lambda n: lines.insert(0, line(n)),
        "delete": lambda n: lines.__delitem__(middle),
    }
    found = {name: median(edit) for name, edit in edits.items()}
    assert len(shown) > 0
    db.close()
    return found


def of_child_table(length: int, view: str) -> dict[str, float]:
    """Return the cost of each edit of a table of lines whose rows the writer knows."""
    db = Database()
    lines = db.table(tuple, name="lines")
    shown = VIEWS[view][1](lines).materialize()
    rows = [(1, number, line(number)) for number in range(length)]
    lines.add_all(rows)

    def assign(number: int) -> None:
        old = rows[length // 2]
        rows[length // 2] = new = (1, old[1], Line("e", number))
        lines.update(old, new)

    edits: dict[str, Edit] = {
        "append": lambda n: lines.add((1, length + n, line(n))),
        "assign": assign,
        "insert": lambda n: lines.add((1, -1 - n, line(n))),
        "delete": lambda n: lines.remove((1, length + n, line(n))),
    }
    found = {name: median(edit) for name, edit in edits.items()}
    assert len(shown) > 0
    db.close()
    return found


def by_hand(length: int) -> dict[str, float]:
    """Return a list and a total, without a library."""
    lines, total = [line(number) for number in range(length)], [0]

    def put(place: int | None, number: int) -> None:
        new = line(number)
        lines.insert(len(lines) if place is None else place, new)
        total[0] += new.qty

    def assign(number: int) -> None:
        total[0] -= lines[length // 2].qty
        lines[length // 2] = new = Line("e", number)
        total[0] += new.qty

    def delete(number: int) -> None:
        total[0] -= lines.pop(length // 2).qty

    return {
        "append": median(partial(put, None)),
        "assign": median(assign),
        "insert": median(partial(put, 0)),
        "delete": median(delete),
    }


def main(lengths: tuple[int, ...]) -> None:
    names = ("append", "assign", "insert", "delete")
    print(f"{'microseconds of CPU':34}" + "".join(f"{name:>10}" for name in names))
    for length in lengths:
        ways = {"by hand": by_hand(length)}
        for view in VIEWS:
            ways[f"{view}, tracked"] = of_tracked(length, view)
            ways[f"{view}, child table"] = of_child_table(length, view)
        for way, found in ways.items():
            times = "".join(f"{found[name]:10.1f}" for name in names)
            print(f"{length:>10}  {way:22}{times}", flush=True)


if __name__ == "__main__":
    main(tuple(map(int, sys.argv[1].split(","))) if sys.argv[1:] else LENGTHS)
