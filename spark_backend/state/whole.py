"""All that a table of rows with weights holds, each row once, for those who read it as a whole.

    base            added up when it was written: it is read as it is
    base, later     of rows that occur once: base without what has gone, and what has come
                    otherwise: added up

State:  none.
Cost:   that of reading the files; a shuffle where rows may occur more than once and more has come.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_backend.state.manifest import Segment
from spark_backend.state.tables import StateTables, TableSpec, added_up, united

MOST_BROADCAST = 100_000
"""Later rows up to which they are sent to all tasks that read the base."""


def whole(
    tables: StateTables,
    spec: TableSpec,
    *,
    is_set: bool = False,
    is_net: bool = False,
    held: Sequence[Segment] | None = None,
) -> DataFrame | None:
    """All rows of a table, with the columns `row` and `weight`; None if there never were any.

    Parameters
    ----------
    is_set: no row occurs more than once.
    is_net: the rows that the first flush has given have been added up.
    held: segments that a reader holds; by default those that count.
    """
    names = spec.schema.names
    found = tables.split(spec, held=held)
    parts = {part: rows.select(*names) for part, rows in found.items()}
    if not parts:
        return None
    base, later = parts.get("base"), parts.get("later")
    if base is None or not (is_net or tables.is_added_up(spec, held)):
        return added_up(spec, united(list(parts.values())))
    if later is None:
        return base
    if not is_set or _later(tables, spec, held) > MOST_BROADCAST:
        return added_up(spec, united([base, later]))
    return _changed(base, added_up(spec, later))


def _later(tables: StateTables, spec: TableSpec, held: Sequence[Segment] | None) -> int:
    """How many rows have come after the base."""
    if held is None:
        return tables.manifest.rows(spec.name)[1]
    return sum(segment.rows for segment in held if not segment.is_base)


def _changed(base: DataFrame, later: DataFrame) -> DataFrame:
    """Of rows that occur once: what has gone is in the base, and what has come is not.

    What has gone is found by a hash in a map of integers, which costs a scan little.
    """
    hashes = F.xxhash64("row")
    gone = later.filter("weight < 0").groupBy(hashes.alias("hash"))
    known = F.broadcast(gone.agg(F.collect_list(F.struct("row")).alias("rows")))
    found = (hashes == known["hash"]) & F.array_contains(known["rows"], F.struct(base["row"]))
    return base.join(known, found, "left_anti").unionByName(later.filter("weight > 0"))
