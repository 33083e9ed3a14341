"""A multiset as a dictionary from row to count, which most twins keep of their tables."""

from __future__ import annotations

from asv_benchmarks.workload import Row


def take_one(counts: dict[Row, int], row: Row) -> int:
    """Take out one copy of a row; how many are left. A row that is absent is an error."""
    left = counts[row] - 1
    if left:
        counts[row] = left
    else:
        del counts[row]
    return left
