"""Join two sides by their keys, calling one callable at a time.

Needs:  nothing; every kind of join can run this way.
Pays:   the fallback for opaque callables, and for joins with several readers.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.plans.side_conditions import AnyJoin
from reactive.engine.compiler.chooser import Asking, Chooser
from reactive.engine.compiler.physical import Match, Op, Physical


def match_rows(chooser: Chooser, node: plan.Node) -> Asking[Physical] | None:
    return _plan_match(chooser, node) if isinstance(node, AnyJoin) else None


def _plan_match(chooser: Chooser, node: AnyJoin) -> Asking[Physical]:
    left, right = yield from chooser.indexes(node)
    return Match(node, left, right, Op(node))
