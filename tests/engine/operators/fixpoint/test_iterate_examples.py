"""Uses of iterations: games of life, PageRank and k-means, live, against plain loops."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from reactive import Avg, Count, Database, Min, Sum, Table, iterate
from tests.budget import examples
from tests.engine.operators.fixpoint.follow import Follower
from tests.engine.operators.fixpoint.graphs import Edge
from tests.engine.operators.fixpoint.test_iterate import edit

Rel = Any


class Cell(NamedTuple):
    x: int
    y: int


def around(cell: Cell) -> list[Cell]:
    steps = [(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1) if x or y]
    return [Cell(cell.x + x, cell.y + y) for x, y in steps]


def generation(cells: Rel) -> Rel:
    """Return the cells with three neighbours, and the living cells with two."""
    counts = cells.select_many(around).group_by(lambda c: c).aggregate(Count())
    born = counts.where(lambda cell, n: n == 3).select(lambda cell, n: cell)
    two = counts.where(lambda cell, n: n == 2).select(lambda cell, n: cell)
    return born.union(two.intersection(cells))


def lived(cells: set[Cell]) -> set[Cell]:
    counts = Counter(other for cell in cells for other in around(cell))
    return {cell for cell, n in counts.items() if n == 3 or (n == 2 and cell in cells)}


GLIDER = [Cell(1, 0), Cell(2, 1), Cell(0, 2), Cell(1, 2), Cell(2, 2)]


def test_a_glider_moves_and_edits_of_it_are_followed() -> None:
    cells: Table[Cell] = Database().table(Cell, name="cells", key=lambda c: c)
    view = Follower(iterate(generation, cells, times=4).materialize())
    for cell in GLIDER:
        cells.add(cell)
    view.agree(Counter(Cell(c.x + 1, c.y + 1) for c in GLIDER))
    for cell in [*GLIDER, Cell(4, 4), Cell(4, 5), Cell(5, 4), Cell(3, 3), Cell(1, 1)]:
        edit(cells, False, cell)
        wanted = set(cells)
        for _ in range(4):
            wanted = lived(wanted)
        view.agree(Counter(wanted))
    view.view.verify()


class Ranked(NamedTuple):
    node: Any
    rank: Any


DAMPING, ROUNDS = 0.85, 7


def page_rank(nodes: Rel, links: Rel) -> Rel:
    """Return the rank of each node after some rounds; a node without links keeps its rank."""
    total = nodes.aggregate(Count())
    start = nodes.join(total).select(lambda node, n: Ranked(node, 1.0 / n))
    degrees = links.group_by(lambda e: e.src).aggregate(Count())
    ways = links.join(degrees, on=lambda e, d: e.src == d[0]).select(lambda e, d: (e, d[1]))
    base = nodes.join(total).select(lambda node, n: Ranked(node, (1 - DAMPING) / n))

    def step(ranks: Rel) -> Rel:
        given = ranks.join(ways, on=lambda r, w: r.node == w[0].src).select(
            lambda r, w: Ranked(w[0].dst, DAMPING * r.rank / w[1])
        )
        summed = base.union_all(given).group_by(lambda r: r.node).aggregate(Sum(lambda r: r.rank))
        return summed.select(lambda node, rank: Ranked(node, rank))

    return iterate(step, start, times=ROUNDS)


def ranked(nodes: list[Any], links: list[Edge]) -> dict[Any, float]:
    ranks = {node: 1.0 / len(nodes) for node in nodes}
    degrees = Counter(e.src for e in links)
    for _ in range(ROUNDS):
        parts = {node: [(1 - DAMPING) / len(nodes)] for node in nodes}
        for e in links:
            parts[e.dst].append(DAMPING * ranks[e.src] / degrees[e.src])
        ranks = {node: math.fsum(values) for node, values in parts.items()}
    return ranks


def test_page_rank_equals_the_loop_to_the_last_bit() -> None:
    db = Database()
    nodes: Table[Any] = db.table(object, name="nodes")
    links: Table[Edge] = db.table(Edge, name="links")
    view = Follower(page_rank(nodes, links).materialize())
    nodes.add_all("abcde")
    for link in ("ab", "bc", "ca", "ad", "da", "dd", "ab", "ec", "ab", "ca", "dd", "bc"):
        edit(links, link == "ab", Edge(*link))
        wanted = ranked(list(nodes), list(links))
        view.agree(Counter(Ranked(*item) for item in wanted.items()))
    with db.transaction():
        nodes.add("f")
        links.add_all([Edge("a", "f"), Edge("f", "f")])
    wanted = ranked(list(nodes), list(links))
    view.agree(Counter(Ranked(*item) for item in wanted.items()))
    with db.transaction():
        links.clear()
        nodes.clear()
    view.agree(Counter())


class Point(NamedTuple):
    x: int
    y: int


class Centre(NamedTuple):
    number: int
    x: Any
    y: Any


def nearest(point: Point, centre: Centre) -> Any:
    return (point.x - centre.x) ** 2 + (point.y - centre.y) ** 2, centre.number


def means(points: Rel, centres: Rel, times: int) -> Rel:
    def step(centres: Rel) -> Rel:
        best = points.join(centres).group_by(lambda p, c: p).aggregate(Min(nearest))
        owned = points.join(best, left_key=lambda p: p, right_key=lambda row: row[0])
        averages = owned.group_by(lambda p, row: row[1][1]).aggregate(
            Avg(lambda p, row: p.x), Avg(lambda p, row: p.y)
        )
        return averages.select(lambda number, x, y: Centre(number, x, y))

    return iterate(step, centres, times=times)


def averaged(points: list[Point], centres: list[Centre], times: int) -> set[Centre]:
    for _ in range(times):
        owned: dict[int, list[Point]] = {}
        for p in points:
            if centres:
                owned.setdefault(min(nearest(p, c) for c in centres)[1], []).append(p)
        centres = [
            Centre(n, sum(p.x for p in own) / len(own), sum(p.y for p in own) / len(own))
            for n, own in owned.items()
        ]
    return set(centres)


def test_k_means_over_a_changing_set_of_points() -> None:
    points = st.builds(Point, st.integers(0, 9), st.integers(0, 9))

    @examples(20)
    @given(edits=st.lists(st.tuples(st.booleans(), points), min_size=4, max_size=14))
    def run(edits: list[tuple[bool, Point]]) -> None:
        db = Database()
        table: Table[Point] = db.table(Point, name="points")
        centres: Table[Centre] = db.table(Centre, name="centres")
        view = means(table, centres, 4).materialize()
        follower = Follower(view)
        centres.add_all([Centre(0, 0, 0), Centre(1, 9, 9), Centre(2, 0, 9)])
        for is_new, point in edits:
            edit(table, is_new, point)
            follower.agree(Counter(averaged(list(table), list(centres), 4)))
        view.verify()

    run()
