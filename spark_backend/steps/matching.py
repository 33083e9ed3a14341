"""Semi and anti joins, and the rows of outer joins that have no partner.

    n(key) = rows of the other side with the key        out = rows of the left where n > 0 (or = 0)
    d out  = rows that change, where n after says so
           + rows as of before, where n comes to be or to be none  (of keys that change on the other
             side)

Where a pair is asked more than its key, the rows of the other side are counted for each row.
Otherwise the other side is how many rows there are of each key (`key_counts.py`), where these may
be many: however heavy a key is, a change of a row with it costs the same.

State:  the rows of the one side by the key, and those of the other, or how many they are.
Cost:   per flush O(rows that change, and those whose keys find their first partner or lose the last
        one); by a job, O(rows of the keys that change on the other side). Where more is asked, the
        pairs of the rows of these keys.
Source: [dbsp] antijoin as a difference; counts per key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from reactive.engine.collections.zset import Pair, Row
from reactive.engine.reference.bags import Bag
from spark_backend.codec.schema import Typed
from spark_backend.direct.flush import DirectFlush, check_fetched, summed
from spark_backend.state.tables import united
from spark_backend.steps.join import Arranged
from spark_backend.steps.keys import HASH, same
from spark_backend.steps.step import Flush

Shown = Callable[[Column], Column]
"""The row of the output, of the column with a row."""
Asked = Callable[[Row, Row], object]
"""What is asked of two rows of equal keys."""


class Matched:
    """The rows of one side that have a partner on the other, or that have none.

    Parameters
    ----------
    fits: what is asked of pairs of equal keys, `x_row` and `y_row`; None for nothing.
    asked: the same of a row and one of the other side.
    shown: the row of the output; `shown_here` makes the same of a row that is here.
    """

    def __init__(
        self,
        rows: Arranged,
        others: Arranged,
        kept: Typed,
        shown: Shown,
        fits: Column | None,
        *,
        shown_here: Callable[[Row], Row],
        asked: Asked | None,
        present: bool,
    ) -> None:
        self._rows, self._others, self.kept = rows, others, kept
        self._shown, self._fits, self._present = shown, fits, present
        self._shown_here, self._asked = shown_here, asked
        self._count = len(rows.side.types)

    def delta(self, flush: Flush) -> DataFrame | None:
        found = [] if self._present else self._alone(flush)
        rows, others = self._rows.change(flush, "x"), self._others.change(flush, "y")
        if rows is not None or others is not None:
            found += self._by_key(flush, rows, others)
        return united(found) if found else None

    def direct(self, flush: DirectFlush) -> Bag:
        rows, others = self._rows.direct_change(flush), self._others.direct_change(flush)
        of_rows = self._rows.by_key(rows.items())
        change = self._others.by_key(others.items())
        keys = of_rows.keys() | change.keys()
        before = self._others.by_key(self._others.direct_found(flush, keys))
        found = [] if self._present else self._direct_alone(rows)
        for key, pairs in of_rows.items():
            there = [*before.get(key, ()), *change.get(key, ())]
            found += [(row, n) for row, n in pairs if self._is_shown(row, there)]
        turned = {key for key in change if self._may_turn(before.get(key, []), change[key])}
        stand = self._rows.by_key(self._rows.direct_found(flush, turned))
        for key in turned:
            was = before.get(key, [])
            found += self._turned(stand.get(key, ()), was, [*was, *change[key]])
        return summed([(self._shown_here(row), n) for row, n in found])

    def _direct_alone(self, rows: Bag) -> list[Pair]:
        """Rows that match nothing, which are always in the output."""
        key_of = self._rows.side.key_of
        return [pair for pair in rows.items() if key_of(pair[0]) is None]

    def _is_shown(self, row: Row, there: Sequence[Pair]) -> bool:
        """Whether a row is in the output that has rows of its key on the other side."""
        asked = self._asked
        count = sum(n for other, n in there if asked is None or asked(row, other))
        return (count > 0) is self._present

    def _may_turn(self, before: Sequence[Pair], change: Sequence[Pair]) -> bool:
        """Whether rows of a key may come to be in the output, or not to be in it any more."""
        if self._asked is not None:
            return True
        was = sum(n for _, n in before)
        return (was > 0) is not (was + sum(n for _, n in change) > 0)

    def _turned(
        self, rows: Sequence[Pair], before: Sequence[Pair], after: Sequence[Pair]
    ) -> list[Pair]:
        """How rows that stay change in the output, with their partners before and after.

        Raises
        ------
        TooMany: there are many pairs to ask.
        """
        if self._asked is not None:
            check_fetched(len(rows) * len(after))
        shown = [
            (row, n, self._is_shown(row, before), self._is_shown(row, after)) for row, n in rows
        ]
        return [(row, n if is_now else -n) for row, n, was, is_now in shown if was is not is_now]

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
        parts = [] if rows is None else [self._weighted(rows, is_change=True)]
        if others is not None:
            turned = self._keys(None, others)
            for there in self._rows.having(flush, turned, ("k", "x"), None, "left_semi"):
                parts.append(self._weighted(there))
        if not parts:
            return []
        keys = self._keys(rows, others)
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
