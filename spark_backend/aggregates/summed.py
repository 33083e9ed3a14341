"""Sums of aggregates as Spark columns, exact in any order, and results that Python workers compute.

The state of a linear aggregate is a sum per group of these columns of a row:

    Count                   n                   the number of rows
    Sum, Avg of integers    two limbs           integers beyond 64 bits as they are
    Sum, Avg of floats      five limbs          floats without limbs as they are
    with skip_none          c                   the number of values that are not None

Limbs:

    integers    two sums: of the low 32 bits, and of the bits above them
    floats      five sums of 32 bits each, with the point 96 bits from the right; the sum is rounded
                once, at the end, as `math.fsum` rounds it

A float without such limbs (NaN, an infinity, beyond 2**63, or with bits below 2**-96) is odd, and
so is an integer beyond 64 bits: it is stored as it is, and Python finishes the groups with one
(`finish_groups`).

Sound:  limbs of a float are exact: each step subtracts the nearest integer and multiplies by a
        power of two. A decimal of 38 digits holds the bits that are rounded, 65 at least, and one
        further bit that says whether there was anything below them.
Cost:   per float, roundings and products; no remainders, which are slow.
Source: [mrql] the homomorphism of an aggregate; superaccumulators; `codec/limbs.py` is the same in
Python.

`finish_groups` and `fold_groups` run in Python workers. They are pure functions over Arrow batches;
Spark is not needed to try them. `fold_groups` computes aggregates from all values of each group
that changed:

    values of a group, with weights, before and after  --accumulator, in a worker-->  two results

Workers have no state between flushes: the values are in a table. They arrive in one order, so that
a repeated computation returns the same result.

    Sum, Avg of Decimal     exact, with as many digits as needed
    Aggregate, Monoid       a callable of the user, with a result of a known type
    Min, Max                of types that Spark orders differently from Python

Cost:   O(values of the groups that changed), and a call for each value.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from optimizer import plan
from optimizer.expr import Function
from optimizer.expressions.attempts import Outcome
from reactive.engine.collections.zset import canonical
from reactive.engine.operators.accumulators import AvgAccumulator, CountAccumulator, SumAccumulator
from reactive.engine.operators.tolerant import Tolerant
from reactive.errors import OffloadError
from spark_backend.codec.arrow import from_arrow, to_arrow
from spark_backend.codec.columns import value_of
from spark_backend.codec.limbs import amount_total
from spark_backend.codec.schema import WIDEST, Digits, Plain, Record, Typed, Whole, type_name
from spark_backend.codec.values import Inexact, Value
from spark_backend.tables.stateless import RAISED, adopt_classes

WIDE = Plain(int, low=-WIDEST, high=WIDEST)
LINEAR = (CountAccumulator, SumAccumulator, AvgAccumulator)
AggregateInput = tuple[Function | None, bool]
"""The value that an aggregate reads, and whether it skips None."""


@dataclass(frozen=True, slots=True)
class SummedValue:
    """A value to be summed, as integers or as floats, and the name of its columns.

    It `may_be_odd` if some values have no limbs: floats, and integers beyond 64 bits. If it
    `may_be_none`, the values that are not None are counted.
    """

    name: str
    value: Value
    is_float: bool
    may_be_odd: bool
    may_be_none: bool

    @property
    def limbs(self) -> list[str]:
        """The columns of the limbs of the sum."""
        count = FLOAT_LIMBS if self.is_float else INTEGER_LIMBS
        return [f"{self.name}_{place}" for place in range(count)]

    @property
    def count(self) -> str:
        """The column of the number of values."""
        return f"{self.name}_c" if self.may_be_none else "n"

    @property
    def columns(self) -> list[str]:
        """The summed columns."""
        return [*self.limbs, self.count] if self.may_be_none else self.limbs

    def parts(self) -> dict[str, str]:
        """Return SQL of first results from `{name}_in`: for a float, the part with limbs."""
        return float_parts(self._present, self.name) if self.is_float else {}

    def of_row(self) -> dict[str, str]:
        """Return SQL of the summed columns of a row, from `{name}_in` and its `parts`."""
        if self.is_float:
            found = float_limbs(f"{self.name}_good", self.name)
        else:
            found = integer_limbs(self._present, self.name, may_be_odd=self.may_be_odd)
        if self.may_be_none:
            found[self.count] = f"if({self.name}_in is null, 0L, 1L)"
        return found

    @property
    def _present(self) -> str:
        """SQL of the value, with zero in place of None."""
        zero = "0D" if self.is_float else "0"
        return f"coalesce({self.name}_in, {zero})" if self.may_be_none else f"{self.name}_in"

    def total(self, when: str) -> str:
        """Return SQL of the sum, from columns whose names begin with `when`."""
        limbs = [f"{when}{limb}" for limb in self.limbs]
        return float_sum(limbs) if self.is_float else integer_sum(limbs)

    def average(self, when: str) -> str:
        """Return SQL of the mean: the sum in `{when}{name}` over the count, as Python divides.

        It is null for no values.
        """
        total, count = f"{when}{self.name}", f"{when}{self.count}"
        if self.is_float:
            return f"if({count} > 0, try_divide({total}, cast({count} as double)), null)"
        return integer_quotient(total, count)


def aggregate_input(folded: plan.Folded) -> AggregateInput:
    """Return the value that an aggregate reads of a row."""
    return folded.value, folded.accumulator.skip_none


def find_summed_values(
    node: plan.Aggregate, values: Sequence[Value]
) -> dict[AggregateInput, SummedValue]:
    """Return the distinct values to be summed.

    Raises
    ------
    Inexact: a value is no number, or may be None where that raises.
    """
    found: dict[AggregateInput, SummedValue] = {}
    for folded in node.aggregates:
        if not isinstance(folded.accumulator, SumAccumulator | AvgAccumulator):
            continue
        value = input_value(folded, values)
        if value.of.kind is Decimal:
            continue  # a Decimal has more digits than limbs hold: it is in `value_tables.py`
        if value.of.kind not in (int, float, bool):
            raise Inexact(f"{folded.name} of {type_name(value.of)} is not added up in columns")
        found.setdefault(aggregate_input(folded), _make_summed_value(f"s{len(found)}", value))
    return found


def input_value(folded: plan.Folded, values: Sequence[Value]) -> Value:
    """Return the value that an aggregate reads; it may be None only if the aggregate skips None.

    Raises
    ------
    Inexact: the value may be None, and the aggregate would raise for it.
    """
    if folded.value is None:
        if len(values) > 1:
            raise Inexact(f"{folded.name} of several rows side by side")
        value = values[0]
    else:
        value = value_of(folded.value, values)
    if value.optional and not folded.accumulator.skip_none:
        raise Inexact(f"{folded.name} may raise for None")
    return value


def result_type(folded: plan.Folded, of: SummedValue | None, *, may_be_empty: bool) -> Typed:
    """Return the type of a linear aggregate; an average of no values is None."""
    if of is None:
        return Plain(int)
    if isinstance(folded.accumulator, AvgAccumulator):
        return Plain(float, optional=may_be_empty or of.may_be_none)
    return Plain(float) if of.is_float else WIDE


def result_column(folded: plan.Folded, of: SummedValue | None, when: str) -> Column:
    """Return the result, from the columns of sums whose names begin with `when`."""
    if of is None:
        return F.col(f"{when}n")
    if isinstance(folded.accumulator, SumAccumulator):
        return F.col(f"{when}{of.name}")
    return F.expr(of.average(when))


def _make_summed_value(name: str, value: Value) -> SummedValue:
    """Return the value as a summed value, cast to `long` unless it is a float or a wide integer."""
    is_float, is_wide = value.of.kind is float, isinstance(value.of, Plain) and value.of.is_wide
    column = value.column if is_float or is_wide else value.column.cast("long")
    typed = replace(value, column=column)
    return SummedValue(name, typed, is_float, is_float or is_wide, value.optional)


INTEGER_LIMBS, FLOAT_LIMBS = 2, 5
LIMB, POINT = 32, 96
"""The bits of a limb, and the bits behind the point of a float."""
BITS = 1 << LIMB
LARGEST = 2.0**63
"""The bound of floats with limbs."""
_LOW = BITS - 1


def integer_limbs(value: str, name: str, *, may_be_odd: bool) -> dict[str, str]:
    """Return SQL of the limbs of an integer, `{name}_0` and `{name}_1`, least first; with
    `may_be_odd` also of `{name}_odd`: the integer if it is beyond 64 bits, else null."""
    fits = f"coalesce(try_cast({value} as bigint), 0L)" if may_be_odd else value
    found = {f"{name}_0": f"{fits} & {_LOW}L", f"{name}_1": f"shiftright({fits}, 32)"}
    if may_be_odd:
        found[f"{name}_odd"] = f"if(try_cast({value} as bigint) is null, {value}, null)"
    return found


def integer_sum(limbs: list[str]) -> str:
    """Return SQL of the sum: a decimal of 38 digits without places."""
    low, high = limbs
    return f"cast({high} as decimal(38, 0)) * {BITS} + cast({low} as decimal(38, 0))"


def integer_quotient(total: str, count: str) -> str:
    """Return SQL of an integer over a positive 64-bit count, rounded once, as Python does; null for
    a count of 0.

    The whole part has 53 bits or more if the total is no double itself: then the remainder only
    says whether there was anything below. Otherwise 60 further bits behind the point are computed.
    """
    size, unit = f"abs({total})", 1 << 60
    point = f"cast({unit} as decimal(38, 0))"
    near = "cast(q.v * 2 + if(r.v > 0, 1, 0) as decimal(38, 0))"
    exact = f"cast((q.v * {point} + f.v) * 2 + if(e.v > 0, 1, 0) as decimal(38, 0))"
    value = (
        f"if(q.v >= {1 << 57}, cast({near} as double) * {2.0**-1!r}D,"
        f" cast({exact} as double) * {2.0**-61!r}D)"
    )
    for name, of in (
        ("f", f"(m.v - e.v) / {count}"),
        ("e", f"m.v % {count}"),
        ("m", f"r.v * {point}"),
        ("q", f"({size} - r.v) / {count}"),
        ("r", f"{size} % {count}"),
    ):
        value = _let_sql(name, f"cast({of} as decimal(38, 0))", value)
    return (
        f"case when {count} <= 0 then null"
        f" when {size} <= {2**53} then cast({total} as double) / cast({count} as double)"
        f" else if({total} < 0, -1D, 1D) * {value} end"
    )


def _let_sql(name: str, value: str, then: str) -> str:
    """Return SQL of `then`, where `{name}.v` is `value`, computed once."""
    bound = f"transform(array({value}), x -> named_struct('v', x))"
    return f"element_at(transform({bound}, {name} -> {then}), 1)"


def float_parts(value: str, name: str) -> dict[str, str]:
    """Return SQL of `{name}_good`, a float with limbs or 0, and of `{name}_odd`, a float without or
    null."""
    rest = value
    for _ in range(FLOAT_LIMBS - INTEGER_LIMBS):
        rest = _fraction_sql(rest)
    is_good = f"abs({value}) < {LARGEST!r}D and {rest} = rint({rest})"
    return {
        f"{name}_good": f"if({is_good}, {value}, 0D)",
        f"{name}_odd": f"if({is_good}, cast(null as double), {value})",
    }


def float_limbs(value: str, name: str) -> dict[str, str]:
    """Return SQL of the limbs of a float, `{name}_0` to `{name}_4`, least first: each is the
    integer nearest to the rest, with its own sign."""
    rests = [value]
    for _ in range(FLOAT_LIMBS - INTEGER_LIMBS):
        rests.append(_fraction_sql(rests[-1]))
    whole, *below = (f"cast(rint({rest}) as bigint)" for rest in rests)
    limbs = [*reversed(below), f"{whole} & {_LOW}L", f"shiftright({whole}, 32)"]
    return {f"{name}_{place}": limb for place, limb in enumerate(limbs)}


def _fraction_sql(rest: str) -> str:
    """Return SQL of the part below the point, shifted by a limb; exact, as a difference of near
    floats."""
    return f"(({rest} - rint({rest})) * {BITS}D)"


def float_sum(limbs: list[str]) -> str:
    """Return SQL of the float with the given sums of limbs."""
    return _carry_sql(
        limbs, "s", _signed_sql(_carry_sql(_absolute_limbs("s"), "n", _round_sql("n")))
    )


def _carry_sql(limbs: list[str], name: str, then: str) -> str:
    """Return SQL of `then`, where `{name}0.v` and so on are the limbs after carrying: 32 bits each,
    and the sign in the last."""
    carry = "0L"
    names = [f"{name}{place}" for place in range(len(limbs))]
    wholes = []
    for limb, of in zip(limbs, names, strict=True):
        wholes.append(f"{limb} + {carry}")
        carry = f"shiftright({of}.t, 32)"
    for place in reversed(range(len(limbs))):
        is_last = place == len(limbs) - 1
        value = "x" if is_last else f"x & {_LOW}L"
        bound = f"named_struct('t', x, 'v', {value})"
        given = f"transform(array({wholes[place]}), x -> {bound})"
        then = f"element_at(transform({given}, {names[place]} -> {then}), 1)"
    return then


def _absolute_limbs(name: str) -> list[str]:
    """Return the limbs without the sign."""
    return [f"if({name}4.v < 0, -{name}{place}.v, {name}{place}.v)" for place in range(FLOAT_LIMBS)]


def _signed_sql(size: str) -> str:
    return f"(if(s4.v < 0, -1D, 1D) * {size})"


def _round_sql(name: str) -> str:
    """Return SQL of the absolute value, from limbs that are not negative."""
    n = [f"{name}{place}.v" for place in range(FLOAT_LIMBS)]
    wide = [f"cast({part} as decimal(38, 0))" for part in n]
    highest = f"{wide[4]} * {2 * BITS} + {_sticky_sql(n[3], n[2], n[1], n[0])}"
    upper = (
        f"{wide[4]} * {2 * BITS * BITS} + {wide[3]} * {2 * BITS} + {_sticky_sql(n[2], n[1], n[0])}"
    )
    middle = f"{wide[3]} * {2 * BITS * BITS} + {wide[2]} * {2 * BITS} + {_sticky_sql(n[1], n[0])}"
    low = f"{wide[2]} * {BITS * BITS} + {wide[1]} * {BITS} + {wide[0]}"
    return (
        f"case when {n[4]} >= {1 << 58}L then cast({highest} as double) * {2.0**-1!r}D"
        f" when {n[4]} > 0 then cast({upper} as double) * {2.0**-33!r}D"
        f" when {n[3]} > 0 then cast({middle} as double) * {2.0**-65!r}D"
        f" else cast({low} as double) * {2.0**-96!r}D end"
    )


def _sticky_sql(limb: str, *below: str) -> str:
    """Return SQL of twice a limb, plus one if any limb below is not zero: the sticky bit for
    rounding."""
    return f"cast({limb} * 2 + if({' + '.join(below)} > 0, 1, 0) as decimal(38, 0))"


ODD = "odd_values"
_BITS = 32


@dataclass(frozen=True, slots=True)
class Result:
    """The result to show: a "count", the "sum" of a name or its "avg", or a "value" as it is."""

    kind: str
    name: str
    of: Typed
    count: str = "n"
    """The column of the number of values."""


@dataclass(frozen=True, slots=True)
class Finishing:
    """The recipe of output rows: the types of key and row, the sums, and the results.

    Without a `key` there is one group.
    """

    key: Typed | None
    kept: Typed
    sums: tuple[tuple[str, bool], ...]
    results: tuple[Result, ...]


def finish_groups(shipped: bytes, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows before and after of groups, computed from their sums."""
    of: Finishing = pickle.loads(shipped)
    for batch in batches:
        before, after = (_group_rows(of, batch, when) for when in ("b_", "a_"))
        rows: list[Any] = []
        weights: list[int] = []
        for was, now in zip(before, after, strict=True):
            if was == now:
                continue
            for shown, weight in ((was, -1), (now, 1)):
                if shown is not None:
                    rows.append(shown[0])
                    weights.append(weight)
        arrays = [to_arrow(of.kept, rows), pa.array(weights, pa.int64())]
        yield pa.record_batch(arrays, names=["row", "weight"])


