"""As-of joins from scratch: each left row looks at all right rows of its key."""

from __future__ import annotations

from collections import Counter
from typing import Any

from optimizer import plan
from reactive.engine.collections.index import NO_MATCH, match_key
from reactive.engine.collections.sorted_copies import value_key
from reactive.engine.collections.zset import Row, is_nan
from reactive.engine.reference.bags import Bag, there


def asof_rows(node: plan.AsofJoin, left: Bag, right: Bag) -> Bag:
    """Return each left row with its partner."""
    by_key: dict[Any, list[tuple[Any, Row]]] = {}
    for other, key, time in there(right):
        if _is_placed(key, time):
            by_key.setdefault(key, []).append((time, other))
    found: Bag = Counter()
    for (row, key, time), times in left.items():
        others = by_key.get(key, []) if _is_placed(key, time) else []
        partners = _partners(node, time, others)
        if partners or node.is_left:
            partner = min(partners, key=value_key, default=None)
            found[(row, partner) if node.count == 1 else (*row, partner)] += times
    return found


def _is_placed(key: Any, time: Any) -> bool:
    return time is not None and not is_nan(time) and match_key(key) is not NO_MATCH


def _partners(node: plan.AsofJoin, time: Any, others: list[tuple[Any, Row]]) -> list[Row]:
    """Return the rows at the nearest time; none if there is no such time."""
    times = {at for at, _ in others if at != time or not node.is_strict}
    if node.tolerance is not None:
        times = {at for at in times if max(at, time) - min(at, time) <= node.tolerance}
    before = max((at for at in times if at <= time), default=None)
    after = min((at for at in times if at >= time), default=None)
    match node.direction:
        case "backward":
            best = before
        case "forward":
            best = after
        case _ if before is None or after is None:
            best = after if before is None else before
        case _:
            best = before if time - before <= after - time else after
    return [other for at, other in others if best is not None and at == best]
