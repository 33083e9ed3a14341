"""Aggregates by group, or of all rows, from sums and from the values of each group.

    group  n  limbs...          a row of the state for each flush that touched the group
    before = sums of the state, after = before + sums of the change

A group that exists before and after a change is output as two rows. The state has only sums, which
add up in any order; the results are computed on output. Aggregates that are no sums (Min, Max,
CountDistinct) have a table of values (`find_stored_values.py`).

Without a key there is one group, which is shown from the first flush on, even without rows.

State:  one row per group, and the rows of the last flushes.
Cost:   per flush O(changed rows) and O(buckets of their groups).
Source: [dbsp] linear aggregates; [mrql] homomorphism (sums), merge (+) and answer function.

`ReducedRows` takes apart an aggregate with multisets as results: the rows that a callable makes of
each group.

    (key, rows) -1, (key, rows') +1    ->    (key, row) by the difference of the rows

State:  only that of the aggregate: the rows, by group.
Cost:   O(rows of the groups that changed), and a call for each of these, before and after.
Source: `reactive/engine/operators/rowwise.py`.
"""

from __future__ import annotations

import pickle
from collections import Counter
from functools import cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from optimizer import plan
from reactive.engine.reference.bags import Bag
from spark_backend.aggregates.direct_totals import DirectTotals
from spark_backend.aggregates.summed import (
    ODD,
    Finishing,
    Result,
    SummedValue,
    aggregate_input,
    find_summed_values,
    result_column,
    result_type,
)
from spark_backend.aggregates.value_tables import StoredValue, ValuedAggregate, find_stored_values
from spark_backend.codec.columns import value_of
from spark_backend.codec.schema import Plain, Record, Typed, Whole, record_of, tuple_of
from spark_backend.codec.values import Value, as_type, field_of, record_value, spark_type
from spark_backend.direct.flush import DirectFlush, without_zeros
from spark_backend.state.one_job import TableSpec
from spark_backend.state.tables import union_frames
from spark_backend.steps.dropping import Closes, dropping_of
from spark_backend.steps.keys import row_bindings
from spark_backend.steps.step import (
    MOST_WHOLE,
    ODD_VALUE,
    Flush,
    Hashes,
    Step,
    collect_hashes,
    hash_column,
    rows_with_keys,
    schema_of,
)
from spark_backend.tables.stateless import worker_function

_BEFORE, _AFTER = "b_", "a_"


