"""What a callable makes of groups, evaluated from scratch: one call for each."""

from __future__ import annotations

from optimizer import plan
from reactive.engine.codegen.functions import callable_of
from reactive.engine.collections import bag as bags
from reactive.engine.reference.bags import Bag, added, members


def reduced(node: plan.Reduce, rows: Bag) -> Bag:
    """The rows that are made of each group, behind its key."""
    make = callable_of(node.function)
    return added(
        ((key, row), 1)
        for key, group in members(node.key, node.input, rows).items()
        for row in make(key, bags.Bag(dict(group)))
    )
