"""The five queries of [mrql] on Spark, batch after batch: whether the time of a batch grows.

group_by        mean by group
join_group_by   orders with customers, mean by region
k_means         some rounds of centers over points
page_rank       some rounds of ranks over links
factors         alternating least squares over ratings: two relations go round together

In each batch as many rows are inserted as deleted, so that the size of the data is constant: only
the files of the state grow, until they are compacted. The slope is the median of the slopes between
any two batches, in percent of the median batch, per batch; also for CPU seconds.

python -m asv_benchmarks.offload.flat [group_by ...] [--batches 100] [--rows 100000] [--changes 500]
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random
from statistics import median
from typing import Any, NamedTuple

from asv_benchmarks.measure import SEED
from asv_benchmarks.offload.cpu import Took, took
from examples.graphs.edges import Edge
from examples.graphs.k_means import Center, Point, k_means
from examples.graphs.page_rank import page_rank
from reactive import Avg, Database, Sum, iterate
from spark_backend import SparkOffload

WARM_UP = 5
"""Batches that are not counted."""
ROUNDS = 5
GROUPS, REGIONS, CENTERS = 1_000, 20, 5


class Order(NamedTuple):
    customer: int
    amount: float


class Customer(NamedTuple):
    number: int
    region: int


class Rating(NamedTuple):
    user: int
    item: int
    stars: float


class Factor(NamedTuple):
    of: int
    value: float


def means(db: Database, orders: Any) -> Any:
    """Return the mean by group."""
    return orders.group_by(lambda o: o.customer % GROUPS).aggregate(Avg(lambda o: o.amount))


def joined_means(db: Database, orders: Any) -> Any:
    """Return the mean by region of the customer."""
    customers = db.table(Customer, name="customers", key="number")
    customers.add_all(Customer(n, n % REGIONS) for n in range(GROUPS))
    joined = orders.join(customers, on=lambda o, c: o.customer % GROUPS == c.number)
    return joined.group_by(lambda o, c: c.region).aggregate(Avg(lambda o, c: o.amount))


def centers(db: Database, points: Any) -> Any:
    """Return the middles of clusters."""
    starts = db.table(Center, name="starts")
    starts.add_all(Center(n, n * 1.0, n * 1.0) for n in range(CENTERS))
    return k_means(points, starts, ROUNDS)


def ranks(db: Database, links: Any) -> Any:
    """Return the ranks of pages."""
    return page_rank(links, ROUNDS)


def factors(db: Database, ratings: Any) -> Any:
    """Return the factors of users whose product with those of items is near the ratings."""
    users = ratings.select(lambda r: Factor(r.user, 1.0)).distinct()
    items = ratings.select(lambda r: Factor(r.item, 1.0)).distinct()

    def better(users: Any, items: Any) -> Any:
        users = (
            ratings.join(items, on=lambda r, f: r.item == f.of)
            .group_by(lambda r, f: r.user)
            .aggregate(Sum(lambda r, f: r.stars * f.value), Sum(lambda r, f: f.value * f.value))
            .select(lambda user, up, down: Factor(user, up / down))
        )
        items = (
            ratings.join(users, on=lambda r, f: r.user == f.of)
            .group_by(lambda r, f: r.item)
            .aggregate(Sum(lambda r, f: r.stars * f.value), Sum(lambda r, f: f.value * f.value))
            .select(lambda item, up, down: Factor(item, up / down))
        )
        return users, items

    return iterate(better, (users, items), times=ROUNDS)[0]


@dataclass(frozen=True, slots=True)
class Query:
    """A query over one table on Spark whose rows are inserted and deleted.

    Parameters
    ----------
    rows_per: how many of all rows there are for each of the query's own, so that the slow ones
        have fewer.
    """

    kind: type
    make: Callable[[Database, Any], Any]
    row: Callable[[Random, int], Any]
    rows_per: int = 1


QUERIES = {
    "group_by": Query(Order, means, lambda r, n: Order(r.randrange(n), r.randrange(10**6) / 100)),
    "join_group_by": Query(
        Order, joined_means, lambda r, n: Order(r.randrange(n), r.randrange(10**6) / 100)
    ),
    "k_means": Query(
        Point, centers, lambda r, n: Point(r.random() * CENTERS, r.random() * CENTERS), 20
    ),
    "page_rank": Query(
        Edge, ranks, lambda r, n: Edge(f"p{r.randrange(n // 4)}", f"p{r.randrange(n // 4)}"), 5
    ),
    "factors": Query(
        Rating,
        factors,
        lambda r, n: Rating(r.randrange(n // 20), r.randrange(n // 50), r.randint(1, 5) * 1.0),
        5,
    ),
}


def batches(query: Query, count: int, rows: int, changes: int) -> Iterator[Took]:
    """Yield the time of each of `count` batches."""
    random, rows = Random(SEED), rows // query.rows_per
    changes = max(1, changes // query.rows_per)
    recent = deque(query.row(random, rows) for _ in range(rows))
    offload = SparkOffload(threshold_rows=None)
    db = Database(offload=offload)
    try:
        frame = offload.session.spark.createDataFrame(list(recent))
        table: Any = db.spark_table(frame, query.kind, name="rows")
        view = query.make(db, table).materialize("view")
        for number in range(WARM_UP + count):
            gone = [recent.popleft() for _ in range(changes)]
            new = [query.row(random, rows) for _ in range(changes)]
            recent.extend(new)
            with db.transaction():
                table.remove_all(gone)
                table.add_all(new)
            each = took(db.flush)
            if number >= WARM_UP:
                yield each
        view.verify()
    finally:
        db.close()


def slope(values: Sequence[float]) -> float:
    """Return the growth per batch in percent of the median.

    It is the median of the slopes between any two batches (Theil and Sen), which single slow
    batches do not change.

    >>> round(slope([1.0, 1.0, 1.0]), 3), round(slope([99.0, 100.0, 101.0]), 3)
    (0.0, 1.0)
    >>> round(slope([99.0, 100.0, 700.0, 102.0, 103.0]), 3)
    0.98
    """
    pairs = combinations(enumerate(values), 2)
    return 100 * median((b - a) / (n - m) for (m, a), (n, b) in pairs) / median(values)


def main() -> None:
    """Read the options, measure and print."""
    parser = argparse.ArgumentParser(prog="asv_benchmarks.offload.flat")
    parser.add_argument("names", nargs="*", help=f"of {' '.join(QUERIES)}; all by default")
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--changes", type=int, default=500, help="rows that come, and that go")
    options = parser.parse_args()
    unknown = {*options.names} - {*QUERIES}
    if unknown:
        parser.error(f"no query: {' '.join(sorted(unknown))}")
    for name in options.names or QUERIES:
        found = list(batches(QUERIES[name], options.batches, options.rows, options.changes))
        for of in ("seconds", "cpu"):
            values = [getattr(each, of) for each in found]
            print(
                f"{name:14} {of:8} median {median(values):6.2f}, least {min(values):6.2f}, "
                f"most {max(values):6.2f}, slope {slope(values):+.2f} % per batch",
                flush=True,
            )


if __name__ == "__main__":
    main()
