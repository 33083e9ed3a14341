"""Select from the row that has bindings as its items, without taking it apart.

    select f(k, v)         select f(r[0], r[1])
      each            ->     R
        R

Sound:  the rows are the same; a binding is an item of the tuple.
Needs:  the callable is read.
Pays:   the select becomes one with those below.
Source: that of `fuse_selects`.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Lifted
from optimizer.expressions.compose import of_items


def select_from_each(node: plan.Node) -> plan.Node:
    match node:
        case plan.Select(plan.Each(source, width), Lifted() as f):
            return plan.Select(source, of_items(f, width))
        case _:
            return node
