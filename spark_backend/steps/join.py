"""Inner joins by a key, with whatever else the predicate asks of a pair.

    d(L join R)  =  dL join R  +  L join dR  +  dL join dR          R and L as of before

The change is the small side: it is sent to where the rows are, and of a table's base only the
buckets of its keys are read.

State:  the rows of both sides, by the key; those of equal inputs by equal keys are kept once.
Cost:   per flush O(rows of the buckets of the keys that changed).
Source: [dbsp] bilinear operators.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from optimizer import plan
from optimizer.expr import Function
from reactive.engine.collections.zset import Pair, Row
from reactive.engine.operators.plain import spread
from reactive.engine.reference.bags import Bag, paired
from spark_backend.codec.arrow import pairs_of
from spark_backend.codec.columns import truth_of
from spark_backend.codec.hashing import STRANGE
from spark_backend.codec.schema import Record, Typed, tuple_of
from spark_backend.codec.values import Value, record_value
from spark_backend.direct.flush import DirectFlush, TooMany, check_fetched, summed
from spark_backend.direct.lookup import Leaves
from spark_backend.state.tables import TableSpec, united
from spark_backend.steps.keys import HASH, Side, bound, same
from spark_backend.steps.near import hashes_of, having
from spark_backend.steps.step import Flush, Hashes, Step, schema_of

ByKey = dict[Leaves, list[tuple[Row, int]]]
"""Rows with their weights, by their key."""


class Arranged:
    """The rows of a step by a key.

    Parameters
    ----------
    name: the same for the same rows by the same key.
    """

    def __init__(self, source: Step, side: Side, name: str) -> None:
        self.source, self.side = source, side
        self.spec = TableSpec(
            name, schema_of(source.kept), ("row",), ("weight",), lambda: side.hash
        )

    def change(self, flush: Flush, prefix: str) -> DataFrame | None:
        """How the rows change, keyed; they are kept."""
        found = flush.delta(self.source)
        if found is None:
            return None
        flush.add(self.spec, found)
        return self.side.keyed(found.withColumn(HASH, self.side.hash), prefix)

    def having(
        self, flush: Flush, keys: DataFrame, prefixes: tuple[str, str], hashes: Hashes, how: str
    ) -> list[DataFrame]:
        """The rows as of before the flush joined with keys, which have their hash.

        Parameters
        ----------
        prefixes: of the columns of the keys, and those of the rows here.
        """
        of, own = prefixes
        on = same(of, own, self.side.optional)
        return having(
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
        """Of the keys of rows that change."""
        change = flush.delta(self.source)
        if change is None:
            return set
        if not flush.is_local(self.source):
            return None
        return cache(lambda: hashes_of(change, self.side.hash))

    def direct_change(self, flush: DirectFlush) -> Bag:
        """How the rows change; they are kept."""
        found = flush.delta(self.source)
        flush.add(self.spec, self.source.kept, found)
        return found

    def by_key(self, rows: Iterable[Pair]) -> ByKey:
        """Rows with their weights by their key; without those that match nothing.

        Raises
        ------
        TooMany: a key is no value of the declared type, of which it is not known what equals it.
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
        """The keys of rows that can match."""
        return {key for row in rows if (key := self.side.key_of(row)) is not None}

    def direct_having(self, flush: DirectFlush, keys: set[Leaves]) -> Bag:
        """The rows as of before the flush that have keys; others may come along."""
        return summed(self.direct_found(flush, keys))

    def direct_found(self, flush: DirectFlush, keys: set[Leaves]) -> list[Pair]:
        """The same, not added up."""
        if not keys:
            return []
        return pairs_of(self.source.kept, flush.found(self.spec, self.side.lookup, keys))


class Join:
    """An inner join of a node, with a residual condition."""

    def __init__(
        self,
        node: plan.Node,
        left: Arranged,
        right: Arranged,
        residual: Function | None,
        count: int,
    ) -> None:
        self._left, self._right, self._count = left, right, count
        self._made = paired(node.inputs()[0])
        self._asked = None if residual is None else spread(residual, count + 1)
        self.kept: Typed = pair_of(left.source.kept, right.source.kept, count)
        self._condition = None if residual is None else self._fits(residual)
        pair = pair_value(left.source.kept, right.source.kept, count)
        self._row = pair.column.alias("row")

    def delta(self, flush: Flush) -> DataFrame | None:
        left, right = self._left.change(flush, "l"), self._right.change(flush, "r")
        found = []
        if left is not None:
            hashes = self._left.hashes(flush)
            keys = _selective(left, "l")
            found += self._right.having(flush, keys, ("l", "r"), hashes, "inner")
        if right is not None:
            hashes = self._right.hashes(flush)
            keys = _selective(right, "r")
            found += self._left.having(flush, keys, ("r", "l"), hashes, "inner")
        if left is not None and right is not None:
            on = same("l", "r", self._right.side.optional)
            one, other = flush.together(left.drop(HASH)), flush.beside(right.drop(HASH))
            found.append(one.join(other, on))
        out = [self._pairs(frame) for frame in found]
        return flush.handed_on(flush.together(united(out))) if out else None

    def direct(self, flush: DirectFlush) -> Bag:
        return summed(flush.pairs(self))

    def direct_pairs(self, flush: DirectFlush) -> list[Pair]:
        """How the pairs change, not added up."""
        left = self._left.by_key(self._left.direct_change(flush).items())
        right = self._right.by_key(self._right.direct_change(flush).items())
        on_right = self._right.by_key(self._right.direct_found(flush, set(left)))
        on_left = self._left.by_key(self._left.direct_found(flush, set(right)))
        return [
            *self._paired(left, right),
            *self._paired(left, on_right),
            *self._paired(on_left, right),
        ]

    def _paired(self, left: ByKey, right: ByKey) -> list[Pair]:
        """The pairs of rows that match.

        Raises
        ------
        TooMany: there are many.
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
        if self._condition is not None:
            matched = matched.filter(self._condition)
        return matched.select(self._row, F.expr("l_weight * r_weight as weight"))

    def _fits(self, residual: Function) -> Column:
        values = [
            *bound(Value(F.col("l_row"), self._left.source.kept), self._count),
            Value(F.col("r_row"), self._right.source.kept),
        ]
        return truth_of(residual, values)


def pair_of(left: Typed, right: Typed, count: int) -> Typed:
    """What the pairs of a join are, of which the left has `count` bindings."""
    if count == 1:
        return tuple_of((left, right))
    assert isinstance(left, Record)
    return tuple_of((*left.fields, right))


def pair_value(left: Typed, right: Typed, count: int) -> Value:
    """A pair of the columns `l_row` and `r_row`."""
    parts = bound(Value(F.col("l_row"), left), count)
    return record_value((*parts, Value(F.col("r_row"), right)))


def _selective(changed: DataFrame, prefix: str) -> DataFrame:
    """Spark prunes partitions by a side of a join only if a filter says that it is small."""
    return changed.filter(f"{prefix}_weight > {-(2**62)}L")
