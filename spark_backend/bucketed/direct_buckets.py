"""A flush of few rows of an operator by buckets, done in this process as workers would do it.

    entries by bucket, rows of these buckets --`touched.changed`--> what is added to the tables

State:  none beside the tables.
Cost:   O(rows of the touched buckets); the files that have them are looked through.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pyarrow as pa

from optimizer import plan
from reactive.remote.remote import Entry
from spark_backend.bucketed.kept_rows import Net, present
from spark_backend.bucketed.packed import ENTRIES, table_of
from spark_backend.bucketed.touched import Touched, changed
from spark_backend.direct.flush import TooMany, check_fetched
from spark_backend.state.tables import StateTables, TableSpec

MOST_PACKED = 1_000_000
"""Rows of a table up to which they are looked through for those of some buckets."""


def added_here(
    tables: StateTables, rows: TableSpec, node: plan.Node, entries: Sequence[Entry]
) -> dict[str, pa.Table]:
    """What is to be added to tables.

    Parameters
    ----------
    rows: the table of what is kept.

    Raises
    ------
    TooMany: it is to be done by a job.
    """
    new: dict[int, Net] = {}
    for side, bucket, row, weight in entries:
        new.setdefault(bucket, Counter())[side, row] += weight
    before = _rows_of(tables, rows, new)
    touched = [Touched(number, before[number], present(net)) for number, net in new.items()]
    found: dict[str, list[Entry]] = {}
    for table, bucket, side, row, weight in changed(node, touched):
        found.setdefault(table, []).append((side, bucket, row, weight))
    return {name: table_of(rows) for name, rows in found.items()}


def _rows_of(tables: StateTables, spec: TableSpec, buckets: Mapping[int, Net]) -> dict[int, Net]:
    """What is kept of the rows of some buckets."""
    found: dict[int, Net] = {number: Counter() for number in buckets}
    if not buckets:
        return found
    if tables.rows_near(spec, buckets) > MOST_PACKED:
        raise TooMany("many rows to look through")
    table = tables.sought(spec, buckets, (("bucket",), pa.array(buckets, pa.int64())))
    check_fetched(table.num_rows)
    columns = (table.column(name).to_pylist() for name in ENTRIES.names)
    for number, side, row, weight in zip(*columns, strict=True):
        found[number][side, row] += weight
    return {number: present(net) for number, net in found.items()}
