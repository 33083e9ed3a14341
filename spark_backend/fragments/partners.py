"""What joins are made of beside pairs: conditions of pairs, and rows without a partner.

    left join, a row of the left alone      (row, None)
    full join, a row of the right alone     (None, row)

State:  none.
"""

from __future__ import annotations

from types import NoneType
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from optimizer.plans.properties import bindings
from optimizer.plans.side_conditions import residual
from reactive.engine.operators.plain import spread
from reactive.engine.reference.bags import Bag, paired
from spark_backend.codec.columns import truth_of
from spark_backend.codec.schema import Plain, Typed, in_common, tuple_of
from spark_backend.codec.values import Value, as_type, record_value
from spark_backend.direct.flush import DirectFlush
from spark_backend.steps.join import pair_of
from spark_backend.steps.keys import bound
from spark_backend.steps.matching import Asked, Shown
from spark_backend.steps.step import Step


class Padded:
    """Rows of a step as rows of a type that has None where theirs has not."""

    def __init__(self, source: Step, kept: Typed) -> None:
        self._source, self.kept = source, kept

    def delta(self, flush: Any) -> Any:
        found = flush.delta(self._source)
        if found is None:
            return None
        row = as_type(Value(F.col("row"), self._source.kept), self.kept)
        return found.select(row.alias("row"), "weight")

    def direct(self, flush: DirectFlush) -> Bag:
        return flush.delta(self._source)


def fits_of(node: Any, left: Typed, right: Typed, names: tuple[str, str]) -> Column | None:
    """What a join asks of pairs of equal keys besides, of `{name}_row` of either side."""
    asked = residual(node)
    if asked is None:
        return None
    rows = bound(Value(F.col(f"{names[0]}_row"), left), bindings(node.left))
    return truth_of(asked, [*rows, Value(F.col(f"{names[1]}_row"), right)])


def asked_of(node: Any) -> Asked | None:
    """The same of two rows that are here."""
    asked = residual(node)
    if asked is None:
        return None
    pair = paired(node.left)
    call = spread(asked, bindings(node.left) + 1)
    return lambda row, other: call(pair(row, other))


def padded_type(kind: str, left: Typed, right: Typed, count: int) -> Typed:
    """The rows of an outer join."""
    pair = pair_of(left, right, count)
    fields = list(pair.fields)  # type: ignore[union-attr]
    if kind != "left":
        fields[:-1] = [_optional(f) for f in fields[:-1]]
    if kind != "right":
        fields[-1] = _optional(fields[-1])
    return tuple_of(tuple(fields))


def left_alone(left: Typed, kept: Typed, count: int) -> Shown:
    """The row of a left or full join of a row of the left that has no partner."""
    nothing = Value(F.lit(None).cast("boolean"), Plain(NoneType, optional=True))

    def show(row: Column) -> Column:
        parts = bound(Value(row, left), count)
        return as_type(record_value((*parts, nothing)), kept)

    return show


def right_alone(right: Typed, kept: Typed, count: int) -> Shown:
    """The same of a row of the right."""
    nothing = Value(F.lit(None).cast("boolean"), Plain(NoneType, optional=True))

    def show(row: Column) -> Column:
        return as_type(record_value((*[nothing] * count, Value(row, right))), kept)

    return show


def _optional(of: Typed) -> Typed:
    return in_common(of, Plain(NoneType, optional=True))
