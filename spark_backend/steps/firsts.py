"""The first rows of each group, and of all rows, by an order.

`Firsts` computes the first rows of the groups that changed, sorted before and after:

    d out  =  first n after  -  first n before

A row with weight w takes w places. The order must decide between any two different rows, because
files do not store which of two tied rows came first.

For a large group, flushes of this process store its first rows in a separate table, with a reserve,
as `DirectFirst` does for an order of all rows; if too few are left, they read the whole group. A
job reads whole groups, and drops that table.

State:  the rows, by group; the held rows of large groups.
Cost:   per flush O(rows of the groups that changed, with their logarithm); for large groups, in
        this process, O(changed rows + n).
Source: SQL's ROW_NUMBER() OVER (PARTITION BY k ORDER BY by) <= n, of weighted rows.

`First` computes the first rows of all; it holds more rows than needed, sorted, and stores the
others:

    held    a a a a a a | b b b b | rows beyond
            n needed      reserve

Changes up to the last held row are applied to the held rows. If fewer than n are left, the flush is
repeated, and reads all rows to find the first. Few rows are read in each flush.

Different rows may tie only in the outermost operator: then all rows that tie with the last row are
included, and the process cuts them in their order of insertion.

State:  the rows, and the held rows.
Cost:   per flush O(changed rows + n); O(all rows) after at least as many deletions from the top as
        the reserve has rows.
Source: K. Yi et al., *Efficient Maintenance of Materialized Top-k Views*, 2003.

`DirectFirst` does the same in a flush of this process, on sorted lists.

State:  only the tables.
Cost:   O(held rows + changed rows), with their logarithm; all rows if too few are held.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from optimizer import plan
from optimizer.plans.forms import Key
from reactive.engine.collections.order import tie_key
from reactive.engine.collections.zset import Row, canonical
from reactive.engine.operators.plain import spread_bindings
from reactive.engine.reference.bags import Bag, ordered_rows, reference_sort_key
from spark_backend.codec.columns import value_of
from spark_backend.codec.hashing import flattened_values, leaf_types
from spark_backend.codec.values import Inexact, Value
from spark_backend.direct.flush import (
    NOTHING,
    DirectFlush,
    Lookup,
    add_bags,
    bag_of,
    key_fields,
    node_change,
    over_placeholders,
)
from spark_backend.state.one_job import TableSpec
from spark_backend.state.tables import union_frames
from spark_backend.steps.keys import SortColumn, SortOrder, row_bindings, sort_order
from spark_backend.steps.step import (
    MOST_BROADCAST,
    TOO_FEW,
    Flush,
    Step,
    bucket_condition,
    hash_column,
    schema_of,
)

LARGE = 2_000
"""The number of rows from that the first rows of a group are held separately."""
SHRUNK = 4
"""A group keeps its held rows until too few are left and it has less than `LARGE` over this."""
RESERVE = 64
"""The minimum number of held rows beyond the needed ones."""
FEW_GROUPS, MOST_HELD = 16, 300_000
"""The most rows that are read from files for at most this many groups."""


class Firsts:
    """The first rows of each group.

    Parameters
    ----------
    count: the number of bindings of a row of the source.
    unique: expressions that identify a row, if known.

    Raises
    ------
    Inexact: the key of a group or an order is no column, or the order does not decide.
    """

    def __init__(
        self, node: plan.Top, source: Step, count: int, names: Sequence[str], unique: Key
    ) -> None:
        self._source, self.kept = source, source.kept
        row = Value(F.col("row"), self.kept)
        stands = sort_order(node.keys, row, count, unique, node.key)
        check_decided(stands)
        self._by = stands.by
        self._key = value_of(node.key, row_bindings(row, count))
        self._node, self._call = over_placeholders(node), spread_bindings(node.key, count)
        self._lookup = Lookup(leaf_types(self._key.of), key_fields((node.key,), self.kept, count))
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
        """Return how the first rows of the groups that changed change; None if none changed."""
        given = flush.delta(self._source)
        if given is None:
            return None
        flush.add(self.spec, given)
        net = sum_counts(union_frames(self._rows_of_groups(flush, given)))
        shown = [
            count_places(F.col(n), F.col(f"start_{n}"), self._first, self._last) for n in ("a", "b")
        ]
        return drop_unchanged(with_starts(net, self._by), shown[0] - shown[1])

    def direct(self, flush: DirectFlush) -> Bag:
        """Return how the first rows of groups change, in a flush of this process; from held rows
        for large groups, from all rows for the others."""
        given = flush.delta(self._source)
        if not given:
            return given
        flush.add(self.spec, self.kept, given)
        change = self._by_group(given)
        held = self._read_held(flush, change)
        small = [key for key in change if key not in held]
        most = MOST_HELD if len(small) <= FEW_GROUPS else None
        there = self._rows_of(flush, self.spec, small, most)
        new = add_bags([change[key] for key in small])
        found = [node_change(self._node, [add_bags(list(there.values()))], [new])]
        kept = [
            self._rows_to_hold(add_bags([there.get(key, NOTHING), change[key]])) for key in small
        ]
        for key, before in held.items():
            placed, is_left = self._place(flush, key, before, change[key])
            found.append(self._first_rows.shown(placed))
            kept.append(self._first_rows.held(placed) if is_left else _negate_bag(before))
        flush.add(self.held, self.kept, add_bags(kept))
        return add_bags(found)

    def _by_group(self, rows: Bag) -> dict[Any, Bag]:
        """Return the rows by the key of their group."""
        found: dict[Any, Bag] = {}
        for row, weight in rows.items():
            found.setdefault(canonical(self._call(row)), Counter())[row] = weight
        return found

    def _rows_of(
        self, flush: DirectFlush, spec: TableSpec, keys: Collection[Any], most: int | None = None
    ) -> dict[Any, Bag]:
        """Return the rows of groups, before the flush."""
        if not keys:
            return {}
        leaves_of = {tuple(flattened_values(self._key.of, key)) for key in keys}
        table = flush.found(spec, self._lookup, leaves_of, most=most)
        found = self._by_group(bag_of(self.kept, table))
        return {key: found[key] for key in keys if key in found}

    def _read_held(self, flush: DirectFlush, keys: Collection[Any]) -> dict[Any, Bag]:
        """Return the held rows of large groups."""
        return self._rows_of(flush, self.held, keys) if flush.tables.rows_near(self.held) else {}

    def _rows_to_hold(self, rows: Bag) -> Bag:
        """Return the rows to hold of a group: its first rows if it is large now."""
        if len(rows) < LARGE:
            return NOTHING
        return self._first_rows.held(self._first_rows.of_all(NOTHING, rows))

    def _place(
        self, flush: DirectFlush, key: Any, before: Bag, change: Bag
    ) -> tuple[list[HeldRow], bool]:
        """Return the first rows of a large group before and after, and whether it stays large."""
        placed = self._first_rows.rows_up_to_last(before, change)
        if self._first_rows.is_enough(placed):
            return placed, True
        there = self._rows_of(flush, self.spec, [key], MOST_HELD).get(key, NOTHING)
        rows = add_bags([there, change])
        return self._first_rows.of_all(before, rows), len(rows) * SHRUNK >= LARGE

    def _rows_of_groups(self, flush: Flush, given: DataFrame) -> list[DataFrame]:
        """Return the rows of the groups that changed, and the changed rows."""
        key = self._key.column.alias("key")
        keys = given.select(key, self._hash().alias("h")).distinct()
        keys = flush.small(keys.filter(F.col("h") >= F.lit(-(2**63) + 1)))
        found = [with_counts(given.select("row", "weight", key), is_change=True)]
        for part in flush.parts(self.spec):
            keyed = part.select("*", key)
            on = keyed["key"].eqNullSafe(keys["key"])
            bucket = bucket_condition(flush, self.spec, keyed, "h")
            on = on if bucket is None else on & bucket
            found.append(with_counts(keyed.join(keys, on, "left_semi")))
        return found

    def _hash(self) -> Column:
        return hash_column(self._key)


def _negate_bag(rows: Bag) -> Bag:
    return Counter({row: -weight for row, weight in rows.items()})


def check_decided(stands: SortOrder) -> None:
    """Check that the first rows are determined, as in the process.

    Raises
    ------
    Inexact: different rows may tie, and their order of insertion would decide.
    """
    if not stands.is_total:
        raise Inexact(
            "rows that tie stand as they came, which files do not know: order by the key of the "
            "table at last, or have a class with order=True"
        )


def with_counts(rows: DataFrame, *, is_change: bool = False) -> DataFrame:
    """Return rows by `key` with partial counts before (`b`) and after (`a`) the change."""
    before = F.lit(0).cast("long") if is_change else F.col("weight")
    return rows.select("key", "row", before.alias("b"), F.col("weight").alias("a"))


def sum_counts(rows: DataFrame) -> DataFrame:
    """Sum the counts of each row."""
    return rows.groupBy("key", "row").agg(F.sum("b").alias("b"), F.sum("a").alias("a"))


def with_starts(rows: DataFrame, by: Sequence[SortColumn]) -> DataFrame:
    """Return rows with the number of rows before them, before (`start_b`) and after (`start_a`) the
    change."""
    upto = Window.partitionBy("key").orderBy(*(one.sort for one in by))
    peers = Window.partitionBy("key", *(one.column for one in by))
    starts = [(F.sum(n).over(upto) - F.sum(n).over(peers)).alias(f"start_{n}") for n in ("b", "a")]
    return rows.select("*", *starts)


def count_places(weight: Column, start: Column, first: int, last: int) -> Column:
    """Return the number of places of a row in the range from `first` to before `last`."""
    inside = F.least(start + weight, F.lit(last)) - F.greatest(start, F.lit(first))
    return F.greatest(inside, F.lit(0)).cast("long")


def drop_unchanged(rows: DataFrame, weight: Column) -> DataFrame:
    """Return the rows with a nonzero weight."""
    return rows.select("row", weight.alias("weight")).filter("weight != 0")


FEW = 100_000
"""The most rows of an order that are read in each flush."""


class First:
    """The first rows of all.

    Parameters
    ----------
    count: the number of bindings of a row of the source.
    names: the names of the tables of all rows, and of held rows.
    unique: expressions that identify a row, if known.
    is_last: True if only the output reads it, which the process sorts again.

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
        assert isinstance(node.limit, int)
        self._source, self.kept = source, source.kept
        row = Value(F.col("row"), self.kept)
        stands = sort_order(node.keys, row, count, unique)
        if not is_last:
            check_decided(stands)
        self._by, self._is_total = stands.by, stands.is_total
        self._first, self._needed = node.offset, node.offset + node.limit
        self._wanted = 2 * self._needed + RESERVE
        self._direct = DirectFirst(node, self._wanted, is_total=self._is_total)
        schema = schema_of(self.kept)
        self.specs = [
            TableSpec(name, schema, ("row",), ("weight",), lambda: hash_column(row))
            for name in names
        ]

    def delta(self, flush: Flush) -> DataFrame | None:
        """Return how the first rows change; None if no row changes.

        The job fails if too few rows are held, unless the flush reads all rows.
        """
        given = flush.delta(self._source)
        if given is None:
            return None
        rows, held = self.specs
        flush.add(rows, given)
        there = [_as_one_group(part) for part in flush.parts(held)]
        if self._looks_through(flush):
            gone = [with_counts(part).withColumn("a", F.lit(0).cast("long")) for part in there]
            found = self._with_counts(
                sum_counts(union_frames([*gone, self._first_of_all(flush, given)]))
            )
        else:
            found = self._check_enough(
                self._with_counts(self._within_held(given, [with_counts(p) for p in there]))
            )
        flush.add(held, drop_unchanged(found, F.col("a") - F.col("b")))
        return drop_unchanged(found, F.col("shown_a") - F.col("shown_b"))

    def direct(self, flush: DirectFlush) -> Bag:
        """Return how the first rows change, in a flush of this process; from all rows if too few
        are held."""
        given = flush.delta(self._source)
        if not given:
            return given
        rows, held = self.specs
        before = flush.all_rows(held, self.kept)
        first = self._direct
        found = first.rows_up_to_last(before, given)
        if not first.is_enough(found):
            found = first.of_all(before, add_bags([flush.all_rows(rows, self.kept), given]))
        flush.add(rows, self.kept, given)
        flush.add(held, self.kept, first.held(found))
        return first.shown(found)

    def _looks_through(self, flush: Flush) -> bool:
        """Return True if the flush reads all rows to find the first ones."""
        there = sum(flush.tables.manifest.rows(self.specs[0].name))
        return flush.looks_through or there <= FEW or flush.rows > MOST_BROADCAST

    def _within_held(self, given: DataFrame, held: Sequence[DataFrame]) -> DataFrame:
        """Return the held rows, and the changed rows up to the last of them: there are no others
        before it."""
        net = sum_counts(union_frames([with_counts(_as_one_group(given), is_change=True), *held]))
        by = Window.partitionBy("key").orderBy(*(one.sort for one in self._by))
        onwards = by.rangeBetween(Window.currentRow, Window.unboundedFollowing)
        return net.withColumn("reach", F.max("b").over(onwards)).filter("reach > 0").drop("reach")

    def _first_of_all(self, flush: Flush, given: DataFrame) -> DataFrame:
        """Return the first of all rows after the change, with the rows that tie with the last of
        them."""
        parts = [part.select("row", "weight") for part in flush.parts(self.specs[0])]
        whole = union_frames([given.select("row", "weight"), *parts]).groupBy("row")
        net = whole.agg(F.sum("weight").alias("weight")).filter("weight > 0")
        found = net.orderBy(*(one.sort for one in self._by)).limit(self._wanted)
        if not self._is_total:
            columns = [one.column.alias(f"y{place}") for place, one in enumerate(self._by)]
            marks = F.broadcast(found.select(*columns).distinct())
            same = (one.column.eqNullSafe(F.col(f"y{n}")) for n, one in enumerate(self._by))
            found = net.join(marks, reduce(lambda a, b: a & b, same), "left_semi")
        return with_counts(_as_one_group(found), is_change=True)

    def _with_counts(self, rows: DataFrame) -> DataFrame:
        """Return the rows to hold after the change, and the shown counts before and after.

        A row is held with all its copies, and with all rows that tie with it.
        """
        start_a, start_b = F.col("start_a"), F.col("start_b")
        kept = F.when(start_a < self._wanted, F.col("a")).otherwise(F.lit(0).cast("long"))
        found = with_starts(rows, self._by).withColumn("a", kept)
        shown = {"a": start_a, "b": start_b}
        columns = [self._shown_count(n, start).alias(f"shown_{n}") for n, start in shown.items()]
        return found.select("key", "row", "b", "a", *columns)

    def _shown_count(self, name: str, start: Any) -> Any:
        """Return the column with the number of shown copies of a row, of `name` copies after
        `start` rows."""
        if self._is_total:
            return count_places(F.col(name), start, self._first, self._needed)
        return F.when(start < self._needed, F.col(name)).otherwise(F.lit(0).cast("long"))

    def _check_enough(self, rows: DataFrame) -> DataFrame:
        """Return the rows; raise in the job if fewer are held than needed."""
        every = Window.partitionBy("key")
        few = f"if(total < {self._needed}, cast(raise_error('{TOO_FEW}') as bigint), a)"
        total = rows.withColumn("total", F.sum("a").over(every))
        return total.withColumn("a", F.expr(few))


