"""Any keyed operator on Spark by buckets: rows are pickled and processed in Python workers.

    new rows        \\
                      sort by bucket --Python workers--> rows to keep, rows of the output --write
    touched buckets  /

A flush is one job. The rows of the inputs and the output are state tables with a bucket column:
reading evaluates nothing, and a look-up reads one bucket. If a callable raises, its worker writes
the error, and the flush does not count; its changes are retried together with the next ones, which
may repair the error.

State:  on disk; in the driver, the changes that were not sent.
Cost:   per flush one job over the touched buckets; O(changed rows) in the driver.
Source: [mrql] state that is partitioned as its changes are.

`_Partners` selects the rows that determine how a join changes, because a key may have many others:

    join             the rows of the other side
    semi, anti       of the right, the changed rows, and one row of each key that changes;
                     of the left, all rows if a key has no such row
    left, full, ...  the rows of the other side; of its own side, one row of each key

A row that stays proves that its key has partners before and after, so the others make no
difference. Rows with the same bytes as a deleted row are selected, too.

Sound:  for semi, anti and outer joins with a condition on the key alone; all rows are read if a
        deleted row may have other bytes in the table.
Cost:   O(rows of the touched buckets) in columns; only selected rows become objects.

`compute_additions` runs a flush of few rows in this process, as workers would:

    entries by bucket, rows of these buckets --`compute_bucket_changes`--> rows to add to the tables

Cost:   O(rows of the touched buckets), for a join O(rows of the other side); their files are
        scanned.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from optimizer import plan
from optimizer.plans.fingerprint import fingerprint
from optimizer.plans.properties import bindings
from reactive.engine.collections.exact import ExactSum
from reactive.engine.collections.zset import Pair, Pairs, Row, consolidate
from reactive.engine.operators.plain import by_key_alone, chain_over, side_key, sides
from reactive.engine.remote.fragments import Fragment
from reactive.engine.remote.remote import Adopt, Entry, ExternalInput
from reactive.engine.runtime.collector import pause_collector
from reactive.errors import TakenIn
from spark_backend.bucketed import grouped_sums
from spark_backend.bucketed.bucket_changes import (
    CHANGES_DDL,
    FAILED,
    OUTPUT,
    ROWS,
    BucketEntries,
    compute_bucket_changes,
)
from spark_backend.bucketed.kept_rows import Net, drop_zeros, is_bilinear
from spark_backend.cluster.session import Session
from spark_backend.codec.codec import Codec, loads, serialize_classes, serialize_plan
from spark_backend.codec.schema import infer_type
from spark_backend.direct.flush import TooMany, check_fetched, check_few
from spark_backend.fragments.members import (
    PendingChanges,
    count_changes,
    new_rows,
    run_with_retries,
)
from spark_backend.state.ends import StagedFiles
from spark_backend.state.one_job import BUCKET, TableSpec, TaggedRows
from spark_backend.state.tables import FlushRefused, StateTables, union_frames
from spark_backend.steps.step import MOST_BROADCAST
from spark_backend.tables import table
from spark_backend.tables.chain import Chain
from spark_backend.tables.stateless import worker_function

NAMED = 200
"""The most buckets that the query lists; more are joined as a table."""
FEW = 2
"""Read all rows unless they are at least this many times the changed rows."""
ONE_TASK = 2_000
"""The most changes whose flush is one task, without a shuffle."""


log = logging.getLogger("reactive")
OURS = b"reactive."
"""A packed row contains these bytes if it refers to a class of the library."""


class BucketedRemote:
    """A `reactive.engine.remote.remote.Remote` for one operator with rows in buckets.

    Parameters
    ----------
    fragment: one operator, and the linear nodes above it.
    folder: the folder of its state; the state that an earlier process left is continued if it is of
        this plan.
    stable: True if another process may continue the state.
    trust: True if existing pickled rows may be read.

    Raises
    ------
    OffloadError: the folder has pickled rows and is not trusted; or its state is of another plan.
    """

    def __init__(
        self,
        session: Session,
        fragment: Fragment,
        folder: str,
        *,
        stable: bool,
        trust: bool = False,
    ) -> None:
        self._session, self._fragment = session, fragment
        self._is_kept = stable
        self._codec = Codec(stable=stable)
        self.bucket = self._codec.bucket
        self._shipped = serialize_plan(fragment.node)
        self._is_sums = grouped_sums.is_sums_only(fragment.node)
        self._summed = grouped_sums.summed_positions(fragment.node) if self._is_sums else []
        specs = {name: _entry_table(name) for name in (ROWS, OUTPUT, FAILED)}
        self._rows, self._output = specs[ROWS], specs[OUTPUT]
        plan_of = fingerprint(fragment.node, fragment.inputs)
        self._tables = StateTables(session, folder, plan_of, specs, pickled=True, trust=trust)
        self._staged, self._owed = StagedFiles(session, folder), PendingChanges()
        self.resumed = self._tables.number
        self.is_closed = False
        self.begun_anew = ""
        self.adopt: Adopt | None = None

    @property
    def applied(self) -> int:
        """The number of the last applied flush; -1 for none."""
        return -1 if self._tables.number is None else self._tables.number

    def pack(self, place: int, key: Any, row: Row) -> tuple[int, bytes]:
        """Return the bucket of a key, and the row as bytes.

        Raises
        ------
        TypeError: a value to be summed has no sum, as in the process.
        OffloadError: the row would be decoded to another value.
        """
        for at in self._summed:
            if type(row[at]) not in _KNOWN:
                ExactSum().add(row[at], 1)
        return self.bucket(key), self._codec.dumps(row)

    def stage(self, number: int, entries: Sequence[Entry]) -> None:
        """Write entries to a file, for the flush of a number."""
        if entries and number > self.applied:
            self._staged.add(number, 0, entries_to_table(entries))

    def apply(
        self,
        number: int,
        entries: Sequence[Entry],
        fed: Sequence[ExternalInput] = (),
        *,
        quiet: bool = False,
    ) -> Pairs:
        """Apply entries unless their number was applied already, and return how the output changes.

        Raises
        ------
        TakenIn: a callable of the query raised. The next number retries.
        OffloadError: Spark is gone, a folder cannot be written, or state has been removed; nothing
            was applied.
        """
        if number > self.applied:
            given = self._owed.added(number, entries, fed)
            run_with_retries(
                lambda: self._attempt(number, *given), self._session, _no_retry, self._tables
            )
            self._owed.clear()
        if self._staged.rows:
            self._staged.forget()
        return () if quiet else self._change_of(number)

    def contents(self) -> Iterable[Pair]:
        """Yield the output as of the last `apply`, fetched a range of buckets at a time."""
        found = (pair for piece in self._tables.pieces(self._output) for pair in net_pairs(piece))
        if self._fragment.keys_of is None:  # buckets may share equal rows
            return consolidate(found)
        return found

    def at(self, bucket: int) -> Iterable[Pair]:
        """Return the output rows of a bucket."""
        return net_pairs(self._tables.look_up(self._output, bucket))

    def entries(self) -> Iterator[Entry]:
        """Yield the stored entries, each once, packed with the current names of classes, which may
        have moved in the library since. For sums, yield the sums of groups."""
        for piece in self._tables.pieces(self._rows):
            found: Counter[tuple[int, int, bytes]] = Counter()
            columns = [piece[name].to_pylist() for name in ENTRIES.names]
            for bucket, side, row, weight in zip(*columns, strict=True):
                found[side, bucket, self._repack(row)] += weight
            yield from ((*entry, weight) for entry, weight in found.items() if weight)

    def net_entries(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return the sums of entries as one entry per group whose sums are not 0.

        Entries of a part without sums are returned as they are.
        """
        if not self._is_sums:
            return list(entries)
        of_buckets: dict[int, Counter[tuple[int, bytes]]] = {}
        for side, bucket, row, weight in entries:
            of_buckets.setdefault(bucket, Counter())[side, row] += weight
        return [
            (side, bucket, row, weight)
            for bucket, net in of_buckets.items()
            for (side, row), weight in grouped_sums.normal(
                self._fragment.node, Counter(), net
            ).items()
        ]

    def _repack(self, row: bytes) -> bytes:
        return row if self._is_sums or OURS not in row else self._codec.dumps(loads(row))

    def footprint(self) -> tuple[int, int]:
        """Return the number of rows, or groups of sums, and the bytes on disk."""
        weights = (piece["weight"] for piece in self._tables.pieces(self._rows))
        return sum(pc.sum(w).as_py() or 0 for w in weights), self._tables.bytes()

    def describe(self) -> str:
        """Describe the storage in one line."""
        kept = "sums by group" if self._is_sums else "rows by bucket"
        return f"Spark, state tables of {kept}, one job per flush; Python workers"

    def to_spark(self, row_type: Any = None) -> DataFrame:
        """Return the output as of the last `apply`, a column per field; nothing is evaluated."""
        kept = infer_type(self.contents(), row_type)
        parts = [p.select("bucket", "row", "weight") for p in self._tables.parts(self._output)]
        return table.packed_to_columns(self._session, parts, kept)

    def stop(self) -> None:
        """Stop reading; keep the state if a later process may continue it."""
        self.is_closed = True
        self._staged.forget()
        if not self._is_kept:
            self._tables.delete()

    def close(self) -> None:
        """Delete all state."""
        self.is_closed = True
        self._tables.delete()

    def _attempt(self, number: int, entries: Sequence[Entry], fed: Sequence[ExternalInput]) -> None:
        """Run a flush in this process if it has few rows, else on Spark.

        Raises if it fails; the caller retries.
        """
        if not fed and self._is_done_here(number, entries):
            return
        self._session.ready()
        self._tables.compact()  # the rows of the previous flush have been read by now
        self._flush(number, entries, fed)

    def _is_done_here(self, number: int, entries: Sequence[Entry]) -> bool:
        """Try to run a flush of few rows in this process.

        On any exception return False, so that a job runs the flush and reports the error.
        """
        if self._staged.rows:
            return False
        try:
            check_few(self._tables, len(entries))
            self._tables.compact()
            with pause_collector():  # a flush makes no cycles
                added = compute_additions(self._tables, self._rows, self._fragment.node, entries)
        except (Exception, SystemExit) as error:
            log.debug("offloading: a flush by a job: %r", error)
            return False
        self._tables.put(number, added)
        return True

    def _change_of(self, number: int) -> Pairs:
        """Return how the output changed in the flush `number`; empty if it did not."""
        written = self._tables.written(number, self._output)
        return () if written is None else consolidate(decode_pairs(written))

    def _flush(self, number: int, entries: Sequence[Entry], fed: Sequence[ExternalInput]) -> None:
        """Run a flush on Spark: write the entries and the changes of the output.

        Raises `TakenIn` if a callable of the query raised; the rows are stored nevertheless.
        """
        staged = [*self._staged.frames(self._session.spark, number, [SCHEMA]).values()]
        staged_rows = self._staged.rows if staged else 0
        rows = count_changes(entries, fed) + staged_rows
        away = [*staged, *map(self._external_entries, fed)]
        added: Any = {}
        if entries or away:
            added = TaggedRows(self._changes(entries, away, rows), (ROWS, OUTPUT, FAILED))
        try:
            self._tables.flush(number, added, rows=rows, refused=FAILED)
        except FlushRefused as refused:
            raise _taken_in_error(*json.loads(refused.found["row"][0].as_py())) from None

    def _changes(self, entries: Sequence[Entry], away: list[DataFrame], rows: int) -> DataFrame:
        """Run workers over the new rows and the rows of their buckets."""
        here = (
            [self._session.spark.createDataFrame(entries_to_table(entries), SCHEMA)]
            if entries
            else []
        )
        new = union_frames([*here, *away])
        touched = None if away else {bucket for _, bucket, _, _ in entries}
        parts = self._tables.parts(self._rows)
        if sum(self._tables.manifest.rows(ROWS)) > FEW * rows:
            parts = [self._touched_rows(part, touched, new, rows) for part in parts]
        found = union_frames(
            [_mark_new(new, is_new=True), *(_mark_new(p, is_new=False) for p in parts)]
        )
        found = self._gather_buckets(found, rows).sortWithinPartitions("bucket")
        given = (self._shipped, serialize_classes())
        run = worker_function(
            self._session.paths, "spark_backend.bucketed.bucket_changes", "bucket_changes", *given
        )
        return found.mapInArrow(run, CHANGES_DDL)

    def _touched_rows(
        self, part: DataFrame, touched: set[int] | None, new: DataFrame, rows: int
    ) -> DataFrame:
        """Return the rows of touched buckets in a part of the state."""
        if touched is not None and BUCKET in part.columns:
            count = self._tables.buckets(self._rows)
            part = part.filter(F.col(BUCKET).isin(sorted({bucket % count for bucket in touched})))
        if touched is not None and len(touched) <= NAMED:
            return part.filter(F.col("bucket").isin(sorted(touched)))
        buckets = new.select("bucket").distinct()
        buckets = F.broadcast(buckets) if rows <= MOST_BROADCAST else buckets
        return part.join(buckets, "bucket", "left_semi")

    def _gather_buckets(self, found: DataFrame, rows: int) -> DataFrame:
        """Put the rows of a bucket into one task."""
        if rows <= ONE_TASK:
            return found.coalesce(1)
        return found.repartition(self._tables.tasks(), "bucket")

    def _external_entries(self, source: ExternalInput) -> DataFrame:
        """Return the entries of rows of a Spark table, which do not pass through the driver."""
        return Chain(self._session.paths).entries(
            source.chain,
            new_rows(source, is_late=self._owed.is_late),
            self._fragment.of[-1],
            source.place,
            stable=self._is_kept,
        )


