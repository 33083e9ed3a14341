"""Steps of linear nodes and of set operators: rows with weights in, rows with weights out.

Distinct, and the set and bag operators: by the weights of the rows that changed.

    out(row) = f(weight on the left, weight on the right)        d out = f(after) - f(before)

State:  the rows of each side, by the row.
Cost:   per flush O(rows of the buckets of the rows that changed).
Source: [dbsp] distinct; the operators of bags are functions of two weights.

What all steps of a fragment have in common: rows with weights in, rows with weights out.

A step makes the delta of its node of the deltas of its inputs and of what is kept of them. Nothing
runs before the flush writes: a delta is a DataFrame, that is a query.

    delta(flush)    how the rows change; None if they do not
    kept            what rows are, as columns
    tables          what the step keeps: it adds to them in a flush, and reads them as of before it

Where, select, unnest and select_many: what they make of the changes is how they change.

d f(R) = f(dR)

How many rows a step has of each key: what is asked of the other side of a semi or anti join.

    (7, "a"), (7, "b"), (8, "c")    ->    (7,) 2 times, (8,) once

So whether a key has a partner is one row to look up, however many partners there are.

State:  a row for each key, and those of the last flushes.
Cost:   O(rows that change).
Source: counts per key, as of [dbsp] distinct.

The rows of a table, as of before a flush, that have keys among those that changed.

    few rows to read    all files in which such rows can be, read at once
    else                the base by the buckets of the keys, which are found while it runs, and
                        what came later

Which files those are is known beforehand if the changed rows are in the query itself, as their
hashes take no job then. All of a narrow flush is done in the one task that has the changes.

State:  none.
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
from spark_backend.cluster.session import worked_out
from spark_backend.codec.arrow import from_arrow, to_arrow
from spark_backend.codec.hashing import flattened_values, leaves
from spark_backend.codec.schema import Pickled, Record, Typed, Whole, tuple_of
from spark_backend.codec.values import Value, spark_type
from spark_backend.direct.flush import (
    NOTHING,
    UNKNOWN,
    DirectFlush,
    Lookup,
    TooMany,
    fields_of,
    in_column,
    present,
    summed,
    through,
    together,
)
from spark_backend.state.one_job import BUCKET, TableSpec
from spark_backend.state.tables import StateTables, united
from spark_backend.steps.keys import Side, flattened
from spark_backend.tables.chain import Chain, Weighted

_SIDES = ("l", "r")


class ByWeight:
    """An operator whose output weight of a row is a function of the row's weights."""

    def __init__(
        self, node: plan.Node, sides: tuple[Step, ...], names: tuple[str, ...], kept: Typed
    ) -> None:
        self._node, self._sides, self.kept = node, sides, kept
        self._hash()
        self._lookup = Lookup(leaves(kept), fields_of(kept, "row"))
        self.specs = [
            TableSpec(name, schema_of(kept), ("row",), ("weight",), self._hash) for name in names
        ]

    def delta(self, flush: Flush) -> DataFrame | None:
        changes = [self._changed(flush, place) for place in range(len(self._sides))]
        there = [frame for frame in changes if frame is not None]
        if not there:
            return None
        hashes = self._hashes(flush, there)
        rows = flush.together(united([f.select("row") for f in there])).distinct()
        rows = rows.withColumn("h", self._hash()).filter(F.col("h").isNotNull())
        parts = [
            self._weights(frame, side, is_change=True)
            for frame, side in zip(changes, _SIDES, strict=False)
            if frame is not None
        ]
        for spec, side in zip(self.specs, _SIDES, strict=False):
            for part in having(
                flush, spec, rows, lambda p: p["row"].eqNullSafe(rows["row"]), hashes
            ):
                parts.append(self._weights(part, side))
        return flush.handed_on(self._out(flush.together(united(parts))))

    def direct(self, flush: DirectFlush) -> Bag:
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
            found[row] = shown(self._node, *now) - shown(self._node, *was)
        return present(found)

    def _changed(self, flush: Flush, place: int) -> DataFrame | None:
        found = flush.delta(self._sides[place])
        if found is None:
            return None
        wanted = spark_type(self.kept)
        typed = found.select(F.col("row").cast(wanted).alias("row"), "weight")
        flush.add(self.specs[place], typed)
        return typed

    def _hashes(self, flush: Flush, changes: list[DataFrame]) -> Hashes:
        """Of the rows that changed."""
        changing = [step for step in self._sides if flush.delta(step) is not None]
        if not all(map(flush.is_local, changing)):
            return None
        return cache(lambda: set[int]().union(*(hashes_of(f, self._hash()) for f in changes)))

    def _weights(self, frame: DataFrame, side: str, *, is_change: bool = False) -> DataFrame:
        """Rows with their weights on both sides, before and as a change."""
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

    def _out(self, weights: DataFrame) -> DataFrame:
        names = [f"{kind}{side}" for side in _SIDES for kind in ("b", "d")]
        summed = weights.groupBy("row").agg(*(F.sum(name).alias(name) for name in names))
        before = _weight(self._node, F.col("bl"), F.col("br"))
        after = _weight(self._node, F.col("bl") + F.col("dl"), F.col("br") + F.col("dr"))
        return summed.select("row", (after - before).alias("weight")).filter("weight != 0")

    def _hash(self) -> Column:
        return hashed(Value(F.col("row"), self.kept))


