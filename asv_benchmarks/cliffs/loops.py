"""Loops in other words: PageRank, recursions of SQL, and a batch of a loop with a tolerance.

Edges come and go. A loop whose spelling is not run by whole rounds costs ten times its neighbour.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from asv_benchmarks.cliffs.cliff import Cliff, Sides, Timed
from asv_benchmarks.recursion.graphs import Edge, digraph
from asv_benchmarks.recursion.rank import EDGES, ROUNDS, Degree, Rank, Share
from asv_benchmarks.recursion.rank import query as by_union_all
from asv_benchmarks.shapes import SEED
from reactive import Count, Database, Relation, Sum, iterate

Rel = Any
CHANGES = 30
BATCH = 100
MOST = 1.5
"""The cost of a spelling, at most, in that of its neighbour."""
DEPTH = """
with recursive p(src, dst, depth) as (
    select src, dst, 1 from edges
    union {kind} select p.src, e.dst, p.depth + 1 from p join edges e on p.dst = e.src
    where p.depth < 3
) select distinct src, dst, depth from p
"""


def _shares(edges: Rel) -> Rel:
    degrees = edges.group_by(lambda e: e.src).aggregate(Count()).select(lambda n, c: Degree(n, c))
    return edges.join(degrees, left_key=lambda e: e.src, right_key=lambda d: d.node).select(
        lambda e, d: Share(e.src, e.dst, d.edges)
    )


def _ranked(step: Callable[[Rel, Rel, Rel], Rel], edges: Rel, **words: Any) -> Rel:
    """Return the ranks by a step over nodes, shares and the ranks of the last round."""
    shares = _shares(edges)
    nodes = edges.select_many(lambda e: (e.src, e.dst)).distinct()
    start = nodes.select(lambda n: Rank(n, 1.0))
    return iterate(lambda ranks: step(nodes, shares, ranks), start, **(words or {"times": ROUNDS}))


def _left_joined(nodes: Rel, shares: Rel, ranks: Rel) -> Rel:
    given = (
        shares.join(ranks, left_key=lambda s: s.src, right_key=lambda r: r.node)
        .group_by(lambda s, r: s.dst)
        .aggregate(Sum(lambda s, r: r.value / s.edges))
    )
    return nodes.left_join(given, on=lambda n, g: n == g[0]).select(
        lambda n, g: Rank(n, 0.15 + 0.85 * (0.0 if g is None else g[1]))
    )


def _comprehended(nodes: Rel, shares: Rel, ranks: Rel) -> Rel:
    return nodes.select(
        lambda n: Rank(
            n,
            0.15
            + 0.85
            * sum(
                r.value / s.edges for s in shares if s.dst == n for r in ranks if r.node == s.src
            ),
        )
    )


def tolerant_ranks(edges: Rel) -> Rel:
    return _ranked(
        _left_joined,
        edges,
        until="settled",
        tolerance=1e-4,
        of=lambda r: r.value,
        contraction=0.85,
        norm="sum",
    )


Query = Callable[[Database, Rel], Relation[Any]]


def beside(one: Query, other: Query, batch: int, size: int) -> Sides:
    """Two queries of edges, of which some come and go in each commit."""
    return _changed(one, batch, size), _changed(other, batch, size)


def _changed(query: Query, batch: int, size: int) -> Timed:
    random = Random(SEED)
    rows = digraph(size, EDGES * size, random)
    db = Database()
    edges = db.table(Edge, name="edges")
    edges.add_all(rows)
    view = query(db, edges).materialize()
    commits = max(2, CHANGES // batch)
    some = [random.sample(rows, batch) for _ in range(commits)]

    def do(state: object) -> None:
        for each in some:
            edges.remove_all(each)
            edges.add_all(each)

    return Timed(do, 2 * commits, lambda: None, lambda state: len(view))


def _walked(kind: str) -> Query:
    return lambda db, edges: db.sql(DEPTH.format(kind=kind))


def _plain(query: Callable[[Rel], Rel]) -> Query:
    return lambda db, edges: query(edges)


BY_UNION_ALL = _plain(by_union_all)


CLIFFS = (
    Cliff(
        "PageRank by `left_join`, one edge",
        "by `union_all`",
        partial(beside, _plain(partial(_ranked, _left_joined)), BY_UNION_ALL, 1),
        300,
        most=MOST,
    ),
    Cliff(
        "PageRank by a comprehension, one edge",
        "by `union_all`",
        partial(beside, _plain(partial(_ranked, _comprehended)), BY_UNION_ALL, 1),
        300,
        most=MOST,
    ),
    Cliff(
        "PageRank with a tolerance, 100 edges",
        "20 rounds",
        partial(beside, _plain(tolerant_ranks), BY_UNION_ALL, BATCH),
        300,
        most=5.0,
    ),
    Cliff(
        "SQL's UNION ALL with a depth, one edge",
        "UNION",
        partial(beside, _walked("all"), _walked(""), 1),
        300,
        most=3.0,
    ),
)
