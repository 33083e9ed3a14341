"""The graph examples once more, from scratch, by plain loops over the rows of their tables."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable
from math import fsum

from examples.graphs.edges import Edge
from examples.graphs.k_means import Center, Member, Point
from examples.graphs.longest_chain import Depth, Needs
from examples.graphs.page_rank import Rank
from examples.graphs.same_generation import Parent, Same
from examples.graphs.shortest_paths import Best, Road


def closure(edges: Iterable[Edge]) -> set[Edge]:
    """Compute the closure by a search from each node."""
    nexts: dict[str, set[str]] = defaultdict(set)
    for src, dst in edges:
        nexts[src].add(dst)
    found = set()
    for start in list(nexts):
        stack = list(nexts[start])
        while stack:
            node = stack.pop()
            if Edge(start, node) not in found:
                found.add(Edge(start, node))
                stack.extend(nexts.get(node, ()))
    return found


def same_generation(parents: Iterable[Parent]) -> set[Same]:
    """Derive from pairs the pairs of their children, as long as there are new ones."""
    rows = set(parents)
    children: dict[str, set[str]] = defaultdict(set)
    for child, parent in rows:
        children[parent].add(child)
    found = {
        Same(x, y) for siblings in children.values() for x in siblings for y in siblings if x != y
    }
    stack = list(found)
    while stack:
        one, other = stack.pop()
        below = {Same(x, y) for x in children.get(one, ()) for y in children.get(other, ())} - found
        found |= below
        stack.extend(below)
    return found


def shortest_paths(starts: Iterable[str], roads: Iterable[Road]) -> set[Best]:
    """Dijkstra's algorithm from each start."""
    out: dict[str, list[Road]] = defaultdict(list)
    for road in roads:
        out[road.src].append(road)
    return {best for start in set(starts) for best in _dijkstra(start, out)}


def _dijkstra(start: str, out: dict[str, list[Road]]) -> Iterable[Best]:
    done: dict[str, float] = {}
    heap: list[tuple[float, str]] = [(0, start)]
    while heap:
        cost, place = heapq.heappop(heap)
        if place not in done:
            done[place] = cost
            for road in out.get(place, ()):
                heapq.heappush(heap, (cost + road.cost, road.dst))
    return [Best(start, place, cost) for place, cost in done.items()]


def longest_chains(needs: Iterable[Needs], bound: int) -> set[Depth]:
    """Compute the depths in one round per step up to the bound."""
    rows = set(needs)
    depths = {task: 0 for pair in rows for task in pair}
    for _ in range(bound):
        old = dict(depths)
        for task, before in rows:
            depths[task] = max(depths[task], min(old[before] + 1, bound))
    return {Depth(task, depth) for task, depth in depths.items()}


def page_rank(links: Iterable[Edge], rounds: int, digits: int) -> set[Rank]:
    """Round by round."""
    nexts: dict[str, set[str]] = defaultdict(set)
    for src, dst in links:
        nexts[src].add(dst)
    pages = {page for src, dsts in nexts.items() for page in (src, *dsts)}
    ranks = dict.fromkeys(pages, 1.0)
    for _ in range(rounds):
        given: dict[str, list[float]] = {page: [] for page in pages}
        for src, dsts in nexts.items():
            for dst in dsts:
                given[dst].append(ranks[src] / len(dsts))
        ranks = {page: round(0.15 + 0.85 * fsum(parts), digits) for page, parts in given.items()}
    return {Rank(page, rank) for page, rank in ranks.items()}


def members(points: Iterable[Point], centers: Iterable[Center]) -> set[Member]:
    """The nearest center of each point."""
    centers = list(centers)
    if not centers:
        return set()

    def nearest(p: Point) -> int:
        return min(((p.x - c.x) ** 2 + (p.y - c.y) ** 2, c.id) for c in centers)[1]

    return {Member(point, nearest(point)) for point in set(points)}


def k_means(points: Iterable[Point], starts: Iterable[Center], rounds: int) -> set[Center]:
    """Run Lloyd's algorithm for `rounds` rounds."""
    points, centers = set(points), set(starts)
    for _ in range(rounds):
        clusters: dict[int, list[Point]] = defaultdict(list)
        for member in members(points, centers):
            clusters[member.center].append(member.point)
        centers = {_moved(center, clusters.get(center.id)) for center in centers}
    return centers


def _moved(center: Center, points: list[Point] | None) -> Center:
    if not points:
        return center
    x, y = (fsum(values) / len(points) for values in zip(*points, strict=True))
    return Center(center.id, x, y)