def hashed(value: Value) -> Column:
    """A hash of a value, the same for equal ones."""
    parts = flattened(value, may_be_none=True)
    return F.xxhash64(*(p.column + F.lit(0.0) if p.of.kind is float else p.column for p in parts))


def shown(node: plan.Node, left: int, right: int = 0) -> int:
    """How often a row is in the output, by how often it is on both sides."""
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


def _weight(node: plan.Node, left: Column, right: Column) -> Column:
    """The weight of a row in the output."""
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
"""Changed rows up to which a delta is sent to all tasks."""

MOST_NARROW = 1_000
"""Changed rows up to which a flush is done in one task, as long as it reads few rows."""
MOST_READ = 250_000
"""Rows of a table that a task reads there at most."""
MOST_WHOLE = 20_000
"""Rows of a table up to which all are read, whatever the keys that changed."""
TOUCH_ALL = 4
"""Changed rows for each bucket from which on all buckets are read without a look at which."""
Hashes = Callable[[], set[int]] | None
"""Works out the hashes of the keys that changed, without a job; None where that takes one."""

ODD_VALUE = "a value that columns do not add up"
"""What a job fails with that is to be careful instead."""
TOO_FEW = "an order of which too few rows are at hand"
"""What a job fails with that is to look through all rows of an order instead."""


class NotColumns(Exception):
    """Why a fragment cannot be done in columns."""


class Step(Protocol):
    """A node of a fragment."""

    kept: Typed

    def delta(self, flush: Flush) -> DataFrame | None:
        """How the rows change, with the columns `row` and `weight`; not added up."""
        ...

    def direct(self, flush: DirectFlush) -> Bag:
        """The same of few rows, here."""
        ...


