"""People, their auctions, and the bids on these: of a hundred rows 2, 6 and 92."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

STATES = ("AZ", "CA", "ID", "NY", "OR", "WA")
CATEGORIES = 20
CITIES = 50
MINUTE = 600
"""The number of rows in a minute."""
OPEN = 2 * MINUTE


@dataclass(frozen=True, slots=True)
class Person:
    id: int
    name: str
    city: str
    state: str
    joined: int


@dataclass(frozen=True, slots=True)
class Auction:
    id: int
    seller: int
    category: int
    opens: int
    closes: int


@dataclass(frozen=True, slots=True)
class Bid:
    id: int
    auction: int
    bidder: int
    price: int
    time: int


class House:
    """A number of rows of the three kinds together, and more on demand.

    Half of the bids are on one auction of ten, because some are more popular than others.
    """

    def __init__(self, size: int, random: Random) -> None:
        self._random = random
        self._size = size
        people, auctions = max(2, size * 2 // 100), max(10, size * 6 // 100)
        self.people = [self._person(n) for n in range(people)]
        self.auctions = [self.auction(n) for n in range(auctions)]
        self.bids = [self.bid(n) for n in range(size - people - auctions)]

    def auction(self, number: int) -> Auction:
        pick = self._random.randrange
        opens = pick(self._size)
        seller = pick(len(self.people))
        return Auction(number, seller, pick(CATEGORIES), opens, opens + 1 + pick(OPEN))

    def bid(self, number: int) -> Bid:
        pick = self._random.randrange
        auctions = self.auctions if pick(2) else self.auctions[: len(self.auctions) // 10]
        auction = auctions[pick(len(auctions))]
        time = auction.opens + pick(2 * OPEN)
        return Bid(number, auction.id, pick(len(self.people)), 1 + pick(100_000), time)

    def _person(self, number: int) -> Person:
        pick = self._random.randrange
        return Person(
            *(number, f"person {number}", f"city {pick(CITIES)}"),
            *(self._random.choice(STATES), pick(self._size)),
        )
