"""Count, Sum and Avg by group on Spark: sums that its JVM keeps, work independent of the groups.

    entries  --added up by group-->  changes  --groupBy(group).agg(sum(...))-->  sums now
    row before  =  of (sums now - change)            row now  =  of sums now

Exact: a sum is kept as limbs (`limbs.py`), what fits no limb as it is, and the results are those of
`ExactSum`. Groups are equal where Python says so (`groups.py`); a group is shown as the first value
that it was given as and still is equal to, whether or not it has been empty in between.

State:  one row per group that ever was, until the next generation of the mailbox.
Cost:   per flush O(entries) here, and O(touched groups) in Spark.
Source: [dbsp] section 4.2, linear aggregates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa

from optimizer import plan
from reactive.collections.exact import ExactSum
from reactive.collections.zset import Pair, Pairs, Row
from reactive.errors import OffloadError
from reactive.operators.accumulators import AvgAccumulator, CountAccumulator, SumAccumulator
from reactive.operators.plain import LINEAR
from reactive.reference.evaluate import through
from reactive.remote.external import ExternalInput
from reactive.remote.fragments import Fragment
from reactive.remote.remote import Entry
from reactive.runtime.collector import paused
from spark_backend.cluster.mailbox import Mailbox
from spark_backend.cluster.session import Session
from spark_backend.cluster.stream import Frame, Stream
from spark_backend.parts.base_fragment import BaseFragment
from spark_backend.parts.sum_entries import Packed, added_up, pack, tables_of
from spark_backend.parts.sum_tables import (
    KEY,
    Key,
    added,
    ddl,
    folded,
    groups_of,
    is_least,
    schema,
    table_of,
    unpacked,
)
from spark_backend.parts.sums import Held, Sums, row_of, summed
from spark_backend.tables.worker import shipped

_KNOWN: frozenset[type] = frozenset({int, float, bool})


def is_linear(fragment: Fragment) -> bool:
    """Whether a part is an aggregate that needs nothing of its groups except sums."""
    node, _ = _aggregate(fragment)
    return (
        isinstance(node, plan.Aggregate)
        and node.key is not None
        and all(
            isinstance(f.accumulator, CountAccumulator | SumAccumulator | AvgAccumulator)
            for f in node.aggregates
        )
        and not any(f.skip_none for f in node.aggregates)  # which count some of the rows only
    )


def _aggregate(fragment: Fragment) -> tuple[plan.Node, list[plan.Node]]:
    """The node of a part that has state, and those that look at its rows one by one, in order."""
    node, above = fragment.node, list[plan.Node]()
    while isinstance(node, LINEAR):
        above.append(node)
        node = node.input
    return node, above[::-1]


class TotalsRemote(BaseFragment):
    """A `reactive.remote.remote.Remote` for a part that `is_linear`."""

    def __init__(self, session: Session, fragment: Fragment, folder: str, *, stable: bool) -> None:
        super().__init__(session, fragment, stable=stable)
        node, self._above = _aggregate(fragment)
        assert isinstance(node, plan.Aggregate)
        self._node = node
        self._summed = summed(node)
        mailbox = Mailbox(folder, schema(len(self._summed)))
        self._stream = Stream(
            session, mailbox, aggregate=self._totals, output=_as_they_are, fold=folded
        )
        self._groups: int | None = None if self._stream.resumed is not None else 0

    def describe(self) -> str:
        """How the part is kept, in a line."""
        return "Spark, sums by group in the JVM"

    def pack(self, place: int, key: Any, row: Row) -> tuple[int, Packed]:
        """The bucket of a group, and what a row adds to it.

        Raises
        ------
        TypeError: a value has no sum, as in the process.
        OffloadError: the group or a value cannot be kept.
        """
        for at in self._summed:
            if type(row[at]) not in _KNOWN:
                self._check(row[at])
        return pack(row, self._summed, self._codec)

    def apply(
        self,
        number: int,
        entries: Sequence[Entry],
        fed: Sequence[ExternalInput] = (),
        *,
        quiet: bool = False,
    ) -> Pairs:
        """Take entries in once, and say how the groups change.

        Raises
        ------
        OffloadError: Spark is gone, or the values of a group cannot be added to each other; the
            entries are kept.
        """
        given = self._all_fed(number, fed) if fed else None
        if given is not None and not quiet:
            entries, given = [*entries, *self._known(given)], None
        if quiet:
            self._take_in(number, entries, given)
            return ()
        changes = added_up(entries, len(self._summed), self._codec)
        now = self._stream.apply(number, table_of(changes.items(), number, len(self._summed)))
        assert now is not None
        _check_sums(now)
        out = [pair for pairs in self._delta(now, changes, number) for pair in pairs]
        if self._groups is not None:
            self._groups += sum(weight for _, weight in out)
        return list(through(self._above, out)) if self._above else out

    def _take_in(self, number: int, entries: Sequence[Entry], given: Frame | None) -> None:
        """Take many entries in; nobody asks what becomes of their groups."""
        self._groups = None
        with paused():
            table = pa.concat_tables(tables_of(entries, number, len(self._summed), self._codec))
        if given is not None:
            table = given.unionByName(self._session.spark.createDataFrame(table))
        self._stream.apply(number, table, quiet=True)

    def contents(self) -> Iterable[Pair]:
        """The output as of the last `apply`; made in this process, a range of buckets at a time."""
        rows = (pair for table in self._tables() for pair in self._rows(table))
        return through(self._above, rows) if self._above else rows

    def entries(self) -> Iterator[Entry]:
        """What is kept: the sums of each group as one entry."""
        for table in self._tables():
            yield from self._held(table)

    def at(self, bucket: int) -> Iterable[Pair]:
        """The rows of the groups of a bucket."""
        rows = self._rows(self._stream.mailbox.at(bucket, self._stream.applied))
        return list(through(self._above, rows) if self._above else rows)

    def footprint(self) -> tuple[int, int]:
        """Groups, and bytes on disk."""
        mailbox = self._stream.mailbox
        if self._groups is None:
            counted = (folded(table.select(_COUNTED)) for table in self._tables())
            self._groups = sum(table.num_rows for table in counted)
        return self._groups, mailbox.bytes()

    def _tables(self) -> Iterator[pa.Table]:
        return self._stream.mailbox.ranges(self._stream.applied)

    def _check(self, value: Any) -> None:
        """Whether a value can be summed, and kept as it is."""
        ExactSum().add(value, 1)
        self._codec.dumps(value)

    def _all_fed(self, number: int, fed: Sequence[ExternalInput]) -> Frame:
        """The sums of rows that Spark has already, which do not come by here."""
        return reduce(lambda a, b: a.unionByName(b), [self._sums_of(number, f) for f in fed])

    def _sums_of(self, number: int, source: ExternalInput) -> Frame:
        from spark_backend.codec.serialization import serialized_classes

        given = (serialized_classes(), self._summed, number, self._is_kept)
        run = shipped(self._session.paths, "spark_backend.parts.sum_entries", "sums", *given)
        return self._fed(number, source).mapInArrow(run, ddl(len(self._summed)))

    def _known(self, sums: Frame) -> Iterator[Entry]:
        """Sums that are on Spark as entries."""
        table = sums.toArrow().select(self._stream.mailbox.schema.names)
        return self._held(table.cast(self._stream.mailbox.schema))

    def _held(self, table: pa.Table) -> Iterator[Entry]:
        for (bucket, group), sums in self._sums(table):
            held = Held(sums.rows, tuple(sums.amounts), tuple(sums.odd.items()))
            yield 0, bucket, (group, sums.shown, held), 1

    def _delta(self, now: pa.Table, changes: dict[Key, Sums], number: int) -> Iterator[list[Pair]]:
        """How the row of each touched group changes."""
        for key, sums, odd in groups_of(now, len(self._summed)):
            earlier = unpacked(o["odd"] for o in odd if o["version"] < number)
            before = sums.less(changes[key], earlier)
            sums.odd = unpacked(o["odd"] for o in odd)
            old, new = self._shown(key[1], before), self._shown(key[1], sums)
            if old != new:
                yield [(row, weight) for row, weight in ((old, -1), (new, 1)) if row is not None]

    def _rows(self, table: pa.Table) -> Iterator[Pair]:
        for (_, group), sums in self._sums(table):
            row = self._shown(group, sums)
            if row is not None:
                yield row, 1

    def _sums(self, table: pa.Table) -> Iterator[tuple[Key, Sums]]:
        for key, sums, odd in groups_of(folded(table), len(self._summed)):
            if odd is not None:
                sums.odd = unpacked([odd])
            yield key, sums

    def _shown(self, group: bytes, sums: Sums) -> Row | None:
        try:
            return row_of(self._node, group, sums)
        except Exception as error:  # what in the process would have refused the transaction
            raise OffloadError(
                f"an aggregate of a query raised: {type(error).__name__}: {error}\n"
                "  its views stay as they were until it is recalled"
            ) from error

    def _totals(self, changes: Frame) -> Frame:
        """What Spark keeps of each group."""
        from pyspark.sql import functions

        odd = functions.when(
            functions.isnotnull("odd"), functions.struct("version", "odd")
        )  # null where there is nothing odd, which `collect_list` leaves out
        return changes.groupBy(*KEY).agg(
            functions.first("shown").alias("shown"),
            functions.collect_list(odd).alias("odd"),
            *(
                (functions.min if is_least(name) else functions.try_sum)(name).alias(name)
                for name in added(len(self._summed))
            ),
        )


_COUNTED = [*KEY, "version", "shown", "odd", "rows"]


def _check_sums(now: pa.Table) -> None:
    if any(column.null_count for name, column in _named(now) if name.startswith("amount")):
        raise OffloadError("a sum on Spark is beyond 10**26\n  its views have to be recalled")


def _named(table: pa.Table) -> Iterator[tuple[str, Any]]:
    return zip(table.column_names, table.columns, strict=True)


def _as_they_are(groups: Frame, number: int) -> Frame:
    return groups
