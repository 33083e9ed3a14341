"""Queries as the guide and the examples have them, with rows of any number, to be verified."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any, TypeAlias

from asv_benchmarks.recursion import graphs
from asv_benchmarks.rows import Customer, Order, customer, order
from examples.graphs.closure import closure
from examples.graphs.edges import Edge
from examples.graphs.k_means import Center, Point, k_means
from examples.graphs.longest_chain import Needs, longest_chains
from examples.graphs.page_rank import page_rank
from examples.graphs.same_generation import Parent, same_generation
from examples.graphs.shortest_paths import Road, shortest_paths
from reactive import (
    Aggregate,
    Avg,
    Collect,
    Count,
    CountDistinct,
    Max,
    Min,
    Monoid,
    Relation,
    Sum,
    asc,
    desc,
    fixpoint,
    iterate,
)

Rel: TypeAlias = Relation[*tuple[Any, ...]]
Rows: TypeAlias = Sequence[Sequence[Any]]
ORDERS_PER_CUSTOMER = 10
ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Query:
    """A query over tables, with their rows, whose number is divided by `divisor`."""

    name: str
    of: Callable[..., Any]
    kinds: tuple[type, ...]
    rows: Callable[[int, Random], Rows]
    divisor: int = 1


def sold(size: int, random: Random) -> Rows:
    """Orders, and a tenth as many customers."""
    customers = max(1, size // ORDERS_PER_CUSTOMER)
    return (
        [order(number, random, customers) for number in range(size)],
        [customer(number) for number in range(customers)],
    )


def chained(size: int, random: Random) -> Rows:
    """Return a node, and a chain that begins there."""
    return [0], [Edge(n, n + 1) for n in range(size)]  # type: ignore[arg-type]


def digraph(size: int, random: Random) -> Rows:
    """Edges, one and a half per node."""
    return ([Edge(*edge) for edge in graphs.digraph(2 * size // 3 + 2, size, random)],)  # type: ignore[arg-type]


def forest(size: int, random: Random) -> Rows:
    """Trees of thirty people."""
    people = range(size)
    return ([Parent(f"p{n}", f"p{n - 1 - random.randrange(n % 30)}") for n in people if n % 30],)


def roads(size: int, random: Random) -> Rows:
    """Return a start, and two roads from each place."""
    places = max(2, size // 2)
    made = [Road(str(n % places), str(random.randrange(places)), n % 7 + 1) for n in range(size)]
    return ["0"], made


def points(size: int, random: Random) -> Rows:
    """Return points, and three centers."""
    found = [Point(random.random(), random.random()) for _ in range(size)]
    return found, [Center(n, n / 3, n / 3) for n in range(3)]


def tasks(size: int, random: Random) -> Rows:
    """Chains of ten tasks."""
    return ([Needs(f"t{n}", f"t{n - 1}") for n in range(size) if n % 10],)


def reached(starts: Rel, edges: Rel) -> Rel:
    """Return the nodes that are reached from a start."""
    return fixpoint(
        lambda r: starts.union(r.join(edges, on=lambda x, e: x == e.src).select(lambda x, e: e.dst))
    )


def triangles(edges: Any) -> Any:
    """Three edges in a circle."""
    three: Any = edges.join(edges).join(edges)
    found: Rel = three.where(lambda a, b, c: a.dst == b.src and b.dst == c.src and c.dst == a.src)
    return found


def _of_orders(name: str, of: Callable[..., Any]) -> Query:
    return Query(name, of, (Order, Customer), sold)


QUERIES: tuple[Query, ...] = (
    _of_orders("where", lambda o, c: o.where(lambda o: o.quantity > 2)),
    _of_orders("select", lambda o, c: o.select(lambda o: (o.product, o.quantity * o.price))),
    _of_orders("select_many", lambda o, c: o.select_many(lambda o: (o.customer, o.product))),
    _of_orders("unnest", lambda o, c: o.unnest(lambda o: range(o.quantity))),
    _of_orders("distinct", lambda o, c: o.select(lambda o: (o.product, o.quantity)).distinct()),
    _of_orders("union", lambda o, c: o.select(lambda o: o.customer) | c.select(lambda c: c.id)),
    _of_orders("difference", lambda o, c: c.select(lambda c: c.id) - o.select(lambda o: o.product)),
    _of_orders("join", lambda o, c: o.join(c, on=lambda o, c: o.customer == c.id and c.active)),
    _of_orders(
        "join by keys",
        lambda o, c: o.join(c, left_key=lambda o: o.customer, right_key=lambda c: c.id),
    ),
    _of_orders("product, where", lambda o, c: o.join(c).where(lambda o, c: o.customer == c.id)),
    _of_orders("left_join", lambda o, c: c.left_join(o, on=lambda c, o: o.customer == c.id)),
    _of_orders("full_join", lambda o, c: c.full_join(o, on=lambda c, o: o.product == c.id)),
    _of_orders("semi_join", lambda o, c: c.semi_join(o, on=lambda c, o: c.id == o.product)),
    _of_orders("anti_join", lambda o, c: o.anti_join(c, on=lambda o, c: o.product == c.id)),
    _of_orders(
        "any or any over pairs",
        lambda o, c: c.where(
            lambda k: (
                any(
                    True
                    for x in o
                    for other in c
                    if x.customer == k.id and x.product == other.id and other.region == k.region
                )
                or any(
                    True
                    for x in o
                    for other in c
                    if x.product == k.id and x.customer == other.id and x.price > 50
                )
            )
        ),
    ),
    _of_orders(
        "join, group",
        lambda o, c: (
            o.join(c, on=lambda o, c: o.customer == c.id)
            .group_by(lambda o, c: c.region)
            .aggregate(Sum(lambda o, c: o.quantity * o.price))
        ),
    ),
    _of_orders(
        "count, sum, average",
        lambda o, c: o.group_by(lambda o: o.customer).aggregate(
            Count(), Sum(lambda o: o.price), Avg(lambda o: o.price / 7)
        ),
    ),
    _of_orders(
        "sum of decimals",
        lambda o, c: o.group_by(lambda o: o.customer).aggregate(
            Sum(lambda o: Decimal(o.price) / 100)
        ),
    ),
    _of_orders(
        "min, max, values",
        lambda o, c: o.group_by(lambda o: o.customer).aggregate(
            Min(lambda o: o.price),
            Max(lambda o: o.price),
            CountDistinct(lambda o: o.product),
            Collect(lambda o: o.quantity),
        ),
    ),
    _of_orders(
        "own aggregates",
        lambda o, c: o.aggregate(
            Aggregate(0, int.__xor__, int.__xor__, of=lambda o: o.id),
            Monoid(0, max, of=lambda o: o.price),
        ),
    ),
    _of_orders("order_by", lambda o, c: o.order_by(desc(lambda o: o.price), asc(lambda o: o.id))),
    _of_orders("order_by of ties", lambda o, c: o.order_by(lambda o: o.price)),
    _of_orders("limit", lambda o, c: o.order_by(lambda o: o.price, descending=True).limit(10)),
    Query("triangles", triangles, (Edge,), digraph),
    Query("reached", reached, (int, Edge), chained, divisor=20),
    Query("closure", closure, (Edge,), digraph, divisor=100),
    Query("same generation", same_generation, (Parent,), forest, divisor=10),
    Query("shortest paths", shortest_paths, (str, Road), roads),
    Query("longest chain", longest_chains, (Needs,), tasks),
    Query("page rank", page_rank, (Edge,), digraph, divisor=10),
    Query("k means", k_means, (Point, Center), points, divisor=10),
    Query(
        "iterate",
        lambda edges: iterate(
            lambda walks: walks.join(edges, on=lambda w, e: w.dst == e.src).select(
                lambda w, e: Edge(w.src, e.dst)
            ),
            edges,
            times=ROUNDS,
        ),
        (Edge,),
        lambda size, random: (list(chained(size, random)[1]),),
    ),
)
"""All queries, in the order of the report."""


def verified(name: str) -> Query:
    """Return the query of a name."""
    return next(query for query in QUERIES if query.name == name)
