"""The expected tables by plain Python, from scratch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from math import fsum
from pathlib import Path
from typing import Any

from examples.graphs.page_rank import DIGITS
from examples.pipeline.feed import Totals
from examples.pipeline.pipeline import ROUNDS
from examples.pipeline.rows import Customer
from examples.terminal import number
from spark_backend import RowsFolder


def differences(folder: Path, totals: Totals, customers: Iterable[Customer]) -> list[str]:
    """Return the names of tables that do not hold what they should, and how many rows differ."""
    wanted = {"revenue": _revenue(totals, customers), "ranks": _ranks(totals)}
    found = []
    for name, rows in wanted.items():
        differ = rows ^ _written(folder / name)
        if differ:
            found.append(f"{name}: {number(len(differ), 'row')}")
    return found


def _written(folder: Path) -> set[tuple[Any, ...]]:
    columns = RowsFolder(folder).read().to_pydict()
    return set(zip(*columns.values(), strict=True))


def _revenue(totals: Totals, customers: Iterable[Customer]) -> set[tuple[Any, ...]]:
    regions = {customer.number: customer.region for customer in customers}
    amounts: dict[str, list[float]] = defaultdict(list)
    for order in totals.orders:
        amounts[regions[order.customer]].append(order.amount)
    return {(region, len(found), fsum(found)) for region, found in amounts.items()}


def _ranks(totals: Totals) -> set[tuple[Any, ...]]:
    targets: dict[str, list[str]] = defaultdict(list)
    for link in totals.links:
        targets[link.src].append(link.dst)
    ranks = dict.fromkeys({page for link in totals.links for page in link}, 1.0)
    for _ in range(ROUNDS):
        given: dict[str, list[float]] = defaultdict(list)
        for page, ends in targets.items():
            for end in ends:
                given[end].append(ranks[page] / len(ends))
        ranks = {page: round(0.15 + 0.85 * fsum(given[page]), DIGITS) for page in ranks}
    return set(ranks.items())