_KNOWN: frozenset[type] = frozenset({int, float, bool})


def _entry_table(name: str) -> TableSpec:
    """Return a table of entries, in the buckets that their rows have."""
    return TableSpec(
        name, SCHEMA, ("bucket", "side", "row"), ("weight",), lambda: F.col("bucket"), "bucket"
    )


def _mark_new(rows: DataFrame, *, is_new: bool) -> DataFrame:
    return rows.select("bucket", F.lit(is_new).alias("is_new"), "side", "row", "weight")


def _no_retry(error: Exception) -> bool:
    """Return False: an error gives no reason to repeat the flush in another way."""
    return False


def _taken_in_error(kind: str, message: str, row: str | None) -> TakenIn:
    """Return the error for a callable that raised on Spark, which has stored the rows nevertheless.

    Parameters
    ----------
    kind, message: the name of the exception's class, and its text.
    row: the row as text; None if it is unknown.
    """
    where = "" if row is None else f", on row {row}"
    return TakenIn(
        f"a callable of a query raised on Spark: {kind}: {message}{where}\n"
        "  its views stay as they were until it is recalled, or the row no longer makes it raise"
    )


New = Mapping[int, Net]
"""The changes of each bucket."""
_KEYED = (plan.SemiJoin, plan.AntiJoin, plan.OuterJoin)


