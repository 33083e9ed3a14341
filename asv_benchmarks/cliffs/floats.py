"""Sums of floats, beside a twin that adds them as they are: the load, one change, a batch."""

from __future__ import annotations

from asv_benchmarks.cliffs.beside import batches, changes, loads
from asv_benchmarks.cliffs.cliff import Cliff
from asv_benchmarks.workloads import float_sum

SIZE = 50_000
SUMS = float_sum.WORKLOAD
CLIFFS = (
    Cliff("float sums, load", "twin", loads(SUMS), SIZE, most=1.6),
    Cliff("float sums, one change", "twin", changes(SUMS), SIZE, most=3.3),
    Cliff("float sums, a batch", "twin", batches(SUMS), SIZE),
)
