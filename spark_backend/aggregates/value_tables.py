"""Aggregates of a table of the values of each group, with their weights.

    group  value  weight        a row of the state for each flush that changed the weight
    of a touched group: the values whose weight is positive, before and after

    Min, Max, CountDistinct, Collect    in columns; flushes of this process split large groups into
                                        parts (`parts.py`)
    user aggregates, sums of Decimal    by Python workers, which receive the values (`summed.py`)

Columns are used only if Spark orders and equates the type as Python does: NaN follows all numbers
in both, 0.0 and -0.0 are one value in both; text is ordered by code points.

State:  a row per group and value, and the rows of the last flushes; the results of parts.
Cost:   per flush O(values in the buckets of the groups that changed).
Source: [dbsp] aggregates that are not linear, by the touched groups.

`as_aggregate` rewrites a `reduce` as an aggregate over the rows of each group, with a multiset of
rows as its result; so its state and its computation are those of user aggregates.

    reduce f by k    ->    rows of   aggregate (the rows, and f of them at the end) by k

Sound:  rows of one group have equal keys, so that any row gives the key.

`own_result` finds the type of an aggregate that Python computes, or the reason that none is known:

    Sum, Avg of Decimal         a Decimal of any number of digits
    Collect                     a multiset of the values
    Aggregate(0, add, remove)   int, if add returns one for an int and a value
    Aggregate(..., result=f)    the known return type of f for such a state
    Monoid(0, combine)          the type of the values, if that is the type of the zero
    reduce(f)                   a multiset of the known row type of f
    Aggregate with on_error=    an `Outcome`: its normal result, or a `Fault`

The return type of a callable is inferred from its body or its annotation (`codec/result_types.py`).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from types import NoneType
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import Function, Lifted, Parameter, all_parameters, tuple_of
from optimizer.expressions.text import written
from optimizer.lifting.lift import lift
from optimizer.plans.properties import bindings
from reactive.engine.codegen.functions import callable_of
from reactive.engine.collections.bag import Bag
from reactive.engine.collections.bag_folds import rows_returned
from reactive.engine.collections.zset import Row, canonical
from reactive.engine.operators import accumulators
from reactive.engine.operators.accumulators import (
    CollectAccumulator,
    CountAccumulator,
    CountDistinctAccumulator,
    MaxAccumulator,
    MinAccumulator,
    SumAccumulator,
)
from reactive.engine.operators.plain import spread_bindings
from reactive.engine.operators.statistics import StatisticAccumulator
from reactive.engine.operators.tolerant import Tolerant
from reactive.engine.remote.fragments import LEVEL
from spark_backend.aggregates.comparable_types import check_compares, is_in_order
from spark_backend.aggregates.statistics import statistic_result
from spark_backend.aggregates.summed import (
    LINEAR,
    VALUES,
    AggregateInput,
    Folding,
    aggregate_input,
    input_value,
)
from spark_backend.codec.arrow import from_arrow
from spark_backend.codec.codec import serialize_classes, serialize_plan
from spark_backend.codec.columns import value_of
from spark_backend.codec.hashing import flattened_values, hash_of, leaf_types
from spark_backend.codec.result_types import infer_element_type, infer_result_type
from spark_backend.codec.schema import (
    WIDEST,
    Digits,
    Plain,
    Record,
    Typed,
    Untyped,
    Whole,
    common_type,
    outcome_of,
    type_name,
)
from spark_backend.codec.values import (
    Inexact,
    Value,
    any_value,
    as_type,
    field_of,
    literal,
    record_value,
    spark_type,
)
from spark_backend.direct.flush import TooMany
from spark_backend.state.one_job import TableSpec
from spark_backend.state.tables import union_frames
from spark_backend.steps.dropping import Dropping
from spark_backend.steps.step import hash_column
from spark_backend.tables.stateless import worker_function

PARTS = 1_024
"""The number of parts of a large group."""
_BEFORE, _AFTER = "b_", "a_"


@dataclass(frozen=True, slots=True)
class ValuedAggregate:
    """An aggregate of values, the column of its result, and the type of the result.

    If it `may_be_none`, the result for no values is None.
    """

    folded: plan.Folded
    column: str
    of: Typed
    is_column: bool
    may_be_none: bool

    def result_type(self, *, may_be_empty: bool) -> Typed:
        """Return the type of the result, given whether there may be no values."""
        return replace(self.of, optional=self.of.optional or (may_be_empty and self.may_be_none))

    def shown(self, when: str) -> Column:
        """Return the result, from a column whose name begins with `when`."""
        column = F.col(f"{when}{self.column}")
        if isinstance(self.folded.accumulator, CountDistinctAccumulator):
            return F.coalesce(column, F.lit(0).cast("long"))
        is_sum = isinstance(self.folded.accumulator, SumAccumulator)
        return F.coalesce(column, F.lit("0")) if is_sum else column


@dataclass(frozen=True, slots=True)
class StoredValue:
    """A value stored in full for each group, the name of its columns, and its aggregates."""

    name: str
    value: Value
    skips_none: bool
    spec: TableSpec
    asked: tuple[ValuedAggregate, ...]
    is_keyed: bool
    parts: TableSpec | None = None
    """The table of results of the parts of large groups; None if groups have no parts."""

    @property
    def part_types(self) -> dict[str, Typed]:
        """The types of the columns of parts, without the key and the weight."""
        whole = Plain(int)
        results = {asked.column: replace(asked.of, optional=True) for asked in self.asked}
        return {"part": whole, "count": whole, **results}

    def part_of(self, value: Any) -> int:
        """Return the part of a value.

        Raises
        ------
        TooMany: a column cannot store the value.
        """
        found = hash_of(leaf_types(self.value.of), flattened_values(self.value.of, value))
        if found is None:
            raise TooMany(f"a value that no column has: {value!r:.80}")
        return found % PARTS

    def read(self, table: pa.Table, key: Typed) -> Iterable[tuple[Any, Any, int, int]]:
        """Return group, value, weight and part of each row of the table; () of an empty table.

        The part is 0 if values have no parts.
        """
        if not table.num_rows:
            return ()
        keys = from_arrow(key, table.column("key").combine_chunks())
        values = from_arrow(self.value.of, table.column("value").combine_chunks())
        count = table.num_rows
        parts = [0] * count if self.parts is None else table.column("part").to_pylist()
        return zip(keys, values, table.column("weight").to_pylist(), parts, strict=True)

    def change(self, given: DataFrame) -> DataFrame:
        """Return the changes of the weights of values, from rows with `key`, `{name}_in` and
        `weight`."""
        value = F.col(f"{self.name}_in")
        rows = given.select("key", value.alias("value"), "weight")
        if self.skips_none and self.value.optional:
            rows = rows.filter(F.col("value").isNotNull())
        net = rows.groupBy("key", "value").agg(F.sum("weight").alias("weight"))
        if self.parts is None:
            return net
        part = hash_column(Value(F.col("value"), self.value.of))
        return net.withColumn("part", F.pmod(part, F.lit(PARTS).cast("long")))

    def results(
        self, change: DataFrame, stored: Sequence[DataFrame], paths: list[str]
    ) -> DataFrame:
        """Return a row per touched group: `key`, and each result before and after.

        Parameters
        ----------
        stored: the rows of touched groups in the table.
        paths: the folders that workers add to their import path.
        """
        none = F.lit(0).cast("long")
        parts = [change.select("key", "value", none.alias("b"), F.col("weight").alias("d"))]
        parts += [
            p.select("key", "value", F.col("weight").alias("b"), none.alias("d")) for p in stored
        ]
        weights = (
            union_frames(parts)
            .groupBy("key", "value")
            .agg(F.sum("b").alias("b"), F.sum("d").alias("d"))
        )
        weights = weights.select("key", "value", "b", (F.col("b") + F.col("d")).alias("a"))
        found = [
            _result_over_values(one.folded, when).alias(f"{when}_{one.column}")
            for when in ("b", "a")
            for one in self.asked
            if one.is_column
        ]
        if not self._worker_aggregates:
            return weights.groupBy("key").agg(*found)
        values = F.sort_array(F.collect_list(F.struct("value", "b", "a"))).alias(VALUES)
        return self._fold_in_workers(weights.groupBy("key").agg(*found, values), paths)

    @property
    def _worker_aggregates(self) -> tuple[ValuedAggregate, ...]:
        return tuple(one for one in self.asked if not one.is_column)

    def _fold_in_workers(self, groups: DataFrame, paths: list[str]) -> DataFrame:
        """Return the groups with the results that Python workers compute from their values, before
        (`b_`) and after (`a_`). The column of the values is dropped."""
        own = self._worker_aggregates
        given = plan.Recursive(LEVEL, 0, "values", False, (None,))
        folds = tuple(replace(one.folded, value=None) for one in own)
        names, results = tuple(o.column for o in own), tuple(o.of for o in own)
        of = Folding(self.value.of, names, results, not self.is_keyed)
        run = worker_function(
            paths,
            "spark_backend.aggregates.summed",
            "fold_groups",
            serialize_plan(plan.Aggregate(given, None, folds)),
            serialize_classes(),
            pickle.dumps(of),
        )
        kept = [field for field in groups.schema.fields if field.name != VALUES]
        more = [
            T.StructField(f"{when}_{one.column}", spark_type(one.of))
            for when in ("b", "a")
            for one in own
        ]
        return groups.mapInArrow(run, T.StructType([*kept, *more]))

    def columns(self) -> dict[str, T.DataType]:
        """Return the types of the columns of all results."""
        return {one.column: spark_type(one.of) for one in self.asked}


def find_stored_values(
    node: plan.Aggregate,
    values: Sequence[Value],
    key: Typed,
    hashed: Any,
    name: str,
    dropping: Dropping | None,
) -> dict[AggregateInput, StoredValue]:
    """Return the distinct values to store in full, for aggregates that are no sums.

    `dropping`: the groups whose values merges drop, if any.

    Raises
    ------
    Inexact: a value or a result has no known type.
    """
    asked: dict[AggregateInput, list[plan.Folded]] = {}
    for folded in node.aggregates:
        if not _is_made_of_sums(folded, values):
            asked.setdefault(aggregate_input(folded), []).append(folded)
    found: dict[AggregateInput, StoredValue] = {}
    for what, several in asked.items():
        value = _value_or_row(several[0], values)
        own = f"v{len(found)}"
        typed = Value(as_type(value, value.of), value.of)
        distinct = dict.fromkeys(several)
        made = tuple(
            _make_valued_aggregate(f, f"{own}_{place}", typed) for place, f in enumerate(distinct)
        )
        has_parts = _has_parts(made, value.of)
        columns = {"key": key, "value": value.of, **({"part": Plain(int)} if has_parts else {})}
        spec = _value_table(f"{name}{own}", columns, hashed, dropping)
        of = StoredValue(own, typed, what[1], spec, made, node.key is not None)
        if has_parts:
            of = replace(
                of,
                parts=_value_table(
                    f"{spec.name}p", {"key": key, **of.part_types}, hashed, dropping, is_here=True
                ),
            )
        found[what] = of
    return found


def _value_table(
    name: str,
    columns: Mapping[str, Typed],
    hashed: Any,
    dropping: Dropping | None,
    *,
    is_here: bool = False,
) -> TableSpec:
    """Return a table of rows with weights, in buckets by the key."""
    fields = [T.StructField(column, spark_type(of)) for column, of in columns.items()]
    schema = T.StructType([*fields, T.StructField("weight", T.LongType())])
    of = name, schema, tuple(columns), ("weight",), hashed
    return TableSpec(*of, is_here=is_here, dropping=dropping)


def _has_parts(asked: Sequence[ValuedAggregate], value: Typed) -> bool:
    """Return True if the results of a group follow from the results of its parts, and the driver
    can compute the part of a value."""
    kinds = (MinAccumulator, MaxAccumulator, CountDistinctAccumulator)
    can = all(one.is_column and isinstance(one.folded.accumulator, kinds) for one in asked)
    return can and all(isinstance(leaf, Plain) for leaf in leaf_types(value))


def _is_made_of_sums(folded: plan.Folded, values: Sequence[Value]) -> bool:
    """Return True if sums in columns give the aggregate (`summed.py`)."""
    if not isinstance(folded.accumulator, LINEAR):
        return False
    if isinstance(folded.accumulator, CountAccumulator):
        return True
    return input_value(folded, values).of.kind is not Decimal


def _value_or_row(folded: plan.Folded, values: Sequence[Value]) -> Value:
    """Return the value that an aggregate reads; without a callable, the row.

    Raises `Inexact` if the value is always None.
    """
    if folded.value is not None:
        value = value_of(folded.value, values)
    else:
        value = values[0] if len(values) == 1 else record_value(tuple(values))
    if value.of.kind is NoneType:
        raise Inexact("a value that is always None")
    return value


def _make_valued_aggregate(folded: plan.Folded, column: str, value: Value) -> ValuedAggregate:
    """Return how an aggregate is computed from values: by Spark columns or by Python workers.

    Raises `Inexact` if it cannot be.
    """
    match folded.accumulator:
        case CountDistinctAccumulator():
            return ValuedAggregate(folded, column, Plain(int), True, False)
        case CollectAccumulator():
            return ValuedAggregate(folded, column, own_result(folded, value), True, False)
        case MinAccumulator() | MaxAccumulator():
            return _make_extreme(folded, column, value)
        case _:
            of = own_result(folded, value)
            is_average = isinstance(of, Whole) and of.kind is Digits and "Avg" in folded.name
            may_be_none = is_average or of.optional
            return ValuedAggregate(folded, column, of, False, may_be_none)


def _make_extreme(folded: plan.Folded, column: str, value: Value) -> ValuedAggregate:
    """Return Min or Max: in columns if Spark orders the values as Python does, else by Python
    workers if no comparison can raise."""
    if value.optional and not folded.accumulator.skip_none:
        raise Inexact(f"{folded.name} may raise for None")
    of = replace(value.of, optional=value.optional)
    if is_in_order(value.of):
        return ValuedAggregate(folded, column, of, True, True)
    check_compares(value.of, folded)
    return ValuedAggregate(folded, column, of, False, True)


def _result_over_values(folded: plan.Folded, when: str) -> Column:
    """Return the result over the values with a positive count in the column `when`."""
    is_there = F.col(when) > 0
    value = F.when(is_there, F.col("value"))
    match folded.accumulator:
        case CountDistinctAccumulator():
            return F.sum(F.when(is_there, F.lit(1).cast("long")).otherwise(F.lit(0).cast("long")))
        case CollectAccumulator():
            one = F.struct("value", F.col(when).alias("weight"))
            return F.sort_array(F.collect_list(F.when(is_there, one)))
        case MinAccumulator():
            return F.min(value)
        case _:
            return F.max(value)


@dataclass(frozen=True)
class ReducedAccumulator:
    """An accumulator of the rows of a group, with `function(key, rows)` as its result.

    `count` is the number of bindings of a row.
    """

    key: Function
    function: Function
    count: int

    def __reduce__(self) -> Any:
        return ReducedAccumulator, (self.key, self.function, self.count)

    in_place = True
    over_values = False
    adds_values = False
    skip_none = False
    check = None

    def zero(self) -> dict[Row, int]:
        return {}

    def add(self, state: dict[Row, int], row: Row, weight: int) -> dict[Row, int]:
        """Add a row to the state, `weight` times; the state itself is changed and returned."""
        state[row] = state.get(row, 0) + weight
        return state

    def result(self, state: dict[Row, int]) -> Bag[Row]:
        """Return the rows that the callable makes of a group, as a multiset.

        `state` has at least one row.
        """
        key = canonical(self._key_of(next(iter(state))))
        counts: dict[Row, int] = {}
        for made in rows_returned(self._make(key, Bag(state)), "reduce"):
            row = canonical(made)
            counts[row] = counts.get(row, 0) + 1
        return Bag(counts)

    @cached_property
    def _key_of(self) -> Callable[[Row], Any]:
        return spread_bindings(self.key, self.count)

    @cached_property
    def _make(self) -> Callable[[Any, Bag[Row]], Any]:
        return callable_of(self.function)


def as_aggregate(node: plan.Reduce) -> plan.Aggregate:
    """Return an aggregate with the key of each group and the multiset of the rows of its result."""
    count = bindings(node.input)
    body = Parameter(0) if count == 1 else tuple_of(*all_parameters(count))
    rows = Lifted(body, tuple(f"row{place}" for place in range(count)), (), count)
    folds = ReducedAccumulator(node.key, node.function, count)
    folded = plan.Folded(written(node.function), folds, rows, _callables(node.function))
    return plan.Aggregate(node.input, node.key, (folded,))


def _callables(function: Function) -> tuple[Opaque, ...]:
    return (function,) if isinstance(function, Opaque) else function.origins


def reduced_result(own: ReducedAccumulator, row: Value) -> Typed:
    """Return the type of the multiset of a group.

    Raises
    ------
    Inexact: the row type of the callable is unknown.
    """
    parts = [field_of(row, n) for n in range(own.count)] if own.count > 1 else [row]
    given = any_value(_key_type(own.key, parts)), any_value(Whole(Bag, row.of))
    function = lift(own.function) if isinstance(own.function, Opaque) else own.function
    return Whole(Bag, infer_element_type(function, given))


def _key_type(key: Function, parts: list[Value]) -> Typed:
    """Return the type of a key: of its column, or, if Spark cannot compute it, the inferred result
    type. Raises `Inexact` if that is unknown."""
    try:
        return value_of(key, parts).of
    except Inexact:
        return infer_result_type(key, parts)


def own_result(folded: plan.Folded, value: Value) -> Typed:
    """Return the type of an aggregate of values.

    Raises
    ------
    Inexact: the type is unknown, or the aggregate may raise for a value of the type.
    """
    match folded.accumulator:
        case accumulators.SumAccumulator() | accumulators.AvgAccumulator():
            if value.of.kind is not Decimal:
                raise Inexact(f"{folded.name} of {type_name(value.of)}")
            return Whole(Digits)
        case accumulators.CollectAccumulator():
            return Whole(Bag, value.of)
        case accumulators.UserAccumulator() as own:
            return _user_result(own, value)
        case accumulators.MonoidAccumulator() as own:
            return _monoid_result(own, value)
        case ReducedAccumulator() as own:
            return reduced_result(own, value)
        case StatisticAccumulator() as own:
            return statistic_result(folded, own, value.of)
        case Tolerant(inner):
            return outcome_of(own_result(replace(folded, accumulator=inner), value))
        case _:
            raise Inexact(f"{folded.name} of {type_name(value.of)}, whose order is not Spark's")


def _user_result(own: accumulators.UserAccumulator, value: Value) -> Typed:
    """Return the result type of a user aggregate, inferred from its initial state and its
    callables. Raises `Inexact` if the state has no common type."""
    state = _widen_integer_range(_constant_type(own.initial))
    for _ in range(2):  # the state that it adds to is a result of the first call
        found = _call_type(own.plus, any_value(state), value)
        try:
            state = _widen_integer_range(common_type(state, found))
        except Untyped as untyped:
            raise Inexact(f"its state: {untyped}") from None
    return (
        state
        if own.finish is None
        else _widen_integer_range(_call_type(own.finish, any_value(state)))
    )


def _monoid_result(own: accumulators.MonoidAccumulator, value: Value) -> Typed:
    """Return the result type of a monoid.

    Raises `Inexact` if its zero is of another type than the values, or a value may be None.
    """
    if value.optional or _constant_type(own.initial).kind is not value.of.kind:
        raise Inexact(f"its zero is of another type than {type_name(value.of)}")
    state = _widen_integer_range(value.of)
    return (
        state
        if own.finish is None
        else _widen_integer_range(_call_type(own.finish, any_value(state)))
    )


def _constant_type(value: Any) -> Typed:
    return literal(value).of


def _call_type(function: Opaque, *values: Value) -> Typed:
    """Return the return type of a callable for such values."""
    return infer_result_type(lift(function), values)


def _widen_integer_range(of: Typed) -> Typed:
    """Return the type with the widest integers that columns store; other types unchanged."""
    if isinstance(of, Record):
        return replace(of, fields=tuple(map(_widen_integer_range, of.fields)))
    if isinstance(of, Plain) and of.kind is int:
        return replace(of, low=-WIDEST, high=WIDEST)
    return of
