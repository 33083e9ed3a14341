"""Filter the left side of a semi_join or anti_join instead of its result.

    where p                   where p again, if it may raise
      semi_join on q  ->        semi_join on q
        A                         where p, or it raises
        B                           A
                                  B

Sound:  the result is some rows of A. A guard is also evaluated for rows where the plain plan
        would not evaluate p; if it raises it keeps the row.
Needs:  q raises nothing: it is not evaluated for dropped rows.
Pays:   the join holds only rows that may pass.
Source: beyond [i3ql].
"""

from __future__ import annotations

from dataclasses import replace

from optimizer import plan
from optimizer.expr import Lifted
from optimizer.expressions.knowledge import total
from optimizer.expressions.text import needs
from optimizer.plans.forms import asked_again, condition, guard
from optimizer.plans.properties import shapes
from optimizer.plans.side_conditions import pair_shapes


def push_where_below_semi_join(node: plan.Node) -> plan.Node:
    """Push a condition to the left of a semi- or anti-join; one that may raise is repeated
    above."""
    p = condition(node)
    if p is None or not isinstance(joined := node.inputs()[0], plan.SemiJoin | plan.AntiJoin):
        return node
    on, key, of = joined.match.on, joined.match.left_key, shapes(joined.left)
    if on is not None and not (isinstance(on, Lifted) and total(on.body, pair_shapes(joined))):
        return node
    if key is not None and not isinstance(key, Lifted):
        return node
    needed = () if key is None else needs(key.body, of)
    if total(p.body, of) and not needed:
        return replace(joined, left=plan.Where(joined.left, p))
    return asked_again(replace(joined, left=plan.Where(joined.left, guard(p, needed))), p)
