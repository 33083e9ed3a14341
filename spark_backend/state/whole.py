"""Read a whole table of rows with weights, each row once, for readers of all rows.

    base            netted when it was written: read as it is
    base, later     of rows that occur once: the base without deleted rows, and the inserted rows
                    otherwise: netted

`read_copies` may return the copies of a row as several rows. It nets nothing if no row was deleted,
as the ends of files say; otherwise it only looks for the deleted rows.

State:  none.
Cost:   that of reading the files; a shuffle if rows may occur more than once and later rows exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_backend.state.ends import merge_bounds
from spark_backend.state.manifest import Segment
from spark_backend.state.one_job import TableSpec
from spark_backend.state.tables import StateTables, net_frame, union_frames

_ANY = (-1, 2)
"""The bounds of unknown weights."""
MOST_BROADCAST = 100_000
"""The most later rows that are sent to all tasks that read the base."""


@dataclass(frozen=True, slots=True)
class Copies:
    """Rows with positive weights; all weights are 1 if each row is there `once`."""

    rows: DataFrame
    once: bool


def read_whole(
    tables: StateTables,
    spec: TableSpec,
    *,
    is_set: bool = False,
    is_net: bool = False,
    held: Sequence[Segment] | None = None,
) -> DataFrame | None:
    """Return all rows of a table, with the columns `row` and `weight`; None for an empty table.

    Parameters
    ----------
    is_set: no row occurs more than once.
    is_net: the rows of the first flush are already net.
    held: segments that a reader holds; by default the current ones.
    """
    names = spec.schema.names
    found = tables.split(spec, held=held)
    parts = {part: rows.select(*names) for part, rows in found.items()}
    if not parts:
        return None
    base, later = parts.get("base"), parts.get("later")
    if base is None or not (is_net or tables.is_added_up(spec, held)):
        return net_frame(spec, union_frames(list(parts.values())))
    if later is None:
        return base
    if not is_set or _count_later(tables, spec, held) > MOST_BROADCAST:
        return net_frame(spec, union_frames([base, later]))
    return _apply_changes(base, net_frame(spec, later))


def read_copies(
    tables: StateTables, spec: TableSpec, *, is_set: bool = False, is_net: bool = False
) -> Copies | None:
    """Return all rows of a table as `read_whole` does, but a row with several copies may be
    returned several times; None for an empty table."""
    names = spec.schema.names
    parts = {part: rows.select(*names) for part, rows in tables.split(spec).items()}
    bounds = {part: weight_bounds(tables, spec, part) or _ANY for part in parts}
    if parts and all(low > 0 for low, _ in bounds.values()):
        is_one = all(high == 1 for _, high in bounds.values())
        return Copies(union_frames(list(parts.values())), is_one)
    if "base" not in parts or bounds["base"][0] <= 0 or is_set:
        found = read_whole(tables, spec, is_set=is_set, is_net=is_net)
        return None if found is None else Copies(found, is_set)
    return Copies(_apply_deletions(spec, parts["base"], net_frame(spec, parts["later"])), False)


def weight_bounds(tables: StateTables, spec: TableSpec, part: str) -> tuple[int, int] | None:
    """Return the least and the greatest weight of a part (`split`); None if not known."""
    segments = tables.manifest.tables.get(spec.name, ())
    some = [s for s in segments if s.is_base == (part == "base") and s.files]
    return merge_bounds(segment.weights for segment in some)


def _count_later(tables: StateTables, spec: TableSpec, held: Sequence[Segment] | None) -> int:
    """Return the number of rows after the base."""
    if held is None:
        return tables.manifest.rows(spec.name)[1]
    return sum(segment.rows for segment in held if not segment.is_base)


def _apply_changes(base: DataFrame, later: DataFrame) -> DataFrame:
    """Apply later rows to a base whose rows occur once: deleted rows are in it, inserted rows are
    not."""
    kept = base.join(*_match_deleted(base, later.filter("weight < 0")), "left_anti")
    return kept.unionByName(later.filter("weight > 0"))


def _apply_deletions(spec: TableSpec, base: DataFrame, later: DataFrame) -> DataFrame:
    """Apply later rows to a base whose rows may occur several times: only rows with deleted copies
    are netted."""
    gone = later.filter("weight < 0")
    among = _match_deleted(base, gone)
    fewer = net_frame(spec, base.join(*among, "left_semi").unionByName(gone))
    return union_frames([base.join(*among, "left_anti"), fewer, later.filter("weight > 0")])


def _match_deleted(base: DataFrame, gone: DataFrame) -> tuple[DataFrame, Column]:
    """Return the deleted rows, and the condition that a row of the base is among them.

    They are found by a hash in a map of integers, which adds little to a scan.
    """
    hashes = F.xxhash64("row")
    by_hash = gone.groupBy(hashes.alias("hash"))
    known = F.broadcast(by_hash.agg(F.collect_list(F.struct("row")).alias("rows")))
    is_same = F.array_contains(known["rows"], F.struct(base["row"]))
    return known, (hashes == known["hash"]) & is_same
