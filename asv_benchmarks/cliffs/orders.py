"""Orders with ties: a new best row, reading a place and a page, and the load."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from random import Random
from typing import Any, NamedTuple

from asv_benchmarks.cliffs.cliff import Cliff, Sides, Timed
from asv_benchmarks.shapes import SEED
from asv_benchmarks.turns import Ear
from reactive import Database, OrderedView, Table

TIES = (2, 10, 50)
KEYS = 1_000
PAGE = 20
NEW, READS = 60, 200


class Bid(NamedTuple):
    id: int
    price: int


Bids = Table[Bid]


def new_best(ties: int, *, comes: bool) -> Callable[[int], Sides]:
    """Insert bids, each the highest, or delete them; with `ties` bids per price, and with one."""

    def sides(size: int) -> Sides:
        return _leading(size, ties, comes=comes), _leading(size, 1, comes=comes)

    return sides


def _leading(size: int, ties: int, *, comes: bool) -> Timed:
    bids, ear = Database().table(Bid, name="bids"), Ear()
    view = bids.order_by(lambda b: b.price, descending=True).limit(10).materialize()
    subscription = view.subscribe(ear.delta)
    bids.add_all(Bid(number, number // ties) for number in range(size))
    new = [Bid(size + number, size + number) for number in range(NEW)]

    def ready() -> Bids:
        if not comes:
            bids.add_all(new)
        elif new[0] in bids:
            bids.remove_all(new)
        ear.calls = 0
        return bids

    def do(table: Bids) -> None:
        for bid in new if comes else reversed(new):
            (table.add if comes else table.remove)(bid)

    def result(table: Bids) -> object:
        best = sorted(table, key=lambda b: -b.price)[:10]
        return (
            subscription is not None,
            ear.calls,
            [b.price for b in view] == [b.price for b in best],
        )

    return Timed(do, NEW, ready, result)


def place(size: int) -> Sides:
    """A row by its place."""
    return _read(size, KEYS, _place), _read(size, size, _place)


def page(size: int) -> Sides:
    """Twenty rows by their places; the neighbour reads one row."""
    return _read(size, KEYS, _page), _read(size, size, _place)


def _read(size: int, keys: int, read: Callable[[OrderedView[Bid], list[int]], object]) -> Timed:
    random = Random(SEED)
    bids = Database().table(Bid, name="bids")
    rows = _bids(size, keys)
    bids.add_all(rows)
    view = bids.order_by(lambda b: b.price).materialize()
    places = [random.randrange(size - PAGE) for _ in range(READS)]
    prices = sorted(bid.price for bid in rows)

    def result(state: object) -> object:
        shown = [view[number].price for number in places]
        return len(view), shown == [prices[number] for number in places]

    return Timed(lambda state: read(view, places), READS, lambda: None, result)


def _place(view: OrderedView[Bid], places: list[int]) -> None:
    for number in places:
        view[number]


def _page(view: OrderedView[Bid], places: list[int]) -> None:
    for number in places:
        view[number : number + PAGE]


def load(size: int) -> Sides:
    """Fill a table under an order; the twin sorts a list."""
    rows = _bids(size, KEYS)
    return (
        Timed(
            lambda state: state[0].add_all(rows), size, _empty, lambda state: state[1].snapshot()
        ),
        Timed(lambda state: state.extend(_sorted(rows)), size, list, lambda state: state),
    )


def held(size: int) -> Sides:
    """Bytes that an order over a filled table holds; the twin keeps a sorted list."""
    bids = Database().table(Bid, name="bids")
    rows = _bids(size, KEYS)
    bids.add_all(rows)
    ordered = bids.order_by(lambda b: b.price)
    return (
        Timed(partial(_traced, ordered.materialize), size, list, lambda kept: kept[0].snapshot()),
        Timed(partial(_traced, lambda: _sorted(rows)), size, list, lambda kept: kept[0]),
    )


def _traced(make: Callable[[], object], kept: list[Any]) -> int:
    """Return the bytes held after making an object."""
    tracemalloc.start()
    try:
        kept.append(make())
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def _empty() -> tuple[Bids, OrderedView[Bid]]:
    bids = Database().table(Bid, name="bids")
    return bids, bids.order_by(lambda b: b.price).materialize()


def _sorted(rows: list[Bid]) -> list[Bid]:
    """Rows with a price in common are by their numbers before."""
    return sorted(rows, key=attrgetter("price"))


def _bids(size: int, keys: int) -> list[Bid]:
    random = Random(SEED)
    if keys == size:
        return [Bid(number, price) for number, price in enumerate(random.sample(range(size), size))]
    return [Bid(number, random.randrange(keys)) for number in range(size)]


CLIFFS = (
    *(
        Cliff(
            f"`order_by(...).limit(10)`, {ties} rows a key, a new best {way}",
            "no ties",
            new_best(ties, comes=way == "comes"),
            20_000,
            most=2.0,
        )
        for ties in TIES
        for way in ("comes", "goes")
    ),
    Cliff("`view[i]`, rows of 1,000 keys", "different keys", place, 200_000, most=2.0),
    Cliff("a page of 20, rows of 1,000 keys", "`view[i]` of different keys", page, 200_000, most=4),
    Cliff("load of an order, 1,000 keys", "`sorted`", load, 100_000, most=4.0),
    Cliff("bytes a row of an order", "a sorted list", held, 100_000, bare=60, unit="B"),
)
