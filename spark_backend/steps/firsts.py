"""The first rows of each group: of the groups that changed, sorted before and after.

    d out  =  first n after  -  first n before

A row that is there w times has w places. The order decides between any two rows that differ: which
of rows that tie came first, files do not know.

State:  the rows, by group.
Cost:   per flush O(rows of the groups that changed, with their logarithm).
Source: SQL's ROW_NUMBER() OVER (PARTITION BY k ORDER BY by) <= n, of weighted rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from optimizer import plan
from optimizer.plans.unique_keys import Key
from reactive.operators.plain import spread
from reactive.reference.bags import Bag
from spark_backend.codec.columns import value_of
from spark_backend.codec.hashing import flattened_values, leaves
from spark_backend.codec.values import Inexact, Value
from spark_backend.direct.flush import DirectFlush, over_given
from spark_backend.direct.flush import changed as changed_there
from spark_backend.direct.lookup import Lookup, fields_read
from spark_backend.state.tables import TableSpec, united
from spark_backend.steps.keys import bound
from spark_backend.steps.near import in_bucket
from spark_backend.steps.sets import hashed
from spark_backend.steps.standing import By, Standing, standing
from spark_backend.steps.step import Flush, Step, schema_of


class Firsts:
    """The first rows of each group.

    Parameters
    ----------
    count: how many bindings a row of the source has.
    unique: what of a row no other has, if that is known.

    Raises
    ------
    Inexact: the key of a group or an order is no column, or the order does not decide.
    """

    def __init__(self, node: plan.Top, source: Step, count: int, name: str, unique: Key) -> None:
        self._source, self.kept = source, source.kept
        row = Value(F.col("row"), self.kept)
        stands = standing(node.keys, row, count, unique, node.key)
        check_decided(stands)
        self._by = stands.by
        self._key = value_of(node.key, bound(row, count))
        self._node, self._call = over_given(node), spread(node.key, count)
        self._lookup = Lookup(leaves(self._key.of), fields_read((node.key,), self.kept, count))
        self._first, self._last = node.offset, node.offset + node.limit
        self._hash()
        self.spec = TableSpec(name, schema_of(self.kept), ("row",), ("weight",), self._hash)

    def delta(self, flush: Flush) -> DataFrame | None:
        given = flush.delta(self._source)
        if given is None:
            return None
        flush.add(self.spec, given)
        net = added(united(self._of_groups(flush, given)))
        shown = [
            clipped(F.col(n), F.col(f"start_{n}"), self._first, self._last) for n in ("a", "b")
        ]
        return changed(with_starts(net, self._by), shown[0] - shown[1])

    def direct(self, flush: DirectFlush) -> Bag:
        given = flush.delta(self._source)
        if not given:
            return given
        flush.add(self.spec, self.kept, given)
        keys = {tuple(flattened_values(self._key.of, self._call(row))) for row in given}
        return changed_there(
            self._node, [flush.having(self.spec, self.kept, self._lookup, keys)], [given]
        )

    def _of_groups(self, flush: Flush, given: DataFrame) -> list[DataFrame]:
        """The rows of the groups that changed: those that come or go, and those that were there."""
        key = self._key.column.alias("key")
        keys = given.select(key, self._hash().alias("h")).distinct()
        keys = flush.small(keys.filter(F.col("h") >= F.lit(-(2**63) + 1)))
        found = [weighed(given.select("row", "weight", key), is_change=True)]
        for part in flush.parts(self.spec):
            keyed = part.select("*", key)
            on = keyed["key"].eqNullSafe(keys["key"])
            bucket = in_bucket(flush, self.spec, keyed, "h")
            on = on if bucket is None else on & bucket
            found.append(weighed(keyed.join(keys, on, "left_semi")))
        return found

    def _hash(self) -> Column:
        return hashed(self._key)


def check_decided(stands: Standing) -> None:
    """The first rows are to be the same ones as in the process.

    Raises
    ------
    Inexact: rows that differ may tie, and which of them are first depends on when they came.
    """
    if not stands.is_total:
        raise Inexact(
            "rows that tie stand as they came, which files do not know: order by the key of the "
            "table at last, or have a class with order=True"
        )


def weighed(rows: DataFrame, *, is_change: bool = False) -> DataFrame:
    """Rows with how often they are there before (`b`) and after (`a`), of which others are to be
    added; by `key`."""
    before = F.lit(0).cast("long") if is_change else F.col("weight")
    return rows.select("key", "row", before.alias("b"), F.col("weight").alias("a"))


def added(rows: DataFrame) -> DataFrame:
    """Each row once."""
    return rows.groupBy("key", "row").agg(F.sum("b").alias("b"), F.sum("a").alias("a"))


def with_starts(rows: DataFrame, by: Sequence[By]) -> DataFrame:
    """Rows with how many stand before them, before (`start_b`) and after (`start_a`)."""
    upto = Window.partitionBy("key").orderBy(*(one.sort for one in by))
    peers = Window.partitionBy("key", *(one.column for one in by))
    starts = [(F.sum(n).over(upto) - F.sum(n).over(peers)).alias(f"start_{n}") for n in ("b", "a")]
    return rows.select("*", *starts)


def clipped(weight: Column, start: Column, first: int, last: int) -> Column:
    """How many of the places of a row are from `first` on and before `last`."""
    inside = F.least(start + weight, F.lit(last)) - F.greatest(start, F.lit(first))
    return F.greatest(inside, F.lit(0)).cast("long")


def changed(rows: DataFrame, weight: Column) -> DataFrame:
    """Rows whose weight is not zero."""
    return rows.select("row", weight.alias("weight")).filter("weight != 0")