class Totals:
    """An aggregate in Spark columns.

    Parameters
    ----------
    count: the number of bindings of a row of the source.
    name: the name of the table of sums, and the prefix of the tables of values.
    closing: the value of the key by which groups close, and are dropped.

    Raises
    ------
    Inexact: columns cannot express it.
    """

    def __init__(
        self,
        node: plan.Aggregate,
        source: Step,
        count: int,
        name: str,
        closing: Closes | None = None,
    ) -> None:
        self._node, self._source = node, source
        values = row_bindings(Value(F.col("row"), source.kept), count)
        self._is_keyed = node.key is not None
        one = Value(F.lit(0).cast("long"), Plain(int, low=0, high=0))
        self._key = one if node.key is None else value_of(node.key, values)
        self._summed = find_summed_values(node, values)
        dropping = dropping_of("key", self._key.of, closing)
        self._valued = find_stored_values(node, values, self._key.of, self._hash, name, dropping)
        self.kept: Typed = self._row_type()
        kinds = {True: T.DoubleType(), False: T.DecimalType(38, 0)}
        odd = {f"{s.name}_odd": kinds[s.is_float] for s in self._summed.values() if s.may_be_odd}
        self._odd = list(odd)
        self._sums = ["n", *(column for s in self._summed.values() for column in s.columns)]
        fields = [
            T.StructField("key", spark_type(self._key.of)),
            *(T.StructField(name, kind) for name, kind in odd.items()),
            *(T.StructField(name, T.LongType()) for name in self._sums),
        ]
        self._hash()
        by = ("key", *self._odd)
        added = tuple(self._sums)
        columns = T.StructType(fields), by, added, self._hash
        spec = TableSpec(name, *columns, of_groups=True, dropping=dropping)
        self._spec = spec
        parts = [v.parts for v in self._valued.values() if v.parts is not None]
        self.specs = [spec, *(v.spec for v in self._valued.values()), *parts]
        self.own = tuple(
            one.folded.label for v in self._valued.values() for one in v.asked if not one.is_column
        )
        """The aggregates that Python workers compute."""
        self._prepare()
        of = self._key.of, self.kept, count, spec, self._summed, self._valued
        self._direct = DirectTotals(node, *of)

    def delta(self, flush: Flush) -> DataFrame | None:
        """Return how the output rows of the groups change; None if the input does not change.

        Without a key, the first flush outputs a row even without input.
        """
        given = flush.delta(self._source)
        if given is None:
            if self._is_keyed or not flush.is_first:
                return None
            given = flush.empty(self._source.kept)
        hashes = self._hashes(flush, given)
        if self._valued:
            flush.spread()
        given = flush.together(given.select(*self._given))
        change = self._change(given)
        flush.add(self._spec, change)
        if self._is_all_new(flush):
            return flush.handed_on(self._rows_of_new_groups(change))
        touched = self._touched_groups(flush, given, change, hashes)
        out = (
            self._finish_in_workers(touched, flush.paths)
            if flush.careful
            else self._output_rows(touched)
        )
        return flush.handed_on(out)

    def direct(self, flush: DirectFlush) -> Bag:
        return self._direct.delta(flush, flush.pairs(self._source))

    def _change(self, given: DataFrame) -> DataFrame:
        """Return the sums of the changed rows, by group."""
        rows = given
        for columns in (self._parts, self._of_rows):
            rows = rows.select("*", *columns) if columns else rows
        return rows.groupBy("key", *self._odd).agg(*self._adds)

    def _is_all_new(self, flush: Flush) -> bool:
        """Return True if all groups are new, and columns finish them."""
        is_plain = self._is_keyed and not self._valued and not flush.careful
        return is_plain and not flush.tables.rows_near(self._spec)

    def _rows_of_new_groups(self, change: DataFrame) -> DataFrame:
        """Return the rows of new groups, without comparing or grouping again."""
        found = change.filter(self._all_read).select(*self._as_new)
        found = found.filter("a_n > 0")
        return found.select("*", *self._new_totals).select(
            self._row(_AFTER).alias("row"), F.lit(1).cast("long").alias("weight")
        )

    def _touched_groups(
        self, flush: Flush, given: DataFrame, change: DataFrame, hashes: Hashes
    ) -> DataFrame:
        """Return the sums and results of the touched groups before (`b_`) and after (`a_`).

        With `careful`, they include the odd values; otherwise an odd value is an error.
        """
        keys = change.filter(self._all_read).select("key", self._hashed)
        parts = [change.select(*self._as_change)]
        for part in self._read_groups(flush, self._spec, keys, hashes):
            parts.append(part.select(*self._as_before))
        for of in self._valued.values():
            more = of.change(given)
            flush.add(of.spec, more)
            there = self._rows_of_groups(flush, of.spec, keys, hashes)
            results = of.results(self._with_one(more), there, flush.paths)
            parts.append(results.select(*self._as_results[of.name]))
        if not self._is_keyed and flush.is_first:
            parts.append(self._empty_group(flush))
        whole = flush.together(union_frames(parts))
        found = self._sum_groups(whole, careful=flush.careful)
        if not self._is_keyed:
            found = found.withColumn("b_is", F.lit(not flush.is_first))
        return found

    def _read_groups(
        self, flush: Flush, spec: TableSpec, keys: DataFrame, hashes: Hashes
    ) -> list[DataFrame]:
        """Return the rows of touched groups in a table, or the whole table if it is small."""
        if not flush.careful and 0 < flush.tables.rows_near(spec) <= MOST_WHOLE:
            return [flush.together(flush.tables.near(spec))]
        return self._rows_of_groups(flush, spec, keys, hashes)

    def _rows_of_groups(
        self, flush: Flush, spec: TableSpec, keys: DataFrame, hashes: Hashes
    ) -> list[DataFrame]:
        """Return the rows of touched groups in a table."""
        return rows_with_keys(
            flush, spec, keys, lambda part: self._are_equal_keys(part["key"], keys["key"]), hashes
        )

    def _are_equal_keys(self, one: Column, other: Column) -> Column:
        """Return True for equal keys; keys that are never null have a faster comparison."""
        is_plain = isinstance(self._key.of, Plain) and not self._key.optional
        return one == other if is_plain else one.eqNullSafe(other)

    def _hashes(self, flush: Flush, given: DataFrame) -> Hashes:
        """Return the function that collects the hashes of the groups of changed rows.

        Return None if that needs a job, as the rows are not in the query itself. `given`
        has the changed rows.
        """
        if not flush.is_local(self._source):
            return None
        return cache(lambda: collect_hashes(given.select(self._given[0]), self._hashed))

    def _with_one(self, change: DataFrame) -> DataFrame:
        """Add the one group of an aggregate without a key, which exists even without values."""
        if self._is_keyed:
            return change
        one = change.sparkSession.range(1).select(
            *(
                F.lit(0).cast("long").alias(n) if n != "value" else F.lit(None).alias(n)
                for n in change.columns
            )
        )
        return change.unionByName(one)

    def _empty_group(self, flush: Flush) -> DataFrame:
        """Return the one group, with no rows."""
        one = flush.spark.range(1)
        zeros = [F.lit(0).cast("long").alias(name) for name in self._sums]
        odd = [F.lit(None).cast(self._spec.schema[name].dataType).alias(name) for name in self._odd]
        return one.select(F.lit(0).cast("long").alias("key"), *odd, *zeros).select(*self._as_change)

    def _sum_groups(self, whole: DataFrame, *, careful: bool) -> DataFrame:
        """Return the sums by group; unless `careful`, a group with odd values is an error."""
        if not self._odd:
            return whole.groupBy("key").agg(*self._both)
        if careful:
            odd = F.expr(f"if({self._is_odd}, struct({', '.join(self._odd)}, b_n, a_n), null)")
            return whole.groupBy("key").agg(*self._both, F.collect_list(odd).alias(ODD))
        checked = F.expr(self._unless_odd("a_n"))
        return whole.withColumn("a_n", checked).groupBy("key").agg(*self._both)

    @property
    def _is_odd(self) -> str:
        """SQL of the test for a row of odd values."""
        return f"coalesce({', '.join(f'cast({n} as string)' for n in self._odd)}) is not null"

    def _unless_odd(self, column: str) -> str:
        """Return SQL of a column of integers, which fails for odd values.

        Return the column itself if no value can be odd.
        """
        if not self._odd:
            return column
        return f"if({self._is_odd}, cast(raise_error('{ODD_VALUE}') as bigint), {column})"

    def _finish_in_workers(self, touched: DataFrame, paths: list[str]) -> DataFrame:
        """Return the output rows from Python workers, which add odd values as Python does."""
        if not self._odd:
            return self._output_rows(touched)
        plan_of = Finishing(
            self._key.of if self._is_keyed else None,
            self.kept,
            tuple((s.name, s.is_float) for s in self._summed.values()),
            tuple(self._worker_result(folded) for folded in self._node.aggregates),
        )
        run = worker_function(
            paths, "spark_backend.aggregates.summed", "finish_groups", pickle.dumps(plan_of)
        )
        there = touched.select("*", *self._there)
        return there.mapInArrow(run, schema_of(self.kept))

    def _output_rows(self, touched: DataFrame) -> DataFrame:
        """Return the rows of touched groups that differ: before with weight -1, after with weight
        1."""
        found = touched.select("*", *self._there).filter(self._differs)
        return (
            found.select("*", *self._totals)
            .select(self._pairs)
            .filter("one.is")
            .select("one.row", "one.weight")
        )

    # The columns of a flush, made once: each takes calls to the JVM.

    def _prepare(self) -> None:
        """Build the Spark expressions that every flush reuses."""
        self._given = self._columns_given()
        self._parts = _named_columns(*(s.parts() for s in self._summed.values()))
        self._of_rows = _named_columns(*(s.of_row() for s in self._summed.values()))
        sums = ["sum(weight) as n", *(f"sum({n} * weight) as {n}" for n in self._sums[1:])]
        self._adds = [F.expr(sql) for sql in sums]
        self._hashed = self._hash().alias("h")
        # Reads all sums, so that Spark sees twice the same query and runs it once.
        self._all_read = f"coalesce({', '.join(self._sums)}) > {-(2**62) * 2 + 1}L"
        self._prepare_both()
        self._prepare_out()

    def _columns_given(self) -> list[Column]:
        """Return the columns that are read of an input row."""
        key = as_type(self._key, self._key.of).alias("key")
        values = [s.value.column.alias(f"{s.name}_in") for s in self._summed.values()]
        kept = [v.value.column.alias(f"{v.name}_in") for v in self._valued.values()]
        return [key, F.col("weight"), *values, *kept]

    def _prepare_both(self) -> None:
        """Make the columns for sums of the state, of the change, and for results of values, all
        with the same names."""
        results = {name: t for of in self._valued.values() for name, t in of.columns().items()}
        no_results = [
            F.lit(None).cast(kind).alias(f"{when}{name}")
            for name, kind in results.items()
            for when in (_BEFORE, _AFTER)
        ]
        kept = [F.col(name) for name in ("key", *self._odd)]
        after = [F.expr(f"{n} as a_{n}") for n in self._sums]
        none = [F.expr(f"0L as b_{n}") for n in self._sums]
        self._as_change = [*kept, *none, *after, *no_results]
        was = [F.expr(f"{n} as b_{n}") for n in self._sums]
        self._as_before = [*kept, *was, *after, *no_results]
        self._as_results = {
            of.name: self._columns_of_values(of, results) for of in self._valued.values()
        }
        sum_names = [f"{when}{name}" for when in (_BEFORE, _AFTER) for name in self._sums]
        found = [f"{when}{name}" for when in (_BEFORE, _AFTER) for name in results]
        self._as_new = [F.col("key"), F.expr(f"{self._unless_odd('n')} as a_n"), *after[1:]]
        self._both = [F.expr(f"sum({name}) as {name}") for name in sum_names]
        self._both += [F.expr(f"max({name}) as {name}") for name in found]

    def _columns_of_values(self, of: StoredValue, results: dict[str, T.DataType]) -> list[Column]:
        """Return the columns that align the results from the values `of` with the sums: zero for
        each sum, null for odd values and for results from other tables."""
        odd = [F.lit(None).cast(self._spec.schema[name].dataType).alias(name) for name in self._odd]
        none = [F.expr(f"0L as {when}{n}") for when in (_BEFORE, _AFTER) for n in self._sums]
        own = of.columns()
        found = [
            (F.col(f"{when}{n}") if n in own else F.lit(None).cast(kind)).alias(f"{when}{n}")
            for n, kind in results.items()
            for when in (_BEFORE, _AFTER)
        ]
        return [F.col("key"), *odd, *none, *found]

    def _prepare_out(self) -> None:
        """Build the expressions that select the groups that differ, and that make their output
        rows."""
        is_there = {_BEFORE: "b_n > 0", _AFTER: "a_n > 0"} if self._is_keyed else {_AFTER: "true"}
        self._there = [F.expr(f"{test} as {when}is") for when, test in is_there.items()]
        results = [name for of in self._valued.values() for name in of.columns()]
        differs = [f"not (b_{name} <=> a_{name})" for name in ("is", *self._sums, *results)]
        self._differs = F.expr(" or ".join(differs))
        before, after = (
            [F.expr(s.total(when)).alias(f"{when}{s.name}") for s in self._summed.values()]
            for when in (_BEFORE, _AFTER)
        )
        self._totals, self._new_totals = [*before, *after], after
        one = F.lit(1).cast("long")
        pairs = [
            F.struct(
                self._row(when).alias("row"),
                weight.alias("weight"),
                F.col(f"{when}is").alias("is"),
            )
            for when, weight in ((_BEFORE, -one), (_AFTER, one))
        ]
        self._pairs = F.explode(F.array(*pairs)).alias("one")

    # Results.

    def _row(self, when: str) -> Column:
        """Return the output row, from the columns whose names begin with `when`."""
        results = [
            Value(self._result(f, when), self._result_type(f)) for f in self._node.aggregates
        ]
        if not self._is_keyed and len(results) == 1:
            return as_type(results[0], self.kept)
        key = [Value(F.col("key"), self._key.of)] if self._is_keyed else []
        items = (*key, *results)
        row = record_value(items, self.kept) if self._node.row else record_value(items)  # type: ignore[arg-type]
        return as_type(row, self.kept)

    def _result(self, folded: plan.Folded, when: str) -> Column:
        """Return the result of one aggregate, from the columns whose names begin with `when`."""
        asked = self._valued_aggregate(folded)
        return asked.shown(when) if asked is not None else self._column_of_sums(folded, when)

    def _column_of_sums(self, folded: plan.Folded, when: str) -> Column:
        return result_column(folded, self._summed.get(aggregate_input(folded)), when)

    def _valued_aggregate(self, folded: plan.Folded) -> ValuedAggregate | None:
        """Return the aggregate of values for an aggregate; None if it is computed from sums."""
        of = self._valued.get(aggregate_input(folded))
        found = () if of is None else of.asked
        return next((asked for asked in found if asked.folded == folded), None)

    def _result_type(self, folded: plan.Folded) -> Typed:
        """Return the type of the result of one aggregate."""
        asked = self._valued_aggregate(folded)
        if asked is not None:
            may_be_empty = (
                not self._is_keyed or self._valued[aggregate_input(folded)].value.optional
            )
            return asked.result_type(may_be_empty=may_be_empty)
        return result_type(
            folded, self._summed.get(aggregate_input(folded)), may_be_empty=not self._is_keyed
        )

    def _row_type(self) -> Typed:
        """Return the type of the output rows: a tuple or named row; a single result without a key
        is the row itself."""
        results = tuple(map(self._result_type, self._node.aggregates))
        if not self._is_keyed and len(results) == 1:
            return results[0]
        items = (self._key.of, *results) if self._is_keyed else results
        return tuple_of(items) if self._node.row is None else record_of(self._node.row, items)

    def _worker_result(self, folded: plan.Folded) -> Result:
        """Return the recipe for Python workers."""
        asked = self._valued_aggregate(folded)
        if asked is not None:
            return Result("value", asked.column, self._result_type(folded))
        summed_as: SummedValue | None = self._summed.get(aggregate_input(folded))
        if summed_as is None:
            return Result("count", "n", Plain(int))
        kind = "sum" if result_kind(folded) == "sum" else "avg"
        return Result(kind, summed_as.name, self._result_type(folded), summed_as.count)

    def _hash(self) -> Column:
        return hash_column(Value(F.col("key"), self._key.of))


