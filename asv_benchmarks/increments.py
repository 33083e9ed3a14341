"""MRQL's incremental queries: batches of 1 % of the rows, beside a plain program that evaluates all
rows again, in one process and in turns.

    python -m asv_benchmarks.increments [--size 20000] [--runs 6] [--only group k-means]

The goals are gains over evaluating again. `growth` is the cost of the last increments, in that of
the first ones: 1 is flat. Results are compared at the end.

Source: [mrql] group-by, join-group-by, PageRank, k-means and matrix factorization.
"""

from __future__ import annotations

import argparse
import gc
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import fsum, isclose
from random import Random
from statistics import median
from time import process_time
from typing import Any, NamedTuple

from asv_benchmarks.cliffs.loops import tolerant_ranks
from asv_benchmarks.recursion import rank
from asv_benchmarks.recursion.graphs import Edge, digraph
from asv_benchmarks.shapes import SEED
from asv_benchmarks.table import machine, markdown
from examples.graphs.k_means import Center, Point, k_means
from reactive import Avg, Count, Database, Relation, Sum, iterate

Rows = list[Any]
Rel = Any
SIZE, RUNS = 20_000, 6
SHARE = 100
"""An increment is one in so many of the rows."""
ROUNDS, CENTERS = 10, 4
TOLERANCE = 1e-4


class Sale(NamedTuple):
    """A row that is grouped, or joined by its shop."""

    id: int
    shop: int
    amount: float


class Shop(NamedTuple):
    """A row of the other side."""

    id: int
    town: int


class Rating(NamedTuple):
    """A value of a matrix."""

    user: int
    item: int
    value: float


class Factor(NamedTuple):
    """A value of one of the two factors."""

    place: int
    value: float


@dataclass(frozen=True, slots=True)
class Increment:
    """A query of one table that grows, and of fixed rows; `plain` evaluates it again.

    goal: the least gain over evaluating again; 0 if only growth counts.
    near: how far values may be from those of the plain program.
    """

    name: str
    goal: float
    kinds: tuple[type, ...]
    rows: Callable[[int, Random], tuple[Rows, ...]]
    query: Callable[..., Rel]
    plain: Callable[..., dict[Any, Any]]
    near: float = 1e-9


