"""All workloads, in the order of the report. Each file has a query and its hand-written twin."""

from __future__ import annotations

from asv_benchmarks.workload import Workload
from asv_benchmarks.workloads import (
    difference,
    distinct,
    exact_sum,
    float_sum,
    group_sum,
    join_sum,
    min_max,
    product_where,
    selective_where,
    top_ten,
    triangles,
)

WORKLOADS: tuple[Workload, ...] = (
    group_sum.WORKLOAD,
    float_sum.WORKLOAD,
    exact_sum.WORKLOAD,
    join_sum.WORKLOAD,
    distinct.WORKLOAD,
    difference.WORKLOAD,
    min_max.WORKLOAD,
    top_ten.WORKLOAD,
    triangles.WORKLOAD,
)
"""Written as one would write them for speed; measured beside their twins."""

REWRITTEN: tuple[Workload, ...] = (product_where.WORKLOAD, selective_where.WORKLOAD)
"""Written as one thinks them; measured beside themselves as written."""


def workload(name: str) -> Workload:
    """The workload of a name."""
    return next(workload for workload in (*WORKLOADS, *REWRITTEN) if workload.name == name)
