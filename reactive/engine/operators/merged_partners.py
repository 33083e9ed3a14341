"""Merged partners: rows of a hot key whose pairs an aggregate cannot tell apart.

    orders.join(customers) | group by region | count distinct amounts

When a customer moves to another region, the pairs with all its orders move. The aggregate reads
only their amounts, so it is given one order for each amount (`collections/merged_rows.py`).

Sound:  expressions of equal values are equal; an exception is raised again by the plain operators,
        which read all rows. Weights are counts of equal pairs.
Needs:  an aggregate over all values, whose groups are changed by a loop; it reads fields of the
        side, not its whole rows.
Cost:   O(different values) in place of O(rows of the key).
Source: F-IVM, views of relations grouped by their join keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from optimizer.expr import TRUE, Expr, Lifted, origins, row_names, tuple_of
from optimizer.plans.properties import bindings
from optimizer.plans.side_conditions import AnyJoin, join_match, of_left, of_right, pair_shapes
from reactive.engine.collections.index import Index, WeightedRows
from reactive.engine.collections.merged_rows import MergedRows
from reactive.engine.operators.index_by import IndexBy
from reactive.engine.operators.moved_bounds import ValuesRead
from reactive.engine.operators.plain import spread_bindings


class MergedPartners:
    """Looks up partners on a side of a join, merged for keys with many of them.

    `values_read` are the expressions that are evaluated for a pair.
    """

    __slots__ = ("_sides",)

    def __init__(
        self, join: AnyJoin, values_read: Sequence[Expr], indexes: tuple[IndexBy, IndexBy]
    ) -> None:
        count = bindings(join.left)
        on = Lifted(TRUE, row_names(count + 1), origins(join_match(join).on), count + 1)
        found = ValuesRead(count, pair_shapes(join), is_by_range=True)
        for expr in values_read:
            found.read(expr)
        self._sides: list[MergedRows | None] = []
        for side, index in enumerate(indexes):
            read = found.unchanged(side)
            if read is None or type(index.index) is not Index:
                self._sides.append(None)
                continue
            values = (of_left, of_right)[side](on, tuple_of(*read), count)
            made = partial(MergedRows, spread_bindings(values, 1 if side else count))
            self._sides.append(index.follower(("merged", values), made))

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