def _sales(size: int, random: Random) -> tuple[Rows, ...]:
    shops = [Shop(n, n % 100) for n in range(size // 10)]
    sales = [Sale(n, random.randrange(size // 10), random.random()) for n in range(size)]
    return sales, shops


def grouped(sales: Rel, shops: Rel) -> Rel:
    return sales.group_by(lambda s: s.shop).aggregate(Sum(lambda s: s.amount), Count())


def grouped_again(sales: Rows, shops: Rows) -> dict[Any, Any]:
    groups: dict[int, list[float]] = defaultdict(list)
    for sale in sales:
        groups[sale.shop].append(sale.amount)
    return {shop: (fsum(amounts), len(amounts)) for shop, amounts in groups.items()}


def join_grouped(sales: Rel, shops: Rel) -> Rel:
    joined = sales.join(shops, on=lambda s, shop: s.shop == shop.id)
    return joined.group_by(lambda s, shop: shop.town).aggregate(Avg(lambda s, shop: s.amount))


def join_grouped_again(sales: Rows, shops: Rows) -> dict[Any, Any]:
    towns = {shop.id: shop.town for shop in shops}
    groups: dict[int, list[float]] = defaultdict(list)
    for sale in sales:
        town = towns.get(sale.shop)
        if town is not None:
            groups[town].append(sale.amount)
    return {town: (fsum(amounts) / len(amounts),) for town, amounts in groups.items()}


def _edges(size: int, random: Random) -> tuple[Rows, ...]:
    return (digraph(size // rank.EDGES, size, random),)


def ranked_again(edges: Rows) -> dict[Any, Any]:
    return {node: (value,) for node, value in rank.scratch(edges)}


def settled_again(edges: Rows) -> dict[Any, Any]:
    """Return ranks of rounds in which a value that moves by less than the tolerance stays."""
    before: dict[int, list[int]] = {node: [] for edge in edges for node in edge}
    degrees = dict.fromkeys(before, 0)
    for src, dst in edges:
        before[dst].append(src)
        degrees[src] += 1
    ranks, moves = dict.fromkeys(before, 1.0), True
    while moves:
        given = {node: value / (degrees[node] or 1) for node, value in ranks.items()}
        moves = False
        for node, others in before.items():
            new = 0.15 + 0.85 * fsum([given[other] for other in others])
            if abs(new - ranks[node]) >= TOLERANCE:
                ranks[node], moves = new, True
    return {node: (value,) for node, value in ranks.items()}


def _points(size: int, random: Random) -> tuple[Rows, ...]:
    spots = [Point(random.gauss(3 * (n % CENTERS), 1), random.gauss(0, 2)) for n in range(size)]
    starts = [Center(n, random.uniform(0, 9), random.uniform(-2, 2)) for n in range(CENTERS)]
    return spots, starts


def clustered(points: Rel, starts: Rel) -> Rel:
    return k_means(points, starts, ROUNDS)


def clustered_again(points: Rows, starts: Rows) -> dict[Any, Any]:
    centers = {center.id: center for center in starts}
    for _ in range(ROUNDS):
        groups: dict[int, Rows] = defaultdict(list)
        now = list(centers.values())
        for p in points:
            groups[min([((p.x - c.x) ** 2 + (p.y - c.y) ** 2, c.id) for c in now])[1]].append(p)
        for id, some in groups.items():
            x, y = fsum([p.x for p in some]), fsum([p.y for p in some])
            centers[id] = Center(id, x / len(some), y / len(some))
    return {id: (x, y) for id, x, y in centers.values()}


def _ratings(size: int, random: Random) -> tuple[Rows, ...]:
    count = max(2, size // 50)
    cells = {(random.randrange(count), random.randrange(count)) for _ in range(size)}
    return ([Rating(user, item, random.uniform(1, 5)) for user, item in sorted(cells)],)


def factorized(ratings: Rel) -> Rel:
    """Return the factor of the users: least squares of each side in turn, with one feature."""

    def step(users: Rel, items: Rel) -> tuple[Rel, Rel]:
        by_item = ratings.join(items, left_key=lambda r: r.item, right_key=lambda f: f.place)
        by_user = ratings.join(users, left_key=lambda r: r.user, right_key=lambda f: f.place)
        return _solve(by_item, lambda r, f: r.user), _solve(by_user, lambda r, f: r.item)

    starts = [
        ratings.select(place).distinct().select(lambda n: Factor(n, 1.0))
        for place in (lambda r: r.user, lambda r: r.item)
    ]
    both: tuple[Relation[Factor], Relation[Factor]] = iterate(
        step, (starts[0], starts[1]), times=ROUNDS
    )
    return both[0]


def _solve(pairs: Rel, key: Callable[[Any, Any], int]) -> Rel:
    products, squares = Sum(lambda r, f: r.value * f.value), Sum(lambda r, f: f.value * f.value)
    sums = pairs.group_by(key).aggregate(products, squares)
    return sums.select(lambda place, product, square: Factor(place, product / (0.1 + square)))


def factorized_again(ratings: Rows) -> dict[Any, Any]:
    by_user: dict[int, list[tuple[int, float]]] = defaultdict(list)
    by_item: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for user, item, value in ratings:
        by_user[user].append((item, value))
        by_item[item].append((user, value))
    users, items = dict.fromkeys(by_user, 1.0), dict.fromkeys(by_item, 1.0)
    for _ in range(ROUNDS):
        users, items = _solve_again(by_user, items), _solve_again(by_item, users)
    return {user: (value,) for user, value in users.items()}


def _solve_again(
    cells: dict[int, list[tuple[int, float]]], factor: dict[int, float]
) -> dict[int, float]:
    found = {}
    for place, row in cells.items():
        squares = fsum([factor[other] * factor[other] for other, _ in row])
        found[place] = fsum([value * factor[other] for other, value in row]) / (0.1 + squares)
    return found


INCREMENTS = (
    Increment("group-by", 10, (Sale, Shop), _sales, grouped, grouped_again),
    Increment("join-group-by", 3, (Sale, Shop), _sales, join_grouped, join_grouped_again),
    Increment("PageRank", 2, (Edge,), _edges, rank.query, ranked_again),
    Increment("PageRank, tolerance", 10, (Edge,), _edges, tolerant_ranks, settled_again, 0.1),
    Increment("k-means", 1, (Point, Center), _points, clustered, clustered_again),
    Increment("factorization", 0, (Rating,), _ratings, factorized, factorized_again),
)


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds of each increment, of the view and of the plain program."""

    live: list[float]
    again: list[float]

    @property
    def gain(self) -> float:
        """The gain over evaluating again; median of the increments."""
        return median(a / b for a, b in zip(self.again, self.live, strict=True))

    @property
    def growth(self) -> float:
        """The cost of the last third of the increments, in that of the first third."""
        third = max(1, len(self.live) // 3)
        return median(self.live[-third:]) / median(self.live[:third])


def measure(case: Increment, size: int = SIZE, runs: int = RUNS) -> Times:
    """Return the times of some increments; raise `AssertionError` if results differ."""
    growing, *fixed = case.rows(size + size * runs // SHARE, Random(SEED))
    Random(SEED).shuffle(growing)
    step = max(1, len(growing) // (SHARE + runs))
    there = len(growing) - runs * step
    db = Database()
    tables: list[Any] = [db.table(kind, name=f"t{n}") for n, kind in enumerate(case.kinds)]
    for table, rows in zip(tables, [growing[:there], *fixed], strict=True):
        table.add_all(rows)
    view = case.query(*tables).materialize()
    found = Times([], [])
    for number in range(runs):
        some = growing[there : there + step]
        there += step
        rows = growing[:there]
        turns = [
            (found.live, partial(tables[0].add_all, some)),
            (found.again, partial(case.plain, rows, *fixed)),
        ]
        for times, run in turns if number % 2 else reversed(turns):
            gc.collect()
            start = process_time()
            run()
            times.append((process_time() - start) * 1e3)
    _compare(case, view, case.plain(growing[:there], *fixed))
    return found


def _compare(case: Increment, view: Any, expected: dict[Any, Any]) -> None:
    """Raise `AssertionError` if rows of the view are not those of the plain program."""
    rows = {key: tuple(values) for key, *values in view}
    assert rows.keys() == expected.keys(), case.name
    for key, values in rows.items():
        pairs = zip(values, expected[key], strict=True)
        assert all(isclose(a, b, rel_tol=case.near, abs_tol=case.near) for a, b in pairs), case.name


def table(cases: Sequence[Increment], size: int, runs: int) -> list[str]:
    """Return the lines of a table."""
    lines = []
    for case in cases:
        times = measure(case, size, runs)
        goal = f"{case.goal:g}" if case.goal else "flat"
        lines.append(
            [
                case.name,
                f"{median(times.live):,.2f}",
                f"{median(times.again):,.2f}",
                f"{times.gain:.1f}",
                goal,
                f"{times.growth:.2f}",
            ]
        )
    return markdown(["query", "increment, ms", "again, ms", "gain", "goal", "growth"], lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--only", nargs="*", default=[])
    given = parser.parse_args()
    cases = [c for c in INCREMENTS if not given.only or any(w in c.name for w in given.only)]
    print(machine())
    print("\n".join(table(cases, given.size, given.runs)))


if __name__ == "__main__":
    main()