def _group_rows(of: Finishing, batch: pa.RecordBatch, when: str) -> list[tuple[Any] | None]:
    """Return the row of each group in a tuple; None for a group without rows."""
    keys = None if of.key is None else from_arrow(of.key, batch.column("key"))
    values = [_stored_values(result, batch, when) for result in of.results]
    names = [n for n in batch.schema.names if n.startswith(when) or n == ODD]
    found: list[tuple[Any] | None] = []
    for place, sums in enumerate(batch.select(names).to_pylist()):
        if not sums[f"{when}is"]:
            found.append(None)
            continue
        totals = {name: _group_total(name, is_float, sums, when) for name, is_float in of.sums}
        results = [
            _sum_result(result, totals, sums, when) if value is None else value[place]
            for result, value in zip(of.results, values, strict=True)
        ]
        found.append(
            (make_output_row(of.kept, results if keys is None else [keys[place], *results]),)
        )
    return found


def _stored_values(result: Result, batch: pa.RecordBatch, when: str) -> list[Any] | None:
    """Return the stored values of each group; None for a result computed from sums."""
    if result.kind != "value":
        return None
    found = from_arrow(result.of, batch.column(f"{when}{result.name}"))
    zero = {int: 0, Digits: Decimal(0)}.get(result.of.kind)
    return found if result.of.optional or zero is None else [v or zero for v in found]


