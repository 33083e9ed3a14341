"""Semi and anti joins, and the rows of outer joins that have no partner.

    n(key) = rows of the other side with the key        out = rows of the left where n > 0 (or = 0)
    d out  = rows after, where n after says so  -  rows before, where n before says so

Where a pair is asked more than its key, the rows of the other side are counted for each row.

State:  the rows of both sides, by the key.
Cost:   per flush O(rows of the keys that changed, on both sides); or their pairs.
Source: [dbsp] antijoin as a difference; counts per key.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from optimizer import plan
from reactive.reference.bags import Bag
from spark_backend.codec.schema import Typed
from spark_backend.direct.flush import DirectFlush, changed, over_given
from spark_backend.state.tables import united
from spark_backend.steps.join import Arranged
from spark_backend.steps.keys import HASH, same
from spark_backend.steps.step import Flush

Shown = Callable[[Column], Column]
"""The row of the output, of the column with a row."""


def direct_matched(flush: DirectFlush, node: plan.Node, left: Arranged, right: Arranged) -> Bag:
    """How the rows of a join `over_given` change, by the rows of the keys that changed."""
    changes = left.direct_change(flush), right.direct_change(flush)
    keys = left.keys_of(changes[0]) | right.keys_of(changes[1])
    before = left.direct_having(flush, keys), right.direct_having(flush, keys)
    return changed(node, before, changes)


class Matched:
    """The rows of one side that have a partner on the other, or that have none.

    Parameters
    ----------
    node: a semi or anti join; of an outer join it is not asked.
    fits: what is asked of pairs of equal keys, `x_row` and `y_row`; None for nothing.
    """

    def __init__(
        self,
        node: plan.Node,
        rows: Arranged,
        others: Arranged,
        kept: Typed,
        shown: Shown,
        fits: Column | None,
        *,
        present: bool,
    ) -> None:
        self._node = over_given(node)
        self._rows, self._others, self.kept = rows, others, kept
        self._shown, self._fits, self._present = shown, fits, present
        self._count = len(rows.side.types)

    def delta(self, flush: Flush) -> DataFrame | None:
        found = [] if self._present else self._alone(flush)
        rows, others = self._rows.change(flush, "x"), self._others.change(flush, "y")
        if rows is not None or others is not None:
            found += self._by_key(flush, rows, others)
        return united(found) if found else None

    def direct(self, flush: DirectFlush) -> Bag:
        return direct_matched(flush, self._node, self._rows, self._others)

    def _alone(self, flush: Flush) -> list[DataFrame]:
        """Rows that match nothing, which are always in the output."""
        given = flush.delta(self._rows.source)
        found = None if given is None else self._rows.side.unmatchable(given)
        return (
            []
            if found is None
            else [found.select(self._shown(F.col("row")).alias("row"), "weight")]
        )

    def _by_key(
        self, flush: Flush, rows: DataFrame | None, others: DataFrame | None
    ) -> list[DataFrame]:
        flush.spread()
        keys = self._keys(rows, others)
        parts = [] if rows is None else [self._weighted(rows, is_change=True)]
        for there in self._rows.having(flush, keys, ("k", "x"), None, "left_semi"):
            parts.append(self._weighted(there))
        if not parts:
            return []
        found = self._counted(united(parts), self._partners(flush, keys, others))
        return [self._out(found)]

    def _counted(self, rows: DataFrame, partners: DataFrame | None) -> DataFrame:
        """Rows with how many partners they have before (`nb`), and the change of that (`nd`)."""
        none = F.lit(0).cast("long")
        if partners is None:
            return rows.select("*", none.alias("nb"), none.alias("nd"))
        on = same("x", "y", self._others.side.optional)
        counts = F.sum("nb").alias("nb"), F.sum("nd").alias("nd")
        names = [f"y_{n}" for n in range(self._count)]
        if self._fits is None:
            return rows.join(partners.groupBy(*names).agg(*counts), on, "left")
        keys = [f"x_{n}" for n in range(self._count)]
        rows = rows.groupBy("x_row", *keys).agg(F.sum("b").alias("b"), F.sum("d").alias("d"))
        pairs = rows.join(partners, on & self._fits, "left")
        return pairs.groupBy("x_row", "b", "d").agg(*counts)

    def _keys(self, rows: DataFrame | None, others: DataFrame | None) -> DataFrame:
        """The keys of what changed, on either side."""
        frames = []
        for frame, prefix in ((rows, "x"), (others, "y")):
            if frame is not None:
                names = [F.col(f"{prefix}_{n}").alias(f"k_{n}") for n in range(self._count)]
                frames.append(frame.select(*names, HASH))
        found = united(frames).distinct()
        return found.filter(F.col(HASH) >= F.lit(-(2**63) + 1))

    def _weighted(self, frame: DataFrame, *, is_change: bool = False) -> DataFrame:
        names = [f"x_{n}" for n in range(self._count)]
        none = F.lit(0).cast("long")
        before, change = (none, F.col("x_weight")) if is_change else (F.col("x_weight"), none)
        return frame.select("x_row", *names, before.alias("b"), change.alias("d"))

    def _partners(
        self, flush: Flush, keys: DataFrame, others: DataFrame | None
    ) -> DataFrame | None:
        """The rows of the other side of these keys, before and as a change."""
        names = [f"y_{n}" for n in range(self._count)]
        if self._fits is not None:
            names.append("y_row")
        none = F.lit(0).cast("long")
        parts = []
        if others is not None:
            parts.append(others.select(*names, none.alias("nb"), F.col("y_weight").alias("nd")))
        for there in self._others.having(flush, keys, ("k", "y"), None, "left_semi"):
            parts.append(there.select(*names, F.col("y_weight").alias("nb"), none.alias("nd")))
        return united(parts) if parts else None

    def _out(self, rows: DataFrame) -> DataFrame:
        zero = F.lit(0).cast("long")
        before, change = F.coalesce("nb", zero), F.coalesce("nd", zero)
        was, is_now = before > 0, before + change > 0
        if not self._present:
            was, is_now = ~was, ~is_now
        weight = F.when(is_now, F.col("b") + F.col("d")).otherwise(zero) - F.when(
            was, F.col("b")
        ).otherwise(zero)
        return rows.select(self._shown(F.col("x_row")).alias("row"), weight.alias("weight")).filter(
            "weight != 0"
        )
