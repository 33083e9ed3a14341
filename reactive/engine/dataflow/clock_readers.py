"""The next moment at which the readers of a clock may change, without a change of their tables.

    now() -> index -> join with the rows       the first bound that meets a row (`next_change.py`)
          -> semi_join of all -> index -> ...  the same, behind it
          -> select, view                      the present: it may change at each tick

Cost:   of each join with the clock, O(log n).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from optimizer import plan
from reactive.engine.dataflow.node import Node
from reactive.engine.operators.index_by import IndexBy


def next_change(clock: Node, moment: datetime) -> datetime | None:
    """Return the first moment after `moment` at which a reader of the clock's rows may change.

    Return `moment` if it is not known of a reader, and None if none will change.
    """
    found: datetime | None = None
    for reader, _ in clock.consumers:
        if not isinstance(reader.operator, IndexBy) or reader.deferred:
            return moment
        for join, side in reader.consumers:
            each = _next_of_join(join, side, moment)
            if each is not None:
                found = each if found is None else min(found, each)
            if found == moment:
                return moment
    return found


def _next_of_join(join: Node, side: int, moment: datetime) -> datetime | None:
    """Return the next moment of a join of which a side, 0 or 1, is the clock."""
    if join.inputs[0] is join.inputs[1] or join.deferred:
        return moment
    of = getattr(getattr(join.physical, "join", None), "node", None)
    if side == 0 and isinstance(of, plan.SemiJoin) and of.match == plan.Match():
        return next_change(join, moment)
    found: Any = getattr(join.operator, "next_change", None)
    return moment if found is None else found(side, moment)