def make_output_row(kept: Typed, items: Sequence[Any]) -> Any:
    """Return the output row with the given items; a single item is the row."""
    if len(items) == 1 or not isinstance(kept, Record):
        return items[0]
    return tuple(items) if kept.kind is tuple else kept.kind(*items)


def _sum_result(result: Result, totals: dict[str, Any], sums: dict[str, Any], when: str) -> Any:
    """Return a Count, Sum or Avg before or after the change (`when`).

    Return None for an Avg of no values.
    """
    count = sums[f"{when}{result.count}"]
    if result.kind == "count":
        return count
    sum_of = totals[result.name]
    if result.kind == "sum":
        return sum_of
    return canonical(sum_of / count) if count > 0 else None


def _group_total(name: str, is_float: bool, sums: dict[str, Any], when: str) -> Any:
    """Return the exact sum of a group before or after the change, from its limbs and odd values."""
    limbs = [sums[f"{when}{name}_{place}"] for place in range(5 if is_float else 2)]
    number = sum(limb << (_BITS * place) for place, limb in enumerate(limbs))
    odd = [(one.get(f"{name}_odd"), one[f"{when}n"]) for one in sums[ODD]]
    odd = [(value, n) for value, n in odd if value is not None and n]
    count = sums.get(f"{when}{name}_c", sums[f"{when}n"])
    return combine_total(number, count, odd, is_float=is_float)


