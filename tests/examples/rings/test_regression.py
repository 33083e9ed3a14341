"""The live regression finds the model that made the rows, and follows a change of a price."""

from __future__ import annotations

import pytest

from examples.rings.regression import Item, Sale, Shop, moments
from reactive import Database


def test_the_model_of_the_rows_is_found() -> None:
    db = Database()
    sales, items = db.table(Sale, name="sales"), db.table(Item, name="items")
    shops = db.table(Shop, name="shops")
    view = moments(sales, items, shops).materialize()
    assert view.value.regression("units") is None
    items.add_all([Item(n, 0.1 * n) for n in range(5)])
    shops.add_all([Shop(n, n * n) for n in range(4)])
    sales.add_all([Sale(h, i, 7 - 20 * (0.1 * i) + 3 * h * h) for h in range(4) for i in range(5)])
    model = view.value.regression("units")
    assert model == pytest.approx({"": 7, "price": -20, "size": 3})
    sales.add(Sale(1, 1, 1e300))
    sales.remove(Sale(1, 1, 1e300))
    assert view.value.regression("units") == model
