"""A spatial index join: the pairs of points of two relations within a distance, by a grid.

python -m examples.operators.nearby

Cells are as wide as the distance, so that the partners of a point are in its cell and the eight
around it. Each input is kept by cell; the change of one side meets the other side only, as in the
delta of any join:  d(A x B) = dA x B + (A + dA) x dB.

State:  the rows of both inputs, by cell.
Cost:   O(points in nine cells) per changed point.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import dist, floor
from typing import NamedTuple

from reactive import Database, Operator

Delta = list[tuple["Point", int]]
Cell = tuple[int, int]


class Point(NamedTuple):
    name: str
    x: float
    y: float


class Near(Operator[Point, tuple[Point, Point]]):
    """Emit the pairs of a point of each input that are at most `distance` apart."""

    def __init__(self, distance: float) -> None:
        self.distance = distance
        self.cells: tuple[dict[Cell, dict[Point, int]], ...] = ({}, {})

    def step(self, left: Delta, right: Delta) -> list[tuple[tuple[Point, Point], int]]:
        out = [
            ((point, other), weight * times)
            for point, weight in left
            for other, times in self._partners(point, 1)
        ]
        self._keep(left, 0)
        out += [
            ((other, point), times * weight)
            for point, weight in right
            for other, times in self._partners(point, 0)
        ]
        self._keep(right, 1)
        return out

    def _cell(self, point: Point) -> Cell:
        return floor(point.x / self.distance), floor(point.y / self.distance)

    def _partners(self, point: Point, side: int) -> Iterator[tuple[Point, int]]:
        """Yield the points of a side that are near a point, with their weights."""
        column, row = self._cell(point)
        for cell in [(column + i, row + j) for i in (-1, 0, 1) for j in (-1, 0, 1)]:
            for other, weight in self.cells[side].get(cell, {}).items():
                if dist(point[1:], other[1:]) <= self.distance:
                    yield other, weight

    def _keep(self, delta: Delta, side: int) -> None:
        """Change the points of a side; empty cells are dropped."""
        cells = self.cells[side]
        for point, weight in delta:
            cell = self._cell(point)
            points = cells.setdefault(cell, {})
            points[point] = points.get(point, 0) + weight
            if not points[point]:
                del points[point]
            if not points:
                del cells[cell]


def main() -> None:
    db = Database()
    taxis, riders = db.table(Point, name="taxis"), db.table(Point, name="riders")
    near = taxis.through(Near, riders, distance=1.0).materialize("near")
    taxis.add_all([Point("a", 0.2, 0.1), Point("b", 4.9, 5.0), Point("c", 0.9, 0.9)])
    riders.add_all([Point("Ann", 0.5, 0.5), Point("Bob", 5.5, 5.5)])
    print(sorted((rider.name, taxi.name) for taxi, rider in near))
    taxis.update(Point("a", 0.2, 0.1), Point("a", 5.1, 5.2))
    print(sorted((rider.name, taxi.name) for taxi, rider in near))


if __name__ == "__main__":
    main()
