"""The pipeline: streams, queries, and the target tables.

    orders/  --+
               +-- join, Count, Sum by region --> revenue/
    customers -+
    links/   ------ PageRank ------------------> ranks/

The rows of the streams do not pass through the process, which has only the customers. The positions
of both sinks are in their target tables, and the positions of the streams beside their rows: after
a kill, a process that creates the same pipeline continues.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from examples.graphs.edges import Edge
from examples.graphs.page_rank import page_rank
from examples.pipeline.rows import Customer, Order, Revenue
from reactive import Count, Database, Relation, Sum

ROUNDS = 10
"""The rounds of PageRank."""
OFTEN = "100 ms"
"""The time between two scans of the stream."""
ORDERS = "number bigint, customer bigint, amount double, weight bigint"
LINKS = "src string, dst string, weight bigint"


class Pipeline:
    """Everything between the folders that files appear in and the tables.

    Parameters
    ----------
    db: with a `SparkOffload` that has a checkpoint.
    folder: has `orders/` and `links/`; `revenue/` and `ranks/` are made.
    """

    def __init__(self, db: Database, folder: Path, customers: Iterable[Customer]) -> None:
        self.orders = _stream(db, folder / "orders", Order, ORDERS)
        self.links = _stream(db, folder / "links", Edge, LINKS)
        self.customers = db.table(Customer, name="customers", key="number")
        self.customers.add_all(customers)
        self.revenue = revenue(self.orders, self.customers).materialize("revenue")
        self.ranks = page_rank(self.links, rounds=ROUNDS).materialize("ranks")
        self.sinks = (
            self.revenue.write_to(folder / "revenue", key="region", row_type=Revenue),
            self.ranks.write_to(folder / "ranks", key="page"),
        )

    def take(self, number: int) -> None:
        """Wait for a batch to be in both tables."""
        self.orders.source.wait(token=number)
        self.links.source.wait(token=number)
        for sink in self.sinks:
            sink.flush()


def revenue(orders: Relation[Order], customers: Relation[Customer]) -> Relation[Revenue]:
    """Return the number and the sum of the orders of each region.

    >>> from reactive import Database
    >>> db = Database()
    >>> orders, customers = db.table(Order), db.table(Customer)
    >>> view = revenue(orders, customers).materialize()
    >>> customers.add(Customer(7, "north"))
    >>> orders.add_all([Order(1, 7, 2.5), Order(2, 7, 0.25)])
    >>> list(view)
    [Revenue(region='north', orders=2, total=2.75)]
    """
    return (
        orders.join(customers, on=lambda o, c: o.customer == c.number)
        .group_by(lambda o, c: c.region)
        .aggregate(Count(), Sum(lambda o, c: o.amount))
        .select(lambda region, orders, total: Revenue(region, orders, total))
    )


def _stream(db: Database, folder: Path, row_type: Any, columns: str) -> Any:
    """Return a table that a folder feeds, a file at a time."""

    def files(spark: Any) -> Any:
        reader = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(folder))

    return db.spark_stream(files, row_type, name=folder.name, changes="weight", trigger=OFTEN)
