"""A live regression over a join of three tables: by a ring, by plain sums, by hand.

python -m asv_benchmarks.rings [--sales 20000] [--edits 600]

    ring     Aggregate(ring=Covariance(...)), one value
    sums     Count and nine Sums of the same columns and products, of integers
    pairs    the ring again, with a callable that cannot be split over the sides
    twin     dictionaries of counts, sums and sums of products by key, by hand

Sales have an item and a shop; each edit replaces a sale, each tenth also an item, each twentieth a
shop. `ring` is at most 3 times `sums`. Prints processor time of a load and of an edit, and ratios
to `sums` of the same run.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from random import Random
from time import process_time
from typing import Any, NamedTuple

from reactive import Aggregate, Count, Database, Relation, Sum
from reactive.rings import Covariance

MODEL = Covariance("units", "price", "size")
ITEMS, SHOPS = 500, 40


class Sale(NamedTuple):
    shop: int
    item: int
    units: int


class Item(NamedTuple):
    number: int
    price: int


class Shop(NamedTuple):
    number: int
    size: int


Edit = tuple[str, Any, Any]
"""A table, the old row and the new one."""
Way = Callable[[Relation[Any, Any, Any]], Relation[*tuple[Any, ...]]]


def by_ring(joined: Relation[Any, Any, Any]) -> Relation[Any]:
    return joined.aggregate(
        Aggregate(
            ring=MODEL,
            of=[
                lambda s: MODEL.lift(units=s.units),
                lambda i: MODEL.lift(price=i.price),
                lambda h: MODEL.lift(size=h.size),
            ],
        )
    )


def by_pairs(joined: Relation[Any, Any, Any]) -> Relation[Any]:
    return joined.aggregate(
        Aggregate(
            ring=MODEL,
            of=lambda s, i, h: MODEL.lift(units=s.units, price=i.price, size=h.size),
        )
    )


def by_sums(joined: Relation[Any, Any, Any]) -> Relation[*tuple[Any, ...]]:
    return joined.aggregate(
        Count(),
        Sum(lambda s, i, h: s.units),
        Sum(lambda s, i, h: i.price),
        Sum(lambda s, i, h: h.size),
        Sum(lambda s, i, h: s.units * s.units),
        Sum(lambda s, i, h: s.units * i.price),
        Sum(lambda s, i, h: s.units * h.size),
        Sum(lambda s, i, h: i.price * i.price),
        Sum(lambda s, i, h: i.price * h.size),
        Sum(lambda s, i, h: h.size * h.size),
    )


class Twin:
    """The sums of products by hand: sales by item and shop, and by shop with the sums of items."""

    def __init__(self) -> None:
        self.prices: dict[int, int] = {}
        self.sizes: dict[int, int] = {}
        self.sales: dict[tuple[int, int], list[int]] = {}  # item, shop -> count, units, squares
        self.by_item: dict[int, set[int]] = {}
        self.shops: dict[int, list[int]] = {}  # count, u, p, u*u, u*p, p*p
        self.total = [0] * 10

    def edit(self, name: str, row: Any, weight: int) -> None:
        if name == "sales":
            self._sale(row, weight)
        elif name == "items":
            if weight > 0:
                self.prices[row.number] = row.price
            for shop in self.by_item.get(row.number, ()):
                count, units, squares = self.sales[row.number, shop]
                self._join(shop, (count, units, squares), row.price, weight)
            if weight < 0:
                del self.prices[row.number]
        else:
            if weight > 0:
                self.sizes[row.number] = row.size
            self._add(self.shops.get(row.number, [0] * 6), row.size, weight)
            if weight < 0:
                del self.sizes[row.number]

    def _sale(self, row: Sale, weight: int) -> None:
        of = self.sales.setdefault((row.item, row.shop), [0, 0, 0])
        change = (weight, weight * row.units, weight * row.units**2)
        for place, value in enumerate(change):
            of[place] += value
        self.by_item.setdefault(row.item, set()).add(row.shop)
        if row.item in self.prices:
            self._join(row.shop, change, self.prices[row.item], 1)

    def _join(self, shop: int, sales: tuple[int, int, int], price: int, weight: int) -> None:
        count, units, squares = (weight * each for each in sales)
        change = [count, units, count * price, squares, units * price, count * price * price]
        of = self.shops.setdefault(shop, [0] * 6)
        for place, value in enumerate(change):
            of[place] += value
        if shop in self.sizes:
            self._add(change, self.sizes[shop], 1)

    def _add(self, of: list[int], size: int, weight: int) -> None:
        count, u, p, uu, up, pp = (weight * each for each in of)
        added = (count, u, p, count * size, uu, up, u * size, pp, p * size, count * size * size)
        for place, value in enumerate(added):
            self.total[place] += value


def drawn(sales: int, edits: int) -> tuple[list[Edit], list[Edit]]:
    """Return the rows of a load as edits without an old row, and edits after it."""
    draw = Random(1)

    def sale() -> Sale:
        return Sale(draw.randrange(SHOPS), draw.randrange(ITEMS), draw.randrange(50))

    items = [Item(n, draw.randrange(100)) for n in range(ITEMS)]
    shops = [Shop(n, draw.randrange(100)) for n in range(SHOPS)]
    rows = [sale() for _ in range(sales)]
    load: list[Edit] = [("items", None, row) for row in items] + [
        ("shops", None, row) for row in shops
    ]
    load += [("sales", None, row) for row in rows]

    def later() -> Iterator[Edit]:
        for n in range(edits):
            yield "sales", rows[n], sale()
            if n % 10 == 0:
                old = items[n % ITEMS]
                items[n % ITEMS] = Item(old.number, draw.randrange(100))
                yield "items", old, items[n % ITEMS]
            if n % 20 == 0:
                before = shops[n % SHOPS]
                shops[n % SHOPS] = Shop(before.number, draw.randrange(100))
                yield "shops", before, shops[n % SHOPS]

    return load, list(later())


def measure_view(way: Way, load: list[Edit], edits: list[Edit]) -> tuple[float, float, Any]:
    """Return the seconds of a load and of an edit, and the value after them."""
    db = Database()
    tables: dict[str, Any] = {
        name: db.table(kind, name=name)
        for name, kind in (("sales", Sale), ("items", Item), ("shops", Shop))
    }
    sales, items, shops = tables.values()
    joined = sales.join(items, on=lambda s, i: s.item == i.number).join(
        shops, on=lambda s, i, h: s.shop == h.number
    )
    view = way(joined).materialize()
    begin = process_time()
    with db.transaction():
        for name, table in tables.items():
            table.add_all([row for of, _, row in load if of == name])
    loaded = process_time()
    for name, old, new in edits:
        tables[name].update(old, new)
    return loaded - begin, (process_time() - loaded) / len(edits), view.value


def measure_twin(load: list[Edit], edits: list[Edit]) -> tuple[float, float, Any]:
    """Return the same of the twin."""
    twin = Twin()
    begin = process_time()
    for name, _, row in load:
        twin.edit(name, row, 1)
    loaded = process_time()
    for name, old, new in edits:
        twin.edit(name, old, -1)
        twin.edit(name, new, 1)
    return loaded - begin, (process_time() - loaded) / len(edits), tuple(twin.total)


def as_sums(value: Any) -> tuple[Any, ...]:
    """Return the value of the ring in the order of the plain sums."""
    names = MODEL.names
    pairs = [(a, b) for n, a in enumerate(names) for b in names[n:]]
    return (value.count, *map(value.sum, names), *(value.product(*pair) for pair in pairs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sales", type=int, default=20_000)
    parser.add_argument("--edits", type=int, default=600)
    given = parser.parse_args()
    load, edits = drawn(given.sales, given.edits)
    found = {
        "sums": measure_view(by_sums, load, edits),
        "ring": measure_view(by_ring, load, edits),
        "pairs": measure_view(by_pairs, load, edits),
        "twin": measure_twin(load, edits),
    }
    base = found["sums"]
    for name, (loading, editing, value) in found.items():
        assert tuple(value if name in ("sums", "twin") else as_sums(value)) == tuple(base[2])
        ratios = f"{loading / base[0]:6.2f} {editing / base[1]:6.2f}"
        print(f"{name:6} load {loading * 1e3:8.1f} ms  edit {editing * 1e6:8.1f} us  {ratios}")


if __name__ == "__main__":
    main()
