"""Reading a view, beside reading the built-in container that holds the same.

python -m asv_benchmarks.reads [--rows 100000]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from random import Random
from statistics import median
from time import perf_counter_ns
from typing import Any

from asv_benchmarks.measure import SEED
from asv_benchmarks.rows import Order, order
from asv_benchmarks.table import machine, markdown
from reactive import Count, Database, Sum

ROUNDS, TIMES = 9, 20_000
Read = tuple[str, Callable[[], object], Callable[[], object], int]
"""The name of a read, its function for the view and for the container, and its rows."""


def reads(rows: int) -> list[Read]:
    """Return the measured reads, over `rows` orders."""
    random = Random(SEED)
    orders = Database().table(Order, key="id")
    orders.add_all(order(number, random) for number in range(rows))
    large = orders.where(lambda o: o.quantity > 1).materialize()
    totals = (
        orders.group_by(lambda o: o.product)
        .aggregate(Count(), Sum(lambda o: o.quantity))
        .materialize()
    )
    sizes = orders.select(lambda o: (o.product, o.quantity)).distinct().materialize()
    latest = orders.order_by(lambda o: -o.id).limit(100).materialize()
    bag: dict[Any, int] = dict.fromkeys(large, 1)
    groups = {key: (count, total) for key, count, total in totals}
    pairs, sequence, table = set(sizes), list(latest), {o.id: o for o in orders}
    some, key, pair = next(iter(large)), next(iter(groups)), next(iter(pairs))
    return [
        ("iterate a selection", lambda: _all(large), lambda: _all(bag), len(bag)),
        ("iterate groups", lambda: _all(totals), lambda: _all(groups.items()), len(groups)),
        ("iterate a distinct", lambda: _all(sizes), lambda: _all(pairs), len(pairs)),
        ("iterate the latest 100", lambda: _all(latest), lambda: _all(sequence), 100),
        ("iterate a table", lambda: _all(orders), lambda: _all(table.values()), len(table)),
        ("snapshot() of a selection", large.snapshot, lambda: list(bag), len(bag)),
        ("`row in` a selection", lambda: some in large, lambda: some in bag, 1),
        ("`row in` a distinct", lambda: pair in sizes, lambda: pair in pairs, 1),
        ("`view[key]`", lambda: totals[key], lambda: groups[key], 1),
        ("`view.get(key)`", lambda: totals.get(key), lambda: groups.get(key), 1),
        ("`table[key]`", lambda: orders[some.id], lambda: table[some.id], 1),
        ("`len(view)`", lambda: len(large), lambda: len(bag), 1),
    ]


def _all(rows: Any) -> None:
    for _ in rows:
        pass


def table(rows: int, rounds: int = ROUNDS, times: int = TIMES) -> list[str]:
    """Nanoseconds of each, per row."""
    lines = []
    for name, view, container, count in reads(rows):
        often = max(1, times // count)
        pairs = [(_time(view, often), _time(container, often)) for _ in range(rounds)]
        ours, theirs = (median(side) / count for side in zip(*pairs, strict=True))
        ratio = median(a / b for a, b in pairs)
        lines.append([name, f"{ours:,.0f}", f"{theirs:,.0f}", f"{ratio:.1f}"])
    return markdown(["reading", "view, ns a row", "built-in, ns a row", "times"], lines)


def _time(read: Callable[[], object], often: int) -> float:
    start = perf_counter_ns()
    for _ in range(often):
        read()
    return (perf_counter_ns() - start) / often


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="asv_benchmarks.reads", description="Reading.")
    parser.add_argument("--rows", type=int, default=100_000)
    print("\n".join([*table(parser.parse_args().rows), "", machine()]))


if __name__ == "__main__":
    main()
