"""Groups inside a recursion evaluated from scratch: groups with changed rows are recomputed.

State: the rows of each group, and its output rows.
Cost:  the rows of the groups that change.
Source: [dbsp] section 4, semi-naive evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optimizer import plan
from reactive.engine.collections.zset import Row
from reactive.engine.reference.asking import together
from reactive.engine.reference.bags import Bag, bag_of, by_key, caller, net
from reactive.engine.reference.groups import row_maker
from reactive.engine.reference.parts import NodeChange

NOTHING = Bag()


class GroupedChange:
    """The change of a node that computes rows of each group."""

    def __init__(self, node: plan.Aggregate | plan.Reduce | plan.Top, source: NodeChange) -> None:
        self.change = Bag()
        self._source = source
        self._make = _maker(node)
        self._key = None if node.key is None else caller(node.key, node.input)
        self._groups: dict[Any, dict[Row, int]] = {}
        self._shown: dict[Any, Bag] = {}

    def step(self) -> None:
        change, self.change = self._source.change.items(), bag_of({})
        if self._key is not None:
            moved = by_key(self._key, change)
        elif change or not self._shown:  # without rows, there is one output row
            moved = {(): list(change)}
        else:
            return
        for key, pairs in moved.items():
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = {}
            for row, weight in pairs:
                total = group.get(row, 0) + weight
                if total:
                    group[row] = total
                else:
                    del group[row]
            self._show(key, group)
        self.change = net(self.change)

    def _show(self, key: Any, group: dict[Row, int]) -> None:
        """Recompute the rows of a group."""
        before = self._shown.pop(key, NOTHING)
        after = NOTHING
        if group or self._key is None:
            after = self._shown[key] = self._make(key, group)
        else:
            del self._groups[key]
        if dict.__ne__(before, after):  # `Counter.__ne__` is slower
            change = self.change
            for row, weight in before.items():
                change[row] = change.get(row, 0) - weight
            for row, weight in after.items():
                change[row] = change.get(row, 0) + weight


def _maker(node: plan.Node) -> Callable[[Any, dict[Row, int]], Bag]:
    """Return the function that computes the rows of a group from its key and rows."""
    if not isinstance(node, plan.Aggregate):
        return lambda key, group: together(node, lambda _: bag_of(group))
    row_of = row_maker(node)

    def make(key: Any, group: dict[Row, int]) -> Bag:
        row, is_there = row_of(key, [*group.items()])
        return bag_of({row: 1}) if is_there else NOTHING

    return make
