"""The queries, each over the tables that it reads; the first is the one that changes."""

from __future__ import annotations

from typing import Any

from asv_benchmarks.nexmark.rows import MINUTE, Auction, Bid, Person
from reactive import Avg, Count, Max, Relation, Table

Asked = Relation[*tuple[Any, ...]]
EURO = 908
"""Thousandths of a dollar."""
EVERY = 123
CATEGORY = 10
LATEST = 10


def q0(bids: Table[Bid]) -> Asked:
    """All bids, as they are."""
    return bids.select(lambda b: (b.auction, b.bidder, b.price, b.time))


def q1(bids: Table[Bid]) -> Asked:
    """All bids, in another currency."""
    return bids.select(lambda b: (b.auction, b.bidder, b.price * EURO, b.time))


def q2(bids: Table[Bid]) -> Asked:
    """The bids on some of the auctions."""
    return bids.where(lambda b: b.auction % EVERY == 0).select(lambda b: (b.auction, b.price))


def q3(auctions: Table[Auction], people: Table[Person]) -> Asked:
    """Sellers of things of a category in some states."""
    return (
        auctions.join(people, on=lambda a, p: a.seller == p.id)
        .where(lambda a, p: a.category == CATEGORY and p.state in ("OR", "ID", "CA"))
        .select(lambda a, p: (p.name, p.city, p.state, a.id))
    )


def q4(bids: Table[Bid], auctions: Table[Auction]) -> Asked:
    """The mean of the winning bids, by category."""
    won = (
        auctions.join(bids, on=lambda a, b: a.id == b.auction)
        .where(lambda a, b: b.time <= a.closes)
        .group_by(lambda a, b: (a.id, a.category))
        .aggregate(Max(lambda a, b: b.price))
    )
    return won.group_by(lambda k, price: k[1]).aggregate(Avg(lambda k, price: price))


def q5(bids: Table[Bid]) -> Asked:
    """The auction of each minute that has most bids in it."""
    counts = bids.group_by(lambda b: (b.time // MINUTE, b.auction)).aggregate(Count())
    return counts.group_by(lambda k, n: k[0]).top(1, by=lambda k, n: n)


def q6(bids: Table[Bid], auctions: Table[Auction]) -> Asked:
    """The mean of the winning bids of each seller's auctions that close last."""
    won = (
        auctions.join(bids, on=lambda a, b: a.id == b.auction)
        .where(lambda a, b: b.time <= a.closes)
        .group_by(lambda a, b: (a.seller, a.closes, a.id))
        .aggregate(Max(lambda a, b: b.price))
    )
    latest = won.group_by(lambda k, price: k[0]).top(LATEST, by=lambda k, price: (k[1], k[2]))
    return latest.group_by(lambda k, price: k[0]).aggregate(Avg(lambda k, price: price))


def q7(bids: Table[Bid]) -> Asked:
    """The highest bids of each minute."""
    highest = bids.group_by(lambda b: b.time // MINUTE).aggregate(Max(lambda b: b.price))
    return highest.join(
        bids, on=lambda minute, price, b: b.time // MINUTE == minute and b.price == price
    ).select(lambda minute, price, b: (minute, price, b.auction, b.bidder))


def q8(auctions: Table[Auction], people: Table[Person]) -> Asked:
    """People who opened an auction in the minute of joining."""
    return (
        people.join(auctions, on=lambda p, a: p.id == a.seller)
        .where(lambda p, a: p.joined // MINUTE == a.opens // MINUTE)
        .select(lambda p, a: (p.id, p.name, p.joined // MINUTE))
        .distinct()
    )