def rows_to_fetch(node: plan.Node, table: pa.Table, new: New) -> dict[int, Net] | None:
    """Return the rows of each bucket that determine how the output changes.

    Return None if all are needed.
    """
    _, base = chain_over(node)
    if is_bilinear(node):
        return net_by_bucket(
            new, table.filter(pc.or_(_mask_matching(table, new), _mask_deleted(table, new)))
        )
    if isinstance(base, _KEYED) and by_key_alone(base):
        return _Partners(base).select_rows(table, new)
    return None


def net_by_bucket(numbers: Iterable[int], table: pa.Table) -> dict[int, Net]:
    """Return the net rows of each bucket.

    Raises
    ------
    TooMany: the table has many rows.
    """
    check_fetched(table.num_rows)
    found: dict[int, Net] = {number: Counter() for number in numbers}
    columns = (table.column(name).to_pylist() for name in ENTRIES.names)
    for number, side, row, weight in zip(*columns, strict=True):
        found[number][side, row] += weight
    return {number: drop_zeros(net) for number, net in found.items()}


class _Partners:
    """Select the rows that determine how a join changes, if it depends on keys having partners."""

    def __init__(self, node: plan.SemiJoin | plan.AntiJoin | plan.OuterJoin) -> None:
        left, right = sides(node)
        self._keys = side_key(left, bindings(node.left)), side_key(right, 1)
        self._is_outer = isinstance(node, plan.OuterJoin)

    def select_rows(self, table: pa.Table, new: New) -> dict[int, Net] | None:
        """Return the rows by bucket; None if some deleted row has other bytes in the table."""
        net = table.group_by(["bucket", "side", "row"]).aggregate([("weight", "sum")])
        if net.num_rows and pc.min(net["weight_sum"]).as_py() < 0:
            return None
        net = net.filter(pc.greater(net["weight_sum"], 0))
        found: dict[int, Net] = {}
        whole: dict[int, set[int]] = {0: set(), 1: set()}
        for number, changes in new.items():
            mine = net.filter(pc.equal(net["bucket"], number))
            found[number] = self._select_of_bucket(number, mine, changes, whole)
        more = [mask_buckets(table, side, numbers) for side, numbers in whole.items()]
        for number, rows in net_by_bucket(
            new, table.filter(pc.or_(pc.or_(*more), _mask_deleted(table, new)))
        ).items():
            found[number] |= rows
        return found

    def _select_of_bucket(
        self, number: int, net: pa.Table, changes: Net, whole: Mapping[int, set[int]]
    ) -> Net:
        """Return the rows of a bucket that determine how the output changes.

        If a side needs all its rows instead, the bucket is added to `whole[side]`.
        """
        sides = {side for side, _ in changes}
        if self._is_outer:
            for side in sides:
                whole[1 - side].add(number)
            if len(sides) > 1:
                return Counter()
            return self._select_of_side(net, changes, sides.pop())[0]
        found, may_turn = self._select_of_side(net, changes, 1)
        if may_turn:
            whole[0].add(number)
        return found

    def _select_of_side(self, net: pa.Table, changes: Net, side: int) -> tuple[Net, bool]:
        """Return the changed rows of a side, and one further row of each key that changes; and True
        if some key has no further row, so that it may find a partner or lose its last one."""
        net = net.filter(pc.equal(net["side"], side))
        rows = {row for at, row in changes if at == side}
        turning = {self._key(side, row) for row in rows}
        wanted = turning | {self._key(at, row) for at, row in changes if at != side}
        is_changed = pc.is_in(net["row"], pa.array(rows, pa.binary()))
        changing, others = net.filter(is_changed), net.filter(pc.invert(is_changed))
        pairs = zip(changing["row"].to_pylist(), changing["weight_sum"].to_pylist(), strict=True)
        found: Net = Counter({(side, row): weight for row, weight in pairs})
        for row, weight in zip(others["row"], others["weight_sum"], strict=True):
            if not wanted:
                break
            data = row.as_py()
            key = self._key(side, data)
            if key in wanted:
                found[side, data] = weight.as_py()
                wanted.discard(key)
        return drop_zeros(found), bool(turning & wanted)

    def _key(self, side: int, row: bytes) -> Any:
        """Return the join key of a pickled row of a side; None if the side has no key."""
        of = self._keys[side]
        return None if of is None else of(loads(row))