@dataclass
class Flush:
    """One flush of a fragment: what comes in, and what is to be added to tables.

    `counts` are how many rows change in each input at most, `rows` in all of them; those of the
    inputs `local` are in the query itself. The flush `is_narrow` as long as all of it is in one
    task.
    """

    spark: SparkSession
    tables: StateTables
    given: Mapping[int, DataFrame]
    counts: Mapping[int, int]
    rows: int
    careful: bool
    """Whether what columns cannot finish is finished by Python."""
    paths: list[str]
    """What workers are to add to where they import from."""
    looks_through: bool = False
    """Whether orders look through all their rows for the first ones."""
    local: frozenset[int] = frozenset()
    is_narrow: bool = False
    added: dict[str, DataFrame] = field(default_factory=dict)
    as_given: dict[str, int] = field(default_factory=dict)
    """The tables that are added rows of an input as they are, and which one that is."""
    _made: dict[int, DataFrame | None] = field(default_factory=dict)
    _depth: int = 0

    @property
    def is_first(self) -> bool:
        """Whether nothing has been flushed before."""
        return self.tables.number is None

    def empty(self, kept: Typed) -> DataFrame:
        """No rows."""
        return self.spark.createDataFrame([], schema_of(kept))

    def delta(self, step: Step) -> DataFrame | None:
        """The delta of a step; made once."""
        if id(step) not in self._made:
            self._depth += 1
            self._made[id(step)] = step.delta(self)
            self._depth -= 1
        return self._made[id(step)]

    def add(self, spec: TableSpec, rows: DataFrame) -> None:
        """Add rows to a table when the flush is written; those that several steps share, once."""
        if spec.name in self.added:
            return
        names = spec.schema.names
        self.added[spec.name] = rows if rows.columns == names else rows.select(*names)
        of = next((place for place, given in self.given.items() if given is rows), None)
        if of is not None:
            self.as_given[spec.name] = of

    def near(self, spec: TableSpec, hashes: Hashes) -> DataFrame | None:
        """The rows of a table, as of before, in all files where those with some keys can be; None
        if these are to be found while it runs, as there may be many others beside them."""
        rows = self.tables.rows_near(spec)
        if not self.is_narrow:
            is_all = rows <= MOST_WHOLE or self.rows >= TOUCH_ALL * self.tables.buckets(spec)
            return self.tables.near(spec) if is_all else None
        some = None if rows <= MOST_WHOLE or hashes is None else hashes()
        if self.tables.rows_near(spec, some) > MOST_READ:
            return None
        return self.tables.near(spec, some).coalesce(1)

    def parts(self, spec: TableSpec) -> list[DataFrame]:
        """The rows of a table, as of before."""
        self.spread()
        return self.tables.parts(spec)

    def is_local(self, step: Step) -> bool:
        """Whether the rows by which a step changes are in the query itself."""
        return isinstance(step, Given) and step.place in self.local

    def together(self, frame: DataFrame) -> DataFrame:
        """A frame in the task in which all is, if the flush is narrow."""
        return frame.coalesce(1) if self.is_narrow else frame

    def beside(self, frame: DataFrame) -> DataFrame:
        """A frame of about as many rows as change, to be joined with one that is near."""
        if not self.is_narrow:
            return self.small(frame)
        return frame.coalesce(1).hint("shuffle_hash")

    def handed_on(self, frame: DataFrame) -> DataFrame:
        """What a step that others read makes: worked out once, in a task of its own.

        A task has memory for some sixteen aggregates and joins, whatever their size.
        """
        return frame.repartition(1) if self.is_narrow and self._depth > 1 else frame

    def spread(self) -> None:
        """From here on many tasks have the rows."""
        self.is_narrow = False

    def small(self, frame: DataFrame) -> DataFrame:
        """A frame of about as many rows as change, to be joined with a large one."""
        if self.rows > MOST_BROADCAST:
            return frame
        return F.broadcast(frame)


class Given:
    """An input of the fragment."""

    def __init__(self, place: int, kept: Typed) -> None:
        self.place = place
        self.kept = kept

    def delta(self, flush: Flush) -> DataFrame | None:
        return flush.given.get(self.place)

    def direct(self, flush: DirectFlush) -> Bag:
        return flush.given.get(self.place, NOTHING)


def schema_of(kept: Typed) -> T.StructType:
    """Rows with weights."""
    fields = [T.StructField(ROW, spark_type(kept)), T.StructField(WEIGHT, T.LongType())]
    return T.StructType(fields)


class Linear:
    """A chain of nodes that look at one row after the other."""

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
        given = flush.delta(self._source)
        if given is None:
            return None
        return self._chain.run(self._nodes, Weighted(given, self._source.kept)).frame

    def direct(self, flush: DirectFlush) -> Bag:
        found = through(self._nodes, flush.delta(self._source))
        return as_read(found, self.kept) if has_sequences(self.kept) else found


def has_sequences(kept: Typed) -> bool:
    """Whether rows of a type have sequences inside."""
    if isinstance(kept, Record):
        return any(map(has_sequences, kept.fields))
    inside = kept.of if isinstance(kept, Whole) else None
    return inside is not None and (kept.kind is tuple or has_sequences(inside))


