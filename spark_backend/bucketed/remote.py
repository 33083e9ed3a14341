"""An operator of any kind on Spark, by buckets: its rows pickled, worked on in Python workers.

    what is new     \\
                      sort by bucket --Python workers--> rows to keep, rows of the output --write
    touched buckets  /

One job per flush. Both what is kept and the output are state tables, whose rows have the bucket
that they are of: reading evaluates nothing, and a look-up reads one bucket. A callable that raises
writes why, and nothing counts; what was to be taken in is then taken in together with what comes
next, which may mend it.

State:  on disk; in the driver, what has not been sent.
Cost:   per flush one job over the touched buckets; O(rows that changed) here.
Source: [mrql] state that is partitioned as its changes are.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from optimizer.plans.fingerprint import fingerprint
from reactive.engine.collections.exact import ExactSum
from reactive.engine.collections.zset import Pair, Pairs, Row, consolidate
from reactive.engine.remote.adoption import Adopt
from reactive.engine.remote.external import ExternalInput
from reactive.engine.remote.fragments import Fragment
from reactive.engine.remote.remote import Entry
from reactive.engine.runtime.collector import paused
from reactive.errors import TakenIn
from spark_backend.bucketed import grouped_sums
from spark_backend.bucketed.direct_buckets import added_here
from spark_backend.bucketed.packed import ENTRIES, SCHEMA, net, pairs, table_of
from spark_backend.bucketed.touched import CHANGES_DDL, FAILED, OUTPUT, ROWS
from spark_backend.cluster.session import Session
from spark_backend.codec.codec import Codec, loads
from spark_backend.codec.guessed import typed_as
from spark_backend.codec.serialization import serialized, serialized_classes
from spark_backend.direct.flush import check_few
from spark_backend.fragments.fed import changed, since
from spark_backend.fragments.tries import Owed, tried
from spark_backend.state.staged import Staged
from spark_backend.state.tables import BUCKET, Refused, StateTables, TableSpec, united
from spark_backend.state.tagged import Tagged
from spark_backend.steps.step import MOST_BROADCAST
from spark_backend.tables import results
from spark_backend.tables.chain import Chain
from spark_backend.tables.worker import shipped

NAMED = 200
"""Buckets that are named in the query; of more ones, a table of them is joined."""
FEW = 2
"""Where there are not so many times as many rows as change, all are read."""
ONE_TASK = 2_000
"""Changes up to which a flush is one task, without a shuffle."""


log = logging.getLogger("reactive")
OURS = b"reactive."
"""Stands in a packed row that holds something of a class of the library."""


class BucketedRemote:
    """A `reactive.engine.remote.remote.Remote` for one operator whose rows fall into buckets.

    Parameters
    ----------
    fragment: of one operator, and those above it that look at one row after the other.
    folder: of its state; one that an earlier process left is gone on with, if it is of this plan.
    stable: whether another process may go on with the folder.
    trust: whether pickled rows that are there may be read.

    Raises
    ------
    OffloadError: there are such rows, and they are not trusted; or they are of something else.
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
        self._shipped = serialized(fragment.node)
        self._is_sums = grouped_sums.are_all_of(fragment.node)
        self._summed = grouped_sums.summed(fragment.node) if self._is_sums else []
        specs = {name: _spec(name) for name in (ROWS, OUTPUT, FAILED)}
        self._rows, self._output = specs[ROWS], specs[OUTPUT]
        plan_of = fingerprint(fragment.node, fragment.inputs)
        self._tables = StateTables(session, folder, plan_of, specs, pickled=True, trust=trust)
        self._staged, self._owed = Staged(session, folder), Owed()
        self.resumed = self._tables.number
        self.is_closed = False
        self.begun_anew = ""
        self.adopt: Adopt | None = None

    @property
    def applied(self) -> int:
        """The last number that has been taken in; -1 for none."""
        return -1 if self._tables.number is None else self._tables.number

    def pack(self, place: int, key: Any, row: Row) -> tuple[int, bytes]:
        """The bucket of a key, and the row as bytes.

        Raises
        ------
        TypeError: a value that is to be summed has no sum, as in the process.
        OffloadError: the row cannot be kept as what it is.
        """
        for at in self._summed:
            if type(row[at]) not in _KNOWN:
                ExactSum().add(row[at], 1)
        return self.bucket(key), self._codec.dumps(row)

    def stage(self, number: int, entries: Sequence[Entry]) -> None:
        """Write entries to a file, from which the flush of a number reads them."""
        if entries and number > self.applied:
            self._staged.add(number, 0, table_of(entries))

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
        OffloadError: Spark is gone, a folder cannot be written, or state has been removed;
            nothing was taken in.
        """
        if number > self.applied:
            given = self._owed.added(number, entries, fed)
            tried(lambda: self._attempt(number, *given), self._session, _never, self._tables)
            self._owed.clear()
        if self._staged.rows:
            self._staged.forget()
        return () if quiet else self._change_of(number)

    def contents(self) -> Iterable[Pair]:
        """The output as of the last `apply`, fetched a range of buckets at a time."""
        found = (pair for piece in self._tables.pieces(self._output) for pair in net(piece))
        if self._fragment.keys_of is None:  # equal rows may be of several buckets
            return consolidate(found)
        return found

    def at(self, bucket: int) -> Iterable[Pair]:
        """What is made of the rows of a bucket."""
        return net(self._tables.look_up(self._output, bucket))

    def entries(self) -> Iterator[Entry]:
        """What is kept, each row once, as it would be packed now: classes of the library that are
        in it may have moved since. Of groups of which sums are kept, these."""
        for piece in self._tables.pieces(self._rows):
            found: Counter[tuple[int, int, bytes]] = Counter()
            columns = [piece[name].to_pylist() for name in ENTRIES.names]
            for bucket, side, row, weight in zip(*columns, strict=True):
                found[side, bucket, self._packed_now(row)] += weight
            yield from ((*entry, weight) for entry, weight in found.items() if weight)

    def netted(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return entries of rows and of sums as one entry per group whose sums are not 0."""
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

    def _packed_now(self, row: bytes) -> bytes:
        return row if self._is_sums or OURS not in row else self._codec.dumps(loads(row))

    def footprint(self) -> tuple[int, int]:
        """Rows, or groups of sums, and bytes on disk."""
        weights = (piece["weight"] for piece in self._tables.pieces(self._rows))
        return sum(pc.sum(w).as_py() or 0 for w in weights), self._tables.bytes()

    def describe(self) -> str:
        """How the part is kept, in a line."""
        kept = "sums by group" if self._is_sums else "rows by bucket"
        return f"Spark, state tables of {kept}, one job per flush; Python workers"

    def to_spark(self, row_type: Any = None) -> DataFrame:
        """The output as of the last `apply`, a column per field; nothing is evaluated."""
        kept = typed_as(self.contents(), row_type)
        parts = [p.select("bucket", "row", "weight") for p in self._tables.parts(self._output)]
        return results.of_packed(self._session, parts, kept)

    def stop(self) -> None:
        """Nobody reads it any more; a later process can go on where that was asked for."""
        self.is_closed = True
        self._staged.forget()
        if not self._is_kept:
            self._tables.delete()

    def close(self) -> None:
        """Give everything up."""
        self.is_closed = True
        self._tables.delete()

    def _attempt(self, number: int, entries: Sequence[Entry], fed: Sequence[ExternalInput]) -> None:
        if not fed and self._is_done_here(number, entries):
            return
        self._session.ready()
        self._tables.compact()  # what the flush before wrote has been read by now
        self._flush(number, entries, fed)

    def _is_done_here(self, number: int, entries: Sequence[Entry]) -> bool:
        """Do a flush of few rows in this process, if that can be done; what raises is told by the
        job that does it instead."""
        if self._staged.rows:
            return False
        try:
            check_few(self._tables, len(entries))
            self._tables.compact()
            with paused():  # what a flush makes is in no cycle
                added = added_here(self._tables, self._rows, self._fragment.node, entries)
        except (Exception, SystemExit) as error:
            log.debug("offloading: a flush by a job: %r", error)
            return False
        self._tables.put(number, added)
        return True

    def _change_of(self, number: int) -> Pairs:
        written = self._tables.written(number, self._output)
        return () if written is None else consolidate(pairs(written))

    def _flush(self, number: int, entries: Sequence[Entry], fed: Sequence[ExternalInput]) -> None:
        staged = [*self._staged.frames(self._session.spark, number, [SCHEMA]).values()]
        staged_rows = self._staged.rows if staged else 0
        rows = changed(entries, fed) + staged_rows
        away = [*staged, *map(self._fed, fed)]
        added: Any = {}
        if entries or away:
            added = Tagged(self._changes(entries, away, rows), (ROWS, OUTPUT, FAILED))
        try:
            self._tables.flush(number, added, rows=rows, refused=FAILED)
        except Refused as refused:
            raise _raised(*json.loads(refused.found["row"][0].as_py())) from None

    def _changes(self, entries: Sequence[Entry], away: list[DataFrame], rows: int) -> DataFrame:
        """What workers make of what is new and of the buckets that it is of."""
        here = [self._session.spark.createDataFrame(table_of(entries), SCHEMA)] if entries else []
        new = united([*here, *away])
        touched = None if away else {bucket for _, bucket, _, _ in entries}
        parts = self._tables.parts(self._rows)
        if sum(self._tables.manifest.rows(ROWS)) > FEW * rows:
            parts = [self._touched(part, touched, new, rows) for part in parts]
        found = united([_as_new(new, is_new=True), *(_as_new(p, is_new=False) for p in parts)])
        found = self._gathered(found, rows).sortWithinPartitions("bucket")
        given = (self._shipped, serialized_classes())
        run = shipped(self._session.paths, "spark_backend.bucketed.touched", "changes", *given)
        return found.mapInArrow(run, CHANGES_DDL)

    def _touched(
        self, part: DataFrame, touched: set[int] | None, new: DataFrame, rows: int
    ) -> DataFrame:
        """Of what is kept, the buckets that something is new in."""
        if touched is not None and BUCKET in part.columns:
            count = self._tables.buckets(self._rows)
            part = part.filter(F.col(BUCKET).isin(sorted({bucket % count for bucket in touched})))
        if touched is not None and len(touched) <= NAMED:
            return part.filter(F.col("bucket").isin(sorted(touched)))
        buckets = new.select("bucket").distinct()
        buckets = F.broadcast(buckets) if rows <= MOST_BROADCAST else buckets
        return part.join(buckets, "bucket", "left_semi")

    def _gathered(self, found: DataFrame, rows: int) -> DataFrame:
        """The rows of a bucket in one task."""
        if rows <= ONE_TASK:
            return found.coalesce(1)
        return found.repartition(self._tables.tasks(), "bucket")

    def _fed(self, source: ExternalInput) -> DataFrame:
        """Entries of rows that Spark has already, which do not come by here."""
        return Chain(self._session.paths).entries(
            source.chain,
            since(source, is_late=self._owed.is_late),
            self._fragment.of[-1],
            source.place,
            stable=self._is_kept,
        )


_KNOWN: frozenset[type] = frozenset({int, float, bool})


def _spec(name: str) -> TableSpec:
    return TableSpec(
        name, SCHEMA, ("bucket", "side", "row"), ("weight",), lambda: F.col("bucket"), "bucket"
    )


def _as_new(rows: DataFrame, *, is_new: bool) -> DataFrame:
    return rows.select("bucket", F.lit(is_new).alias("is_new"), "side", "row", "weight")


def _never(error: Exception) -> bool:
    """A flush is not to be done in another way for what it raised."""
    return False


def _raised(kind: str, message: str, row: str | None) -> TakenIn:
    where = "" if row is None else f", on row {row}"
    return TakenIn(
        f"a callable of a query raised on Spark: {kind}: {message}{where}\n"
        "  its views stay as they were until it is recalled, or the row no longer makes it raise"
    )
