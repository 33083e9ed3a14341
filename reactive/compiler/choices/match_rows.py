"""Join two sides by their keys, a callable at a time.

Needs:  nothing; it is how every kind of join can run.
Pays:   it is what is left where a callable could not be read, and what joins run as that keep rows
        without a partner, or rows alone.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.plans.early import AnyJoin
from optimizer.plans.properties import bindings
from reactive.compiler.chooser import Asking, Chooser
from reactive.compiler.physical import Keys, Match, Op, Physical
from reactive.operators.plain import by_key_alone, sides


def match_rows(chooser: Chooser, node: plan.Node) -> Asking[Physical] | None:
    if not isinstance(node, AnyJoin):
        return None
    if isinstance(node, plan.SemiJoin | plan.AntiJoin) and by_key_alone(node):
        return _by_keys(chooser, node)
    return _match(chooser, node)


def _match(chooser: Chooser, node: AnyJoin) -> Asking[Physical]:
    left, right = yield from chooser.indexes(node)
    return Match(node, left, right, Op(node))


def _by_keys(chooser: Chooser, node: plan.SemiJoin | plan.AntiJoin) -> Asking[Physical]:
    """Of the right side the keys are all that is asked."""
    ours, theirs = sides(node)
    below, count = chooser.below(node.left), bindings(node.left)
    left = yield from chooser.index(node, below, ours, count, late=chooser.depends(node))
    other = chooser.below(node.right)
    source = yield other.base
    return Match(node, left, Keys(node, source, other, theirs), Op(node))
