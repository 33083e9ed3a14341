"""The costs of a query: of making its view, of a change of each table, and of a batch."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import process_time
from typing import Any

from asv_benchmarks.neighbours.query import Query
from asv_benchmarks.neighbours.world import Rows, World

CHUNKS, CHUNK = 7, 20
FEW = 0.004
"""A change that takes more seconds is timed fewer times."""
BUDGET = 0.6
"""The most seconds for the changes of one kind, but for the first."""
FEW_ROWS, BATCH = 10, 500
"""The rows of a small transaction, and of a large one."""


@dataclass(slots=True)
class Cost:
    """Microseconds of one operation, and the changed rows that it tells of, both per operation."""

    time: float
    told: float


@dataclass(slots=True)
class Costs:
    """The costs of a query by the name of the operation, its plan, and its first result."""

    query: Query
    costs: dict[str, Cost] = field(default_factory=dict)
    plan: str = ""
    result: Any = None


class Told:
    """A subscriber that counts the rows that it is told of."""

    def __init__(self) -> None:
        self.rows = 0

    def __call__(self, delta: Any) -> None:
        self.rows += len(delta.added) + len(delta.removed) + 2 * len(delta.updated)


def costs_of(query: Query, size: int) -> Costs:
    """Measure a query: in processor time, the warm median of several turns."""
    gc.collect()
    world = World(query, size)
    found = Costs(query)
    start = process_time()
    view = world.relation().materialize(on_error=query.policy)
    found.costs["make"] = Cost((process_time() - start) * 1e6, len(view))
    others = [
        world.relation(number).materialize(on_error=query.policy)
        for number in range(1, query.views)
    ]
    found.result = values_of(view)
    told = Told()
    with view.subscribe(told):
        for name in _changed(query):
            table, rows = world.tables[name], world.rows[name]
            found.costs[f"add {name}"] = _timed(_coming(table, rows.fresh), told)
            found.costs[f"move {name}"] = _timed(_moving(table, rows.first), told)
            found.costs[f"update {name}"] = _timed(_updates(table, rows), told)
            found.costs[f"few {name}"] = _timed(_batches(table, rows.fresh, FEW_ROWS), told)
            found.costs[f"batch {name}"] = _timed(_batches(table, rows.fresh, BATCH), told)
    found.plan = str(view.explain())
    for each in (view, *others):
        each.close()
    return found


def _changed(query: Query) -> tuple[str, ...]:
    if query.result.startswith(("closure", "depth", "triangles")):
        return ("e",)
    return ("o", "c") if query.join or query.result == "nest" else ("o",)


Operation = tuple[Callable[[int], None], int, int]
"""A function of a number, the count of numbers, and the operations of one call."""


def _coming(table: Any, rows: Sequence[Any]) -> Operation:
    """Add a new row, and remove it."""

    def do(number: int) -> None:
        table.add(rows[number])
        table.remove(rows[number])

    return do, len(rows), 2


def _moving(table: Any, rows: Sequence[Any]) -> Operation:
    """Remove a row that is there, and add it again."""
    some = rows[:: max(1, len(rows) // 200)]

    def do(number: int) -> None:
        table.remove(some[number])
        table.add(some[number])

    return do, len(some), 2


def _updates(table: Any, rows: Rows) -> Operation:
    """Replace a row by one with another value in one field, and put it back."""
    pairs = list(zip(rows.first, rows.moved, strict=True))
    some = [pair for pair in pairs if pair[0] != pair[1]] or pairs
    some = some[:: max(1, len(some) // 200)]

    def do(number: int) -> None:
        old, new = some[number]
        table.update(old, new)
        table.update(new, old)

    return do, len(some), 2


def _batches(table: Any, rows: Sequence[Any], size: int) -> Operation:
    """Add many rows in one transaction, and remove them in another; per row."""
    some = rows[:size]

    def do(number: int) -> None:
        table.add_all(some)
        table.remove_all(some)

    return do, max(4, 200 // len(some)), 2 * len(some)


def _timed(operation: Operation, told: Told) -> Cost:
    do, count, each = operation
    start, rows = process_time(), told.rows
    do(0)
    first = process_time() - start
    chunk = max(1, min(CHUNK if first < FEW else 1, (count - 1) // CHUNKS))
    times, at, begun = [first], 1, process_time()
    while at + chunk <= count and len(times) <= CHUNKS:
        start = process_time()
        for number in range(at, at + chunk):
            do(number)
        times.append((process_time() - start) / chunk)
        at += chunk
        if process_time() - begun > BUDGET:
            break
    some = times[1:] or times
    return Cost(median(some) * 1e6 / each, (told.rows - rows) / at / each)


def values_of(view: Any) -> Any:
    """Return the rows as plain tuples, in an order, to compare spellings."""
    items = view.items() if hasattr(view, "keys") else view
    if not hasattr(view, "__iter__"):
        return view.value
    return sorted((_flat(item) for item in items), key=repr)


def _flat(item: Any) -> tuple[Any, ...]:
    if not isinstance(item, tuple):
        return (item,)
    return tuple(part for each in item for part in _flat(each))
