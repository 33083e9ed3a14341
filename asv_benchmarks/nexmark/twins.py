"""The twins: programs written by hand for one query, whose first table changes.

The other table is filled first, and does not change afterwards.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Any

from asv_benchmarks.nexmark.queries import CATEGORY, EURO, EVERY, LATEST
from asv_benchmarks.nexmark.rows import MINUTE, Auction, Bid, Person
from asv_benchmarks.workload import Listener, OldNew, Result, Row, TableDelta, Verb
from asv_benchmarks.workloads.counts import take_one

Before = dict[Any, Row | None]
"""The earlier output rows of the keys that a commit has touched."""


class Rows:
    """Keep the rows of the first table with their counts."""

    def __init__(self, listener: Listener) -> None:
        self.rows: dict[Row, int] = {}
        self.listener = listener

    def verbs(self) -> Sequence[tuple[Verb, Verb]]:
        return [(self.add, self.remove)]

    def add(self, row: Row) -> None:
        self.rows[row] = self.rows.get(row, 0) + 1
        self.one(row, 1)

    def remove(self, row: Row) -> None:
        take_one(self.rows, row)
        self.one(row, -1)

    def batch(self, *deltas: TableDelta) -> None:
        for other in deltas[1:]:
            self.fill(other.added)
        rows = self.rows
        for row in deltas[0].removed:
            take_one(rows, row)
        for row in deltas[0].added:
            rows[row] = rows.get(row, 0) + 1
        self.many(deltas[0])

    def fill(self, rows: Sequence[Row]) -> None:
        """Keep the needed part of the other table."""

    def one(self, row: Row, weight: int) -> None:
        raise NotImplementedError

    def many(self, delta: TableDelta) -> None:
        raise NotImplementedError


class Bag(Rows):
    """The output rows with their counts; `shows` returns the output of a row."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(listener)
        self.bag: dict[Row, int] = {}

    def shows(self, row: Any) -> Row | None:
        raise NotImplementedError

    def one(self, row: Row, weight: int) -> None:
        shown = self.shows(row)
        if shown is None:
            return
        if weight > 0:
            self.bag[shown] = self.bag.get(shown, 0) + 1
            self.listener.change(None, shown)
        else:
            take_one(self.bag, shown)
            self.listener.change(shown, None)

    def many(self, delta: TableDelta) -> None:
        shows, bag = self.shows, self.bag
        changes: list[OldNew] = []
        for row in delta.removed:
            shown = shows(row)
            if shown is not None:
                take_one(bag, shown)
                changes.append((shown, None))
        for row in delta.added:
            shown = shows(row)
            if shown is not None:
                bag[shown] = bag.get(shown, 0) + 1
                changes.append((None, shown))
        self.listener.changes(changes)

    def result(self) -> Result:
        return dict(self.bag)


class Q0(Bag):
    def shows(self, row: Bid) -> Row | None:
        return (row.auction, row.bidder, row.price, row.time)


class Q1(Bag):
    def shows(self, row: Bid) -> Row | None:
        return (row.auction, row.bidder, row.price * EURO, row.time)


class Q2(Bag):
    def shows(self, row: Bid) -> Row | None:
        return None if row.auction % EVERY else (row.auction, row.price)


class Q3(Bag):
    """Keep the people of these states."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(listener)
        self._people: dict[int, Person] = {}

    def fill(self, rows: Sequence[Row]) -> None:
        self._people.update({p.id: p for p in rows if p.state in ("OR", "ID", "CA")})

    def shows(self, row: Auction) -> Row | None:
        person = self._people.get(row.seller) if row.category == CATEGORY else None
        return None if person is None else (person.name, person.city, person.state, row.id)


class Keyed(Rows):
    """Report the keys that a row, or the rows of a batch, have touched."""

    def one(self, row: Row, weight: int) -> None:
        before: Before = {}
        self.move(row, weight, before)
        self._tell(before)

    def many(self, delta: TableDelta) -> None:
        before: Before = {}
        for row, weight in delta.pairs():
            self.move(row, weight, before)
        self._tell(before)

    def move(self, row: Any, weight: int, before: Before) -> None:
        raise NotImplementedError

    def shown(self, key: Any) -> Row | None:
        raise NotImplementedError

    def keys(self) -> Sequence[Any]:
        raise NotImplementedError

    def result(self) -> Result:
        return {row: 1 for row in map(self.shown, self.keys()) if row is not None}

    def _tell(self, before: Before) -> None:
        changes = [(old, self.shown(key)) for key, old in before.items()]
        changes = [(old, new) for old, new in changes if old != new]
        if changes:
            self.listener.changes(changes)


class Winning(Keyed):
    """The prices of each auction in order; `won` is called when the highest changes."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(listener)
        self._auctions: dict[int, Auction] = {}
        self._prices: dict[int, list[int]] = {}

    def fill(self, rows: Sequence[Row]) -> None:
        self._auctions.update({a.id: a for a in rows})

    def move(self, row: Bid, weight: int, before: Before) -> None:
        auction = self._auctions.get(row.auction)
        if auction is None or row.time > auction.closes:
            return
        prices = self._prices.get(row.auction)
        if prices is None:
            prices = self._prices[row.auction] = []
        old = prices[-1] if prices else None
        if weight > 0:
            insort(prices, row.price)
        else:
            del prices[bisect_left(prices, row.price)]
        new = prices[-1] if prices else None
        if not prices:
            del self._prices[row.auction]
        if old != new:
            self.won(auction, old, new, before)

    def won(self, auction: Auction, old: int | None, new: int | None, before: Before) -> None:
        raise NotImplementedError


