"""A label with one row in ten nested in it, beside labels with ten rows each.

pairs          orders joined with their customers: one operator, whose rows are by buckets
with orders    customers that have orders: a semi join, also by buckets
least          orders joined with customers, the least, greatest and different ids by customer
counted        different orders, counted by customer, also of customers without any: a left join
groups         orders collected by customer
nest           customers with their orders inside

In the last two, a change emits a bag with all orders of the customer.

heavy      n orders are inserted or deleted in the heavy label
even       n orders are inserted or deleted, each in a label of its own

Both are changes of the same view, in turn, flushed by this process and by jobs. At the end the view
is compared with plain Python.

python -m asv_benchmarks.offload.labels [--rows 100000] [--changes 1 100] [--rounds 6]
    [--queries pairs least]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from unittest.mock import patch

from asv_benchmarks.offload.cpu import Took, took
from asv_benchmarks.table import machine
from reactive import Collect, Count, CountDistinct, Database, Max, Min
from spark_backend import SparkOffload
from spark_backend.direct import flush

HEAVY = 0
SHARE, EVEN = 10, 10
"""The number of rows per row of the heavy label; the rows of each other label."""
NEVER = -1
"""No flush is of so few rows."""
Query = Callable[[Any, Any], Any]


class Customer(NamedTuple):
    """A row at the top."""

    id: int


class Order(NamedTuple):
    """A row inside."""

    id: int
    customer: int
    amount: float


QUERIES: dict[str, Query] = {
    "pairs": lambda customers, orders: orders.join(customers, on=lambda o, c: o.customer == c.id),
    "with orders": lambda customers, orders: customers.semi_join(
        orders, on=lambda c, o: c.id == o.customer
    ),
    "least": lambda customers, orders: (
        orders.join(customers, on=lambda o, c: o.customer == c.id)
        .group_by(lambda o, c: c.id)
        .aggregate(
            *(Min(lambda o, c: o.id), Max(lambda o, c: o.id), CountDistinct(lambda o, c: o.id))
        )
    ),
    "counted": lambda customers, orders: (
        customers.left_join(orders.distinct(), on=lambda c, o: c.id == o.customer)
        .group_by(lambda c, o: c.id)
        .aggregate(Count())
    ),
    "groups": lambda customers, orders: orders.group_by(lambda o: o.customer).aggregate(
        Collect(lambda o: o)
    ),
    "nest": lambda customers, orders: customers.nest(
        orders=lambda c: orders.where(lambda o: o.customer == c.id)
    ),
}


class Side:
    """A query, and its view on Spark.

    Parameters
    ----------
    rows: of orders.
    """

    def __init__(self, name: str, rows: int, folder: Path, options: dict[str, Any]) -> None:
        self._labels = rows // EVEN
        offload = SparkOffload(threshold_rows=None, checkpoint=str(folder / name), **options)
        self.db = Database(offload=offload)
        customers = self.db.table(Customer, name="customers", key="id")
        self._orders = self.db.table(Order, name="orders", key="id")
        self._next = rows
        customers.add_all(Customer(n) for n in range(self._labels))
        self._orders.add_all(Order(n, self._label(n), n % 1000 / 8) for n in range(rows))
        self.view = QUERIES[name](customers, self._orders).materialize(name)
        self.view.offload()
        self._came: list[Order] = []

    def _label(self, number: int) -> int:
        return HEAVY if number % SHARE == 0 else 1 + number * 7919 % (self._labels - 1)

    def change(self, count: int, *, is_heavy: bool) -> None:
        """Insert orders; or delete the last inserted ones."""
        if self._came:
            self._orders.remove_all(self._came)
            self._came = []
            return
        numbers = range(self._next, self._next + count)
        step = self._labels // count - 1
        labels = [HEAVY if is_heavy else 1 + place * step for place in range(count)]
        self._came = [Order(n, label, 0.5) for n, label in zip(numbers, labels, strict=True)]
        self._next += count
        self._orders.add_all(self._came)

    def check(self) -> None:
        """Raise if the view differs from plain Python."""
        self.view.verify()


def measure(
    rows: int,
    changes: Sequence[int],
    rounds: int,
    options: dict[str, Any],
    queries: Sequence[str] = tuple(QUERIES),
) -> list[str]:
    """Return the figures, a line each."""
    lines = [
        f"| {rows:,} rows | even: s, CPU s | heavy: s, CPU s | heavy / even: s, CPU |",
        "|---|" + "---:|" * 3,
    ]
    with tempfile.TemporaryDirectory(prefix="reactive-labels-") as folder:
        for name in queries:
            side = Side(name, rows, Path(folder), options)
            for way, most in (("by this process", flush.MOST_DIRECT), ("by jobs", NEVER)):
                for count in changes:
                    with patch.object(flush, "MOST_DIRECT", most):
                        even, heavy = _both(side, count, rounds)
                    ratio = f"{heavy.seconds / even.seconds:.2f}, {heavy.cpu / even.cpu:.2f}"
                    lines.append(
                        f"| {name}, {count:,} changes, {way} | {_told(even)} | {_told(heavy)} | "
                        f"{ratio} |"
                    )
                    print(lines[-1], flush=True)
            side.check()
            side.db.close()
    return [*lines, ""]


def _both(side: Side, count: int, rounds: int) -> tuple[Took, Took]:
    """Return the times of flushes of changes in even labels, and in the heavy one."""
    found: dict[bool, list[Took]] = {False: [], True: []}
    for number in range(rounds):
        for is_heavy in (number % 2 == 0, number % 2 == 1):
            for _ in range(2):
                side.change(count, is_heavy=is_heavy)
                found[is_heavy].append(took(side.db.flush))
    even, heavy = (_middle(found[is_heavy][2:]) for is_heavy in (False, True))
    return even, heavy


def _middle(some: Sequence[Took]) -> Took:
    """Return the medians; the mean of CPU seconds, which are in hundredths of a second."""
    cpu = sum(each.cpu for each in some) / len(some)
    return Took(median(each.seconds for each in some), max(cpu, 0.001))


def _told(took: Took) -> str:
    return f"{took.seconds:.3f}, {took.cpu:.3f}"


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(prog="asv_benchmarks.offload.labels", description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="of orders")
    parser.add_argument("--changes", type=int, nargs="*", default=[1, 100])
    parser.add_argument("--rounds", type=int, default=6, help="of flushes, two each of either kind")
    parser.add_argument("--queries", nargs="*", default=list(QUERIES), choices=list(QUERIES))
    parser.add_argument("--master", default="local[2]", help="where Spark runs")
    given = parser.parse_args()
    options = {"master": given.master, "config": {"spark.driver.memory": "2g"}}
    print(
        "\n".join(
            [*measure(given.rows, given.changes, given.rounds, options, given.queries), machine()]
        )
    )


if __name__ == "__main__":
    main()
