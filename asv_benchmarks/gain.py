"""The gain of the optimizer for queries not written for speed: time, and index memory.

The sides are the engine and the engine with `optimize=False`.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from time import perf_counter

from asv_benchmarks.engine import tables_of
from asv_benchmarks.measure import (
    AS_WRITTEN,
    ENGINE,
    SEED,
    latencies,
    script,
    timed,
)
from asv_benchmarks.memory import measured
from asv_benchmarks.workload import load
from asv_benchmarks.workloads import product_where, selective_where
from reactive import Database
from reactive.api.view import AnyView

CHANGES = 300
PART = 100
"""Rows in one commit of a product's load: one commit of all would hold every pair."""


def product_figures(size: int) -> dict[str, dict[str, float]]:
    """Side -> seconds of the load of two tables of a size, and nanoseconds of one change."""
    chosen = product_where.WORKLOAD
    todo = script(chosen, size, changes=CHANGES, batches=0, delta=1)
    engine, written = timed(chosen, todo, ENGINE), timed(chosen, todo, AS_WRITTEN)
    engine_load = _seconds(lambda: load(engine.side, todo.rows))
    written_load = _seconds(lambda: load(written.side, todo.rows, part=PART))
    engine_change, written_change = latencies([engine, written])
    if engine.side.result() != written.side.result():
        raise AssertionError(f"{chosen.name}: the optimized plan and the plan as written differ")
    return {
        ENGINE: {"load": engine_load, "typical": engine_change.typical},
        AS_WRITTEN: {"load": written_load, "typical": written_change.typical},
    }


def index_figures(size: int, side: str) -> dict[str, float]:
    """Bytes of state of the view of a selective where, and bytes that the process grows by.

    The tables are filled first, so that neither counts them.
    """
    chosen = selective_where.WORKLOAD
    tables = tables_of(chosen, Database(optimize=side == ENGINE))
    for table, rows in zip(tables, chosen.rows(size, Random(SEED)), strict=True):
        table.add_all(rows)
    views: list[AnyView] = []
    taken = measured(lambda: views.append(chosen.query(*tables).materialize()))
    return {"state": views[0].stats().bytes, "held": taken.held, "peak": taken.peak}


def _seconds(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start
