"""Recursions by partitions, and in one Python worker.

`PartitionRecursion` recomputes the partitions of a fixpoint that a change can touch, in one job:

    deltas of inputs --rules, over the current rows--> rows that gain or lose derivations
                     --> their partitions, which are touched
    touched: the old rows, the seeds and all rows of the sides --workers--> after - before

A rule is a delta query like any other, over an unchanged recursive relation; its result
tells the touched partitions.

Sound:  a partition does not change if none of its rows was derived from a deleted row, and the
        inserted rows derive only rows that it has. It was closed under derivation before, and all
        of its derivations still exist.
State:  the rows by partition, and by the keys of joins; seeds by partition; sides.
Cost:   per flush one job; O(rows joined with the change + sides per task + derivations in the
        touched partitions).
Source: decomposable plans, `optimizer/plans/closures`; [dbsp] delta queries.

`DirectPartitions` does the same in a flush of this process:

    deleted rows of a side   --rules, over the current rows--> rows that lose a derivation
    inserted rows of a side  --rules-->                        rows that may be new
    their partitions: the seeds after, all of the sides --this engine--> after - before

Deletions and insertions are processed separately: a row that loses one derivation and gains another
has the same number of them, and may still be unfounded.

Sound:  as `PartitionRecursion`. Rules are joins and linear nodes, so that rows of one sign derive
        rows of one sign.
State:  only the tables.
Cost:   O(rows of the sides + derivations in the touched partitions).

`WorkerRecursion` recomputes a recursion when its inputs change:

    sides before, and their deltas -+-> one task: this engine, to the end --> after - before
    rows before                    -+

A flush is one job for any number of rounds, and no rows pass through the driver. Rounds on Spark
would be a job each, and most loops have no small changes: one edge moves the ranks of all pages.
Rounds of joins and sums of numbers run over columns (`columnar`), in a tenth of the time. A flush
of few rows runs in this process, without a job.

Sound:  the recursion is evaluated as in the process. With a tolerance, rounds are exact, and the
        shown values differ from them by less than the tolerance.
State:  the rows of each relation, and of each side.
Cost:   O(rows of the sides + rounds from scratch), in one worker, which has to hold them.
Source: [mrql] repeat.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from optimizer.expr import Lifted
from reactive.engine.codegen.functions import callable_of
from reactive.engine.collections.zset import Row, canonical
from reactive.engine.reference.bags import Bag
from spark_backend.codec.arrow import pairs_of
from spark_backend.codec.columns import value_of
from spark_backend.codec.hashing import flattened_values, leaf_types
from spark_backend.codec.schema import Plain, Record, Typed
from spark_backend.codec.values import Value, field_of, spark_type
from spark_backend.direct.flush import NOTHING, DirectFlush, Lookup, TooMany, add_bags, key_fields
from spark_backend.recursion.loop_worker import LoopTask, run_by_columns, run_loop
from spark_backend.recursion.worker import BEFORE, SEED, SIDE, RecursionTask, run_partitions
from spark_backend.state.one_job import TableSpec
from spark_backend.state.tables import union_frames
from spark_backend.steps.join import ArrangedRows
from spark_backend.steps.step import Flush, Step, bucket_condition, hash_column, schema_of
from spark_backend.tables.stateless import worker_function


class PartitionRecursion:
    """A fixpoint whose partitions, by the value of one column, are separate small fixpoints.

    Parameters
    ----------
    names: the names of the tables of its rows and of its seeds.
    node: the fixpoint and its column, as bytes for workers.
    classes: the classes of the script that is run, for workers.
    """

    def __init__(
        self, parts: RecursionParts, names: tuple[str, str], node: bytes, classes: dict[str, bytes]
    ) -> None:
        self._parts, self.kept = parts, parts.own.kept
        schema = schema_of(self.kept)
        self.specs = tuple(
            TableSpec(name, schema, ("row",), ("weight",), self._hash) for name in names
        )
        self._rows, self._seeds = self.specs
        sides = tuple(side.source.kept for side in parts.sides)
        task = RecursionTask(node, self.kept, sides)
        self._task, self._classes = pickle.dumps(task), classes
        self._direct = DirectPartitions(parts, self.specs, task, self._key_type())

    def delta(self, flush: Flush) -> DataFrame | None:
        """Return how the rows change, from the partitions that the input changes.

        Return None if it changes none.
        """
        self._parts.own.change = None
        seeds = self._derive(flush, self._parts.seeds)
        ways = self._derive(flush, self._parts.ways)
        if seeds is not None:
            flush.add(self._seeds, seeds)
        derived = [frame for frame in (seeds, ways) if frame is not None]
        if not derived:
            return None
        keys = self._touched_partitions(flush, union_frames(derived))
        found = self._recompute(flush, keys, seeds)
        flush.add(self._rows, found)
        self._arrange(flush, found)
        return found

    def direct(self, flush: DirectFlush) -> Bag:
        return self._direct.delta(flush)

    def _derive(self, flush: Flush, steps: Sequence[Step]) -> DataFrame | None:
        """Return the rows that some steps derive, as rows of the relation.

        Return None if they derive none.
        """
        found = []
        for step in steps:
            frame = flush.delta(step)
            if frame is not None:
                row = _fit_row(Value(F.col("row"), step.kept), self.kept)
                found.append(frame.select(row.alias("row"), "weight"))
        return union_frames(found) if found else None

    def _touched_partitions(self, flush: Flush, derived: DataFrame) -> DataFrame:
        """Return the partitions of rows that may be deleted or inserted: `key`, its hash `h`, and
        the bucket of partitions `p`."""
        rows = derived.filter("row is not null")
        lost = rows.filter("weight < 0").select("row")
        coming = rows.filter("weight > 0").select("row").distinct()
        new = self._missing_rows(flush, coming)
        keys = union_frames([lost, new]).select(self._key().alias("key")).distinct()
        bucket = F.pmod(F.col("h"), F.lit(flush.tables.tasks())).cast("int")
        return keys.withColumn("h", hash_column(Value(F.col("key"), self._key_type()))).withColumn(
            "p", bucket
        )

    def _missing_rows(self, flush: Flush, rows: DataFrame) -> DataFrame:
        """Return those rows of `rows`, which are distinct, that the relation does not have."""
        wanted = flush.small(rows.withColumn("h", self._hash()).filter("h is not null"))
        zero = F.lit(0).cast("long")
        counts = [rows.select("row", zero.alias("weight"), F.lit(1).alias("is"))]
        for part in flush.parts(self._rows):
            on = part["row"].eqNullSafe(wanted["row"])
            there = part.join(wanted, _within_bucket(flush, self._rows, part, on), "left_semi")
            counts.append(there.select("row", "weight", F.lit(0).alias("is")))
        summed = (
            union_frames(counts)
            .groupBy("row")
            .agg(F.sum("weight").alias("n"), F.max("is").alias("is"))
        )
        return summed.filter("is = 1 and n <= 0").select("row")

    def _recompute(self, flush: Flush, keys: DataFrame, seeds: DataFrame | None) -> DataFrame:
        """Return how the rows of touched partitions change."""
        tasks = flush.tables.tasks()
        frames = [self._rows_of_keys(flush, keys, self._rows, None, BEFORE)]
        frames.append(self._rows_of_keys(flush, keys, self._seeds, seeds, SEED))
        buckets = F.broadcast(keys.select("p").distinct())
        for place, side in enumerate(self._parts.sides):
            frames.append(self._side_rows(flush, side, buckets, SIDE + place))
        there = [frame for frame in frames if frame is not None]
        given = _spread_buckets(union_frames(there), tasks)
        run = worker_function(
            flush.paths,
            "spark_backend.recursion.worker",
            "partition_changes",
            self._task,
            self._classes,
        )
        changes = given.mapInArrow(run, schema_of(self.kept))
        # An exchange, so that all written tables share the result of the workers.
        return changes.repartition(tasks, "row")

    def _rows_of_keys(
        self, flush: Flush, keys: DataFrame, spec: TableSpec, change: DataFrame | None, kind: int
    ) -> DataFrame | None:
        """Return the rows of touched partitions in a table, with the rows added to it.

        Return None if the table and the change are empty.
        """
        wanted = flush.small(keys.filter("h is not null"))
        frames = [] if change is None else [change]
        frames += flush.parts(spec)
        found = []
        for frame in frames:
            on = self._key(frame["row"]).eqNullSafe(wanted["key"])
            joined = frame.join(wanted, _within_bucket(flush, spec, frame, on), "inner")
            found.append(joined.select(*self._columns(kind, joined["row"])))
        return union_frames(found) if found else None

    def _side_rows(
        self, flush: Flush, side: ArrangedRows, buckets: DataFrame, kind: int
    ) -> DataFrame | None:
        """Return all rows of a side after the flush, for each bucket with touched partitions.

        Return None if the side is empty.
        """
        change = flush.delta(side.source)
        frames = [*flush.parts(side.spec), *([] if change is None else [change])]
        found = [frame.select("row", "weight").crossJoin(buckets) for frame in frames]
        typed = [frame.select(*self._columns(kind, frame["row"])) for frame in found]
        return union_frames(typed) if typed else None

    def _columns(self, kind: int, row: Column) -> list[Column]:
        """Return the columns that workers receive for a row of a kind."""
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
        """Add the changed rows of the relation to the flush: to the table of each key by which a
        join reads the relation."""
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
        """Return the partition of a row; of the column `row` by default."""
        of = Value(F.col("row") if row is None else row, self.kept)
        return value_of(self._parts.column, [of])

    def _hash(self) -> Column:
        return hash_column(self._key_value(None))


def _within_bucket(flush: Flush, spec: TableSpec, part: DataFrame, on: Column) -> Column:
    """Return the condition `on` of a join with keys.

    In a base, it also compares the bucket, so that Spark prunes the other buckets.
    """
    bucket = bucket_condition(flush, spec, part, "h")
    return on if bucket is None else on & bucket


def _spread_buckets(rows: DataFrame, tasks: int) -> DataFrame:
    """Put the rows of a bucket into one task, and each bucket into its own task if Spark can do
    so."""
    if hasattr(rows, "repartitionById"):
        spread: DataFrame = rows.repartitionById(tasks, F.col("p"))
        return spread
    return rows.repartition(tasks, "p")


def _fit_row(value: Value, of: Typed) -> Column:
    """Convert a row to the type of the relation; a number that its column cannot store becomes
    null, and no existing row has it."""
    if isinstance(of, Record) and isinstance(value.of, Record):
        fields = [_fit_row(field_of(value, n), part) for n, part in enumerate(of.fields)]
        named = [f.alias(name) for f, name in zip(fields, of.names, strict=True)]
        return F.when(value.column.isNotNull(), F.struct(*named))
    if isinstance(value.of, Plain) and spark_type(value.of) != spark_type(of):
        return value.column.try_cast(spark_type(of))
    return value.column


MOST_COLUMNS = 2_000_000
"""The most rows of a loop that runs over columns in this process."""


class Relations(Step, Protocol):
    """All relations of a recursion; their delta is one frame."""

    relations: tuple[Typed, ...]

    def direct_changes(self, flush: DirectFlush) -> list[Bag]:
        """Return how each relation changes, in a flush of this process."""
        ...

    def rows(self, found: DataFrame, place: int) -> DataFrame:
        """Return how the relation at `place` changes, from the result `found` of `delta`."""
        ...


class Relation:
    """One of the relations of a recursion."""

    def __init__(self, of: Relations, place: int) -> None:
        self.of, self.kept, self._place = of, of.relations[place], place

    def relation_at(self, place: int) -> Relation:
        """Return the relation at `place` of the same recursion."""
        return Relation(self.of, place)

    def delta(self, flush: Flush) -> DataFrame | None:
        """Return how the relation changes; None if the recursion does not change."""
        found = flush.delta(self.of)
        return None if found is None else self.of.rows(found, self._place)

    def direct(self, flush: DirectFlush) -> Bag:
        return flush.once(self.of, self.of.direct_changes)[self._place]


class WorkerRecursion:
    """All relations of a recursion.

    Parameters
    ----------
    relations: the types of their rows.
    names: the names of the tables of their rows, and of the rows of the sides.
    node: the recursion over its sides, as bytes for workers.
    classes: the classes of the script that is run, for workers.
    """

    def __init__(
        self,
        relations: tuple[Typed, ...],
        sides: tuple[Step, ...],
        names: Sequence[str],
        node: bytes,
        classes: dict[str, bytes],
    ) -> None:
        self.relations, self._sides = relations, sides
        self.kept = relations[0]
        self._kinds = (*relations, *(side.kept for side in sides))
        self.specs = tuple(map(_relation_table, names, self._kinds))
        self._of = LoopTask(node, self._kinds, len(relations))
        self._task, self._classes = pickle.dumps(self._of), classes

    def delta(self, flush: Flush) -> DataFrame | None:
        """Return how all relations change: for one, its rows; for several, the columns `kind`,
        `weight`, and one for each.

        Return None if no input changes, except in the first flush.
        """
        deltas = [flush.delta(side) for side in self._sides]
        if not flush.is_first and all(delta is None for delta in deltas):
            return None
        own = len(self.relations)
        found = self._recompute(flush, [*[None] * own, *deltas])
        if own == 1:  # one frame for all readers and writers
            found = found.select(F.col(_row_column(0)).alias("row"), "weight")
        for place, spec in enumerate(self.specs[:own]):
            flush.add(spec, self.rows(found, place))
        for spec, delta in zip(self.specs[own:], deltas, strict=True):
            if delta is not None:
                flush.add(spec, delta)
        return found

    def direct(self, flush: DirectFlush) -> Bag:
        return flush.once(self, self.direct_changes)[0]

    def direct_changes(self, flush: DirectFlush) -> list[Bag]:
        """Return how all relations change, in a flush of this process."""
        own = len(self.relations)
        deltas = [*[NOTHING] * own, *map(flush.delta, self._sides)]
        if not any(deltas):
            return [NOTHING] * own
        given = list(zip(self.specs, self._kinds, deltas, strict=True))
        changed = self._run_by_columns(flush, deltas)
        if changed is not None:
            for spec, kept, delta in given[own:]:
                flush.add(spec, kept, delta)
            return changed
        flush.check_anew(self.specs)
        bags = [add_bags([flush.all_rows(spec, kept), delta]) for spec, kept, delta in given]
        changes = run_loop(self._of, bags)
        found = [Counter(dict(pairs)) for pairs in changes]
        for (spec, kept, _), bag in zip(given, [*found, *deltas[own:]], strict=True):
            flush.add(spec, kept, bag)
        return found

    def _run_by_columns(self, flush: DirectFlush, deltas: Sequence[Bag]) -> list[Bag] | None:
        """Return how all relations change, computed over columns.

        Return None if columns cannot run it, or there are too many rows.
        """
        if not self._of.is_loop or flush.rows_of(self.specs) > MOST_COLUMNS:
            return None
        tables = [
            flush.columns(spec, kept, delta)
            for spec, kept, delta in zip(self.specs, self._kinds, deltas, strict=True)
        ]
        found = run_by_columns(self._of, tables)
        if found is None:
            return None
        bags = []
        for spec, kept, table in zip(self.specs, self.relations, found, strict=False):
            if table.num_rows:
                flush.put(spec, {"row": table.column("row"), "weight": table.column("weight")})
            bags.append(Counter(dict(pairs_of(kept, table))))
        return bags

    def rows(self, found: DataFrame, place: int) -> DataFrame:
        """Return how the relation at `place` changes, from the result `found` of `delta`."""
        if len(self.relations) == 1:
            return found
        rows = found.filter(F.col("kind") == place)
        return rows.select(F.col(_row_column(place)).alias("row"), "weight")

    def _recompute(self, flush: Flush, deltas: Sequence[DataFrame | None]) -> DataFrame:
        """Return how all relations change, computed in one Python worker from all rows and
        changes."""
        frames = [
            frame.select(*self._columns(kind, frame["row"]))
            for kind, (spec, delta) in enumerate(zip(self.specs, deltas, strict=True))
            for frame in (*flush.parts(spec), *([] if delta is None else [delta]))
        ]
        empty = flush.empty(self._kinds[0])
        given = union_frames(frames or [empty.select(*self._columns(0, empty["row"]))])
        run = worker_function(
            flush.paths,
            "spark_backend.recursion.loop_worker",
            "loop_changes",
            self._task,
            self._classes,
        )
        changes = given.repartition(1).mapInArrow(run, self._change_schema())
        # An exchange by all columns, so that the written tables share the result of the worker. For
        # several relations the worker runs once for each, because Spark moves the filter on `kind`
        # before the exchange.
        return changes.repartition(flush.tables.tasks(), *changes.columns)

    def _columns(self, of: int, row: Column) -> list[Column]:
        """Return the columns that the worker receives for a row of a kind."""
        columns = [
            (row if kind == of else F.lit(None)).cast(spark_type(kept)).alias(_row_column(kind))
            for kind, kept in enumerate(self._kinds)
        ]
        return [F.lit(of).alias("kind"), F.col("weight"), *columns]

    def _change_schema(self) -> T.StructType:
        """Return the schema of the changes that the worker outputs.

        `kind` is the number of the relation of a changed row, `weight` says how its number of
        copies changes, and each relation has a column for its rows.
        """
        fields = [T.StructField("kind", T.IntegerType()), T.StructField("weight", T.LongType())]
        for place, kept in enumerate(self.relations):
            fields.append(T.StructField(_row_column(place), spark_type(kept)))
        return T.StructType(fields)


def _relation_table(name: str, kept: Typed) -> TableSpec:
    """Return a table of the rows of a relation with weights, in buckets by the row."""
    return TableSpec(
        name, schema_of(kept), ("row",), ("weight",), lambda: hash_column(Value(F.col("row"), kept))
    )


def _row_column(kind: int) -> str:
    return f"row{kind}"


class DirectPartitions:
    """The partitions of a recursion.

    Parameters
    ----------
    specs: the tables of its rows and of its seeds.
    key: the type of the column that identifies partitions.
    """

    def __init__(
        self, parts: RecursionParts, specs: Sequence[TableSpec], task: RecursionTask, key: Typed
    ) -> None:
        self._parts, self._task, self._key, self._kept = parts, task, key, parts.own.kept
        self._rows, self._seeds = specs
        self._key_of = callable_of(parts.column)
        self._lookup = Lookup(leaf_types(key), key_fields((parts.column,), self._kept, 1))

    def delta(self, flush: DirectFlush) -> Bag:
        """Return how the rows of the relation change.

        Raises `TooMany` if the recursion has a negation or would read many rows.
        """
        if not self._parts.is_positive:
            raise TooMany("a recursion with a negation")
        seeds = add_bags([flush.delta(step) for step in self._parts.seeds])
        changes = [side.direct_change(flush) for side in self._parts.sides]
        if not seeds and not any(changes):
            return NOTHING
        flush.check_anew(side.spec for side in self._parts.sides)
        flush.add(self._seeds, self._kept, seeds)
        found = self._recompute(flush, self._touched_keys(flush, seeds, changes), seeds, changes)
        flush.add(self._rows, self._kept, found)
        later = flush.fork({self._parts.own: found})
        for premise in self._parts.premises:
            flush.add(premise.spec, premise.source.kept, later.delta(premise.source))
        return found

    def _touched_keys(self, flush: DirectFlush, seeds: Bag, changes: Sequence[Bag]) -> set[Any]:
        """Return the partitions of rows that may be deleted or inserted."""
        lost = {row for row, weight in seeds.items() if weight < 0}
        lost.update(self._derive_from(flush, changes, -1))
        come = {row for row, weight in seeds.items() if weight > 0}
        come.update(self._derive_from(flush, changes, 1))
        there = self._rows_of(flush, self._rows, self._keys(come))
        return self._keys(lost) | self._keys(row for row in come if there.get(row, 0) <= 0)

    def _derive_from(self, flush: DirectFlush, changes: Sequence[Bag], sign: int) -> set[Row]:
        """Return the rows that deleted, or inserted, rows derive from the current rows."""
        known = {
            side.source: Counter({row: 1 for row, weight in change.items() if weight * sign > 0})
            for side, change in zip(self._parts.sides, changes, strict=True)
        }
        beside = flush.fork(known)
        return {row for way in self._parts.ways for row in beside.delta(way)}

    def _recompute(
        self, flush: DirectFlush, keys: set[Any], seeds: Bag, changes: Sequence[Bag]
    ) -> Bag:
        """Return how the rows of the partitions `keys` change, computed anew from their seeds and
        all sides."""
        before = self._rows_of(flush, self._rows, keys)
        after = add_bags([self._rows_of(flush, self._seeds, keys), self._restrict(seeds, keys)])
        sides = [
            add_bags([flush.all_rows(side.spec, side.source.kept), change])
            for side, change in zip(self._parts.sides, changes, strict=True)
        ]
        found = Counter(dict.fromkeys(run_partitions(self._task, after, sides), 1))
        gone = Counter({row: -1 for row, weight in before.items() if weight > 0})
        return add_bags([found, gone])

    def _rows_of(self, flush: DirectFlush, spec: TableSpec, keys: set[Any]) -> Bag:
        """Return the rows of some partitions in a table."""
        if not keys:
            return NOTHING
        asked = {tuple(flattened_values(self._key, key)) for key in keys}
        return self._restrict(flush.having(spec, self._kept, self._lookup, asked), keys)

    def _restrict(self, rows: Bag, keys: set[Any]) -> Bag:
        return Counter({row: n for row, n in rows.items() if self._partition(row) in keys})

    def _keys(self, rows: Iterable[Row]) -> set[Any]:
        return {self._partition(row) for row in rows}

    def _partition(self, row: Row) -> Any:
        return canonical(self._key_of(row))


class OwnRows:
    """The rows of a recursive relation inside its own definition: unchanged while the rules run
    over a change of the inputs; then with their own change."""

    def __init__(self, kept: Typed) -> None:
        self.kept = kept
        self.change: DataFrame | None = None

    def delta(self, flush: Flush) -> DataFrame | None:
        return self.change

    def direct(self, flush: DirectFlush) -> Bag:
        return NOTHING


@dataclass(frozen=True)
class RecursionParts:
    """The steps of a recursion by partitions.

    `sides` are the rows that are joined with recursive rows, `premises` the recursive rows by the
    keys of the joins. It `is_positive` if all joins are inner joins.
    """

    own: OwnRows
    column: Lifted
    seeds: tuple[Step, ...]
    ways: tuple[Step, ...]
    sides: tuple[ArrangedRows, ...]
    premises: tuple[ArrangedRows, ...]
    is_positive: bool
