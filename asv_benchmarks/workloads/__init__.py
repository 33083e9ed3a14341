"""All workloads, in the order of the report. Each file has a query and its hand-written twin."""

from __future__ import annotations

from asv_benchmarks.workload import Workload
from asv_benchmarks.workloads import (
    difference,
    distinct,
    group_sum,
    join_sum,
    min_max,
    top_ten,
)

WORKLOADS: tuple[Workload, ...] = (
    group_sum.WORKLOAD,
    join_sum.WORKLOAD,
    distinct.WORKLOAD,
    difference.WORKLOAD,
    min_max.WORKLOAD,
    top_ten.WORKLOAD,
)


def workload(name: str) -> Workload:
    """The workload of a name."""
    return next(workload for workload in WORKLOADS if workload.name == name)
