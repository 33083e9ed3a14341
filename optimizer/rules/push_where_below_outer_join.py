"""Filter the side of an outer join whose rows are all kept.

    where p(s)                left_join on q
      left_join on q  ->        where p(s)
        S                         S
        M                       M

The rule also applies to the right side of a right_join.

Sound:  every s is emitted at least once, so that p is evaluated for the same rows.
Needs:  p reads the kept side only; q raises nothing: it is not evaluated for dropped rows.
Pays:   the join holds only rows that pass.
Source: outer join rules of SQL optimizers; beyond [i3ql].
"""

from __future__ import annotations

from dataclasses import replace

from optimizer import plan
from optimizer.expr import Lifted, reads, row_names
from optimizer.expressions.knowledge import total
from optimizer.expressions.text import first, needs, one_row
from optimizer.plans.properties import bindings, shapes
from optimizer.plans.side_conditions import pair_shapes


def push_where_below_outer_join(node: plan.Node) -> plan.Node:
    """Push a condition to the kept side of an outer join; unchanged if it reads the other side."""
    if not isinstance(node, plan.Where) or not isinstance(node.predicate, Lifted):
        return node
    joined, p = node.input, node.predicate
    if not isinstance(joined, plan.OuterJoin) or not reads(p.body):
        return node
    on, count = joined.match.on, bindings(joined.left)
    if on is not None and not (isinstance(on, Lifted) and total(on.body, pair_shapes(joined))):
        return node
    if joined.kind == "left" and count not in reads(p.body):
        return (
            _filter_kept_side(joined, "left", Lifted(p.body, p.names[:count], p.origins, count))
            or node
        )
    if joined.kind == "right" and reads(p.body) == {count}:
        more = bindings(joined.right)
        body = one_row(p.body, count, more)
        names = p.names[count:] if more == 1 else row_names(more)
        return _filter_kept_side(joined, "right", Lifted(body, names, p.origins, more)) or node
    return node


def _filter_kept_side(joined: plan.OuterJoin, side: str, p: Lifted) -> plan.Node | None:
    """Return the join with a condition on its kept side; None if the key of that side cannot be
    read."""
    source: plan.Node = getattr(joined, side)
    key = joined.match.left_key if side == "left" else joined.match.right_key
    if key is not None:
        if not isinstance(key, Lifted) or (side == "right" and bindings(source) > 1):
            return None
        p = p.with_body(first(needs(key.body, shapes(source)), p.body))
    return replace(joined, **{side: plan.Where(source, p)})  # type: ignore[arg-type]