class Q4(Winning):
    """The sum and the number of winning prices of each category."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(listener)
        self._sums: dict[int, tuple[int, int]] = {}

    def won(self, auction: Auction, old: int | None, new: int | None, before: Before) -> None:
        category = auction.category
        if category not in before:
            before[category] = self.shown(category)
        amount, number = self._sums.get(category, (0, 0))
        amount += (new or 0) - (old or 0)
        number += (new is not None) - (old is not None)
        if number:
            self._sums[category] = (amount, number)
        else:
            del self._sums[category]

    def shown(self, key: Any) -> Row | None:
        sums = self._sums.get(key)
        return None if sums is None else (key, sums[0] / sums[1])

    def keys(self) -> Sequence[Any]:
        return list(self._sums)


class Q6(Winning):
    """The auctions of each seller in the order of their ends, with the winning prices."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(listener)
        self._ends: dict[int, list[tuple[int, int]]] = {}
        self._won: dict[int, int] = {}

    def won(self, auction: Auction, old: int | None, new: int | None, before: Before) -> None:
        seller, end = auction.seller, (auction.closes, auction.id)
        if seller not in before:
            before[seller] = self.shown(seller)
        ends = self._ends.setdefault(seller, [])
        if old is None:
            insort(ends, end)
        if new is None:
            del ends[bisect_left(ends, end)], self._won[auction.id]
        else:
            self._won[auction.id] = new

    def shown(self, key: Any) -> Row | None:
        ends = self._ends.get(key)
        if not ends:
            return None
        won = [self._won[auction] for _, auction in ends[-LATEST:]]
        return (key, sum(won) / len(won))

    def keys(self) -> Sequence[Any]:
        return list(self._ends)


class Q5(Keyed):
    """Keep for each minute the bids on each auction, and these ordered by their number of bids."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(listener)
        self._counts: dict[tuple[int, int], int] = {}
        self._minutes: dict[int, list[tuple[int, int]]] = {}

    def move(self, row: Bid, weight: int, before: Before) -> None:
        minute = row.time // MINUTE
        if minute not in before:
            before[minute] = self.shown(minute)
        order = self._minutes.setdefault(minute, [])
        key = (minute, row.auction)
        old = self._counts.get(key, 0)
        if old:
            del order[bisect_left(order, (-old, row.auction))]
        if old + weight:
            self._counts[key] = old + weight
            insort(order, (-old - weight, row.auction))
        else:
            del self._counts[key]

    def shown(self, key: Any) -> Row | None:
        order = self._minutes.get(key)
        return ((key, order[0][1]), -order[0][0]) if order else None

    def keys(self) -> Sequence[Any]:
        return list(self._minutes)


class Q7(Rows):
    """Keep for each minute the prices in order, and the bids of each price."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(listener)
        self._prices: dict[int, list[int]] = {}
        self._bids: dict[tuple[int, int], list[Row]] = {}

    def one(self, row: Bid, weight: int) -> None:
        before: dict[int, list[Row]] = {}
        self._move(row, weight, before)
        self._tell(before)

    def many(self, delta: TableDelta) -> None:
        before: dict[int, list[Row]] = {}
        for row, weight in delta.pairs():
            self._move(row, weight, before)
        self._tell(before)

    def result(self) -> Result:
        counts: dict[Row, int] = {}
        for minute in self._prices:
            for row in self._highest(minute):
                counts[row] = counts.get(row, 0) + 1
        return counts

    def _move(self, row: Bid, weight: int, before: dict[int, list[Row]]) -> None:
        minute, price = row.time // MINUTE, row.price
        prices = self._prices.setdefault(minute, [])
        if minute not in before and not (prices and price < prices[-1]):
            before[minute] = list(self._highest(minute))
        shown = (minute, price, row.auction, row.bidder)
        if weight > 0:
            insort(prices, price)
            self._bids.setdefault((minute, price), []).append(shown)
        else:
            del prices[bisect_left(prices, price)]
            bids = self._bids[minute, price]
            bids.remove(shown)
            if not bids:
                del self._bids[minute, price]

    def _highest(self, minute: int) -> list[Row]:
        prices = self._prices.get(minute)
        return self._bids[minute, prices[-1]] if prices else []

    def _tell(self, before: dict[int, list[Row]]) -> None:
        changes: list[OldNew] = []
        for minute, old in before.items():
            new = self._highest(minute)
            if old != new:
                changes += [(row, None) for row in old if row not in new]
                changes += [(None, row) for row in new if row not in old]
        if changes:
            self.listener.changes(changes)


class Q8(Keyed):
    """Keep the people by their number, and the number of shown auctions of each."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(listener)
        self._people: dict[int, Person] = {}
        self._opened: dict[int, int] = {}

    def fill(self, rows: Sequence[Row]) -> None:
        self._people.update({p.id: p for p in rows})

    def move(self, row: Auction, weight: int, before: Before) -> None:
        person = self._people.get(row.seller)
        if person is None or person.joined // MINUTE != row.opens // MINUTE:
            return
        if person.id not in before:
            before[person.id] = self.shown(person.id)
        number = self._opened.get(person.id, 0) + weight
        if number:
            self._opened[person.id] = number
        else:
            del self._opened[person.id]

    def shown(self, key: Any) -> Row | None:
        if key not in self._opened:
            return None
        person = self._people[key]
        return (person.id, person.name, person.joined // MINUTE)

    def keys(self) -> Sequence[Any]:
        return list(self._opened)
