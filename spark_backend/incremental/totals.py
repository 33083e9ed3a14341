"""Count, Sum and Avg by group: sums of which only the changes are added.

    group  n  limbs...          a row of the state for each flush that touched the group
    before = sums of the state, after = before + sums of the change

A group that is there after a change and was before comes as two rows. What of the sums is a result
is worked out on the way out (`answer`); the state has sums alone, so that it adds up in any order.

State:  one row per group, and those of the last flushes.
Cost:   per flush O(rows that changed) and O(buckets of the groups that they are of).
Source: [dbsp] linear aggregates; [mrql] homomorphism (sums), merge (+) and answer function.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from optimizer import plan
from optimizer.expr import Function
from reactive.operators.accumulators import AvgAccumulator, CountAccumulator, SumAccumulator
from spark_backend.codec.columns import value_of
from spark_backend.codec.schema import WIDEST, Plain, Typed, tuple_of
from spark_backend.codec.values import Inexact, Value, as_type, record_value, spark_type
from spark_backend.incremental.exact_columns import (
    FLOAT_LIMBS,
    INTEGER_LIMBS,
    float_limbs,
    float_sum,
    integer_limbs,
    integer_sum,
)
from spark_backend.incremental.finishing import ODD, Finishing
from spark_backend.incremental.join import in_bucket
from spark_backend.incremental.keys import bound
from spark_backend.incremental.sets import hashed
from spark_backend.incremental.steps import ODD_VALUE, Flush, Step, schema_of
from spark_backend.state.tables import TableSpec, united
from spark_backend.tables.worker import shipped

WIDE = Plain(int, low=-WIDEST, high=WIDEST)
EXACT = 2**53
"""Integers up to here are doubles, so that their quotient is rounded once."""


@dataclass(frozen=True, slots=True)
class Summed:
    """A value that is added up, under a name; as integers or as floats.

    It `may_be_odd` if there are values that have no limbs: floats, and integers beyond 64 bits.
    """

    name: str
    value: Value
    is_float: bool
    may_be_odd: bool

    @property
    def limbs(self) -> list[str]:
        """The columns of its sum."""
        count = FLOAT_LIMBS if self.is_float else INTEGER_LIMBS
        return [f"{self.name}_{place}" for place in range(count)]


class Totals:
    """An aggregate by group that only needs sums."""

    def __init__(self, node: plan.Aggregate, source: Step, count: int, name: str) -> None:
        self._node, self._source = node, source
        values = bound(Value(F.col("row"), source.kept), count)
        assert node.key is not None
        self._key = value_of(node.key, values)
        self._summed = _summed(node, values)
        self.kept: Typed = tuple_of((self._key.of, *(self._type(f) for f in node.aggregates)))
        kinds = {True: T.DoubleType(), False: T.DecimalType(38, 0)}
        odd = {f"{s.name}_odd": kinds[s.is_float] for s in self._summed.values() if s.may_be_odd}
        self._odd = list(odd)
        self._sums = ["n", *(limb for s in self._summed.values() for limb in s.limbs)]
        fields = [
            T.StructField("key", spark_type(self._key.of)),
            *(T.StructField(name, kind) for name, kind in odd.items()),
            *(T.StructField(name, T.LongType()) for name in self._sums),
        ]
        schema = T.StructType(fields)
        by = ("key", *self._odd)
        self._hash()
        self.spec = TableSpec(name, schema, by, tuple(self._sums), self._hash)
        self._prepare()

    def delta(self, flush: Flush) -> DataFrame | None:
        given = flush.delta(self._source)
        if given is None:
            return None
        change = self._change(given)
        flush.add(self.spec, change)
        touched = self._touched(flush, change, careful=flush.careful)
        return self._finished(touched, flush.paths) if flush.careful else self._out(touched)

    def _change(self, given: DataFrame) -> DataFrame:
        """The sums of what changed, by group."""
        rows = given.select(*self._given)
        rows = rows.select("*", *self._limbs) if self._limbs else rows
        return rows.groupBy("key", *self._odd).agg(*self._adds)

    def _touched(self, flush: Flush, change: DataFrame, *, careful: bool) -> DataFrame:
        """The sums of the touched groups before (`b_`) and after (`a_`); with the odd values, or
        with an error where there is one, if it is not to be careful."""
        keys = flush.small(change.filter(self._all_read).select("key", self._hashed))
        parts = [self._both(change, was=False)]
        for part in flush.tables.parts(self.spec):
            on = part["key"].eqNullSafe(keys["key"])
            bucket = in_bucket(flush, self.spec, part, "h")
            if bucket is None:
                bucket = hashed(Value(part["key"], self._key.of)) == keys["h"]
            on = on & bucket
            parts.append(self._both(part.join(keys, on, "left_semi"), was=True))
        whole = united(parts)
        sums = self._sums_of_both
        if not self._odd:
            return whole.groupBy("key").agg(*sums)
        is_odd = f"coalesce({', '.join(f'cast({n} as string)' for n in self._odd)}) is not null"
        if careful:
            odd = F.expr(f"if({is_odd}, struct({', '.join(self._odd)}, b_n, a_n), null)")
            return whole.groupBy("key").agg(*sums, F.collect_list(odd).alias(ODD))
        checked = f"if({is_odd}, cast(raise_error('{ODD_VALUE}') as bigint), a_n)"
        return whole.withColumn("a_n", F.expr(checked)).groupBy("key").agg(*sums)

    def _both(self, sums: DataFrame, *, was: bool) -> DataFrame:
        return sums.select(*(self._as_before if was else self._as_change))

    def _finished(self, touched: DataFrame, paths: list[str]) -> DataFrame:
        """The same by Python workers, which add odd values as Python does."""
        if not self._odd:
            return self._out(touched)
        plan_of = Finishing(
            self._key.of,
            self.kept,
            tuple((s.name, s.is_float) for s in self._summed.values()),
            tuple(_result_of(f, self._summed) for f in self._node.aggregates),
        )
        run = shipped(
            paths, "spark_backend.incremental.finishing", "finished", pickle.dumps(plan_of)
        )
        return touched.mapInArrow(run, schema_of(self.kept))

    def _out(self, touched: DataFrame) -> DataFrame:
        found = touched.filter(self._differs).select("*", *self._shown).select(self._pairs)
        return found.filter("one.is").select("one.row", "one.weight")

    def _prepare(self) -> None:
        """The columns of all that is done in a flush, made once: each takes calls to the JVM."""
        key = as_type(self._key, self._key.of).alias("key")
        summed = self._summed.values()
        self._given = [
            key,
            F.col("weight"),
            *(s.value.column.alias(f"{s.name}_in") for s in summed),
        ]
        limbs = reduce(lambda a, b: {**a, **b}, map(_limbs, summed), dict[str, str]())
        self._limbs = _columns(limbs)
        sums = ["sum(weight) as n", *(f"sum({n} * weight) as {n}" for n in self._sums[1:])]
        self._adds = [F.expr(sql) for sql in sums]
        self._hashed = self._hash().alias("h")
        # Reads all sums, so that Spark sees twice the same query and runs it once.
        self._all_read = f"coalesce({', '.join(self._sums)}) > {-(2**62) * 2 + 1}L"
        names = [f"{when}{name}" for when in ("b_", "a_") for name in self._sums]
        self._sums_of_both = [F.expr(f"sum({name}) as {name}") for name in names]
        after = [F.expr(f"{n} as a_{n}") for n in self._sums]
        kept = [F.col(name) for name in ("key", *self._odd)]
        self._as_change = [*kept, *(F.expr(f"0L as b_{n}") for n in self._sums), *after]
        self._as_before = [*kept, *(F.expr(f"{n} as b_{n}") for n in self._sums), *after]
        before_columns, before_results = self._results("b_")
        after_columns, after_results = self._results("a_")
        self._shown = _columns({**before_columns, **after_columns})
        before, after_row = self._row(before_results), self._row(after_results)
        self._differs = F.expr(" or ".join(f"b_{name} <> a_{name}" for name in self._sums))
        one = F.lit(1).cast("long")
        self._pairs = F.explode(
            F.array(
                F.struct(
                    before.alias("row"), (-one).alias("weight"), F.expr("b_n > 0").alias("is")
                ),
                F.struct(
                    after_row.alias("row"), one.alias("weight"), F.expr("a_n > 0").alias("is")
                ),
            )
        ).alias("one")

    def _results(self, when: str) -> tuple[dict[str, str], list[Value]]:
        """What turns sums into results: columns by name as SQL, and the results of these."""
        columns: dict[str, str] = {}
        known: dict[str, str] = {}
        for summed in self._summed.values():
            limbs = [f"{when}{limb}" for limb in summed.limbs]
            known[summed.name] = f"{when}{summed.name}"
            columns[known[summed.name]] = (
                float_sum(limbs) if summed.is_float else integer_sum(limbs)
            )
        return columns, [self._result(f, when, known) for f in self._node.aggregates]

    def _result(self, folded: plan.Folded, when: str, known: dict[str, str]) -> Value:
        if isinstance(folded.accumulator, CountAccumulator):
            return Value(F.col(f"{when}n"), Plain(int))
        summed = self._summed[folded.value]
        name = known[summed.name]
        if isinstance(folded.accumulator, SumAccumulator):
            return Value(F.col(name), self._type(folded))
        average = f"try_divide(cast({name} as double), cast({when}n as double))"
        return Value(F.expr(average), Plain(float))

    def _row(self, results: Sequence[Value]) -> Column:
        key = Value(F.col("key"), self._key.of)
        return record_value((key, *results)).column

    def _type(self, folded: plan.Folded) -> Typed:
        if isinstance(folded.accumulator, CountAccumulator):
            return Plain(int)
        if isinstance(folded.accumulator, AvgAccumulator):
            return Plain(float)
        return Plain(float) if self._summed[folded.value].is_float else WIDE

    def _hash(self) -> Column:
        return hashed(Value(F.col("key"), self._key.of))


def is_linear(node: plan.Aggregate) -> bool:
    """Whether an aggregate needs nothing of its groups except sums."""
    kinds = (CountAccumulator, SumAccumulator, AvgAccumulator)
    return node.key is not None and all(
        isinstance(f.accumulator, kinds) and not f.skip_none for f in node.aggregates
    )


def _summed(node: plan.Aggregate, values: Sequence[Value]) -> dict[Function | None, Summed]:
    """The values that are added up, each once."""
    found: dict[Function | None, Summed] = {}
    for folded in node.aggregates:
        if isinstance(folded.accumulator, CountAccumulator):
            continue
        value = values[0] if folded.value is None else value_of(folded.value, values)
        if value.of.kind not in (int, float, bool) or value.optional:
            raise Inexact(f"{folded.name} of {value.of.kind.__name__} is not added up in columns")
        is_float, is_wide = value.of.kind is float, isinstance(value.of, Plain) and value.of.is_wide
        if isinstance(folded.accumulator, AvgAccumulator) and not is_float:
            raise Inexact("the average of integers may be rounded twice")
        column = value.column if is_float or is_wide else value.column.cast("long")
        made = Summed(f"s{len(found)}", Value(column, value.of), is_float, is_float or is_wide)
        found.setdefault(folded.value, made)
    return found


def _result_of(
    folded: plan.Folded, summed: dict[Function | None, Summed]
) -> tuple[str, str | None]:
    """What an aggregate is of the sums: its kind, and the name of the sum."""
    if isinstance(folded.accumulator, CountAccumulator):
        return "count", None
    kind = "sum" if isinstance(folded.accumulator, SumAccumulator) else "avg"
    return kind, summed[folded.value].name


def _limbs(summed: Summed) -> dict[str, str]:
    """SQL of the limbs of a value, by their names."""
    value = f"{summed.name}_in"
    if summed.is_float:
        return float_limbs(value, summed.name)
    return integer_limbs(value, summed.name, may_be_odd=summed.may_be_odd)


def _columns(columns: dict[str, str]) -> list[Column]:
    """Columns of SQL by name."""
    return [F.expr(sql).alias(name) for name, sql in columns.items()]
