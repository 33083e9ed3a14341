"""Infer the shape of a recursive relation's rows from its definition.

    fixpoint r                      fixpoint r
      union                           union
        table edges          ->         table edges
        select Edge(...)                select Edge(...)
          recursive r                     recursive r        of Edges

Sound:  a shape of the body's rows that does not depend on the rows that it reads holds for all
        rows.
Needs:  the shape of the body is known.
Pays:   fields of recursive rows are known to exist.
Source: type inference by induction over the rounds.
"""

from __future__ import annotations

from dataclasses import replace

from optimizer import plan
from optimizer.plans.properties import shapes
from optimizer.traverse import relations_read, substituted


def shape_recursion(node: plan.Node) -> plan.Node:
    """Set the shapes of a recursion's relations where they are unknown; other nodes unchanged."""
    if not isinstance(node, plan.Fixpoint):
        return node
    known = [shapes(body) for body in node.bodies]
    news = {
        part.index
        for body in node.bodies
        for part in relations_read(body, node.level)
        if part.of == (None,) != known[part.index]
    }
    if not news:
        return node

    def add_shapes(part: plan.Recursive) -> plan.Node:
        return replace(part, of=known[part.index]) if part.index in news else part

    bodies = tuple(substituted(body, node.level, add_shapes) for body in node.bodies)
    return replace(node, bodies=bodies)