def combine_total(
    number: int, count: int, odd: Sequence[tuple[Any, int]], *, is_float: bool
) -> Any:
    """Return a sum: `number` in limbs, plus odd values with their weights, of `count` values in
    all."""
    if not is_float:
        return number + sum(int(value) * n for value, n in odd)
    floats = count - sum(n for _, n in odd)
    return float(amount_total((number, floats, 0, 0, 0), odd))


VALUES = "values"
"""The values of a group: structs of `value`, and its counts `b` and `a` before and after."""


@dataclass(frozen=True, slots=True)
class Folding:
    """The results to compute from values of a type: a column name and a type for each.

    `of_nothing`: True if there is a result for no values.
    """

    value: Typed
    names: tuple[str, ...]
    results: tuple[Typed, ...]
    of_nothing: bool


def fold_groups(
    shipped: bytes, classes: dict[str, bytes], of_values: bytes, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Replace the values in batches by the results before and after.

    Parameters
    ----------
    shipped: an aggregate with one accumulator for each result.
    """
    adopt_classes(classes)
    node: plan.Aggregate = pickle.loads(shipped)
    of: Folding = pickle.loads(of_values)
    for batch in batches:
        groups = _read_groups(of, batch)
        columns = {n: batch.column(n) for n in batch.schema.names if n != VALUES}
        for when in ("b", "a"):
            for name, kept, each in zip(of.names, of.results, node.aggregates, strict=True):
                results = [_fold_group(each, group[when], of) for group in groups]
                columns[f"{when}_{name}"] = _result_array(kept, results, each)
        yield pa.record_batch(list(columns.values()), names=list(columns))


def _read_groups(of: Folding, batch: pa.RecordBatch) -> list[dict[str, list[tuple[Any, int]]]]:
    """Return for each group the values before and after, with their counts."""
    lists = batch.column(VALUES)
    inside = lists.flatten()
    values = from_arrow(of.value, inside.field("value"))
    weights = {when: inside.field(when).to_pylist() for when in ("b", "a")}
    found, start = [], 0
    for length in lists.value_lengths().to_pylist():
        places = range(start, start + length)
        found.append(
            {when: [(values[p], n[p]) for p in places if n[p] > 0] for when, n in weights.items()}
        )
        start += length
    return found


def _fold_group(folded: plan.Folded, values: Sequence[tuple[Any, int]], of: Folding) -> Any:
    """Return the result of an aggregate over weighted values.

    Return None for no values, unless `of.of_nothing`. Raises `RuntimeError` if the aggregate
    raises, with the first three values.
    """
    if not values and not of.of_nothing:
        return None
    accumulator = folded.accumulator
    try:
        state = accumulator.zero()
        for value, weight in values:
            state = accumulator.add(state, value, weight)
        return stored_result(accumulator, accumulator.result(state))
    except (Exception, SystemExit) as error:
        shown = ", ".join(f"{value!r:.60}" for value, _ in values[:3])
        raise RuntimeError(
            f"{RAISED}{type(error).__name__}: {error}; in {folded.label}, on values {shown}"
        ) from error


def stored_result(accumulator: Any, result: Any) -> Any:
    """Return a result as its column stores it."""
    found = canonical(result)
    return Outcome.of(found) if isinstance(accumulator, Tolerant) else found


def _result_array(kept: Typed, results: list[Any], folded: plan.Folded) -> pa.Array:
    """Return results as an Arrow array.

    Raises `RuntimeError` if a result is not of the type `kept`.
    """
    if isinstance(kept, Whole) and kept.kind is Digits:
        results = [None if r is None else Decimal(r) for r in results]
    try:
        return to_arrow(replace(kept, optional=True), results)
    except OffloadError as error:
        what = str(error).partition("\n")[0]
        raise RuntimeError(
            f"{RAISED}OffloadError: {what}; annotate what {folded.label} gives as it is"
        ) from None
