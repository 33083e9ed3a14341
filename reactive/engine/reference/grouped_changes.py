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
from reactive.engine.reference.asking import evaluate_whole
from reactive.engine.reference.bags import Bag, caller, group_by_key, make_bag, net
from reactive.engine.reference.groups import group_row_maker
from reactive.engine.reference.parts import NodeChange

NOTHING = Bag()


class GroupedChange:
    """The change of a node that computes rows of each group."""

    def __init__(self, node: plan.Aggregate | plan.Reduce | plan.Top, source: NodeChange) -> None:
        self.change = Bag()
        self._source = source
        self._make = _make_group_rows(node)
        self._key = None if node.key is None else caller(node.key, node.input)
        self._groups: dict[Any, dict[Row, int]] = {}
        self._shown: dict[Any, Bag] = {}

    def step(self) -> None:
        """Set `change` by evaluating again the groups whose rows have changed."""
        change, self.change = self._source.change.items(), make_bag({})
        if self._key is not None:
            moved = group_by_key(self._key, change)
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


def _make_group_rows(node: plan.Node) -> Callable[[Any, dict[Row, int]], Bag]:
    """Return the function that computes the rows of a group from its key and rows."""
    if not isinstance(node, plan.Aggregate):
        return lambda key, group: evaluate_whole(node, lambda _: make_bag(group))
    row_of = group_row_maker(node)

    def make(key: Any, group: dict[Row, int]) -> Bag:
        row, is_there = row_of(key, [*group.items()])
        return make_bag({row: 1}) if is_there else NOTHING

    return make
