"""The rows of a table, as of before a flush, that have keys among those that changed.

    few rows to read    all files in which such rows can be, read at once
    else                the base by the buckets of the keys, which are found while it runs, and
                        what came later

Which files those are is known beforehand if the changed rows are in the query itself, as their
hashes take no job then. All of a narrow flush is done in the one task that has the changes.

State:  none.
Cost:   O(rows of the files that are read).
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_backend.state.tables import BUCKET, TableSpec
from spark_backend.steps.step import Flush, Hashes


def having(
    flush: Flush,
    spec: TableSpec,
    keys: DataFrame,
    on: Callable[[DataFrame], Column],
    hashes: Hashes,
    *,
    read: Callable[[DataFrame], DataFrame] = lambda rows: rows,
    how: str = "left_semi",
    key: str = "h",
) -> list[DataFrame]:
    """The rows of a table joined with keys; not added up, in one or more frames.

    Parameters
    ----------
    keys: those that changed, with their hash in the column `key`.
    on: when a row of a table has a key.
    hashes: of the keys, if they can be had without a job.
    read: what is made of the rows of the table before.
    """
    if not flush.tables.rows_near(spec):
        return []
    near = flush.near(spec, hashes)
    if near is not None:
        rows = read(near)
        return [rows.join(flush.beside(keys.drop(key)), on(rows), how)]
    found, sent = [], flush.small(keys)
    for part in flush.parts(spec):
        rows = read(part)
        bucket = in_bucket(flush, spec, part, key)
        found.append(rows.join(sent, on(rows) if bucket is None else on(rows) & bucket, how))
    return found


def in_bucket(flush: Flush, spec: TableSpec, part: DataFrame, key: str) -> Column | None:
    """Whether a row of a base is in the bucket of a hash, by which partitions are pruned; None of
    what is no base."""
    if BUCKET not in part.columns:
        return None
    return F.expr(f"{BUCKET} = cast(pmod({key}, {flush.tables.buckets(spec)}) as int)")


def hashes_of(rows: DataFrame, hashed: Column) -> set[int]:
    """The hashes of rows, which are few."""
    return {row[0] for row in rows.select(hashed).collect()}