def as_read(rows: Bag, kept: Typed) -> Bag:
    """Rows as they are when they are read from files: a long sequence of a nest is a tuple there,
    which is equal and has another hash."""
    read = from_arrow(kept, to_arrow(kept, list(rows)))
    return Counter(dict(consolidate(list(zip(read, rows.values(), strict=True)))))


class WorkedOut:
    """The changes of an outer join that others read, worked out by a job of their own.

    A step reads several times what it is given: as one query, a nest would be some ten times as
    long with each level, and take Spark minutes to plan.
    """

    def __init__(self, source: Step) -> None:
        self._source, self.kept = source, source.kept

    def delta(self, flush: Flush) -> DataFrame | None:
        given = flush.delta(self._source)
        return None if given is None else worked_out(given)

    def direct(self, flush: DirectFlush) -> Bag:
        return flush.delta(self._source)


class Together:
    """Union of bags: the changes of both.  d(L + R) = dL + dR"""

    def __init__(self, left: Step, right: Step, kept: Typed) -> None:
        self._sides, self.kept = (left, right), kept

    def delta(self, flush: Flush) -> DataFrame | None:
        found = [frame for side in self._sides if (frame := flush.delta(side)) is not None]
        schema = schema_of(self.kept)
        typed = [
            frame.select(frame["row"].cast(schema["row"].dataType), "weight") for frame in found
        ]
        if len(typed) < 2:
            return typed[0] if typed else None
        return typed[0].unionByName(typed[1])

    def direct(self, flush: DirectFlush) -> Bag:
        return together([flush.delta(side) for side in self._sides])


class KeyCounts:
    """The keys of the rows of a step, each as often as there are rows that can match.

    Parameters
    ----------
    side: what a join asks of the rows.
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
        """What a join asks of the keys."""
        count = len(self._of)
        keys = tuple(
            Lifted(Item(Parameter(0), constant(place)), ("key",), (), 1) for place in range(count)
        )
        return Side(self.kept, 1, (), keys, self._side.types, self._of, self._side.optional)

    def delta(self, flush: Flush) -> DataFrame | None:
        given = flush.delta(self._source)
        if given is None:
            return None
        keyed = self._side.keyed(given, "k").select(self._row, F.col("k_weight").alias("weight"))
        return keyed.groupBy("row").agg(F.sum("weight").alias("weight"))

    def direct(self, flush: DirectFlush) -> Bag:
        key_of = self._side.key_of
        keyed = [(key_of(row), weight) for row, weight in flush.pairs(self._source)]
        return summed([(self._in_columns(key), n) for key, n in keyed if key is not None])

    def _in_columns(self, key: tuple[object, ...]) -> tuple[object, ...]:
        """The values that columns have of a key.

        Raises
        ------
        TooMany: they have none.
        """
        found = tuple(in_column(of, value) for of, value in zip(self._of, key, strict=True))
        if UNKNOWN in found:
            raise TooMany("a key that is not of the declared type")
        return found


def having(
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
    """The rows of a table joined with keys; not added up, in one or more frames.

    Parameters
    ----------
    keys: those that changed, with their hash in the column `key`.
    on: when a row of a table has a key.
    hashes: of the keys, if they can be had without a job.
    read: what is made of the rows of the table before.
    """
    if not flush.tables.rows_near(spec):
        return []
    near = flush.near(spec, hashes)
    if near is not None:
        rows = read(near)
        return [rows.join(flush.beside(keys.drop(key)), on(rows), how)]
    found, sent = [], flush.small(keys)
    for part in flush.parts(spec):
        rows = read(part)
        bucket = in_bucket(flush, spec, part, key)
        found.append(rows.join(sent, on(rows) if bucket is None else on(rows) & bucket, how))
    return found


def in_bucket(flush: Flush, spec: TableSpec, part: DataFrame, key: str) -> Column | None:
    """Whether a row of a base is in the bucket of a hash, by which partitions are pruned; None of
    what is no base."""
    if BUCKET not in part.columns:
        return None
    return F.expr(f"{BUCKET} = cast(pmod({key}, {flush.tables.buckets(spec)}) as int)")


def hashes_of(rows: DataFrame, hashed: Column) -> set[int]:
    """The hashes of rows, which are few."""
    return {row[0] for row in rows.select(hashed).collect()}
