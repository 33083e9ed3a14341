"""Shortest paths: the cheapest way from each start to each place.

    best(s, s, 0)                if  s is a start
    best(s, y, c + d), smallest  if  best(s, x, c) and road(x, y, d)

A relation of all costs of all ways would have no end where roads go round in a circle. With
`keep=Min(...)` and `by=...` the recursive relation holds one row for each start and place, the
cheapest one, and only that is followed further. When a road gets worse or is removed, the places
that were reached by it get their next best way, or none.

Which roads the cheapest ways use is a query above the recursion: a road is used if its cost is
exactly the difference of the costs at its ends. It works because the costs compared are the same
sums, so floats compare equal, too.

Source: E. W. Dijkstra: *A note on two problems in connexion with graphs*, 1959; monotone aggregates
in recursion: K. A. Ross, Y. Sagiv: *Monotonic Aggregation in Deductive Databases*, PODS 1992.
"""

from __future__ import annotations

from typing import NamedTuple

from examples.graphs.show import Story
from reactive import Database, Min, Relation, fixpoint


class Road(NamedTuple):
    """A way from one place to the next, which costs something; not less than nothing."""

    src: str
    dst: str
    cost: float


class Best(NamedTuple):
    """The least cost from a start to a place."""

    start: str
    place: str
    cost: float

    def __str__(self) -> str:
        return f"{self.start} to {self.place}: {self.cost}"


class Used(NamedTuple):
    """A road that is on a cheapest way from a start."""

    start: str
    road: Road

    def __str__(self) -> str:
        return f"from {self.start}: {self.road.src} -> {self.road.dst}"


def shortest_paths(starts: Relation[str], roads: Relation[Road]) -> Relation[Best]:
    """Return the least cost from each start to each place that it reaches, itself included.

    >>> db = Database()
    >>> starts, roads = db.table(str, name="starts"), db.table(Road, name="roads")
    >>> best = shortest_paths(starts, roads).materialize()
    >>> roads.add_all([Road("a", "b", 1), Road("b", "c", 1), Road("a", "c", 3), Road("c", "a", 1)])
    >>> starts.add("a")
    >>> [str(row) for row in sorted(best)]
    ['a to a: 0', 'a to b: 1', 'a to c: 2']
    """
    return fixpoint(
        lambda best: starts.select(lambda start: Best(start, start, 0)).union(
            best.join(roads, on=lambda so_far, road: so_far.place == road.src).select(
                lambda so_far, road: Best(so_far.start, road.dst, so_far.cost + road.cost)
            )
        ),
        keep=Min(lambda best: best.cost),
        by=lambda best: (best.start, best.place),
    )


def used_roads(best: Relation[Best], roads: Relation[Road]) -> Relation[Used]:
    """Return the roads that lead to a place for its least cost."""
    return (
        best.join(roads, on=lambda at, road: at.place == road.src)
        .join(best, on=lambda at, road, to: at.start == to.start and road.dst == to.place)
        .where(lambda at, road, to: at.cost + road.cost == to.cost)
        .select(lambda at, road, to: Used(at.start, road))
    )


def main() -> None:
    """Roads that open, close and get slow."""
    db = Database()
    starts, roads = db.table(str, name="starts"), db.table(Road, name="roads")
    slow = Road("mill", "town", 2)
    roads.add_all(
        [
            Road("home", "mill", 2),
            slow,
            Road("home", "bridge", 1),
            Road("bridge", "town", 5),
            Road("town", "sea", 4),
            Road("sea", "town", 4),
        ]
    )
    starts.add("home")
    best = shortest_paths(starts, roads)
    views = {
        "best": best.materialize("best"),
        "roads used": used_roads(best, roads).materialize("roads used"),
    }
    story = Story("The cheapest ways", db, views)
    story.begin()
    with story.edit("a path from the bridge to the mill: not better than the road"):
        roads.add(Road("bridge", "mill", 2))
    with story.edit("the road from the mill gets slow: the way to town is by the bridge now"):
        roads.update(slow, slow._replace(cost=9))
    with story.edit("the bridge closes towards town: back to the slow road"):
        roads.remove(Road("bridge", "town", 5))
    with story.edit("home loses its roads: town and sea do not keep each other reached"):
        roads.remove_all([Road("home", "mill", 2), Road("home", "bridge", 1)])
    with story.edit("another start"):
        starts.add("sea")


if __name__ == "__main__":
    main()
