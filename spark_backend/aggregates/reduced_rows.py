"""The rows that a callable makes of each group: an aggregate that gives multisets, taken apart.

    (key, rows) -1, (key, rows') +1    ->    (key, row) by what has changed of the rows

State:  none beside that of the aggregate: the rows, by group.
Cost:   O(rows of the groups that changed), and a call for each of these, before and after.
Source: `reactive/engine/operators/reduce.py`.
"""

from __future__ import annotations

from collections import Counter

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from reactive.engine.reference.bags import Bag
from spark_backend.aggregates.totals import Totals
from spark_backend.codec.schema import Record, Typed, Whole, tuple_of
from spark_backend.codec.values import Value, as_type, field_of, record_value
from spark_backend.direct.flush import DirectFlush, present
from spark_backend.steps.step import Flush


class ReducedRows:
    """The rows of groups, behind the key.

    Parameters
    ----------
    groups: has the key and a multiset of each.
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
        given = flush.delta(self._groups)
        if given is None:
            return None
        weight = (F.col("w") * F.col("one.weight")).alias("weight")
        rows = given.select(*self._each).select(self._row, weight)
        return rows.groupBy("row").agg(F.sum("weight").alias("weight")).filter("weight != 0")

    def direct(self, flush: DirectFlush) -> Bag:
        found: Bag = Counter()
        for (key, made), weight in flush.delta(self._groups).items():
            for row, count in made.items():
                found[key, row] += weight * count
        return present(found)
