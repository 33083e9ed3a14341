"""The first rows of an order: some more than are needed are held, and the others only kept.

    held    a a a a a a | b b b b | rows beyond
            n needed      reserve

Rows up to the last one that is held come and go there. When fewer than n are held, the flush is
done again, and looks through all rows for the first ones. Few rows are looked through each time.

Rows that differ may tie only in the outermost operator: those that tie with the last come along,
and the process cuts them as they came.

State:  the rows, and those that are held.
Cost:   per flush O(rows that changed + n); now and then O(all rows), after at least as many
        removals from the top as are in reserve.
Source: K. Yi et al., *Efficient Maintenance of Materialized Top-k Views*, 2003.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from optimizer import plan
from optimizer.plans.unique_keys import Key
from reactive.engine.reference.bags import Bag
from spark_backend.codec.values import Value
from spark_backend.direct.flush import DirectFlush, together
from spark_backend.state.tables import TableSpec, united
from spark_backend.steps.direct_first import DirectFirst
from spark_backend.steps.firsts import (
    RESERVE,
    added,
    changed,
    check_decided,
    clipped,
    weighed,
    with_starts,
)
from spark_backend.steps.sets import hashed
from spark_backend.steps.standing import standing
from spark_backend.steps.step import MOST_BROADCAST, TOO_FEW, Flush, Step, schema_of

FEW = 100_000
"""Up to so many rows, all are looked through at each flush."""


class First:
    """The first rows of all.

    Parameters
    ----------
    count: how many bindings a row of the source has.
    names: of the tables of all rows, and of those that are held.
    unique: what of a row no other has, if that is known.
    is_last: nothing but the output reads it, and the process sorts that again.

    Raises
    ------
    Inexact: a key of the order is no column, or the order does not decide.
    """

    def __init__(
        self,
        node: plan.OrderBy,
        source: Step,
        count: int,
        names: Sequence[str],
        unique: Key,
        *,
        is_last: bool,
    ) -> None:
        assert node.limit is not None
        self._source, self.kept = source, source.kept
        row = Value(F.col("row"), self.kept)
        stands = standing(node.keys, row, count, unique)
        if not is_last:
            check_decided(stands)
        self._by, self._is_total = stands.by, stands.is_total
        self._first, self._needed = node.offset, node.offset + node.limit
        self._wanted = 2 * self._needed + RESERVE
        self._direct = DirectFirst(node, self._wanted, is_total=self._is_total)
        schema = schema_of(self.kept)
        self.specs = [
            TableSpec(name, schema, ("row",), ("weight",), lambda: hashed(row)) for name in names
        ]

    def delta(self, flush: Flush) -> DataFrame | None:
        given = flush.delta(self._source)
        if given is None:
            return None
        rows, held = self.specs
        flush.add(rows, given)
        there = [_in_one(part) for part in flush.parts(held)]
        if self._looks_through(flush):
            gone = [weighed(part).withColumn("a", F.lit(0).cast("long")) for part in there]
            found = self._kept(added(united([*gone, self._first_of_all(flush, given)])))
        else:
            found = self._enough(self._kept(self._within(given, [weighed(p) for p in there])))
        flush.add(held, changed(found, F.col("a") - F.col("b")))
        return changed(found, F.col("shown_a") - F.col("shown_b"))

    def direct(self, flush: DirectFlush) -> Bag:
        given = flush.delta(self._source)
        if not given:
            return given
        rows, held = self.specs
        before = flush.all_rows(held, self.kept)
        first = self._direct
        found = first.within(before, given)
        if not first.is_enough(found):
            found = first.of_all(before, together([flush.all_rows(rows, self.kept), given]))
        flush.add(rows, self.kept, given)
        flush.add(held, self.kept, first.held(found))
        return first.shown(found)

    def _looks_through(self, flush: Flush) -> bool:
        there = sum(flush.tables.manifest.rows(self.specs[0].name))
        return flush.looks_through or there <= FEW or flush.rows > MOST_BROADCAST

    def _within(self, given: DataFrame, held: Sequence[DataFrame]) -> DataFrame:
        """The rows that are held, and those that changed up to the last of these: no others are
        there up to it."""
        net = added(united([weighed(_in_one(given), is_change=True), *held]))
        by = Window.partitionBy("key").orderBy(*(one.sort for one in self._by))
        onwards = by.rangeBetween(Window.currentRow, Window.unboundedFollowing)
        return net.withColumn("reach", F.max("b").over(onwards)).filter("reach > 0").drop("reach")

    def _first_of_all(self, flush: Flush, given: DataFrame) -> DataFrame:
        """The first of all rows after the change, with those that tie with the last of them."""
        parts = [part.select("row", "weight") for part in flush.parts(self.specs[0])]
        whole = united([given.select("row", "weight"), *parts]).groupBy("row")
        net = whole.agg(F.sum("weight").alias("weight")).filter("weight > 0")
        found = net.orderBy(*(one.sort for one in self._by)).limit(self._wanted)
        if not self._is_total:
            columns = [one.column.alias(f"y{place}") for place, one in enumerate(self._by)]
            marks = F.broadcast(found.select(*columns).distinct())
            same = (one.column.eqNullSafe(F.col(f"y{n}")) for n, one in enumerate(self._by))
            found = net.join(marks, reduce(lambda a, b: a & b, same), "left_semi")
        return weighed(_in_one(found), is_change=True)

    def _kept(self, rows: DataFrame) -> DataFrame:
        """Those that are to be held after the change, and what is shown of them before and after.

        A row is held with all its copies, and with those that tie with it.
        """
        start_a, start_b = F.col("start_a"), F.col("start_b")
        kept = F.when(start_a < self._wanted, F.col("a")).otherwise(F.lit(0).cast("long"))
        found = with_starts(rows, self._by).withColumn("a", kept)
        shown = {"a": start_a, "b": start_b}
        columns = [self._shown(n, start).alias(f"shown_{n}") for n, start in shown.items()]
        return found.select("key", "row", "b", "a", *columns)

    def _shown(self, name: str, start: Any) -> Any:
        if self._is_total:
            return clipped(F.col(name), start, self._first, self._needed)
        return F.when(start < self._needed, F.col(name)).otherwise(F.lit(0).cast("long"))

    def _enough(self, rows: DataFrame) -> DataFrame:
        """The same; or an error where there are fewer than are needed."""
        every = Window.partitionBy("key")
        few = f"if(total < {self._needed}, cast(raise_error('{TOO_FEW}') as bigint), a)"
        total = rows.withColumn("total", F.sum("a").over(every))
        return total.withColumn("a", F.expr(few))


def _in_one(rows: DataFrame) -> DataFrame:
    """As rows of one group."""
    return rows.select(F.lit(0).cast("long").alias("key"), "row", "weight")
