"""Rows of a join that its loops cannot tell apart: they differ in values that nothing reads.

    orders.join(customers) | group by region | count distinct amounts

Replaced rows: when only the phone of a customer changes, its pairs with all orders are the same.
The old and the new row cancel before the loop runs.

Merged partners: when a customer moves to another region, the pairs with all its orders move. The
aggregate reads only their amounts, so it is given one order for each amount
(`collections/merged_rows.py`).

Sound:  expressions of equal values are equal; an exception is raised again by the plain operators,
        which read all rows. Weights are counts of equal pairs.
Needs:  what reads the pairs reads fields of the side, not its whole rows. Partners are merged for
        an aggregate over all values, whose groups are changed by a loop.
Cost:   O(1) for a replaced row; O(different values) in place of O(rows of a key).
Source: F-IVM, views of relations grouped by their join keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from optimizer.expr import TRUE, Expr, Lifted, origins, row_names, tuple_of
from optimizer.plans.properties import bindings
from optimizer.plans.side_conditions import AnyJoin, join_match, of_left, of_right, pair_shapes
from reactive.engine.collections.index import Index, KeyedPair, WeightedRows
from reactive.engine.collections.merged_rows import MergedRows
from reactive.engine.collections.zset import Row
from reactive.engine.operators.index_by import IndexBy
from reactive.engine.operators.moved_bounds import ValuesRead, identity
from reactive.engine.operators.plain import spread_bindings
from reactive.engine.runtime.interrupts import reraise_asynchronous


class MergedPartners:
    """Nets the delta of a side of a join, and looks up partners, merged for keys with many of them.

    Parameters
    ----------
    values_read: the expressions that are evaluated for a pair.
    merges: True if the reader of pairs adds up their weights.
    """

    __slots__ = ("_reads", "_sides")

    def __init__(
        self,
        join: AnyJoin,
        values_read: Sequence[Expr],
        indexes: tuple[IndexBy, IndexBy],
        *,
        merges: bool,
    ) -> None:
        count = bindings(join.left)
        on = Lifted(TRUE, row_names(count + 1), origins(join_match(join).on), count + 1)
        found = ValuesRead(count, pair_shapes(join), is_by_range=True)
        for expr in values_read:
            found.read(expr)
        self._reads: list[Callable[[Row], Any] | None] = [None, None]
        self._sides: list[MergedRows | None] = [None, None]
        for side, index in enumerate(indexes):
            read = found.unchanged(side)
            if read is None:
                continue
            values = (of_left, of_right)[side](on, tuple_of(*read), count)
            of_row = self._reads[side] = spread_bindings(values, 1 if side else count)
            if merges and type(index.index) is Index:
                made = partial(MergedRows, of_row)
                self._sides[side] = index.follower(("merged", values), made)

    def net(self, side: int, delta: Sequence[KeyedPair]) -> Sequence[KeyedPair]:
        """Return the delta of a side, 0 or 1, without rows that others of it cancel; `delta` itself
        if there are none."""
        read = self._reads[side]
        if read is None:
            return delta
        by_values: dict[Any, list[Any]] = {}
        alive = []  # values whose `id` is compared
        try:
            for key, (row, weight) in delta:
                values = read(row)
                alive.append(values)
                entry = by_values.setdefault((key, *map(identity, values)), [key, row, 0])
                entry[2] += weight
        except Exception as error:  # the loop that reads the row raises it, too
            reraise_asynchronous(error)
            return delta
        if len(by_values) == len(delta):
            return delta
        return [(key, (row, weight)) for key, row, weight in by_values.values() if weight]

    def look_up(self, side: int, find: Callable[..., Any]) -> Callable[..., Any]:
        """Return the look-up `find` of the current rows of a side, 0 or 1, merged where that pays.

        Other keys have their own rows.
        """
        merged = self._sides[side]
        if merged is None:
            return find

        def found(key: Any, default: Any) -> Any:
            rows = find(key, default)
            return merged.bucket(key, rows) if rows.__class__ is WeightedRows else rows

        return found
