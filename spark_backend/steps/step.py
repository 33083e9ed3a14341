"""Steps of a fragment: the interface of a step, linear nodes, and set operators.

A step computes the delta of its node from the deltas of its inputs and from its own tables. Nothing
runs before the flush writes: a delta is a DataFrame, that is a query.

    delta(flush)    how the rows change; None if they do not
    kept            the type of the rows
    tables          the state of the step: a flush adds to it, and reads the rows before the flush

`Linear` runs where, select, unnest and select_many:  d f(R) = f(dR)

`ByWeight` runs distinct, and the set and bag operators, by the weights of the changed rows:

    out(row) = f(weight on the left, weight on the right)        d out = f(after) - f(before)

State:  the rows of each side, by the row.
Cost:   per flush O(rows of the buckets of the changed rows).
Source: [dbsp] distinct; the operators of bags are functions of two weights.

`KeyCounts` counts the rows of each key, for the other side of a semi or anti join:

    (7, "a"), (7, "b"), (8, "c")    ->    (7,) 2 times, (8,) once

So one look-up tells whether a key has a partner, however many there are.

State:  a row for each key, and the rows of the last flushes.
Cost:   O(changed rows).
Source: counts per key, as in [dbsp] distinct.

`rows_with_keys` reads the rows of a table before the flush that have changed keys:

    few rows to read    all files that can have such rows, in one read
    else                the buckets of the keys in the base, found by the job, and the later files

The files are known before the job if the changed rows are in the query itself, because their hashes
need no job then. A narrow flush runs in the single task that has the changes.

Cost:   O(rows of the files that are read).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Protocol

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from optimizer import plan
from optimizer.expr import Item, Lifted, Parameter, constant
from reactive.engine.collections.zset import consolidate
from reactive.engine.reference.bags import Bag
from spark_backend.cluster.session import materialize_frame
from spark_backend.codec.arrow import from_arrow, to_arrow
from spark_backend.codec.hashing import flattened_values, leaf_types
from spark_backend.codec.schema import Pickled, Record, Typed, Whole, tuple_of
from spark_backend.codec.values import Value, spark_type
from spark_backend.direct.flush import (
    NOTHING,
    UNKNOWN,
    DirectFlush,
    Lookup,
    TooMany,
    add_bags,
    column_value,
    leaf_fields,
    net_bag,
    run_linear,
    without_zeros,
)
from spark_backend.state.one_job import BUCKET, TableSpec
from spark_backend.state.tables import StateTables, union_frames
from spark_backend.steps.dropping import Closes, dropping_of
from spark_backend.steps.keys import Side, flatten_value
from spark_backend.tables.chain import Chain, Weighted

_SIDES = ("l", "r")


class ByWeight:
    """An operator whose output weight of a row is a function of the weights of the row."""

    def __init__(
        self,
        node: plan.Node,
        sides: tuple[Step, ...],
        names: tuple[str, ...],
        kept: Typed,
        closing: Closes | None = None,
    ) -> None:
        self._node, self._sides, self.kept = node, sides, kept
        self._hash()
        self._lookup = Lookup(leaf_types(kept), leaf_fields(kept, "row"))
        columns = schema_of(kept), ("row",), ("weight",), self._hash
        dropping = dropping_of("row", kept, closing)
        self.specs = [TableSpec(name, *columns, dropping=dropping) for name in names]

    def delta(self, flush: Flush) -> DataFrame | None:
        """Return how the rows of a set operation change, from their weights on all sides.

        Return None if no side changes.
        """
        changes = [self._change(flush, place) for place in range(len(self._sides))]
        there = [frame for frame in changes if frame is not None]
        if not there:
            return None
        hashes = self._hashes(flush, there)
        rows = flush.together(union_frames([f.select("row") for f in there])).distinct()
        rows = rows.withColumn("h", self._hash()).filter(F.col("h").isNotNull())
        parts = [
            self._weights(frame, side, is_change=True)
            for frame, side in zip(changes, _SIDES, strict=False)
            if frame is not None
        ]
        for spec, side in zip(self.specs, _SIDES, strict=False):
            for part in rows_with_keys(
                flush, spec, rows, lambda p: p["row"].eqNullSafe(rows["row"]), hashes
            ):
                parts.append(self._weights(part, side))
        return flush.handed_on(self._output_rows(flush.together(union_frames(parts))))

    def direct(self, flush: DirectFlush) -> Bag:
        """Return how the rows of a set operation change, in a flush of this process."""
        changes = [flush.delta(side) for side in self._sides]
        before = []
        for change, spec in zip(changes, self.specs, strict=True):
            flush.add(spec, self.kept, change)
        rows = dict.fromkeys(row for change in changes for row in change)
        keys = {tuple(flattened_values(self.kept, row)) for row in rows}
        for spec in self.specs if rows else ():
            before.append(flush.having(spec, self.kept, self._lookup, keys))
        found: Bag = Bag()
        for row in rows:
            was = [bag.get(row, 0) for bag in before]
            now = [n + change.get(row, 0) for n, change in zip(was, changes, strict=True)]
            found[row] = output_weight(self._node, *now) - output_weight(self._node, *was)
        return without_zeros(found)

    def _change(self, flush: Flush, place: int) -> DataFrame | None:
        """Return the change of a side in the type of the result, and store it.

        Return None if the side does not change.
        """
        found = flush.delta(self._sides[place])
        if found is None:
            return None
        wanted = spark_type(self.kept)
        typed = found.select(F.col("row").cast(wanted).alias("row"), "weight")
        flush.add(self.specs[place], typed)
        return typed

    def _hashes(self, flush: Flush, changes: list[DataFrame]) -> Hashes:
        """Return the function that collects the hashes of the changed rows.

        Return None if that needs a job, as some rows are not in the query itself.
        """
        changing = [step for step in self._sides if flush.delta(step) is not None]
        if not all(map(flush.is_local, changing)):
            return None
        return cache(lambda: set[int]().union(*(collect_hashes(f, self._hash()) for f in changes)))

    def _weights(self, frame: DataFrame, side: str, *, is_change: bool = False) -> DataFrame:
        """Return rows with their weights on both sides, before the flush and as a change."""
        none = F.lit(0).cast("long")
        kinds = {
            "b": none if is_change else F.col("weight"),
            "d": F.col("weight") if is_change else none,
        }
        columns = [
            (value if one == side else none).alias(f"{kind}{one}")
            for one in _SIDES
            for kind, value in kinds.items()
        ]
        return frame.select("row", *columns)

    def _output_rows(self, weights: DataFrame) -> DataFrame:
        """Return the rows with the change of their output weight, from weights before (`b`) and
        their changes (`d`)."""
        names = [f"{kind}{side}" for side in _SIDES for kind in ("b", "d")]
        sums = weights.groupBy("row").agg(*(F.sum(name).alias(name) for name in names))
        before = _weight_column(self._node, F.col("bl"), F.col("br"))
        after = _weight_column(self._node, F.col("bl") + F.col("dl"), F.col("br") + F.col("dr"))
        return sums.select("row", (after - before).alias("weight")).filter("weight != 0")

    def _hash(self) -> Column:
        return hash_column(Value(F.col("row"), self.kept))


def hash_column(value: Value) -> Column:
    """Return a hash of a value that is equal for equal values."""
    parts = flatten_value(value, may_be_none=True)
    return F.xxhash64(*(p.column + F.lit(0.0) if p.of.kind is float else p.column for p in parts))


def output_weight(node: plan.Node, left: int, right: int = 0) -> int:
    """Return the number of copies of a row in the output, given its copies on both sides.

    Raises `TypeError` if `node` is no set operation.
    """
    match node:
        case plan.Distinct():
            return int(left > 0)
        case plan.Union():
            return int(left > 0 or right > 0)
        case plan.Difference():
            return int(left > 0 >= right)
        case plan.Intersection():
            return int(left > 0 and right > 0)
        case plan.DifferenceAll():
            return max(left - right, 0)
        case plan.IntersectionAll():
            return min(left, right)
        case _:
            raise TypeError(f"{type(node).__name__} is no operator of sets")


def _weight_column(node: plan.Node, left: Column, right: Column) -> Column:
    """Return the weight of a row in the output, given the columns of its weights on both sides.

    Raises `TypeError` if `node` is no set operation.
    """
    one, none = F.lit(1).cast("long"), F.lit(0).cast("long")
    in_left, in_right = left > 0, right > 0
    match node:
        case plan.Distinct():
            return F.when(in_left, one).otherwise(none)
        case plan.Union():
            return F.when(in_left | in_right, one).otherwise(none)
        case plan.Difference():
            return F.when(in_left & ~in_right, one).otherwise(none)
        case plan.Intersection():
            return F.when(in_left & in_right, one).otherwise(none)
        case plan.DifferenceAll():
            return F.greatest(left - right, none)
        case plan.IntersectionAll():
            return F.least(left, right)
        case _:
            raise TypeError(f"{type(node).__name__} is no operator of sets")


ROW, WEIGHT = "row", "weight"
MOST_BROADCAST = 100_000
"""The most changed rows whose delta is sent to all tasks."""

MOST_NARROW = 1_000
"""The most changed rows of a flush in one task; it also has to read few rows."""
MOST_READ = 250_000
"""The most rows of a table that one task reads."""
MOST_WHOLE = 20_000
"""The most rows of a table that are read for any changed keys."""
TOUCH_ALL = 4
"""The number of changed rows per bucket from that all buckets are read."""
Hashes = Callable[[], set[int]] | None
"""Computes the hashes of the changed keys without a job; None if that is not possible."""

ODD_VALUE = "a value that columns do not add up"
"""The error of a job that is then repeated in careful mode."""
TOO_FEW = "an order of which too few rows are at hand"
"""The error of a job that is then repeated with all rows of an order."""


class NotColumns(Exception):
    """The reason why columns cannot express a fragment."""


class Step(Protocol):
    """A node of a fragment."""

    kept: Typed

    def delta(self, flush: Flush) -> DataFrame | None:
        """Return how the rows change, with the columns `row` and `weight`; None if they do not.

        A row may be there several times: its weights are not added up.
        """
        ...

    def direct(self, flush: DirectFlush) -> Bag:
        """Return how the rows change in a flush of few rows, in this process."""
        ...


@dataclass
class Flush:
    """One flush of a fragment: the changes of its inputs, and the rows to add to tables.

    `counts` are the maximum numbers of changed rows of each input, `rows` their total; the rows of
    the inputs in `local` are in the query itself. The flush `is_narrow` as long as it runs in one
    task.
    """

    spark: SparkSession
    tables: StateTables
    given: Mapping[int, DataFrame]
    counts: Mapping[int, int]
    rows: int
    careful: bool
    """True if Python finishes the groups that columns cannot finish."""
    paths: list[str]
    """The folders that workers add to their import path."""
    looks_through: bool = False
    """True if orders read all their rows to find the first ones."""
    local: frozenset[int] = frozenset()
    is_narrow: bool = False
    added: dict[str, DataFrame] = field(default_factory=dict)
    as_given: dict[str, int] = field(default_factory=dict)
    """The tables that receive the unchanged rows of an input, and the position of the input."""
    _made: dict[int, DataFrame | None] = field(default_factory=dict)
    _depth: int = 0

    @property
    def is_first(self) -> bool:
        """True if there was no flush before."""
        return self.tables.number is None

    def empty(self, kept: Typed) -> DataFrame:
        """Return a frame without rows."""
        return self.spark.createDataFrame([], schema_of(kept))

    def delta(self, step: Step) -> DataFrame | None:
        """Return the change of the rows of a step, computed once per flush.

        Return None if they do not change.
        """
        if id(step) not in self._made:
            self._depth += 1
            self._made[id(step)] = step.delta(self)
            self._depth -= 1
        return self._made[id(step)]

    def add(self, spec: TableSpec, rows: DataFrame) -> None:
        """Add rows to a table when the flush is written.

        If several steps share the table, only the first one adds its rows, which are the same.
        """
        if spec.name in self.added:
            return
        names = spec.schema.names
        self.added[spec.name] = rows if rows.columns == names else rows.select(*names)
        of = next((place for place, given in self.given.items() if given is rows), None)
        if of is not None:
            self.as_given[spec.name] = of

    def near(self, spec: TableSpec, hashes: Hashes) -> DataFrame | None:
        """Return the rows of a table, before the flush, from all files that can have the keys of
        hashes; None if the job has to find the rows, because the files have many others."""
        rows = self.tables.rows_near(spec)
        if not self.is_narrow:
            is_all = rows <= MOST_WHOLE or self.rows >= TOUCH_ALL * self.tables.buckets(spec)
            return self.tables.near(spec) if is_all else None
        some = None if rows <= MOST_WHOLE or hashes is None else hashes()
        if self.tables.rows_near(spec, some) > MOST_READ:
            return None
        return self.tables.near(spec, some).coalesce(1)

    def parts(self, spec: TableSpec) -> list[DataFrame]:
        """End narrow mode, and return the rows of a table before the flush: a list of frames, empty
        for an empty table."""
        self.spread()
        return self.tables.parts(spec)

    def is_local(self, step: Step) -> bool:
        """Return True if the changed rows of a step are in the query itself."""
        return isinstance(step, InputRows) and step.place in self.local

    def together(self, frame: DataFrame) -> DataFrame:
        """Put a frame into the single task of a narrow flush."""
        return frame.coalesce(1) if self.is_narrow else frame

    def prepare_join(self, frame: DataFrame) -> DataFrame:
        """Prepare a frame of about as many rows as change for a join with a frame from `near`."""
        if not self.is_narrow:
            return self.small(frame)
        return frame.coalesce(1).hint("shuffle_hash")

    def handed_on(self, frame: DataFrame) -> DataFrame:
        """Return the result of a step.

        In a narrow flush, a result that other steps read is computed once, in a task of its own.

        A task has memory for some sixteen aggregates and joins, whatever their size.
        """
        return frame.repartition(1) if self.is_narrow and self._depth > 1 else frame

    def spread(self) -> None:
        """End narrow mode: from here on many tasks have the rows."""
        self.is_narrow = False

    def small(self, frame: DataFrame) -> DataFrame:
        """Prepare a frame of about as many rows as change for a join with a large frame.

        The frame is broadcast, unless more than `MOST_BROADCAST` rows change.
        """
        if self.rows > MOST_BROADCAST:
            return frame
        return F.broadcast(frame)


class InputRows:
    """An input of the fragment."""

    def __init__(self, place: int, kept: Typed) -> None:
        self.place = place
        self.kept = kept

    def delta(self, flush: Flush) -> DataFrame | None:
        return flush.given.get(self.place)

    def direct(self, flush: DirectFlush) -> Bag:
        return flush.given.get(self.place, NOTHING)


def schema_of(kept: Typed) -> T.StructType:
    """Return the schema of rows with weights."""
    fields = [T.StructField(ROW, spark_type(kept)), T.StructField(WEIGHT, T.LongType())]
    return T.StructType(fields)


class Linear:
    """A chain of linear nodes."""

    def __init__(
        self, chain: Chain, nodes: tuple[plan.Node, ...], source: Step, empty: DataFrame
    ) -> None:
        self._chain, self._nodes, self._source = chain, nodes, source
        found = chain.run(nodes, Weighted(empty, source.kept))
        if isinstance(found.kept, Pickled):
            raise NotColumns("; ".join(f"{s.node}: {s.reason}" for s in found.steps if s.reason))
        self.kept: Typed = found.kept
        self.steps = [str(step) for step in found.steps]

    def delta(self, flush: Flush) -> DataFrame | None:
        """Return the changes of the input, run through the nodes.

        Return None if the input does not change.
        """
        given = flush.delta(self._source)
        if given is None:
            return None
        return self._chain.run(self._nodes, Weighted(given, self._source.kept)).frame

    def direct(self, flush: DirectFlush) -> Bag:
        found = run_linear(self._nodes, flush.delta(self._source))
        return as_stored(found, self.kept) if has_sequences(self.kept) else found


def has_sequences(kept: Typed) -> bool:
    """Return True if rows of a type contain sequences."""
    if isinstance(kept, Record):
        return any(map(has_sequences, kept.fields))
    inside = kept.of if isinstance(kept, Whole) else None
    return inside is not None and (kept.kind is tuple or has_sequences(inside))


def as_stored(rows: Bag, kept: Typed) -> Bag:
    """Return rows as files would store them: a long sequence of a nest becomes a tuple, which is
    equal and has another hash."""
    read = from_arrow(kept, to_arrow(kept, list(rows)))
    return Counter(dict(consolidate(list(zip(read, rows.values(), strict=True)))))


class MaterializedChanges:
    """The changes of an outer join that other steps read, computed by a separate job.

    A step reads its input several times: in one query, a nest would become some ten times as long
    with each level, and Spark would plan for minutes.
    """

    def __init__(self, source: Step) -> None:
        self._source, self.kept = source, source.kept

    def delta(self, flush: Flush) -> DataFrame | None:
        """Return the changes of the source, computed by a job of their own.

        Return None if there are none.
        """
        given = flush.delta(self._source)
        return None if given is None else materialize_frame(given)

    def direct(self, flush: DirectFlush) -> Bag:
        return flush.delta(self._source)


class BagUnion:
    """Union of bags, which has the changes of both: d(L + R) = dL + dR."""

    def __init__(self, left: Step, right: Step, kept: Typed) -> None:
        self._sides, self.kept = (left, right), kept

    def delta(self, flush: Flush) -> DataFrame | None:
        """Return the changes of both sides, in the type of the result.

        Return None if neither side changes.
        """
        found = [frame for side in self._sides if (frame := flush.delta(side)) is not None]
        schema = schema_of(self.kept)
        typed = [
            frame.select(frame["row"].cast(schema["row"].dataType), "weight") for frame in found
        ]
        if len(typed) < 2:
            return typed[0] if typed else None
        return typed[0].unionByName(typed[1])

    def direct(self, flush: DirectFlush) -> Bag:
        return add_bags([flush.delta(side) for side in self._sides])


class KeyCounts:
    """The keys of the rows of a step, each with the number of its rows that can match.

    Parameters
    ----------
    side: the part of the join condition on the rows.
    """

    def __init__(self, source: Step, side: Side) -> None:
        self._source, self._side = source, side
        self._of = tuple(
            replace(of, optional=of.optional or may_be)
            for of, may_be in zip(side.types, side.optional, strict=True)
        )
        self.kept: Typed = tuple_of(self._of)
        names = [F.col(f"k_{place}").alias(f"_{place + 1}") for place in range(len(side.types))]
        self._row = F.struct(*names).alias("row")

    @property
    def side(self) -> Side:
        """The part of the join condition on the keys."""
        count = len(self._of)
        keys = tuple(
            Lifted(Item(Parameter(0), constant(place)), ("key",), (), 1) for place in range(count)
        )
        return Side(self.kept, 1, (), keys, self._side.types, self._of, self._side.optional)

    def delta(self, flush: Flush) -> DataFrame | None:
        """Return how the number of rows of each key changes; None if no row changes."""
        given = flush.delta(self._source)
        if given is None:
            return None
        keyed = self._side.keyed(given, "k").select(self._row, F.col("k_weight").alias("weight"))
        return keyed.groupBy("row").agg(F.sum("weight").alias("weight"))

    def direct(self, flush: DirectFlush) -> Bag:
        """Return how the number of rows of each key changes, in a flush of this process."""
        key_of = self._side.key_of
        keyed = [(key_of(row), weight) for row, weight in flush.pairs(self._source)]
        return net_bag([(self._in_columns(key), n) for key, n in keyed if key is not None])

    def _in_columns(self, key: tuple[object, ...]) -> tuple[object, ...]:
        """Return a key with the values that columns would store.

        Raises
        ------
        TooMany: columns cannot store a value.
        """
        found = tuple(column_value(of, value) for of, value in zip(self._of, key, strict=True))
        if UNKNOWN in found:
            raise TooMany("a key that is not of the declared type")
        return found


def rows_with_keys(
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
    """Return the rows of a table joined with keys, in one or more frames; copies of a row are not
    added up.

    Parameters
    ----------
    keys: the changed keys, with their hash in the column `key`.
    on: makes the join condition of a frame of the table.
    hashes: computes the hashes of the keys, if no job is needed.
    read: a function applied to frames of the table first.
    """
    if not flush.tables.rows_near(spec):
        return []
    near = flush.near(spec, hashes)
    if near is not None:
        rows = read(near)
        return [rows.join(flush.prepare_join(keys.drop(key)), on(rows), how)]
    found, sent = [], flush.small(keys)
    for part in flush.parts(spec):
        rows = read(part)
        bucket = bucket_condition(flush, spec, part, key)
        found.append(rows.join(sent, on(rows) if bucket is None else on(rows) & bucket, how))
    return found


def bucket_condition(flush: Flush, spec: TableSpec, part: DataFrame, key: str) -> Column | None:
    """Return the condition that a row of a base is in the bucket of a hash, to prune partitions.

    Return None for later files.
    """
    if BUCKET not in part.columns:
        return None
    return F.expr(f"{BUCKET} = cast(pmod({key}, {flush.tables.buckets(spec)}) as int)")


def collect_hashes(rows: DataFrame, column: Column) -> set[int]:
    """Return the hashes of rows, which must be few."""
    return {row[0] for row in rows.select(column).collect()}
