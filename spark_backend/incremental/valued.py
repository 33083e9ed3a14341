"""Min, Max and CountDistinct by group: of a table of the values of each group, with their weights.

    group  value  weight        a row of the state for each flush that changed the weight
    of a touched group: the values whose weight is positive, before and after

The order and the equality are Python's where the type of the column has them in Spark: NaN comes
after all numbers in both, 0.0 and -0.0 are one value in both; text is ordered by code points.

State:  a row per group and value, and those of the last flushes.
Cost:   per flush O(values in the buckets of the groups that changed).
Source: [dbsp] aggregates that are not linear, by the touched groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from types import NoneType
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from optimizer import plan
from reactive.operators.accumulators import (
    CountDistinctAccumulator,
    MaxAccumulator,
    MinAccumulator,
)
from spark_backend.codec.columns import value_of
from spark_backend.codec.schema import Plain, Record, Typed, type_name
from spark_backend.codec.values import Inexact, Value, as_type, spark_type
from spark_backend.incremental.summed import Read, read, value_read
from spark_backend.state.tables import TableSpec, united

VALUED = (MinAccumulator, MaxAccumulator, CountDistinctAccumulator)
_ORDERED = (int, float, bool, str, bytes, date, datetime, Decimal)


@dataclass(frozen=True, slots=True)
class Valued:
    """A value of which each group keeps all, under a name, and what aggregates ask of them."""

    name: str
    value: Value
    skips_none: bool
    spec: TableSpec
    asked: tuple[plan.Folded, ...]

    def change(self, given: DataFrame) -> DataFrame:
        """How weights of values change, of rows with `key`, `{name}_in` and `weight`."""
        value = F.col(f"{self.name}_in")
        rows = given.select("key", value.alias("value"), "weight")
        if self.skips_none and self.value.optional:
            rows = rows.filter(F.col("value").isNotNull())
        return rows.groupBy("key", "value").agg(F.sum("weight").alias("weight"))

    def results(self, change: DataFrame, stored: Sequence[DataFrame]) -> DataFrame:
        """A row per touched group: `key`, and each result before and after.

        Parameters
        ----------
        stored: the rows of the table that are of touched groups.
        """
        none = F.lit(0).cast("long")
        parts = [change.select("key", "value", none.alias("b"), F.col("weight").alias("d"))]
        parts += [
            p.select("key", "value", F.col("weight").alias("b"), none.alias("d")) for p in stored
        ]
        weights = (
            united(parts).groupBy("key", "value").agg(F.sum("b").alias("b"), F.sum("d").alias("d"))
        )
        there = {"b_": F.col("b") > 0, "a_": F.col("b") + F.col("d") > 0}
        found = [
            _asked(folded, is_there).alias(f"{when}{self.column(folded)}")
            for when, is_there in there.items()
            for folded in self.asked
        ]
        return weights.groupBy("key").agg(*found)

    def column(self, folded: plan.Folded) -> str:
        """The column of a result."""
        return f"{self.name}_{_kind(folded)}"

    def columns(self) -> dict[str, T.DataType]:
        """The columns of all results."""
        return {
            self.column(f): spark_type(self.result_type(f, may_be_empty=True)) for f in self.asked
        }

    def result_type(self, folded: plan.Folded, *, may_be_empty: bool) -> Typed:
        """What an aggregate shows; without any values the extremes are None."""
        if isinstance(folded.accumulator, CountDistinctAccumulator):
            return Plain(int)
        return replace(self.value.of, optional=may_be_empty)


def valued(
    node: plan.Aggregate, values: Sequence[Value], key: Typed, hashed: Any, name: str
) -> dict[Read, Valued]:
    """The values of which all are kept, each once.

    Raises
    ------
    Inexact: Spark has another order of them, or Python has none.
    """
    asked: dict[Read, list[plan.Folded]] = {}
    for folded in node.aggregates:
        if isinstance(folded.accumulator, VALUED):
            asked.setdefault(read(folded), []).append(folded)
    found: dict[Read, Valued] = {}
    for what, several in asked.items():
        value = _checked(several, values)
        own = f"v{len(found)}"
        schema = T.StructType(
            [
                T.StructField("key", spark_type(key)),
                T.StructField("value", spark_type(value.of)),
                T.StructField("weight", T.LongType()),
            ]
        )
        spec = TableSpec(f"{name}{own}", schema, ("key", "value"), ("weight",), hashed)
        typed = Value(as_type(value, value.of), value.of)
        distinct = tuple({_kind(folded): folded for folded in several}.values())
        found[what] = Valued(own, typed, what[1], spec, distinct)
    return found


def _checked(several: Sequence[plan.Folded], values: Sequence[Value]) -> Value:
    value: Value | None = None
    for folded in several:
        if isinstance(folded.accumulator, CountDistinctAccumulator):
            assert folded.value is not None or len(values) == 1
            value = values[0] if folded.value is None else value_of(folded.value, values)
        else:
            value = value_read(folded, values)
            _check_order(value.of, folded)
    assert value is not None
    if value.of.kind is NoneType:
        raise Inexact("a value that is always None")
    return value


def _check_order(of: Typed, folded: plan.Folded, *, inside: bool = False) -> None:
    """Spark orders structs by their fields, one after the other, as Python orders tuples."""
    if isinstance(of, Record) and issubclass(of.kind, tuple) and _is_plain_order(of.kind):
        if of.optional and inside:
            raise Inexact(f"{folded.name} may raise for a None inside")
        for part in of.fields:
            _check_order(part, folded, inside=True)
        return
    if of.kind not in _ORDERED or (inside and (of.optional or of.kind is float)):
        raise Inexact(f"{folded.name} of {type_name(of)}, whose order is not Spark's")


def _is_plain_order(kind: Any) -> bool:
    plain: Any = tuple
    return kind.__lt__ is plain.__lt__ and kind.__gt__ is plain.__gt__


def _asked(folded: plan.Folded, is_there: Column) -> Column:
    if isinstance(folded.accumulator, CountDistinctAccumulator):
        return F.sum(F.when(is_there, F.lit(1).cast("long")).otherwise(F.lit(0).cast("long")))
    value = F.when(is_there, F.col("value"))
    return F.min(value) if isinstance(folded.accumulator, MinAccumulator) else F.max(value)


def _kind(folded: plan.Folded) -> str:
    match folded.accumulator:
        case MinAccumulator():
            return "min"
        case MaxAccumulator():
            return "max"
        case _:
            return "distinct"
