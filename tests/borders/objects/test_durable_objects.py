"""Tables of objects that survive the process: assigned values are restored, in objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reactive import Database, of, tracked
from tests.borders.objects.kinds import KINDS, Described


@tracked
class Customer:
    name: str


@tracked
class Order:
    id: int
    customer: Customer | None
    lines: list[str]
    stock: dict[str, int]
    tags: set[int]
    note: str = ""


def test_objects_come_back_with_what_is_in_them(tmp_path: Path) -> None:
    with Database(tmp_path / "shop.db") as db:
        orders = db.table(Order, key="id")
        ids = orders.select(lambda o: o.id).materialize()
        order = Order(1, Customer("ann"), ["tea"], {"rum": 1}, {3})
        orders.add(order)
        order.note = "not read by a query"
        with pytest.raises(KeyError), db.transaction():
            order.lines.append("cake")
            raise KeyError
        with db.transaction():
            order.lines.append("gin")
            order.stock["rum"] += 1
        assert order.customer is not None
        order.customer.name = "bob"
        assert list(ids) == [1]
    with Database(tmp_path / "shop.db") as db:
        orders = db.table(Order, key="id")
        again = of(orders[1])
        assert again is not order
        assert again == again and again.customer is not None
        assert (again.note, again.customer.name) == ("not read by a query", "bob")
        assert (again.lines, again.stock, again.tags) == (["tea", "gin"], {"rum": 2}, {3})
        again.tags.add(4)
        again.id = 2
    with Database(tmp_path / "shop.db") as db:
        (row,) = db.table(Order, key="id")
        assert (row.id, of(row).tags) == (2, {3, 4})


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not Described])
def test_objects_of_all_kinds_come_back(kind: Any, tmp_path: Path) -> None:
    for total in (5.0, 6.0):
        with Database(tmp_path / "shop.db") as db:
            try:
                orders = db.table(kind, name="orders", key="id")
            except Exception as error:
                assert "no plain form" in str(error)
                return
            if total == 5.0:
                orders.add(kind(id=1, total=1.0, customer="ann"))
            of(orders[1]).total = total
    with Database(tmp_path / "shop.db") as db:
        row = db.table(kind, name="orders", key="id")[1]
        assert (row.total, row.customer, row.with_tax()) == (6.0, "ann", 9.0)
