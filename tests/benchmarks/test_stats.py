"""The rows that `stats()` counts take the memory that it states."""

from __future__ import annotations

import gc
import tracemalloc
from random import Random

import numpy  # noqa: F401  # where it is imported, loads of many rows run over columns
import pytest

from asv_benchmarks.engine import Engine
from asv_benchmarks.measure import ENGINE, Ear, side_of
from asv_benchmarks.workload import Workload, load
from asv_benchmarks.workloads import (
    difference,
    group_sum,
    join_sum,
    min_max,
    top_ten,
    triangles,
)
from reactive.engine.operators.loops import grouped

ROWS = 10_000
OFF = 0.1


@pytest.mark.long
@pytest.mark.parametrize("many", [ROWS, ROWS + 1], ids=["over columns", "by a loop"])
@pytest.mark.parametrize(
    "workload",
    [w.WORKLOAD for w in (group_sum, join_sum, difference, min_max, top_ten, triangles)],
    ids=lambda workload: workload.name,
)
def test_bytes_are_those_that_are_allocated(
    workload: Workload, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grouped, "MANY", many)
    load(side_of(workload, ENGINE, Ear()), workload.rows(ROWS, Random(2)))  # one-time allocations
    rows = workload.rows(ROWS, Random(1))  # they are not counted, and none is made by the query
    side = side_of(workload, ENGINE, Ear())
    assert isinstance(side, Engine)
    gc.collect()
    tracemalloc.start()
    try:
        before, said_before = tracemalloc.get_traced_memory()[0], _said(side)
        load(side, rows)
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert _said(side) - said_before == pytest.approx(taken, rel=OFF)


def _said(side: Engine) -> int:
    parts = side.view.stats()
    assert parts.bytes == sum(operator.bytes for operator in parts.operators)
    assert parts.rows == sum(operator.rows for operator in parts.operators)
    return parts.bytes + sum(table.stats().bytes for table in side._tables)
