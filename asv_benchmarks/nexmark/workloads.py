"""The queries with their tables, twins and changes, as workloads."""

from __future__ import annotations

from random import Random
from typing import Any

from asv_benchmarks.churn import Churn
from asv_benchmarks.nexmark import queries, twins
from asv_benchmarks.nexmark.rows import Auction, Bid, House, Person
from asv_benchmarks.workload import Row, Rows, Stream, TableOf, Workload

READ: dict[str, tuple[type[Any], ...]] = {
    "q0": (Bid,),
    "q1": (Bid,),
    "q2": (Bid,),
    "q3": (Auction, Person),
    "q4": (Bid, Auction),
    "q5": (Bid,),
    "q6": (Bid, Auction),
    "q7": (Bid,),
    "q8": (Auction, Person),
}
"""The tables of each query."""


def workload(name: str) -> Workload:
    """Return the workload of a query; its size is the number of rows of all three kinds."""

    def rows(size: int, random: Random) -> Rows:
        house = House(size, random)
        of: dict[type[Any], list[Any]] = {Bid: house.bids, Auction: house.auctions}
        of[Person] = house.people
        return tuple(of[row_type] for row_type in READ[name])

    keys = [None if number == 0 else "id" for number, _ in enumerate(READ[name])]
    return Workload(
        name=name,
        title=(getattr(queries, name).__doc__ or "").rstrip("."),
        tables=tuple(map(TableOf, READ[name], keys)),
        query=getattr(queries, name),
        twin=getattr(twins, name.upper()),
        rows=rows,
        stream=changes,
    )


def changes(rows: Rows, random: Random) -> Stream:
    """Insert rows like those of the first table, and delete random ones.

    A new row is a copy of an existing one with another number and, for bids, another price.
    """
    first: list[Any] = rows[0]

    def make(number: int) -> Row:
        like = first[random.randrange(len(first))]
        if isinstance(like, Auction):
            return Auction(number, like.seller, like.category, like.opens, like.closes)
        return Bid(number, like.auction, like.bidder, 1 + random.randrange(100_000), like.time)

    return Churn(first, make, lambda row: True, random)


WORKLOADS = tuple(map(workload, READ))
