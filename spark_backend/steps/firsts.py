"""The first rows of each group: of the groups that changed, sorted before and after.

    d out  =  first n after  -  first n before

A row that is there w times has w places. The order decides between any two rows that differ: which
of rows that tie came first, files do not know.

Of a large group, flushes of this process hold the first rows and some more apart, as of an order of
all rows (`first_of_all.py`); when too few are left, they look through the group. A job looks at
whole groups, and gives up what is held.

State:  the rows, by group; of large groups those that are held.
Cost:   per flush O(rows of the groups that changed, with their logarithm); of large groups, by this
        process, O(rows that changed + n).
Source: SQL's ROW_NUMBER() OVER (PARTITION BY k ORDER BY by) <= n, of weighted rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from optimizer import plan
from optimizer.plans.unique_keys import Key
from reactive.engine.collections.zset import canonical
from reactive.engine.operators.plain import spread
from reactive.engine.reference.bags import Bag
from spark_backend.codec.columns import value_of
from spark_backend.codec.hashing import flattened_values, leaves
from spark_backend.codec.values import Inexact, Value
from spark_backend.direct.flush import NOTHING, DirectFlush, bag_of, over_given, together
from spark_backend.direct.flush import changed as changed_there
from spark_backend.direct.lookup import Lookup, fields_read
from spark_backend.state.tables import TableSpec, united
from spark_backend.steps.direct_first import DirectFirst, Placed
from spark_backend.steps.keys import bound
from spark_backend.steps.near import in_bucket
from spark_backend.steps.sets import hashed
from spark_backend.steps.standing import By, Standing, standing
from spark_backend.steps.step import Flush, Step, schema_of

LARGE = 2_000
"""Rows of a group from which on its first rows are held apart."""
SHRUNK = 4
"""They are so until too few are left, and the group has one such share of the rows."""
RESERVE = 64
"""Rows that are held at least beyond those that are needed."""
FEW_GROUPS, MOST_HELD = 16, 300_000
"""Of so few groups, so many rows are taken out of files."""


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

    def __init__(
        self, node: plan.Top, source: Step, count: int, names: Sequence[str], unique: Key
    ) -> None:
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
        schema = schema_of(self.kept)
        self.spec, self.held = (
            TableSpec(name, schema, ("row",), ("weight",), self._hash, is_here=place == 1)
            for place, name in enumerate(names)
        )
        order = plan.OrderBy(node.input, node.keys, node.limit, node.offset)
        self._first_rows = DirectFirst(order, 2 * self._last + RESERVE, is_total=True)

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
        change = self._by_group(given)
        held = self._held(flush, change)
        small = [key for key in change if key not in held]
        most = MOST_HELD if len(small) <= FEW_GROUPS else None
        there = self._rows_of(flush, self.spec, small, most)
        new = together([change[key] for key in small])
        found = [changed_there(self._node, [together(list(there.values()))], [new])]
        kept = [self._made(together([there.get(key, NOTHING), change[key]])) for key in small]
        for key, before in held.items():
            placed, is_left = self._placed(flush, key, before, change[key])
            found.append(self._first_rows.shown(placed))
            kept.append(self._first_rows.held(placed) if is_left else _negated(before))
        flush.add(self.held, self.kept, together(kept))
        return together(found)

    def _by_group(self, rows: Bag) -> dict[Any, Bag]:
        found: dict[Any, Bag] = {}
        for row, weight in rows.items():
            found.setdefault(canonical(self._call(row)), Counter())[row] = weight
        return found

    def _rows_of(
        self, flush: DirectFlush, spec: TableSpec, keys: Collection[Any], most: int | None = None
    ) -> dict[Any, Bag]:
        """The rows of groups, as of before."""
        if not keys:
            return {}
        leaves_of = {tuple(flattened_values(self._key.of, key)) for key in keys}
        table = flush.found(spec, self._lookup, leaves_of, most=most)
        found = self._by_group(bag_of(self.kept, table))
        return {key: found[key] for key in keys if key in found}

    def _held(self, flush: DirectFlush, keys: Collection[Any]) -> dict[Any, Bag]:
        """The first rows of groups that are large."""
        return self._rows_of(flush, self.held, keys) if flush.tables.rows_near(self.held) else {}

    def _made(self, rows: Bag) -> Bag:
        """What is to be held of a group from now on: of one that is large now, its first rows."""
        if len(rows) < LARGE:
            return NOTHING
        return self._first_rows.held(self._first_rows.of_all(NOTHING, rows))

    def _placed(
        self, flush: DirectFlush, key: Any, before: Bag, change: Bag
    ) -> tuple[list[Placed], bool]:
        """The first rows of a large group before and after, and whether it stays one."""
        placed = self._first_rows.within(before, change)
        if self._first_rows.is_enough(placed):
            return placed, True
        there = self._rows_of(flush, self.spec, [key], MOST_HELD).get(key, NOTHING)
        rows = together([there, change])
        return self._first_rows.of_all(before, rows), len(rows) * SHRUNK >= LARGE

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


def _negated(rows: Bag) -> Bag:
    return Counter({row: -weight for row, weight in rows.items()})


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
