"""A flush of few rows of an operator by buckets, done in this process as workers would do it.

    entries by bucket, rows of these buckets --`touched.changed`--> what is added to the tables

Of a join, only some of these rows are made objects (`needed.py`).

State:  none beside the tables.
Cost:   O(rows of the touched buckets), of a join those on the other side; the files that have them
        are looked through.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pyarrow as pa

from optimizer import plan
from reactive.engine.remote.remote import Entry
from spark_backend.bucketed.kept_rows import Net, present
from spark_backend.bucketed.needed import needed, nets
from spark_backend.bucketed.packed import table_of
from spark_backend.bucketed.touched import Touched, changed
from spark_backend.direct.flush import TooMany
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
    new = {number: some for number, net in new.items() if (some := present(net))}
    before = _before(tables, rows, node, new)
    touched = [Touched(number, before[number], net) for number, net in new.items()]
    found: dict[str, list[Entry]] = {}
    for table, bucket, side, row, weight in changed(node, touched):
        found.setdefault(table, []).append((side, bucket, row, weight))
    return {name: table_of(rows) for name, rows in found.items()}


def _before(
    tables: StateTables, spec: TableSpec, node: plan.Node, new: Mapping[int, Net]
) -> dict[int, Net]:
    """What of the rows that are kept is needed to know how the output changes.

    Raises
    ------
    TooMany: there are many.
    """
    if not new:
        return {}
    if tables.rows_near(spec, new) > MOST_PACKED:
        raise TooMany("many rows to look through")
    table = tables.sought(spec, new, (("bucket",), pa.array(new, pa.int64())))
    some = needed(node, table, new)
    if some is not None and not any(map(_has_less, (some[n] for n in new), new.values())):
        return some
    return nets(new, table)


def _has_less(before: Net, new: Net) -> bool:
    """Whether something goes that was not found: it may have been written in another way."""
    return any(before[key] + weight < 0 for key, weight in new.items())
