"""Same generation: pairs of people with the same distance from a common ancestor.

    same(x, y)  if  parent(x, p) and parent(y, p) and x != y
    same(x, y)  if  parent(x, p) and same(p, q) and parent(y, q)

The first line says that children of one parent are of one generation, the second one that children
of parents of one generation are. Its recursive relation stands between two others, so each of the
two joins keeps an index of the result of the other, and a change looks up only related rows.

Source: the standard example of recursive queries; F. Bancilhon, R. Ramakrishnan: *An Amateur's
Introduction to Recursive Query Processing Strategies*, SIGMOD 1986.
"""

from __future__ import annotations

from typing import NamedTuple

from examples.graphs.show import Story
from reactive import Database, Relation, fixpoint


class Parent(NamedTuple):
    """A child has a parent."""

    child: str
    parent: str


class Same(NamedTuple):
    """Two people are of the same generation."""

    one: str
    other: str

    def __str__(self) -> str:
        return f"{self.one} and {self.other}"


def same_generation(parents: Relation[Parent]) -> Relation[Same]:
    """Pairs of different people of one generation, both ways round; of oneself only by two ways.

    >>> parents = Database().table(Parent, name="parents")
    >>> same = same_generation(parents).materialize()
    >>> parents.add_all([Parent("ann", "eve"), Parent("bob", "eve"), Parent("cid", "bob")])
    >>> parents.add(Parent("dan", "ann"))
    >>> [str(pair) for pair in sorted(same)]
    ['ann and bob', 'bob and ann', 'cid and dan', 'dan and cid']
    """
    siblings = (
        parents.join(parents, on=lambda x, y: x.parent == y.parent)
        .where(lambda x, y: x.child != y.child)
        .select(lambda x, y: Same(x.child, y.child))
    )
    return fixpoint(
        lambda same: siblings.union(
            same.join(parents, on=lambda pair, x: pair.one == x.parent)
            .join(parents, on=lambda pair, x, y: pair.other == y.parent)
            .select(lambda pair, x, y: Same(x.child, y.child))
        )
    )


def main() -> None:
    """Show a small family that learns more about itself."""
    db = Database()
    parents = db.table(Parent, name="parents")
    parents.add_all(
        [Parent("bea", "ann"), Parent("bob", "ann"), Parent("cid", "bea"), Parent("cora", "bob")]
    )
    once = same_generation(parents).where(lambda pair: pair.one < pair.other)
    same = once.materialize("same generation")
    story = Story("Who is of the same generation", db, {"same generation": same})
    story.begin()
    with story.edit("bob has another child"):
        parents.add(Parent("carl", "bob"))
    with story.edit("children of cid and of carl"):
        parents.add_all([Parent("dora", "cid"), Parent("dirk", "carl")])
    with story.edit("bob is not ann's child: the generations below have nothing in common"):
        parents.remove(Parent("bob", "ann"))
    with story.edit("bob and ann are children of zoe: so he is one above where he was"):
        parents.add_all([Parent("bob", "zoe"), Parent("ann", "zoe")])


if __name__ == "__main__":
    main()
