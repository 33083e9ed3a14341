"""The longest chain: the number of tasks in a row before each task, up to a bound.

    depth(t, 0)                             if  t is a task
    depth(t, d + 1), the greatest, <= n     if  depth(s, d) and t needs s

This is `keep=Max(...)`: one row for each task, and only the greatest depth leads further. Where
tasks need each other in a circle, depths would grow without end. They stop at the bound, since a
step from there gives the bound again. So a task of that depth needs too much before it, or itself;
when the circle is opened, the depths are what they were before. Which tasks these are is a query
above the recursion.

Source: monotone aggregates in recursion: K. A. Ross, Y. Sagiv: *Monotonic Aggregation in Deductive
Databases*, PODS 1992.
"""

from __future__ import annotations

from typing import NamedTuple

from examples.graphs.show import Story
from reactive import Database, Max, Relation, fixpoint

BOUND = 20


class Needs(NamedTuple):
    """A task needs another one to be done before."""

    task: str
    before: str


class Depth(NamedTuple):
    """The longest chain of tasks before this one."""

    task: str
    depth: int

    def __str__(self) -> str:
        return f"{self.task}: {self.depth}"


def longest_chains(needs: Relation[Needs], bound: int = BOUND) -> Relation[Depth]:
    """Return the number of tasks in a row before each task; `bound` stands for that or more.

    >>> needs = Database().table(Needs, name="needs")
    >>> depths = longest_chains(needs, bound=9).materialize()
    >>> needs.add_all([Needs("roof", "walls"), Needs("walls", "ground"), Needs("roof", "wood")])
    >>> [str(row) for row in sorted(depths)]
    ['ground: 0', 'roof: 2', 'walls: 1', 'wood: 0']
    """
    tasks = needs.select_many(lambda n: (n.task, n.before)).distinct()
    return fixpoint(
        lambda depths: tasks.select(lambda task: Depth(task, 0)).union(
            depths.join(needs, on=lambda d, n: d.task == n.before).select(
                lambda d, n: Depth(n.task, min(d.depth + 1, bound))
            )
        ),
        keep=Max(lambda d: d.depth),
        by=lambda d: d.task,
    )


def main() -> None:
    """Plan a house."""
    db = Database()
    needs = db.table(Needs, name="needs")
    needs.add_all(
        [
            Needs("walls", "ground"),
            Needs("roof", "walls"),
            Needs("roof", "wood"),
            Needs("paint", "walls"),
            Needs("move in", "roof"),
            Needs("move in", "paint"),
        ]
    )
    depths = longest_chains(needs)
    endless = depths.where(lambda d: d.depth == BOUND).select(lambda d: d.task)
    views = {"depth": depths.materialize("depth"), "no end": endless.materialize("no end")}
    story = Story("How much comes before each task", db, views)
    story.begin()
    with story.edit("the ground needs a permit, and that a plan"):
        needs.add_all([Needs("ground", "permit"), Needs("permit", "plan")])
    with story.edit("the paint waits for the roof"):
        needs.add(Needs("paint", "roof"))
    with story.edit("the walls need paint: a circle, and moving in has to wait for it"):
        needs.add(Needs("walls", "paint"))
    with story.edit("they do not"):
        needs.remove(Needs("walls", "paint"))


if __name__ == "__main__":
    main()
