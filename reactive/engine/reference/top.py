"""The first rows of each group, evaluated from scratch: each group sorted by itself."""

from __future__ import annotations

from collections import Counter
from typing import Any

from optimizer import plan
from reactive.engine.collections.order import tie_key
from reactive.engine.reference.bags import Bag, members
from reactive.engine.reference.order import in_order, order_key


def topped(node: plan.Top, rows: Bag) -> Bag:
    """The rows that an order of each group shows."""
    found: Bag = Counter()
    for group in members(node.key, node.input, rows).values():
        found.update(in_order(node.order, Counter(dict(group))))
    return found


def are_as_good(node: plan.Top, shown: Bag, expected: Bag, rows: Bag) -> bool:
    """Whether rows differ only in which of those are there that no order tells apart."""
    return not shown - rows and _places(node, shown) == _places(node, expected)


def _places(node: plan.Top, bag: Bag) -> dict[Any, list[Any]]:
    """What decides where the rows of each group stand."""
    key = order_key(node.order)
    whole = plan.OrderBy(node.input, node.keys, None, 0)
    return {
        name: [(key(row), tie_key(row)) for row in in_order(whole, Counter(dict(group)))]
        for name, group in members(node.key, node.input, bag).items()
    }