def mask_buckets(table: pa.Table, side: int, numbers: Collection[int]) -> pa.Array:
    """Return a mask of the rows of a side in some buckets."""
    is_there = pc.is_in(table["bucket"], pa.array(numbers, pa.int64()))
    return pc.and_(pc.equal(table["side"], side), is_there)


def _mask_matching(table: pa.Table, new: Mapping[int, Net]) -> pa.Array:
    """Return a mask of the rows that match a change of the other side, given by bucket in `new`."""
    pairs = [(number, side) for number, net in new.items() for side, _ in net]
    met = [
        mask_buckets(table, other, {number for number, side in pairs if side != other})
        for other in (0, 1)
    ]
    return pc.or_(*met)


def _mask_deleted(table: pa.Table, new: Mapping[int, Net]) -> pa.Array:
    """Return a mask of the rows with the bytes of a row that `new` deletes."""
    goes = {row for net in new.values() for (_, row), weight in net.items() if weight < 0}
    return pc.is_in(table["row"], pa.array(goes, pa.binary()))


MOST_PACKED = 1_000_000
"""The most rows of a table that are scanned for the rows of some buckets."""


def compute_additions(
    tables: StateTables, rows: TableSpec, node: plan.Node, entries: Sequence[Entry]
) -> dict[str, pa.Table]:
    """Return the rows to add to each table.

    Parameters
    ----------
    rows: the table of the stored rows.

    Raises
    ------
    TooMany: a job has to run the flush.
    """
    new: dict[int, Net] = {}
    for side, bucket, row, weight in entries:
        new.setdefault(bucket, Counter())[side, row] += weight
    new = {number: some for number, net in new.items() if (some := drop_zeros(net))}
    before = _fetch_before(tables, rows, node, new)
    touched = [BucketEntries(number, before[number], net) for number, net in new.items()]
    found: dict[str, list[Entry]] = {}
    for name, bucket, side, row, weight in compute_bucket_changes(node, touched):
        found.setdefault(name, []).append((side, bucket, row, weight))
    return {name: entries_to_table(rows) for name, rows in found.items()}


