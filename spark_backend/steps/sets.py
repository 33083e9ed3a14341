"""Distinct, and the set and bag operators: by the weights of the rows that changed.

    out(row) = f(weight on the left, weight on the right)        d out = f(after) - f(before)

State:  the rows of each side, by the row.
Cost:   per flush O(rows of the buckets of the rows that changed).
Source: [dbsp] distinct; the operators of bags are functions of two weights.
"""

from __future__ import annotations

from functools import cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from optimizer import plan
from reactive.engine.reference.bags import Bag
from spark_backend.codec.hashing import flattened_values, leaves
from spark_backend.codec.schema import Typed
from spark_backend.codec.values import Value, spark_type
from spark_backend.direct.flush import DirectFlush, present
from spark_backend.direct.lookup import Lookup, fields_of
from spark_backend.state.tables import TableSpec, united
from spark_backend.steps.keys import flattened
from spark_backend.steps.near import hashes_of, having
from spark_backend.steps.step import Flush, Hashes, Step, schema_of

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
