"""How many rows a step has of each key: what is asked of the other side of a semi or anti join.

    (7, "a"), (7, "b"), (8, "c")    ->    (7,) 2 times, (8,) once

So whether a key has a partner is one row to look up, however many partners there are.

State:  a row for each key, and those of the last flushes.
Cost:   O(rows that change).
Source: counts per key, as of [dbsp] distinct.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from optimizer.expr import Item, Lifted, Parameter, constant
from reactive.engine.reference.bags import Bag
from spark_backend.codec.schema import Typed, tuple_of
from spark_backend.direct.flush import DirectFlush, TooMany, summed
from spark_backend.direct.lookup import UNKNOWN, in_column
from spark_backend.steps.keys import Side
from spark_backend.steps.step import Flush, Step


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
