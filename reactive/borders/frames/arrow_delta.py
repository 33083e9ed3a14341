"""Rows with weights as a `pyarrow.Table`: the columns of the rows, as they say them, and `weight`.

Where a row has a column of that name, the last one is `weight_`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from optimizer.errors import PlanError
from reactive.borders.frames import arrow_columns
from reactive.engine.collections.zset import Pair

ONE = "value"
"""The column of rows that are neither records nor tuples."""
WEIGHT = "weight"
"""The column that tells how often a row comes, or goes if it is negative."""


def table_of(pairs: Sequence[Pair]) -> Any:
    """Rows with weights, whose columns are what their classes and values tell.

    >>> table_of([("to", 1), ("be", -2)]).to_pylist()
    [{'value': 'to', 'weight': 1}, {'value': 'be', 'weight': -2}]
    """
    rows = [row for row, _ in pairs]
    try:
        found = arrow_columns.of_tuples(rows, Any) or arrow_columns.of_binding(rows, Any, ONE)
    except arrow_columns.Misfit as misfit:
        raise PlanError(
            f"the changes are no Arrow table: column {'.'.join(misfit.path) or ONE!r}: "
            f"{misfit.reason}\n  the row is {rows[misfit.place]!r:.200}"
        ) from None
    return with_weights(arrow_columns.table(found), pairs)


def with_weights(table: Any, pairs: Sequence[Pair]) -> Any:
    """The columns of rows, and beside them the weights."""
    name = WEIGHT
    while name in table.column_names:
        name += "_"
    return table.append_column(name, pa.array([weight for _, weight in pairs], pa.int64()))
