"""The time of one change: nanoseconds of each step by itself, and of the whole.

python -m asv_benchmarks.steps [--rows 100000]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from random import Random
from statistics import median
from time import perf_counter_ns
from typing import Any

from asv_benchmarks.measure import SEED, TWIN, Ear, side_of
from asv_benchmarks.rows import Order, order
from asv_benchmarks.table import machine, markdown
from asv_benchmarks.workload import load
from asv_benchmarks.workloads import group_sum
from reactive import Database
from reactive.engine.dataflow.delta import Delta

ROUNDS, CHANGES = 9, 2_000
Times = dict[str, float]


def steps(rows: int = 100_000, rounds: int = ROUNDS, changes: int = CHANGES) -> Times:
    """Nanoseconds of each step of adding or removing an order, and of the twin's whole."""
    random = Random(SEED)
    held = [order(number, random) for number in range(rows)]
    new = [Order(-number, number % 1_000, number % 1_000, 2, 3) for number in range(changes)]
    db = Database()
    orders = db.table(Order)
    view = group_sum.query(orders).materialize()
    ear = Ear()
    subscription = view.subscribe(ear.delta)
    orders.add_all(held)
    twin = side_of(group_sum.WORKLOAD, TWIN, ear)
    load(twin, (held,))
    (add, remove), *_ = twin.verbs()
    source = orders._node
    (leaf,) = db._engine.graph.leaves()
    (grouped,) = leaf.inputs
    shown = grouped.run([(new[0], 1)])
    grouped.undo()
    statements = orders._do
    delta = Delta(1, shown)

    def commit(row: Order, weight: int) -> None:
        assert source.compiled_step is not None
        source.compiled_step([(row, weight)], 1, None)
        db._engine.delivery_queue.clear()

    def nothing(row: Order) -> Sequence[Any]:
        return ()

    def operator(row: Order, weight: int) -> None:
        grouped.run([(row, weight)])
        grouped.operator.commit()

    def told(row: Order, weight: int) -> None:
        subscription._callback(delta)

    parts: dict[str, Callable[[Order, int], object]] = {
        "the whole": lambda r, w: orders.add(r) if w > 0 else orders.remove(r),
        "the twin": lambda r, w: add(r) if w > 0 else remove(r),
        "gate": lambda r, w: db._engine.write(orders, nothing, r),
        "store": lambda r, w: statements.add(r) if w > 0 else statements.remove(r),
        "commit": commit,
        "operator": operator,
        "told": told,
        "a call": lambda r, w: None,
    }
    found: dict[str, list[float]] = {name: [] for name in parts}
    for _ in range(rounds):
        for name, part in parts.items():
            found[name].append(_time(part, new))
    least = {name: median(times) for name, times in found.items()}
    call = least.pop("a call")
    return {name: time - call for name, time in least.items()}


def _time(part: Callable[[Order, int], object], rows: Sequence[Order]) -> float:
    """Return the nanoseconds of a call, the mean over inserted and deleted rows."""
    start = perf_counter_ns()
    for row in rows:
        part(row, 1)
    for row in rows:
        part(row, -1)
    return (perf_counter_ns() - start) / (2 * len(rows))


def table(times: Times) -> list[str]:
    """Return the steps as a table."""
    schedule = times["commit"] - times["operator"]
    known = times["gate"] + times["store"] + times["commit"] + times["told"]
    lines: list[tuple[str, float]] = [
        ("lock: one writer, in and out, and what is due at the end", times["gate"]),
        ("store: the row is looked at, hashed and held", times["store"]),
        ("operator: filter, key, value, group, its old and new row", times["operator"]),
        ("commit: which nodes, in their order, the commit stands, delta made", schedule),
        ("subscriber called", times["told"]),
        ("delivery queue, version, and calls between these", times["the whole"] - known),
        ("**one change, engine**", times["the whole"]),
        ("**one change, twin**", times["the twin"]),
    ]
    return markdown(["step", "ns"], [[name, f"{ns:,.0f}"] for name, ns in lines])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="asv_benchmarks.steps", description="One change.")
    parser.add_argument("--rows", type=int, default=100_000)
    times: Any = steps(parser.parse_args().rows)
    print("\n".join([*table(times), "", machine()]))


if __name__ == "__main__":
    main()
