"""A live linear regression over a join of three tables, of which no joined row is stored.

python -m examples.rings.regression

    units of a sale  ~  price of the item, size of the shop

Each side of the joins is kept as one value of the covariance ring for each key, so that a new price
is a product for each key that it meets, and not a step for each sale.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from reactive import Aggregate, Database, Relation, View
from reactive.rings import Covariance, FeatureSums

MODEL = Covariance("units", "price", "size")


class Sale(NamedTuple):
    shop: int
    item: int
    units: float


class Item(NamedTuple):
    number: int
    price: float


class Shop(NamedTuple):
    number: int
    size: float


def moments(sales: Relation[Sale], items: Relation[Item], shops: Relation[Shop]) -> Relation[Any]:
    """Return counts, sums and products of the features of all sales, with their item and shop."""
    joined = sales.join(items, on=lambda s, i: s.item == i.number).join(
        shops, on=lambda s, i, h: s.shop == h.number
    )
    features = [
        lambda s: MODEL.lift(units=s.units),
        lambda i: MODEL.lift(price=i.price),
        lambda h: MODEL.lift(size=h.size),
    ]
    return joined.aggregate(Aggregate(ring=MODEL, of=features))


def show(view: View[FeatureSums]) -> None:
    model = view.value.regression("units")
    assert model is not None
    print({name or "at 0": round(value, 3) for name, value in model.items()})


def main() -> None:
    db = Database()
    sales, items = db.table(Sale, name="sales"), db.table(Item, name="items")
    shops = db.table(Shop, name="shops")
    view = moments(sales, items, shops).materialize("moments")
    items.add_all([Item(n, 1.5 * n) for n in range(1, 6)])
    shops.add_all([Shop(n, 100.0 * n) for n in range(1, 4)])
    sales.add_all([Sale(h, i, 20 - 3 * i + h) for h in range(1, 4) for i in range(1, 6)])
    show(view)
    items.update(Item(5, 7.5), Item(5, 9.0))
    show(view)


if __name__ == "__main__":
    main()
