"""Transitive closure: which node reaches which, by any number of edges.

    reach(x, z)  if  edge(x, z)
    reach(x, z)  if  reach(x, y) and edge(y, z)

The two lines are the two sides of the union below. `fixpoint` gives the smallest relation for
which they hold, so a node reaches itself only if a circle leads back to it. Removing an edge
removes the pairs that have no other path, also pairs that only support each other in a circle.

Source: [dbsp] section 5, recursive queries; [i3ql] live views.
"""

from __future__ import annotations

from examples.graphs.edges import Edge, parse
from examples.graphs.show import Story
from reactive import Database, Relation, fixpoint


def closure(edges: Relation[Edge]) -> Relation[Edge]:
    """Return each pair of nodes whose first reaches the second, once.

    >>> edges = Database().table(Edge, name="edges")
    >>> reach = closure(edges).materialize()
    >>> edges.add_all(parse("a-b-c"))
    >>> [str(pair) for pair in sorted(reach)]
    ['a -> b', 'a -> c', 'b -> c']
    """
    return fixpoint(
        lambda reach: edges.union(
            reach.join(edges, on=lambda path, edge: path.dst == edge.src).select(
                lambda path, edge: Edge(path.src, edge.dst)
            )
        )
    )


def main() -> None:
    """Join two chains, close them to a circle, and open it again."""
    db = Database()
    edges = db.table(Edge, name="edges")
    edges.add_all(parse("a-b-c d-e"))
    reach = closure(edges).materialize("reach")
    circles = reach.where(lambda pair: pair.src == pair.dst).materialize("in a circle")
    story = Story("What reaches what", db, {"reach": reach, "in a circle": circles})
    story.begin()
    with story.edit("c -> d joins the two chains"):
        edges.add(Edge("c", "d"))
    with story.edit("a -> c is a second way: nothing new is reached"):
        edges.add(Edge("a", "c"))
    with story.edit("e -> c closes a circle"):
        edges.add(Edge("e", "c"))
    with story.edit("without b -> c, a still reaches all by the second way, b nothing"):
        edges.remove(Edge("b", "c"))
    with story.edit("without a -> c the circle is on its own, and does not keep itself reached"):
        edges.remove(Edge("a", "c"))
    with story.edit("without d -> e the circle is open"):
        edges.remove(Edge("d", "e"))


if __name__ == "__main__":
    main()
