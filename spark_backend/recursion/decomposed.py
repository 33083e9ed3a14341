"""A fixpoint by partitions: those that a change can touch are brought to their end in one job.

    inputs' deltas --ways, over the rows as they are--> rows that they derive, or no longer do
                   --> the partitions that these are of, which are touched
    touched: rows as they were, seeds and all of the sides --workers--> after - before

A way to derive rows is a delta query like any other, of which the recursive relation does not
change; what it derives tells what is touched.

Sound:  a partition stays as it is if nothing that it has was derived with a row that goes, and
        what comes derives nothing that it has not. Before, the partition is closed under what
        comes, and all its derivations are still there.

State:  the rows by partition, and by what they are joined by; seeds by partition; sides.
Cost:   per flush one job; O(rows that the change is joined with + sides per task + derivations in
        the touched partitions).
Source: decomposable plans, `optimizer/plans/decomposed`; [dbsp] delta queries.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from reactive.engine.reference.bags import Bag
from spark_backend.codec.columns import value_of
from spark_backend.codec.schema import Plain, Record, Typed
from spark_backend.codec.values import Value, field_of, spark_type
from spark_backend.direct.flush import DirectFlush
from spark_backend.recursion.direct_partitions import DirectPartitions
from spark_backend.recursion.parts import Parts
from spark_backend.recursion.worker import BEFORE, SEED, SIDE, Task
from spark_backend.state.tables import TableSpec, united
from spark_backend.steps.join import Arranged
from spark_backend.steps.near import in_bucket
from spark_backend.steps.sets import hashed
from spark_backend.steps.step import Flush, Step, schema_of
from spark_backend.tables.worker import shipped


class ByPartition:
    """A fixpoint that is many small ones.

    Parameters
    ----------
    names: of the tables of its rows and of its seeds.
    node: the fixpoint and its column, as bytes for workers.
    classes: those of the script that is run, for workers.
    """

    def __init__(
        self, parts: Parts, names: tuple[str, str], node: bytes, classes: dict[str, bytes]
    ) -> None:
        self._parts, self.kept = parts, parts.own.kept
        schema = schema_of(self.kept)
        self.specs = tuple(
            TableSpec(name, schema, ("row",), ("weight",), self._hash) for name in names
        )
        self._rows, self._seeds = self.specs
        sides = tuple(side.source.kept for side in parts.sides)
        task = Task(node, self.kept, sides)
        self._task, self._classes = pickle.dumps(task), classes
        self._direct = DirectPartitions(parts, self.specs, task, self._key_type())

    def delta(self, flush: Flush) -> DataFrame | None:
        self._parts.own.change = None
        seeds = self._typed(flush, self._parts.seeds)
        ways = self._typed(flush, self._parts.ways)
        if seeds is not None:
            flush.add(self._seeds, seeds)
        derived = [frame for frame in (seeds, ways) if frame is not None]
        if not derived:
            return None
        keys = self._touched(flush, united(derived))
        found = self._brought_to_end(flush, keys, seeds)
        flush.add(self._rows, found)
        self._arrange(flush, found)
        return found

    def direct(self, flush: DirectFlush) -> Bag:
        return self._direct.delta(flush)

    def _typed(self, flush: Flush, steps: Sequence[Step]) -> DataFrame | None:
        """What some steps derive, as rows of the relation."""
        found = []
        for step in steps:
            frame = flush.delta(step)
            if frame is not None:
                row = _fitted(Value(F.col("row"), step.kept), self.kept)
                found.append(frame.select(row.alias("row"), "weight"))
        return united(found) if found else None

    def _touched(self, flush: Flush, derived: DataFrame) -> DataFrame:
        """The partitions of rows that may go, or that come: `key`, its hash `h`, and the bucket of
        partitions `p`."""
        rows = derived.filter("row is not null")
        lost = rows.filter("weight < 0").select("row")
        coming = rows.filter("weight > 0").select("row").distinct()
        new = self._absent(flush, coming)
        keys = united([lost, new]).select(self._key().alias("key")).distinct()
        bucket = F.pmod(F.col("h"), F.lit(flush.tables.tasks())).cast("int")
        return keys.withColumn("h", hashed(Value(F.col("key"), self._key_type()))).withColumn(
            "p", bucket
        )

    def _absent(self, flush: Flush, rows: DataFrame) -> DataFrame:
        """Those of some different rows that the relation does not have."""
        wanted = flush.small(rows.withColumn("h", self._hash()).filter("h is not null"))
        zero = F.lit(0).cast("long")
        counts = [rows.select("row", zero.alias("weight"), F.lit(1).alias("is"))]
        for part in flush.parts(self._rows):
            on = part["row"].eqNullSafe(wanted["row"])
            there = part.join(wanted, _within(flush, self._rows, part, on), "left_semi")
            counts.append(there.select("row", "weight", F.lit(0).alias("is")))
        summed = (
            united(counts).groupBy("row").agg(F.sum("weight").alias("n"), F.max("is").alias("is"))
        )
        return summed.filter("is = 1 and n <= 0").select("row")

    def _brought_to_end(self, flush: Flush, keys: DataFrame, seeds: DataFrame | None) -> DataFrame:
        """How the rows of touched partitions change."""
        tasks = flush.tables.tasks()
        frames = [self._of_keys(flush, keys, self._rows, None, BEFORE)]
        frames.append(self._of_keys(flush, keys, self._seeds, seeds, SEED))
        buckets = F.broadcast(keys.select("p").distinct())
        for place, side in enumerate(self._parts.sides):
            frames.append(self._whole(flush, side, buckets, SIDE + place))
        there = [frame for frame in frames if frame is not None]
        given = _by_bucket(united(there), tasks)
        run = shipped(
            flush.paths, "spark_backend.recursion.worker", "changes", self._task, self._classes
        )
        changes = given.mapInArrow(run, schema_of(self.kept))
        # An exchange, so that all tables that it is written to share what the workers made.
        return changes.repartition(tasks, "row")

    def _of_keys(
        self, flush: Flush, keys: DataFrame, spec: TableSpec, change: DataFrame | None, kind: int
    ) -> DataFrame | None:
        """The rows of a table that are of touched partitions, with what is added to it."""
        wanted = flush.small(keys.filter("h is not null"))
        frames = [] if change is None else [change]
        frames += flush.parts(spec)
        found = []
        for frame in frames:
            on = self._key(frame["row"]).eqNullSafe(wanted["key"])
            joined = frame.join(wanted, _within(flush, spec, frame, on), "inner")
            found.append(joined.select(*self._columns(kind, joined["row"])))
        return united(found) if found else None

    def _whole(
        self, flush: Flush, side: Arranged, buckets: DataFrame, kind: int
    ) -> DataFrame | None:
        """All rows of a side after the flush, for each bucket that has something to do."""
        change = flush.delta(side.source)
        frames = [*flush.parts(side.spec), *([] if change is None else [change])]
        found = [frame.select("row", "weight").crossJoin(buckets) for frame in frames]
        typed = [frame.select(*self._columns(kind, frame["row"])) for frame in found]
        return united(typed) if typed else None

    def _columns(self, kind: int, row: Column) -> list[Column]:
        """What workers are given of a row of a kind."""
        rows = {BEFORE: ("row", self.kept)}
        for place, side in enumerate(self._parts.sides):
            rows[SIDE + place] = (f"side{place}", side.source.kept)
        place = BEFORE if kind == SEED else kind
        columns = [
            (row if number == place else F.lit(None).cast(spark_type(kept))).alias(name)
            for number, (name, kept) in rows.items()
        ]
        return [F.col("p"), F.lit(kind).alias("kind"), F.col("weight"), *columns]

    def _arrange(self, flush: Flush, change: DataFrame) -> None:
        """Keep the rows by the keys of the joins that read them."""
        self._parts.own.change = change
        later = replace(flush, added={}, _made={})
        for premise in self._parts.premises:
            premise.change(later, "x")
        flush.added.update(later.added)
        self._parts.own.change = None

    def _key(self, row: Column | None = None) -> Column:
        return self._key_value(row).column

    def _key_type(self) -> Typed:
        return self._key_value(None).of

    def _key_value(self, row: Column | None) -> Value:
        of = Value(F.col("row") if row is None else row, self.kept)
        return value_of(self._parts.column, [of])

    def _hash(self) -> Column:
        return hashed(self._key_value(None))


def _within(flush: Flush, spec: TableSpec, part: DataFrame, on: Column) -> Column:
    """The condition of a join with keys, and that of the bucket, by which a base is pruned."""
    bucket = in_bucket(flush, spec, part, "h")
    return on if bucket is None else on & bucket


def _by_bucket(rows: DataFrame, tasks: int) -> DataFrame:
    """The rows of a bucket in one task; of each bucket in one of its own, where Spark can do so."""
    if hasattr(rows, "repartitionById"):
        spread: DataFrame = rows.repartitionById(tasks, F.col("p"))
        return spread
    return rows.repartition(tasks, "p")


def _fitted(value: Value, of: Typed) -> Column:
    """A row as one of the relation; a number that its column does not hold is null there, and no
    row that there is has it."""
    if isinstance(of, Record) and isinstance(value.of, Record):
        fields = [_fitted(field_of(value, n), part) for n, part in enumerate(of.fields)]
        named = [f.alias(name) for f, name in zip(fields, of.names, strict=True)]
        return F.when(value.column.isNotNull(), F.struct(*named))
    if isinstance(value.of, Plain) and spark_type(value.of) != spark_type(of):
        return value.column.try_cast(spark_type(of))
    return value.column
