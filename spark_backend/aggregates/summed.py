"""What an aggregate adds up: columns of a row whose sums, by group, are all that is kept.

    Count                   n                   how many rows
    Sum, Avg of integers    two limbs           and what is beyond 64 bits as it is
    Sum, Avg of floats      five limbs          and what has no limbs as it is
    with skip_none          c                   how many values are not None

Source: [mrql] the homomorphism of an aggregate, which its answer function is computed from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F

from optimizer import plan
from optimizer.expr import Function
from reactive.engine.operators.accumulators import AvgAccumulator, CountAccumulator, SumAccumulator
from spark_backend.aggregates.exact_columns import (
    FLOAT_LIMBS,
    INTEGER_LIMBS,
    float_limbs,
    float_parts,
    float_sum,
    integer_limbs,
    integer_quotient,
    integer_sum,
)
from spark_backend.codec.columns import value_of
from spark_backend.codec.schema import WIDEST, Plain, Typed, type_name
from spark_backend.codec.values import Inexact, Value

WIDE = Plain(int, low=-WIDEST, high=WIDEST)
LINEAR = (CountAccumulator, SumAccumulator, AvgAccumulator)
Read = tuple[Function | None, bool]
"""The value that an aggregate reads, and whether it leaves None out."""


@dataclass(frozen=True, slots=True)
class Summed:
    """A value that is added up, under a name; as integers or as floats.

    It `may_be_odd` if there are values that have no limbs: floats, and integers beyond 64 bits.
    If it `may_be_none`, the values that are not None are counted.
    """

    name: str
    value: Value
    is_float: bool
    may_be_odd: bool
    may_be_none: bool

    @property
    def limbs(self) -> list[str]:
        """The columns of its sum."""
        count = FLOAT_LIMBS if self.is_float else INTEGER_LIMBS
        return [f"{self.name}_{place}" for place in range(count)]

    @property
    def count(self) -> str:
        """The column that says how many values there are."""
        return f"{self.name}_c" if self.may_be_none else "n"

    @property
    def columns(self) -> list[str]:
        """All that is summed for it."""
        return [*self.limbs, self.count] if self.may_be_none else self.limbs

    def parts(self) -> dict[str, str]:
        """SQL of what is asked first of the value in `{name}_in`: of a float, what has limbs."""
        return float_parts(self._present, self.name) if self.is_float else {}

    def of_row(self) -> dict[str, str]:
        """SQL of what a row adds to the columns, of the value in `{name}_in` and its `parts`."""
        if self.is_float:
            found = float_limbs(f"{self.name}_good", self.name)
        else:
            found = integer_limbs(self._present, self.name, may_be_odd=self.may_be_odd)
        if self.may_be_none:
            found[self.count] = f"if({self.name}_in is null, 0L, 1L)"
        return found

    @property
    def _present(self) -> str:
        """SQL of the value, or of zero where it is None."""
        zero = "0D" if self.is_float else "0"
        return f"coalesce({self.name}_in, {zero})" if self.may_be_none else f"{self.name}_in"

    def total(self, when: str) -> str:
        """SQL of the sum, of columns whose names begin with `when`."""
        limbs = [f"{when}{limb}" for limb in self.limbs]
        return float_sum(limbs) if self.is_float else integer_sum(limbs)

    def average(self, when: str) -> str:
        """SQL of the sum in `{when}{name}` over the count, as Python divides them; null of none."""
        total, count = f"{when}{self.name}", f"{when}{self.count}"
        if self.is_float:
            return f"if({count} > 0, try_divide({total}, cast({count} as double)), null)"
        return integer_quotient(total, count)


def read(folded: plan.Folded) -> Read:
    """What an aggregate reads of a row."""
    return folded.value, folded.accumulator.skip_none


def summed(node: plan.Aggregate, values: Sequence[Value]) -> dict[Read, Summed]:
    """The values that are added up, each once.

    Raises
    ------
    Inexact: one is no number, or may be None where that raises.
    """
    found: dict[Read, Summed] = {}
    for folded in node.aggregates:
        if not isinstance(folded.accumulator, SumAccumulator | AvgAccumulator):
            continue
        value = value_read(folded, values)
        if value.of.kind is Decimal:
            continue  # which has more digits than limbs do: of the values (`valued.py`)
        if value.of.kind not in (int, float, bool):
            raise Inexact(f"{folded.name} of {type_name(value.of)} is not added up in columns")
        found.setdefault(read(folded), _made(f"s{len(found)}", value))
    return found


def value_read(folded: plan.Folded, values: Sequence[Value]) -> Value:
    """The value that an aggregate reads, which is None only where it leaves None out.

    Raises
    ------
    Inexact: it may be None, which it would raise for.
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


def result_type(folded: plan.Folded, of: Summed | None, *, may_be_empty: bool) -> Typed:
    """What a linear aggregate shows; without any values an average is None."""
    if of is None:
        return Plain(int)
    if isinstance(folded.accumulator, AvgAccumulator):
        return Plain(float, optional=may_be_empty or of.may_be_none)
    return Plain(float) if of.is_float else WIDE


def result(folded: plan.Folded, of: Summed | None, when: str) -> Column:
    """What it shows, of the columns of sums whose names begin with `when`."""
    if of is None:
        return F.col(f"{when}n")
    if isinstance(folded.accumulator, SumAccumulator):
        return F.col(f"{when}{of.name}")
    return F.expr(of.average(when))


def _made(name: str, value: Value) -> Summed:
    is_float, is_wide = value.of.kind is float, isinstance(value.of, Plain) and value.of.is_wide
    column = value.column if is_float or is_wide else value.column.cast("long")
    typed = replace(value, column=column)
    return Summed(name, typed, is_float, is_float or is_wide, value.optional)
