"""Groups inside a recursion that is evaluated from scratch: those whose rows change are made anew.

State: the rows of each group, and what was made of them.
Cost:  the rows of the groups that change.
Source: [dbsp] section 4, semi-naive evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optimizer import plan
from reactive.engine.reference.bags import Bag, by_key, caller, difference, grow
from reactive.engine.reference.groups import grouping
from reactive.engine.reference.nodes import together
from reactive.engine.reference.parts import Part

NOTHING = Bag()


class Groups:
    """The change of a node that makes rows of each group."""

    def __init__(self, node: plan.Aggregate | plan.Reduce | plan.Top, source: Part) -> None:
        self.change = Bag()
        self._source = source
        self._make = _maker(node)
        self._key = None if node.key is None else caller(node.key, node.input)
        self._groups: dict[Any, Bag] = {}
        self._shown: dict[Any, Bag] = {}

    def step(self) -> None:
        change, self.change = self._source.change.items(), Bag()
        if self._key is not None:
            moved = by_key(self._key, change)
        elif change or not self._shown:  # of no rows, there is a row
            moved = {(): list(change)}
        else:
            return
        for key, pairs in moved.items():
            group = self._groups.setdefault(key, Bag())
            grow(group, Bag(dict(pairs)))
            self._show(key, group)

    def _show(self, key: Any, group: Bag) -> None:
        """Make the rows of a group anew."""
        before = self._shown.pop(key, NOTHING)
        after = NOTHING
        if group or self._key is None:
            after = self._shown[key] = self._make(group)
        else:
            del self._groups[key]
        grow(self.change, difference(after, before))


def _maker(node: plan.Node) -> Callable[[Bag], Bag]:
    """The function that makes the rows of a group."""
    if isinstance(node, plan.Aggregate):
        return grouping(node)
    return lambda bag: together(node, lambda _: bag)
