"""A fragment of a plan on Spark, whatever its depth: state tables, and one job per flush.

    entries --columns--> deltas of the inputs --steps--> what is added to each table --write--> done
                                                    `--> the delta of the output, as a table too

The output is a table like the others: reading it evaluates nothing. A flush that meets values that
columns cannot add up is done again with care, and so are all later ones.

State:  on disk; in the driver, what has not been sent.
Cost:   per flush one job; O(rows that changed) here.
Source: [mrql] state that is partitioned as its changes are; [dbsp] the chain rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from optimizer import plan
from optimizer.plans.fingerprint import fingerprint
from optimizer.plans.properties import is_set
from reactive.collections.zset import Pair, Pairs, Row, consolidate
from reactive.errors import OffloadError, TakenIn
from reactive.remote.external import ExternalInput
from reactive.remote.fragments import Fragment
from reactive.remote.remote import Entry
from spark_backend.cluster.session import Session
from spark_backend.codec.arrow import from_arrow, to_arrow
from spark_backend.codec.fitting import fitting
from spark_backend.codec.schema import Typed, Untyped
from spark_backend.codec.values import Inexact, Value, as_type, literal
from spark_backend.incremental.compile import Compiler, Maker
from spark_backend.incremental.inputs import inputs_of
from spark_backend.incremental.keys import bound
from spark_backend.incremental.on_tables import OnTables, changed
from spark_backend.incremental.output import Output, TableReader
from spark_backend.incremental.sets import ByWeight, hashed
from spark_backend.incremental.split import split_of
from spark_backend.incremental.steps import MOST_NARROW, ODD_VALUE, TOO_FEW, Flush, schema_of
from spark_backend.incremental.totals import Totals
from spark_backend.sinks.rows import has_columns
from spark_backend.state.tables import StateTables, TableSpec, added_up, united
from spark_backend.state.whole import whole
from spark_backend.tables.chain import Chain, Weighted, raised
from spark_backend.tables.frames import as_columns

OUTPUT = "output"


class StateRemote(OnTables):
    """A `reactive.remote.remote.Remote` over state tables.

    Parameters
    ----------
    fragment: of the plan; it `can_be_columns`.
    folder: of its state; one that an earlier process left is gone on with, if it is of this plan.
    makers: of steps of other nodes than those of `Compiler`.

    Raises
    ------
    NotColumns: it cannot be done in columns; nothing has been written.
    """

    def __init__(
        self,
        session: Session,
        fragment: Fragment,
        folder: str,
        *,
        stable: bool,
        makers: tuple[Maker, ...] = (),
    ) -> None:
        super().__init__(session, fragment, stable=stable)
        self._makers = makers
        self._spark: Any = None
        self._specs: dict[str, TableSpec] = {}
        self._inputs = inputs_of(session, fragment)
        self._compile()
        plan_of = fingerprint(fragment.node, fragment.inputs, self._inputs)
        self._keep_in(StateTables(session, folder, plan_of, self._specs), folder)
        self._fits = [fitting(kept) for kept in self._inputs]
        self._careful = self._looks_through = False

    def _compile(self) -> None:
        """Make the steps, whose columns are of one JVM."""
        if self._spark is self._session.spark:
            return
        self._spark = self._session.spark
        compiler = Compiler(self._session, self._fragment, self._inputs, self._makers)
        self._top = compiler.step(self._fragment.node)
        self._steps, self._kept = compiler.steps, self._top.kept
        self._output = _rows(OUTPUT, self._kept, by_group=self._fragment.is_by_group)
        inputs = (_rows(f"input{place}", kept) for place, kept in enumerate(self._inputs))
        self._specs.update(compiler.tables)
        self._specs.update((spec.name, spec) for spec in (self._output, *inputs))

    def bucket(self, key: Any) -> Any:
        """The key itself."""
        return key

    def pack(self, place: int, key: Any, row: Row) -> tuple[int, Row]:
        """The row as it is, if columns hold it.

        Raises
        ------
        OffloadError: they do not.
        """
        if not self._fits[place](row):
            to_arrow(self._inputs[place], [row])
        return 0, row

    def stage(self, number: int, entries: Sequence[Entry]) -> None:
        """Write entries to a file, from which the flush of a number reads them.

        Raises
        ------
        OffloadError: columns do not hold one of them.
        """
        if entries and number > self.applied:
            place, (rows, weights) = entries[0][0], _columns(entries)
            self._staged.add(number, place, self._table(place, rows, weights))

    def contents(self) -> Iterable[Pair]:
        """The output as of the last `apply`, fetched; from its files where Spark cannot."""
        found = self._if_spark_can(lambda: self._fetched(self.current()))
        return self._in_files() if found is None else found

    def _in_files(self) -> Pairs:
        """The output, added up here."""
        return consolidate(_pairs(self._kept, self._tables.all_rows(self._output)))

    def at(self, bucket: Any) -> Iterable[Pair]:
        """The rows that begin with a key, or are it: of the base, only its bucket is read."""
        first = self._fragment.is_by_group
        found = self._if_spark_can(lambda: self._at(bucket, first=first))
        if found is None:
            return [(r, n) for r, n in self._in_files() if (r[0] if first else r) == bucket]
        return found

    def _at(self, bucket: Any, *, first: bool) -> Iterable[Pair]:
        self._compile()
        row = _looked_up(self._kept, by_group=first)
        wanted = _literal(bucket, row.of)
        if wanted is None:
            return [(r, n) for r, n in self.contents() if (r[0] if first else r) == bucket]
        rows = self._tables.near(self._output, [self._hash(Value(wanted, row.of))])
        found = rows.filter(row.column.eqNullSafe(wanted))
        return list(self._fetched(added_up(self._output, found)))

    def _hash(self, key: Value) -> int:
        """The hash of a key, which Spark works out without a job."""
        found = self._spark.sql("select 1").select(hashed(key).alias("hash")).first()
        return int(found["hash"])

    def current(self) -> DataFrame | None:
        """The output on Spark, each row once with its weight."""
        self._compile()
        return whole(self._tables, self._output, is_set=self._is_set, is_net=self._is_net)

    @property
    def is_followable(self) -> bool:
        """Whether files hold the rows of the output as the columns that they are."""
        return has_columns(self._kept)

    def follow(self) -> TableReader:
        """A reader of the output, as of the last `apply`."""
        self._compile()
        made = self._session, self._tables, self._output, self._kept
        return TableReader(
            Output(*made, self._is_set, self._is_net, is_over=lambda: self.is_closed)
        )

    @property
    def _is_net(self) -> bool:
        """Whether the first flush has added up what it has given."""
        return isinstance(self._top, Totals | ByWeight)

    @property
    def _is_set(self) -> bool:
        """Whether no row of the output occurs twice."""
        return is_set(self._fragment.node)

    def told(self, number: int) -> Pairs:
        """How the output changed in the last flush, fetched."""
        written = self._tables.written(number, self._output)
        return consolidate(_pairs(self._kept, written)) if written is not None else ()

    def size(self) -> int:
        """How many rows the output has, copies counted."""
        found = self._if_spark_can(self._size)
        return sum(weight for _, weight in self._in_files()) if found is None else found

    def _size(self) -> int:
        self._compile()
        parts = self._tables.parts(self._output)
        if not parts:
            return 0
        weights = united([part.select("weight") for part in parts])
        found = weights.agg(F.sum("weight")).first()
        return int((found and found[0]) or 0)

    def to_spark(self, row_type: Any = None) -> DataFrame:
        """All rows, a column per field; nothing of the query is evaluated."""
        found = self.current()
        if found is None:
            found = self._session.spark.createDataFrame([], schema_of(self._kept))
        return as_columns(Weighted(found, self._kept), once=self._is_set)

    def entries(self) -> Iterator[Entry]:
        """What came from the process, where a later one is to go on."""
        for place, kept in enumerate(self._inputs):
            rows = whole(self._tables, self._specs[f"input{place}"])
            if rows is not None:
                pairs = _pairs(kept, rows.toArrow())
                yield from ((place, 0, row, weight) for row, weight in pairs)

    def footprint(self) -> tuple[int, int]:
        """Rows in files, and their bytes."""
        manifest = self._tables.manifest
        rows = sum(sum(manifest.rows(name)) for name in manifest.tables)
        return rows, self._tables.bytes()

    def describe(self) -> str:
        """Where and how it is kept, and what runs where."""
        odd = ["values without limbs: Python workers"] if self._careful else []
        split = split_of(self._fragment.node).lines()
        return "; ".join(["Spark, state tables, one job per flush", *self._steps, *odd, *split])

    def _change_of(self, number: int) -> Pairs:
        return self.told(number)

    def _goes_on(self, error: Exception) -> bool:
        """Whether a flush is to be done again, and now with care."""
        told = raised(error)
        if told is not None:
            raise TakenIn(
                f"{told}\n  its views stay as they were until it is recalled, or the row no longer"
                " makes it raise"
            ) from error
        is_odd, is_short = ODD_VALUE in str(error), TOO_FEW in str(error)
        self._careful = self._careful or is_odd
        self._looks_through = self._looks_through or is_short
        return is_odd or is_short

    def _compact(self) -> None:
        self._compile()
        super()._compact()

    def _flush(self, number: int, entries: Sequence[Entry], fed: Sequence[ExternalInput]) -> None:
        fed = self._not_taken_in(fed)
        rows = self._staged.rows + changed(entries, fed)
        flush = Flush(
            self._spark,
            self._tables,
            self._given(number, entries, fed),
            rows,
            self._careful,
            self._session.paths,
            looks_through=self._looks_through,
            local=self._local(entries, fed),
            is_narrow=rows <= MOST_NARROW and self._tables.number is not None,
        )
        self._write(number, flush, {_version_of(source.place): source.upto for source in fed})

    def _not_taken_in(self, fed: Sequence[ExternalInput]) -> list[ExternalInput]:
        """What is fed, without the versions of tables that an earlier process has taken in."""
        known = self._tables.manifest.tokens
        later = [replace(f, after=max(f.after, known.get(_version_of(f.place), -1))) for f in fed]
        return [source for source in later if source.upto > source.after]

    def _write(self, number: int, flush: Flush, versions: dict[str, int]) -> None:
        found = flush.delta(self._top)
        if found is not None:
            flush.add(self._output, found)
        for place, frame in flush.given.items() if self._is_kept else ():
            if _version_of(place) not in versions:
                flush.add(self._specs[f"input{place}"], frame)
        tasks = 1 if flush.is_narrow else None
        self._tables.flush(number, flush.added, rows=flush.rows, tokens=versions, tasks=tasks)
        self._looks_through = False

    def _local(self, entries: Sequence[Entry], fed: Sequence[ExternalInput]) -> frozenset[int]:
        """The inputs whose rows are in the query itself, not in files that it reads."""
        if self._staged.rows:
            return frozenset()
        own, others = {entry[0] for entry in entries}, {source.place for source in fed}
        some = {source.place for source in fed if self._is_local(source)}
        return frozenset((own - others) | (some - own))

    def _is_local(self, source: ExternalInput) -> bool:
        rows: Any = source.rows
        is_here = rows.frames.is_local(source.after, source.upto) and not self._owed.is_late
        return is_here and all(isinstance(n, plan.Where | plan.Select) for n in source.chain)

    def _given(
        self, number: int, entries: Sequence[Entry], fed: Sequence[ExternalInput]
    ) -> dict[int, DataFrame]:
        schemas = [schema_of(kept) for kept in self._inputs]
        found = self._staged.frames(self._session.spark, number, schemas)
        by_place: dict[int, list[Entry]] = {}
        for entry in entries:
            by_place.setdefault(entry[0], []).append(entry)
        for place, of in by_place.items():
            frame = self._frame(place, *_columns(of))
            found[place] = united([found[place], frame]) if place in found else frame
        for source in fed:
            found[source.place] = self._fed(source)
        return found

    def _frame(self, place: int, rows: list[Row], weights: list[int]) -> DataFrame:
        schema: Any = schema_of(self._inputs[place])
        table = self._table(place, rows, weights)
        made: DataFrame = self._session.spark.createDataFrame(table, schema)
        return made

    def _table(self, place: int, rows: list[Row], weights: list[int]) -> pa.Table:
        array = to_arrow(self._inputs[place], rows)
        return pa.table({"row": array, "weight": pa.array(weights, pa.int64())})

    def _fed(self, source: ExternalInput) -> DataFrame:
        chain = Chain(self._session.paths, is_typed=True)
        return chain.run(source.chain, self._since(source)).frame

    def _fetched(self, rows: DataFrame | None) -> list[Pair]:
        return [] if rows is None else _pairs(self._kept, rows.toArrow())


def _version_of(place: int) -> str:
    """The token of an input that is fed: the version of its table that is taken in."""
    return f"input{place}"


def _columns(entries: Sequence[Entry]) -> tuple[list[Row], list[int]]:
    return [entry[2] for entry in entries], [entry[3] for entry in entries]


def _rows(name: str, kept: Typed, *, by_group: bool = False) -> TableSpec:
    """A table of rows with weights, in buckets by what they are looked up by."""

    def bucket() -> Column:
        return hashed(_looked_up(kept, by_group=by_group))

    return TableSpec(name, schema_of(kept), ("row",), ("weight",), bucket)


def _looked_up(kept: Typed, *, by_group: bool) -> Value:
    """What of the rows of the output a reader gives: their group, or all of them."""
    row = Value(F.col("row"), kept)
    return bound(row, 2)[0] if by_group else row


def _pairs(kept: Typed, table: pa.Table) -> list[Pair]:
    if not table.num_rows:
        return []
    rows = from_arrow(kept, table.column("row").combine_chunks())
    return list(zip(rows, table.column("weight").to_pylist(), strict=True))


def _literal(key: Any, of: Typed) -> Any:
    """A key as a column that is equal to those of a type only where Python says so; or None."""
    try:
        to_arrow(of, [key])
        return as_type(literal(key), of)
    except (OffloadError, Inexact, Untyped):
        return None
