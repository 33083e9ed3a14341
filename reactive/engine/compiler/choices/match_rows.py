"""Join two sides by their keys, a callable at a time.

Needs:  nothing; it is how every kind of join can run.
Pays:   it is what is left where a callable could not be read, or where others read the join.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.plans.side_conditions import AnyJoin
from reactive.engine.compiler.chooser import Asking, Chooser
from reactive.engine.compiler.physical import Match, Op, Physical


def match_rows(chooser: Chooser, node: plan.Node) -> Asking[Physical] | None:
    return _match(chooser, node) if isinstance(node, AnyJoin) else None


def _match(chooser: Chooser, node: AnyJoin) -> Asking[Physical]:
    left, right = yield from chooser.indexes(node)
    return Match(node, left, right, Op(node))