def _fetch_before(
    tables: StateTables, spec: TableSpec, node: plan.Node, new: Mapping[int, Net]
) -> dict[int, Net]:
    """Return the stored rows that determine how the output changes.

    Raises
    ------
    TooMany: there are many rows.
    """
    if not new:
        return {}
    if tables.rows_near(spec, new) > MOST_PACKED:
        raise TooMany("many rows to look through")
    table = tables.sought(spec, new, (("bucket",), pa.array(new, pa.int64())))
    some = rows_to_fetch(node, table, new)
    if some is not None and not any(
        map(_has_unknown_deletion, (some[n] for n in new), new.values())
    ):
        return some
    return net_by_bucket(new, table)


def _has_unknown_deletion(before: Net, new: Net) -> bool:
    """Return True if `before` lacks a row that `new` deletes: it may have other bytes there."""
    return any(before[key] + weight < 0 for key, weight in new.items())


ENTRIES = pa.schema(
    [("bucket", pa.int64()), ("side", pa.int8()), ("row", pa.binary()), ("weight", pa.int64())]
)
SCHEMA = T.StructType(
    [
        T.StructField("bucket", T.LongType()),
        T.StructField("side", T.ByteType()),
        T.StructField("row", T.BinaryType()),
        T.StructField("weight", T.LongType()),
    ]
)


def entries_to_table(entries: Sequence[Entry]) -> pa.Table:
    """Return entries as a table with the columns of `ENTRIES`."""
    sides, buckets, rows, weights = zip(*entries, strict=True) if entries else ((),) * 4
    columns = (buckets, sides, rows, weights)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, ENTRIES, strict=True)]
    return pa.table(arrays, schema=ENTRIES)


def decode_pairs(found: pa.Table) -> Iterator[Pair]:
    """Return the rows of a table with their weights."""
    rows = map(loads, found["row"].to_pylist())
    return zip(rows, found["weight"].to_pylist(), strict=True)


def net_pairs(piece: pa.Table) -> Iterable[Pair]:
    """Return the net rows of each bucket; different buckets may have equal rows."""
    found: dict[tuple[int, Row], int] = {}
    for bucket, (row, weight) in zip(piece["bucket"].to_pylist(), decode_pairs(piece), strict=True):
        found[bucket, row] = found.get((bucket, row), 0) + weight
    return [(row, weight) for (_, row), weight in found.items() if weight]
