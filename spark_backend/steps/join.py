"""Joins by key: pairs of rows, and rows with or without partners.

`Join` is an inner join by a key, with a residual predicate on pairs:

    d(L join R)  =  dL join R  +  L join dR  +  dL join dR          with L and R before the flush

The change is the small side: it is sent to the tasks that have the rows, and only the buckets of
its keys are read from the base of a table.

State:  the rows of both sides, by the key; equal inputs with equal keys share a table.
Cost:   per flush O(rows of the buckets of the keys that changed).
Source: [dbsp] bilinear operators.

`MatchedRows` gives the rows of semi and anti joins, and the rows of outer joins without a partner:

    n(key) = rows of the other side with the key        out = rows of the left where n > 0 (or = 0)
    d out  = changed rows, if n after says so
           + old rows, if n becomes positive or zero     (of keys that change on the other side)

With a residual predicate, the partners are counted for each row. Otherwise the other side may be
stored as the number of its rows per key (`KeyCounts`), if a key may have many: a change of a row
costs the same for a heavy key.

State:  the rows of one side by the key, and the rows of the other, or their counts.
Cost:   per flush O(changed rows, and the rows whose keys find their first partner or lose the last
        one); in a job, O(rows of the keys that change on the other side). With a residual
        predicate, the pairs of the rows of these keys.
Source: [dbsp] antijoin as a difference; counts per key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from optimizer import plan
from optimizer.expr import Function
from reactive.engine.collections.zset import Pair, Row
from reactive.engine.operators.frontiers import Retention
from reactive.engine.operators.plain import spread_bindings
from reactive.engine.reference.bags import Bag, pair_maker
from spark_backend.codec.arrow import pairs_of
from spark_backend.codec.columns import truth_of
from spark_backend.codec.hashing import STRANGE
from spark_backend.codec.schema import Record, Typed, tuple_of
from spark_backend.codec.values import Value, record_value
from spark_backend.direct.flush import DirectFlush, Leaves, TooMany, check_fetched, net_bag
from spark_backend.state.one_job import TableSpec
from spark_backend.state.tables import union_frames
from spark_backend.steps.dropping import dropping_of
from spark_backend.steps.keys import HASH, Side, keys_equal, row_bindings
from spark_backend.steps.step import Flush, Hashes, Step, collect_hashes, rows_with_keys, schema_of

ByKey = dict[Leaves, list[tuple[Row, int]]]
"""Rows with their weights, by their key."""


class ArrangedRows:
    """The rows of a step by a key.

    Parameters
    ----------
    name: the same for equal rows with an equal key.
    retention: the rows that find no partner to come, and are dropped.
    """

    def __init__(
        self, source: Step, side: Side, name: str, retention: Retention | None = None
    ) -> None:
        self.source, self.side, self.retention = source, side, retention
        closes = None if retention is None else (retention.value, retention.frontier)
        self.spec = TableSpec(
            *(name, schema_of(source.kept), ("row",), ("weight",), lambda: side.hash),
            dropping=dropping_of("row", source.kept, closes),
        )

    def change(self, flush: Flush, prefix: str) -> DataFrame | None:
        """Return how the rows change, keyed, and add the change to the table.

        Return None if they do not change.
        """
        found = flush.delta(self.source)
        if found is None:
            return None
        flush.add(self.spec, found)
        return self.side.keyed(found.withColumn(HASH, self.side.hash), prefix)

    def having(
        self, flush: Flush, keys: DataFrame, prefixes: tuple[str, str], hashes: Hashes, how: str
    ) -> list[DataFrame]:
        """Return the rows before the flush, joined with keys, which have their hash.

        Parameters
        ----------
        prefixes: the prefix of the columns of the keys, and that of the rows here.
        """
        of, own = prefixes
        on = keys_equal(of, own, self.side.optional)
        return rows_with_keys(
            flush,
            self.spec,
            keys,
            lambda _: on,
            hashes,
            read=lambda part: self.side.keyed(part, own),
            how=how,
            key=HASH,
        )

    def hashes(self, flush: Flush) -> Hashes:
        """Return the function that collects the hashes of the keys of changed rows.

        Return None if that needs a job, as the rows are not in the query itself; `set` if
        nothing changed.
        """
        change = flush.delta(self.source)
        if change is None:
            return set
        if not flush.is_local(self.source):
            return None
        return cache(lambda: collect_hashes(change, self.side.hash))

    def direct_change(self, flush: DirectFlush) -> Bag:
        """Return how the rows change, and add the change to the table."""
        found = flush.delta(self.source)
        flush.add(self.spec, self.source.kept, found)
        return found

    def by_key(self, rows: Iterable[Pair]) -> ByKey:
        """Group rows with their weights by their key, without rows that match nothing.

        Raises
        ------
        TooMany: a key is no value of the declared type, so that its equality is unknown.
        """
        key_of = self.side.key_of
        found: ByKey = {}
        for pair in rows:
            key = key_of(pair[0])
            if key is not None:
                found.setdefault(key, []).append(pair)
        if self.side.has_records and any(STRANGE in key for key in found):
            raise TooMany("a key that is not of the declared type")
        return found

    def keys_of(self, rows: Iterable[Row]) -> set[Leaves]:
        """Return the keys of rows that can match."""
        return {key for row in rows if (key := self.side.key_of(row)) is not None}

    def direct_having(self, flush: DirectFlush, keys: set[Leaves]) -> Bag:
        """Return the rows before the flush that have keys; other rows may be included."""
        return net_bag(self.direct_found(flush, keys))

    def direct_found(self, flush: DirectFlush, keys: set[Leaves]) -> list[Pair]:
        """Return the rows of `direct_having`, with their weights; copies of a row are not added
        up."""
        if not keys:
            return []
        return pairs_of(self.source.kept, flush.found(self.spec, self.side.lookup, keys))


class Join:
    """An inner join of a node, with a residual predicate."""

    def __init__(
        self,
        node: plan.Node,
        left: ArrangedRows,
        right: ArrangedRows,
        residual: Function | None,
        count: int,
    ) -> None:
        self._left, self._right, self._count = left, right, count
        self._made = pair_maker(node.inputs()[0])
        self._asked = None if residual is None else spread_bindings(residual, count + 1)
        self.kept: Typed = pair_type(left.source.kept, right.source.kept, count)
        self._condition = None if residual is None else self._fits(residual)
        pair = pair_value(left.source.kept, right.source.kept, count)
        self._row = pair.column.alias("row")

    def delta(self, flush: Flush) -> DataFrame | None:
        """Return how the joined pairs change; None if neither side changes."""
        left, right = self._left.change(flush, "l"), self._right.change(flush, "r")
        found = []
        if left is not None:
            hashes = self._left.hashes(flush)
            keys = _with_true_filter(left, "l")
            found += self._right.having(flush, keys, ("l", "r"), hashes, "inner")
        if right is not None:
            hashes = self._right.hashes(flush)
            keys = _with_true_filter(right, "r")
            found += self._left.having(flush, keys, ("r", "l"), hashes, "inner")
        if left is not None and right is not None:
            on = keys_equal("l", "r", self._right.side.optional)
            one, other = flush.together(left.drop(HASH)), flush.prepare_join(right.drop(HASH))
            found.append(one.join(other, on))
        out = [self._pairs(frame) for frame in found]
        return flush.handed_on(flush.together(union_frames(out))) if out else None

    def direct(self, flush: DirectFlush) -> Bag:
        return net_bag(flush.pairs(self))

    def direct_pairs(self, flush: DirectFlush) -> list[Pair]:
        """Return how the joined pairs change; copies of a pair are not added up."""
        left = self._left.by_key(self._left.direct_change(flush).items())
        right = self._right.by_key(self._right.direct_change(flush).items())
        on_right = self._right.by_key(self._right.direct_found(flush, set(left)))
        on_left = self._left.by_key(self._left.direct_found(flush, set(right)))
        return [
            *self._pair(left, right),
            *self._pair(left, on_right),
            *self._pair(on_left, right),
        ]

    def _pair(self, left: ByKey, right: ByKey) -> list[Pair]:
        """Return the pairs of rows with equal keys that pass the residual predicate, with the
        products of their weights.

        Raises
        ------
        TooMany: there are many pairs.
        """
        if not right:
            return []
        pair, fits = self._made, self._asked
        matched = [(rows, right[key]) for key, rows in left.items() if key in right]
        check_fetched(sum(len(rows) * len(others) for rows, others in matched))
        found = [
            (pair(row, other), weight * times)
            for rows, others in matched
            for row, weight in rows
            for other, times in others
        ]
        return found if fits is None else [made for made in found if fits(made[0])]

    def _pairs(self, matched: DataFrame) -> DataFrame:
        """Return the matched rows as output rows with weights, without rows that fail the residual
        predicate."""
        if self._condition is not None:
            matched = matched.filter(self._condition)
        return matched.select(self._row, F.expr("l_weight * r_weight as weight"))

    def _fits(self, residual: Function) -> Column:
        """Return the residual predicate as a condition on the columns `l_row` and `r_row`."""
        values = [
            *row_bindings(Value(F.col("l_row"), self._left.source.kept), self._count),
            Value(F.col("r_row"), self._right.source.kept),
        ]
        return truth_of(residual, values)


def pair_type(left: Typed, right: Typed, count: int) -> Typed:
    """Return the row type of a join whose left side has `count` bindings."""
    if count == 1:
        return tuple_of((left, right))
    assert isinstance(left, Record)
    return tuple_of((*left.fields, right))


def pair_value(left: Typed, right: Typed, count: int) -> Value:
    """Return a pair of the columns `l_row` and `r_row`."""
    parts = row_bindings(Value(F.col("l_row"), left), count)
    return record_value((*parts, Value(F.col("r_row"), right)))


def _with_true_filter(changed: DataFrame, prefix: str) -> DataFrame:
    """Add a filter that is always true: Spark prunes partitions only by a side that has a
    filter."""
    return changed.filter(f"{prefix}_weight > {-(2**62)}L")


Shown = Callable[[Column], Column]
"""A function from a column with a row to the output row."""
Asked = Callable[[Row, Row], object]
"""The residual predicate of a pair of rows with equal keys."""


class MatchedRows:
    """The rows of one side that have a partner on the other side, or that have none.

    Parameters
    ----------
    fits: the residual predicate of the columns `x_row` and `y_row`; None for none.
    asked: the residual predicate of a row and a row of the other side.
    shown: makes the output row; `shown_here` does so for a row of this process.
    """

    def __init__(
        self,
        rows: ArrangedRows,
        others: ArrangedRows,
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
        """Return how the rows with (or without) a partner change; None if neither side changes."""
        found = [] if self._present else self._unmatchable_rows(flush)
        rows, others = self._rows.change(flush, "x"), self._others.change(flush, "y")
        if rows is not None or others is not None:
            found += self._by_key(flush, rows, others)
        return union_frames(found) if found else None

    def direct(self, flush: DirectFlush) -> Bag:
        """Return how the rows with (or without) a partner change, in a flush of this process."""
        rows, others = self._rows.direct_change(flush), self._others.direct_change(flush)
        of_rows = self._rows.by_key(rows.items())
        change = self._others.by_key(others.items())
        keys = of_rows.keys() | change.keys()
        before = self._others.by_key(self._others.direct_found(flush, keys))
        found = [] if self._present else self._direct_unmatchable(rows)
        for key, pairs in of_rows.items():
            there = [*before.get(key, ()), *change.get(key, ())]
            found += [(row, n) for row, n in pairs if self._is_shown(row, there)]
        turned = {key for key in change if self._may_turn(before.get(key, []), change[key])}
        stand = self._rows.by_key(self._rows.direct_found(flush, turned))
        for key in turned:
            was = before.get(key, [])
            found += self._turned_rows(stand.get(key, ()), was, [*was, *change[key]])
        return net_bag([(self._shown_here(row), n) for row, n in found])

    def _direct_unmatchable(self, rows: Bag) -> list[Pair]:
        """Return the rows that match nothing, which an anti join always outputs."""
        key_of = self._rows.side.key_of
        return [pair for pair in rows.items() if key_of(pair[0]) is None]

    def _is_shown(self, row: Row, there: Sequence[Pair]) -> bool:
        """Return True if a row is in the output, given the rows of its key on the other side."""
        asked = self._asked
        count = sum(n for other, n in there if asked is None or asked(row, other))
        return (count > 0) is self._present

    def _may_turn(self, before: Sequence[Pair], change: Sequence[Pair]) -> bool:
        """Return True if rows of a key may enter or leave the output."""
        if self._asked is not None:
            return True
        was = sum(n for _, n in before)
        return (was > 0) is not (was + sum(n for _, n in change) > 0)

    def _turned_rows(
        self, rows: Sequence[Pair], before: Sequence[Pair], after: Sequence[Pair]
    ) -> list[Pair]:
        """Return how unchanged rows change in the output, given their partners before and after.

        Raises
        ------
        TooMany: there are many pairs to test.
        """
        if self._asked is not None:
            check_fetched(len(rows) * len(after))
        shown = [
            (row, n, self._is_shown(row, before), self._is_shown(row, after)) for row, n in rows
        ]
        return [(row, n if is_now else -n) for row, n, was, is_now in shown if was is not is_now]

    def _unmatchable_rows(self, flush: Flush) -> list[DataFrame]:
        """Return the rows that match nothing, which an anti join always outputs."""
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
        """Return how the rows with a key change: changed rows, and rows whose partners change.

        `rows`, `others`: the changes of both sides, None for an unchanged side.
        """
        flush.spread()
        parts = [] if rows is None else [self._as_counts(rows, is_change=True)]
        if others is not None:
            turned = self._keys(None, others)
            for there in self._rows.having(flush, turned, ("k", "x"), None, "left_semi"):
                parts.append(self._as_counts(there))
        if not parts:
            return []
        keys = self._keys(rows, others)
        found = self._count_partners(union_frames(parts), self._partners(flush, keys, others))
        return [self._output_rows(found)]

    def _count_partners(self, rows: DataFrame, partners: DataFrame | None) -> DataFrame:
        """Return rows with the number of their partners before (`nb`), and its change (`nd`)."""
        none = F.lit(0).cast("long")
        if partners is None:
            return rows.select("*", none.alias("nb"), none.alias("nd"))
        on = keys_equal("x", "y", self._others.side.optional)
        counts = F.sum("nb").alias("nb"), F.sum("nd").alias("nd")
        names = [f"y_{n}" for n in range(self._count)]
        if self._fits is None:
            return rows.join(partners.groupBy(*names).agg(*counts), on, "left")
        keys = [f"x_{n}" for n in range(self._count)]
        rows = rows.groupBy("x_row", *keys).agg(F.sum("b").alias("b"), F.sum("d").alias("d"))
        pairs = rows.join(partners, on & self._fits, "left")
        return pairs.groupBy("x_row", "b", "d").agg(*counts)

    def _keys(self, rows: DataFrame | None, others: DataFrame | None) -> DataFrame:
        """Return the keys of the changed rows on either side."""
        frames = []
        for frame, prefix in ((rows, "x"), (others, "y")):
            if frame is not None:
                names = [F.col(f"{prefix}_{n}").alias(f"k_{n}") for n in range(self._count)]
                frames.append(frame.select(*names, HASH))
        found = union_frames(frames).distinct()
        return found.filter(F.col(HASH) >= F.lit(-(2**63) + 1))

    def _as_counts(self, frame: DataFrame, *, is_change: bool = False) -> DataFrame:
        """Return rows with their count before the flush (`b`) and its change (`d`)."""
        names = [f"x_{n}" for n in range(self._count)]
        none = F.lit(0).cast("long")
        before, change = (none, F.col("x_weight")) if is_change else (F.col("x_weight"), none)
        return frame.select("x_row", *names, before.alias("b"), change.alias("d"))

    def _partners(
        self, flush: Flush, keys: DataFrame, others: DataFrame | None
    ) -> DataFrame | None:
        """Return the rows of the other side with the given keys, before the flush and as a change.

        Return None if there are none.
        """
        names = [f"y_{n}" for n in range(self._count)]
        if self._fits is not None:
            names.append("y_row")
        none = F.lit(0).cast("long")
        parts = []
        if others is not None:
            parts.append(others.select(*names, none.alias("nb"), F.col("y_weight").alias("nd")))
        for there in self._others.having(flush, keys, ("k", "y"), None, "left_semi"):
            parts.append(there.select(*names, F.col("y_weight").alias("nb"), none.alias("nd")))
        return union_frames(parts) if parts else None

    def _output_rows(self, rows: DataFrame) -> DataFrame:
        """Return the output rows with the change of their counts, from the numbers of partners
        `nb`, `nd`."""
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
