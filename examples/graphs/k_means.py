"""k-means: points in clusters, each around the mean of its points.

    nearest(p)  =  the center c with the least (distance of p and c, id of c)
    center(c)   =  the mean of the points whose nearest center is c; as it was, if there are none

A number of rounds, beginning with given centers. The clusters of one round are negations and
aggregates over those of the round before, so this is `iterate`. In each round every point is
compared with every center: a changed point costs as many comparisons as there are centers, and a
changed center as many as there are points.

A mean is the exact sum, rounded once, so the centers equal those of a fresh computation after any
history.

Source: S. P. Lloyd: *Least squares quantization in PCM*, 1982; [mrql] k-means, as repeat.
"""

from __future__ import annotations

from typing import NamedTuple

from examples.graphs.show import Story
from reactive import Avg, Database, Min, Relation, iterate

ROUNDS = 8


class Point(NamedTuple):
    """A point in the plane."""

    x: float
    y: float


class Center(NamedTuple):
    """The middle of a cluster."""

    id: int
    x: float
    y: float

    def __str__(self) -> str:
        return f"center {self.id}: ({self.x:.2f}, {self.y:.2f})"


class Pair(NamedTuple):
    """A point and a center, so far from each other."""

    point: Point
    away: float
    center: int


class Member(NamedTuple):
    """A point belongs to a cluster."""

    point: Point
    center: int

    def __str__(self) -> str:
        return f"({self.point.x:g}, {self.point.y:g}) in {self.center}"


def distance(p: Point, c: Center) -> float:
    """Return the square of the distance, which has the same order."""
    return (p.x - c.x) ** 2 + (p.y - c.y) ** 2


def nearness(pair: Pair) -> tuple[float, int]:
    """Return the order of the centers of a point."""
    return pair.away, pair.center


def members(points: Relation[Point], centers: Relation[Center]) -> Relation[Member]:
    """Each point with the nearest center; of equally near ones, that with the smallest id.

    A point that is there twice is a member once.
    """
    pairs = points.join(centers).select(lambda p, c: Pair(p, distance(p, c), c.id))
    nearest = pairs.group_by(lambda pair: pair.point).aggregate(Min(nearness))
    return nearest.select(lambda point, best: Member(point, best[1]))


def k_means(
    points: Relation[Point], starts: Relation[Center], rounds: int = ROUNDS
) -> Relation[Center]:
    """Return the centers after some rounds, as many as there were at the start.

    >>> db = Database()
    >>> points, starts = db.table(Point, name="points"), db.table(Center, name="starts")
    >>> centers = k_means(points, starts).materialize()
    >>> starts.add_all([Center(1, 0, 0), Center(2, 5, 5)])
    >>> points.add_all([Point(0, 0), Point(0, 2), Point(9, 9)])
    >>> [str(center) for center in sorted(centers)]
    ['center 1: (0.00, 1.00)', 'center 2: (9.00, 9.00)']
    """

    def step(centers: Relation[Center]) -> Relation[Center]:
        grouped = members(points, centers).group_by(lambda m: m.center)
        moved = grouped.aggregate(Avg(lambda m: m.point.x), Avg(lambda m: m.point.y)).select(
            lambda id, x, y: Center(id, x, y)
        )
        return moved.union_all(centers.anti_join(moved, on=lambda old, new: old.id == new.id))

    return iterate(step, starts, times=rounds)


def main() -> None:
    """Insert and delete points."""
    db = Database()
    points, starts = db.table(Point, name="points"), db.table(Center, name="starts")
    points.add_all(Point(x, y) for x, y in [(1, 1), (1, 2), (2, 1), (8, 8), (8, 9), (9, 8)])
    starts.add_all([Center(1, 0, 0), Center(2, 10, 10)])
    centers = k_means(points, starts)
    views = {
        "centers": centers.materialize("centers"),
        "members": members(points, centers).materialize("members"),
    }
    story = Story("Clusters", db, views)
    story.begin()
    with story.edit("a point near the first three"):
        points.add(Point(2, 2))
    with story.edit("four points in between move a center, and others change sides"):
        points.add_all([Point(4, 4), Point(5, 5), Point(5, 6), Point(6, 5)])
    with story.edit("a third center"):
        starts.add(Center(3, 5, 5))
    with story.edit("the points around it go: it stays with what is left"):
        points.remove_all([Point(5, 5), Point(5, 6), Point(6, 5)])


if __name__ == "__main__":
    main()