def _as_one_group(rows: DataFrame) -> DataFrame:
    """Return rows as one group."""
    return rows.select(F.lit(0).cast("long").alias("key"), "row", "weight")


@dataclass(frozen=True, slots=True)
class HeldRow:
    """A row with its held counts before and after, and its shown counts."""

    row: Row
    before: int
    after: int
    shown_before: int
    shown_after: int


class DirectFirst:
    """Select the rows to hold, and the rows to show.

    Parameters
    ----------
    wanted: the number of rows to hold, plus the rows that tie with the last of them.
    is_total: True if different rows never tie; else the rows that tie with the last shown one are
        shown too.
    """

    def __init__(self, node: plan.OrderBy, wanted: int, *, is_total: bool) -> None:
        assert isinstance(node.limit, int)
        self._first, self._needed = node.offset, node.offset + node.limit
        self._wanted, self._is_total = wanted, is_total
        self._whole = plan.OrderBy(node.input, node.keys, None, 0)
        self._key = reference_sort_key(self._whole)

    def rows_up_to_last(self, before: Bag, change: Bag) -> list[HeldRow]:
        """Return the held rows, and the changed rows up to the last of them."""
        after = add_bags([before, change])
        runs = self._runs({**before, **after})
        last = max(
            (n for n, run in enumerate(runs) if any(row in before for row in run)), default=-1
        )
        return list(self._place(runs[: last + 1], before, after))

    def of_all(self, before: Bag, every: Bag) -> list[HeldRow]:
        """Return the held rows, and all rows after the change."""
        return list(self._place(self._runs({**before, **every}), before, every))

    def is_enough(self, found: Iterable[HeldRow]) -> bool:
        """Return True if enough rows are held to show n."""
        return sum(one.after for one in found) >= self._needed

    def held(self, found: Iterable[HeldRow]) -> Bag:
        """Return how the held rows change."""
        return Counter({p.row: p.after - p.before for p in found if p.after != p.before})

    def shown(self, found: Iterable[HeldRow]) -> Bag:
        """Return how the shown rows change."""
        shown = {p.row: p.shown_after - p.shown_before for p in found}
        return Counter({row: weight for row, weight in shown.items() if weight})

    def _runs(self, rows: Iterable[Row]) -> list[list[Row]]:
        """Return distinct rows in order, as lists of rows that tie."""
        ordered = ordered_rows(self._whole, Counter(dict.fromkeys(rows, 1)))
        keyed = groupby(ordered, key=lambda row: (self._key(row), tie_key(row)))
        return [list(run) for _, run in keyed]

    def _place(self, runs: list[list[Row]], before: Bag, after: Bag) -> Iterator[HeldRow]:
        """Yield the rows of `runs`, in order, with their held and shown counts before and after.

        Rows of a run tie.
        """
        start_b = start_a = 0
        for run in runs:
            for row in run:
                b, a = before.get(row, 0), max(0, after.get(row, 0))
                held = a if start_a < self._wanted else 0
                shown = self._shown_copies(b, start_b), self._shown_copies(held, start_a)
                yield HeldRow(row, b, held, *shown)
            start_b += sum(before.get(row, 0) for row in run)
            start_a += sum(max(0, after.get(row, 0)) for row in run)

    def _shown_copies(self, weight: int, start: int) -> int:
        """Return the number of shown copies of a row with `start` rows before it."""
        if self._is_total:
            return max(0, min(start + weight, self._needed) - max(start, self._first))
        return weight if start < self._needed else 0