def _named_columns(*several: dict[str, str]) -> list[Column]:
    """Return columns of SQL by their names."""
    return [F.expr(sql).alias(name) for found in several for name, sql in found.items()]


def result_kind(folded: plan.Folded) -> str:
    """Return "sum" or "avg", the kind of a linear aggregate."""
    return type(folded.accumulator).__name__.removesuffix("Accumulator").lower()


class ReducedRows:
    """The rows that a callable makes of each group, each as a pair of the key and the row.

    Parameters
    ----------
    groups: an aggregate with the key and a multiset of each group.
    """

    def __init__(self, groups: Totals) -> None:
        self._groups, self.own = groups, groups.own
        assert isinstance(groups.kept, Record)
        key, made = groups.kept.fields
        assert isinstance(made, Whole) and made.of is not None
        self.kept: Typed = tuple_of((key, made.of))
        group = Value(F.col("row"), groups.kept)
        one = F.explode(field_of(group, 1).column).alias("one")
        self._each = [field_of(group, 0).column.alias("key"), one, F.col("weight").alias("w")]
        pair = (Value(F.col("key"), key), Value(F.col("one.value"), made.of))
        self._row = as_type(record_value(pair, self.kept), self.kept).alias("row")

    def delta(self, flush: Flush) -> DataFrame | None:
        """Return how the rows of all groups change, added up by row; None if no group changes."""
        given = flush.delta(self._groups)
        if given is None:
            return None
        weight = (F.col("w") * F.col("one.weight")).alias("weight")
        rows = given.select(*self._each).select(self._row, weight)
        return rows.groupBy("row").agg(F.sum("weight").alias("weight")).filter("weight != 0")

    def direct(self, flush: DirectFlush) -> Bag:
        """Return how the rows `(key, row)` change, added up, in a flush of this process."""
        found: Bag = Counter()
        for (key, made), weight in flush.delta(self._groups).items():
            for row, count in made.items():
                found[key, row] += weight * count
        return without_zeros(found)
