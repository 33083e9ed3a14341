"""The input: folders with one new file per batch, with a `weight` per row.

    orders/000003.parquet    number, customer, amount, weight    +1 ordered, -1 cancelled
    links/000003.parquet     src, dst, weight                    +1 linked, -1 no longer

Orders grow with each batch, and some of the recent ones are cancelled. Links change in a few of
many small sites. A file is there whole or not at all: it is written aside and renamed. The same
seed gives the same files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from examples.graphs.edges import Edge
from examples.pipeline.rows import Customer, Order
from examples.shops import REGIONS, amount

CANCELLED = 0.05
"""The share of the orders of a batch that the next one cancels."""
SITES, PAGES = 40, 6
"""The numbers of sites, and of pages per site; there are no links between sites."""
CHANGED = 3
"""In how many sites a link comes or goes, per batch."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The changes of a batch, each row with its weight."""

    orders: tuple[tuple[Order, int], ...]
    links: tuple[tuple[Edge, int], ...]


@dataclass(slots=True)
class Totals:
    """The totals of all batches so far."""

    orders: Counter[Order]
    links: Counter[Edge]

    def take(self, batch: Batch) -> None:
        """Write one more batch."""
        _add(self.orders, batch.orders)
        _add(self.links, batch.links)


def customers(count: int) -> list[Customer]:
    """So many customers; the regions have different numbers of them."""
    random = Random("customers")
    shares = range(1, len(REGIONS) + 1)
    return [Customer(n, random.choices(REGIONS, shares)[0]) for n in range(count)]


def batches(count: int, size: int, customers: int, seed: int) -> Iterator[Batch]:
    """So many batches, of `size` new orders each."""
    random, links = Random(seed), _first_links()
    recent: list[Order] = []
    for number in range(count):
        new = [
            Order(n, random.randrange(customers), amount(random))
            for n in range(number * size, (number + 1) * size)
        ]
        gone = random.sample(recent, int(len(recent) * CANCELLED))
        orders = (*((order, 1) for order in new), *((order, -1) for order in gone))
        changed = [(link, 1) for link in sorted(links)] if not number else _edited(links, random)
        yield Batch(orders, tuple(changed))
        recent = new


def write(folder: Path, number: int, batch: Batch) -> None:
    """Write the files of a batch."""
    orders, weights = _columns(batch.orders)
    _write(
        folder / "orders" / f"{number:06}.parquet",
        number=[order.number for order in orders],
        customer=[order.customer for order in orders],
        amount=pa.array([order.amount for order in orders], pa.float64()),
        weight=weights,
    )
    links, weights = _columns(batch.links)
    _write(
        folder / "links" / f"{number:06}.parquet",
        src=pa.array([link.src for link in links], pa.string()),
        dst=pa.array([link.dst for link in links], pa.string()),
        weight=weights,
    )


def _write(path: Path, **columns: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}")
    pq.write_table(pa.table(columns), aside)
    aside.rename(path)


def _columns(changes: Sequence[tuple[Any, int]]) -> tuple[list[Any], pa.Array]:
    weights = pa.array([weight for _, weight in changes], pa.int64())
    return [row for row, _ in changes], weights


def _first_links() -> set[Edge]:
    """In each site a circle of its pages, and all of them link to the first one."""
    found = set()
    for site in range(SITES):
        pages = [_page(site, page) for page in range(PAGES)]
        circle = zip(pages, [*pages[1:], pages[0]], strict=True)
        found |= {Edge(*pair) for pair in circle} | {Edge(page, pages[0]) for page in pages[2:]}
    return found


def _edited(links: set[Edge], random: Random) -> list[tuple[Edge, int]]:
    """In some sites a link comes if it is not there, and goes if it is."""
    found = []
    for site in random.sample(range(SITES), CHANGED):
        ends = random.sample(range(PAGES), 2)
        link = Edge(*(_page(site, page) for page in ends))
        found.append((link, -1 if link in links else 1))
        links ^= {link}
    return found


def _page(site: int, page: int) -> str:
    return f"site{site:02}/{page}"


def _add(bag: Counter[Any], changes: Sequence[tuple[Any, int]]) -> None:
    for row, weight in changes:
        bag[row] += weight
        if not bag[row]:
            del bag[row]
