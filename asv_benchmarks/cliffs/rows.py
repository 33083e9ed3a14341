"""All rows, in the order of the table."""

from __future__ import annotations

from asv_benchmarks.cliffs import (
    cyclic,
    floats,
    orders,
    pairs,
    recursive,
    starting,
    statements,
    values,
    views,
)
from asv_benchmarks.cliffs.cliff import Cliff

FAMILIES: dict[str, tuple[Cliff, ...]] = {
    "orders": orders.CLIFFS,
    "cyclic": cyclic.CLIFFS,
    "pairs": pairs.CLIFFS,
    "values": values.CLIFFS,
    "views": views.CLIFFS,
    "statements": statements.CLIFFS,
    "floats": floats.CLIFFS,
    "recursive": recursive.CLIFFS,
    "starting": starting.CLIFFS,
}
CLIFFS: tuple[Cliff, ...] = tuple(cliff for family in FAMILIES.values() for cliff in family)
