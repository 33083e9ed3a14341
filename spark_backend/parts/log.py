"""A part of any kind on Spark: the log of each bucket, and what it makes of it in Python workers.

    groupBy(bucket).agg(collect_list(entry))  --worker.changes-->  rows with weights

State:  every entry since the last generation of the mailbox.
Cost:   per flush O(entries of the touched buckets).
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reactive.collections.zset import Pair, Pairs, Row, consolidate
from reactive.errors import OffloadError, TakenIn
from reactive.remote.external import ExternalInput
from reactive.remote.fragments import Fragment
from reactive.remote.remote import Entry
from spark_backend.cluster.mailbox import Mailbox
from spark_backend.cluster.session import Session
from spark_backend.cluster.stream import Frame, Stream
from spark_backend.codec.codec import loads
from spark_backend.codec.serialization import serialized, serialized_classes
from spark_backend.parts.base_fragment import BaseFragment
from spark_backend.tables import worker

SCHEMA = pa.schema(
    [
        ("bucket", pa.int64()),
        ("side", pa.int8()),
        ("version", pa.int64()),
        ("row", pa.binary()),
        ("weight", pa.int64()),
    ]
)


class LogRemote(BaseFragment):
    """A `reactive.remote.remote.Remote`: the rows of a part, kept by Spark."""

    def __init__(self, session: Session, fragment: Fragment, folder: str, *, stable: bool) -> None:
        super().__init__(session, fragment, stable=stable)
        self._node = fragment.node
        self._is_whole = fragment.keys_of is None
        self._shipped = serialized(fragment.node)
        self._owed: set[int] = set()
        self._stream = Stream(
            session,
            Mailbox(folder, SCHEMA),
            aggregate=_logs,
            output=self._changes,
            fold=_folded,
        )
        self._shown = self._stream.applied
        """The last number whose change has been emitted."""

    def pack(self, place: int, key: Any, row: Row) -> tuple[int, bytes]:
        """The bucket of a key, and the row as bytes."""
        return self.bucket(key), self._codec.dumps(row)

    def apply(
        self,
        number: int,
        entries: Sequence[Entry],
        fed: Sequence[ExternalInput] = (),
        *,
        quiet: bool = False,
    ) -> Pairs:
        """Take entries in once, and say how the output changes.

        Raises
        ------
        TakenIn: a callable of the query raised. The next number makes up for it.
        OffloadError: Spark is gone; the entries are kept.
        """
        entries = self._with_staged(number, entries)
        again = [(0, bucket, b"", 0) for bucket in self._owed]  # to be looked at, nothing more
        table = _table(number, [*entries, *again])
        given = self._with_fed(number, table, fed) if fed else table
        out = self._stream.apply(number, given, quiet=quiet)
        try:
            changes = () if out is None else _pairs(out)
        except TakenIn as error:
            if fed:
                raise OffloadError(str(error)) from error  # whose buckets nobody here knows
            self._owed |= {bucket for _, bucket, _, _ in entries}
            raise
        self._shown, self._owed = number, set()
        return changes

    def _with_fed(self, number: int, table: pa.Table, fed: Sequence[ExternalInput]) -> Frame:
        """Entries, and the entries of rows that Spark has already, which bypass the driver."""
        frame = self._session.spark.createDataFrame(table)
        for source in fed:
            frame = frame.unionByName(self._fed(number, source))
        return frame

    def contents(self) -> Iterable[Pair]:
        """The output as of the last `apply`; made in this process, a range of buckets at a time."""
        pairs = (pair for table in self._tables() for pair in self._output(table))
        return consolidate(pairs) if self._is_whole else pairs  # equal rows of several buckets

    def entries(self) -> Iterator[Entry]:
        """What is kept, each row once."""
        for table in self._tables():
            kept = _folded(table)
            columns = [kept[name].to_pylist() for name in ("side", "bucket", "row", "weight")]
            yield from zip(*columns, strict=True)

    def at(self, bucket: int) -> Iterable[Pair]:
        """What is made of the rows of a bucket."""
        return self._output(self._stream.mailbox.at(bucket, self._shown))

    def footprint(self) -> tuple[int, int]:
        """Rows, each counted by its weight, and bytes on disk."""
        mailbox = self._stream.mailbox
        return mailbox.total("weight", self._shown), mailbox.bytes()

    def describe(self) -> str:
        """How the part is kept, in a line."""
        return "Spark, log by bucket, rows pickled; worked on in Python workers"

    def to_spark(self, row_type: Any = None) -> Frame:
        """The output as of the last `apply`, worked out on Spark; to be used before the next."""
        from spark_backend.tables import results

        kept = results.typed_as(self.contents(), row_type)
        paths = self._stream.mailbox.paths(self._shown)
        logs = _logs(self._session.spark.read.parquet(*paths))
        return results.of_logs(self._session, logs, self._shipped, kept)

    def _changes(self, logs: Frame, number: int) -> Frame:
        given = (self._shipped, serialized_classes(), self._shown)
        run = worker.shipped(self._session.paths, "spark_backend.tables.worker", "changes", *given)
        return logs.mapInArrow(run, worker.DELTA_DDL)

    def _tables(self) -> Iterator[pa.Table]:
        return self._stream.mailbox.ranges(self._shown)

    def _output(self, table: pa.Table) -> list[Pair]:
        columns = [table[name].to_pylist() for name in ("side", "row", "weight")]
        return list(worker.output(self._node, zip(*columns, strict=True)).items())


def _table(number: int, entries: Sequence[Entry]) -> pa.Table:
    sides, buckets, rows, weights = zip(*entries, strict=True) if entries else ((),) * 4
    columns = (buckets, sides, [number] * len(entries), rows, weights)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.table(arrays, schema=SCHEMA)


def _logs(entries: Frame) -> Frame:
    from pyspark.sql import functions

    entry = functions.struct("side", "version", "row", "weight")
    return entries.groupBy("bucket").agg(functions.collect_list(entry).alias("log"))


def _pairs(out: pa.Table) -> list[Pair]:
    pairs = []
    columns = (out["row"].to_pylist(), out["weight"].to_pylist())
    for data, weight in zip(*columns, strict=True):
        if weight == worker.FAILED:
            raise _raised(*pickle.loads(data))
        pairs.append((loads(data), weight))
    return pairs


def _raised(kind: str, message: str, row: str | None) -> TakenIn:
    where = "" if row is None else f", on row {row}"
    return TakenIn(
        f"a callable of a query raised on Spark: {kind}: {message}{where}\n"
        "  its views stay as they were until it is recalled, or the row no longer makes it raise"
    )


def _folded(table: pa.Table) -> pa.Table:
    """The entries of some buckets with their weights added up; without entries that cancel."""
    sums = table.group_by(["bucket", "side", "row"]).aggregate(
        [("weight", "sum"), ("version", "max")]
    )
    kept = sums.rename_columns({"weight_sum": "weight", "version_max": "version"})
    kept = kept.select(SCHEMA.names).cast(SCHEMA).filter(pc.field("weight") != 0)
    unmatched = kept.filter(pc.field("weight") < 0)["bucket"].unique()
    if not len(unmatched):
        return kept
    odd = pc.is_in(kept["bucket"], unmatched)
    return pa.concat_tables([kept.filter(pc.invert(odd)), _by_value(kept.filter(odd))])


def _by_value(table: pa.Table) -> pa.Table:
    """The same of rows that are equal, but were pickled to other bytes."""
    net: dict[tuple[int, int, Row], dict[str, Any]] = {}
    for entry in table.to_pylist():
        key = (entry["bucket"], entry["side"], loads(entry["row"]))
        found = net.setdefault(key, {**entry, "weight": 0})
        found["weight"] += entry["weight"]
        found["version"] = max(found["version"], entry["version"])
    return pa.Table.from_pylist([entry for entry in net.values() if entry["weight"]], SCHEMA)
