"""The queries that are measured on Spark, their rows, and the changes of one flush.

Sums are of floats. Numbers are never used twice, so no two rows are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from random import Random
from typing import Any, NamedTuple

from asv_benchmarks.measure import SEED
from reactive import Avg, Count, Max, Sum
from reactive.api.view import AnyView

Tables = Sequence[Any]
SIZES = (1, 100, 10_000)
"""Changed rows of a flush."""
CHANGED = SIZES[-1]


@dataclass(frozen=True, slots=True)
class Order:
    id: int
    customer: int
    amount: float


@dataclass(frozen=True, slots=True)
class Client:
    id: int
    region: int


class Change(NamedTuple):
    """Rows that are added to a table, or removed if `weight` is -1."""

    table: int
    rows: list[Any]
    weight: int


@dataclass(frozen=True, slots=True)
class Case:
    """A query and its tables.

    Parameters
    ----------
    shares: the share of all rows in each table, by the class of its rows.
    mechanism: the form of its state on Spark.
    """

    name: str
    title: str
    mechanism: str
    shares: Mapping[type, float]
    query: Callable[..., Any]

    def view(self, tables: Tables) -> AnyView:
        """Return the view of the query."""
        view: AnyView = self.query(*tables).materialize(self.name)
        return view

    def rows(self, size: int) -> Iterator[tuple[int, Iterator[Any]]]:
        """Yield the rows to begin with: the number of a table, and its rows."""
        for table, (kind, rows) in enumerate(self.sizes(size).items()):
            yield table, _rows(kind, rows, Random(SEED))

    def sizes(self, size: int) -> dict[type, int]:
        """Return the number of rows in each table, out of `size` rows."""
        return {kind: round(size * share) for kind, share in self.shares.items()}

    def kind(self, table: int) -> type:
        """Return the class of the rows of a table."""
        return [*self.shares][table]


class Changes:
    """Changes that keep the size of a table: rows are inserted, and deleted by the next change.

    Changes of a case with two tables are of one and the other in turn.

    Parameters
    ----------
    size: the number of rows at first.
    groups: rows are of a random one of the first `groups` groups; by default of all.
    """

    def __init__(self, case: Case, size: int, *, groups: int | None = None) -> None:
        self._case = case
        self._groups = groups or max(case.sizes(size).values())
        self._numbers = count(2 * size)
        self._random = Random(SEED)
        self._table = 0

    def pair(self, rows: int) -> tuple[Change, Change]:
        """Return an insert of `rows` rows, and their delete."""
        table = self._table
        self._table = (table + 1) % len(self._case.shares)
        added = self.more(table, rows)
        return Change(table, added, 1), Change(table, added, -1)

    def more(self, table: int, rows: int) -> list[Any]:
        """Return `rows` new rows of a table."""
        kind, pick = self._case.kind(table), self._random.randrange
        numbers = islice(self._numbers, rows)
        return [_row(kind, n, pick(self._groups), self._random) for n in numbers]


def _rows(kind: type, count: int, random: Random) -> Iterator[Any]:
    return (_row(kind, number, number, random) for number in range(count))


def _row(kind: type, number: int, group: int, random: Random) -> Any:
    if kind is Client:
        return Client(group, number)
    return Order(number, group, random.randrange(10**6) / 100)


def _totals(orders: Any) -> Any:
    """Return count and sum of a million groups; a change is in one of them."""
    return orders.group_by(lambda o: o.customer).aggregate(Count(), Sum(lambda o: o.amount))


def _highest(orders: Any) -> Any:
    return orders.group_by(lambda o: o.customer).aggregate(Max(lambda o: o.amount))


def _distinct(orders: Any) -> Any:
    return orders.select(lambda o: (o.customer, o.amount)).distinct()


def _joined(orders: Any, clients: Any) -> Any:
    return orders.join(clients, on=lambda o, c: o.customer == c.id)


def _averages(orders: Any) -> Any:
    return orders.group_by(lambda o: o.customer % 100_003).aggregate(Avg(lambda o: o.amount))


def _joined_averages(orders: Any, clients: Any) -> Any:
    joined = orders.join(clients, on=lambda o, c: o.customer == c.id)
    return joined.group_by(lambda o, c: c.region % 100_003).aggregate(Avg(lambda o, c: o.amount))


NATIVE, LOG = "sums in the JVM", "log by key"
ORDERS: Mapping[type, float] = {Order: 1.0}
BOTH: Mapping[type, float] = {Order: 1.0, Client: 1.0}
HALVES: Mapping[type, float] = {Order: 0.5, Client: 0.5}
GROUP = Case("group", "group by: Count, Sum", NATIVE, ORDERS, _totals)
JOIN = Case("join", "join", LOG, BOTH, _joined)
FLUSHED = (GROUP, JOIN)
"""The cases with repeated flushes."""
HANDED_OVER = (
    GROUP,
    Case("max", "group by: Max", LOG, ORDERS, _highest),
    Case("distinct", "distinct", LOG, ORDERS, _distinct),
    Case("halves", "join of two halves", LOG, HALVES, _joined),
)
"""The moved cases, with the same number of rows in all tables together."""
AVERAGE = Case("average", "group by: Avg", NATIVE, ORDERS, _averages)
JOIN_AVERAGE = Case("join_average", "join, group by: Avg", LOG, HALVES, _joined_averages)
PUBLISHED = (AVERAGE, JOIN_AVERAGE)
"""Queries as [mrql] measures them."""
CASES = {case.name: case for case in (*FLUSHED, *HANDED_OVER, *PUBLISHED)}
