"""Tables whose rows have bags are written, read and followed as any others, patch by patch."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest

from reactive import Bag, Database, Delta, Table, TransactionError
from spark_backend import ChangesFolder, RowsFolder
from tests.borders.sinks.test_nested_rows import net, told


class Line(NamedTuple):
    what: str
    price: float


class Order(NamedTuple):
    id: int
    lines: Bag[Line] = Bag()


class Customer(NamedTuple):
    id: int
    name: str | None
    orders: Bag[Order] = Bag()


FULL = Customer(0, "Ann", Bag([Order(0, Bag([Line("tea", float("nan"))]))]))


def shop() -> tuple[Database, Table[Customer]]:
    db = Database()
    table = db.table(Customer, name="customers", key="id")
    table.add(FULL)
    return db, table


def change(db: Database, table: Table[Customer], random: Random) -> None:
    """One commit with patches at all depths."""
    with db.transaction():
        row = random.choice(list(table))
        for _ in range(2):
            row = table.patch(row.id, "orders", added=[Order(random.randrange(9))])
            order = random.choice(list(row.orders))
            line = Line(random.choice("ab"), random.choice((0.5, float("nan"))))
            gone = random.sample(list(order.lines), len(order.lines) // 2)
            row = table.patch(row.id, ("orders", order, "lines"), added=[line], removed=gone)
        if random.random() < 0.3:
            table.upsert(row._replace(name=random.choice(("Bob", None))))
        if random.random() < 0.5:
            table.upsert(FULL._replace(id=random.randrange(3)))


def expected(table: Table[Customer]) -> list[Any]:
    return told(
        {
            **c._asdict(),
            "orders": [{"id": o.id, "lines": [n._asdict() for n in o.lines]} for o in c.orders],
        }
        for c in table
    )


def test_folders_have_the_rows_after_every_patch(tmp_path: Path) -> None:
    db, table = shop()
    view, random = table.materialize(), Random(3)
    rows, changes = RowsFolder(tmp_path / "rows"), ChangesFolder(tmp_path / "changes")
    sinks = [view.write_to(rows), view.write_to(changes)]
    for _ in range(6):
        for sink in sinks:
            sink.flush()
        assert told(rows.read().to_pylist()) == net(tmp_path / "changes") == expected(table)
        change(db, table, random)


def test_parquet_and_json_give_the_rows_back(tmp_path: Path) -> None:
    db, table = shop()
    for seed in range(4):
        change(db, table, Random(seed))
    view = table.materialize()
    pq.write_table(view.to_arrow(), tmp_path / "rows.parquet")
    again = Database().table(Customer, name="again", key="id")
    again.add_arrow(pq.read_table(tmp_path / "rows.parquet"))
    assert Counter(again) == Counter(table)
    lines = [json.loads(json.dumps(row)) for row in view.to_arrow().to_pylist()]
    assert told(lines) == expected(table)
    again.patch(0, "orders", added=[Order(77)])
    assert Order(77) in again[0].orders


def test_edits_keep_a_database_of_another_kind_up_to_date() -> None:
    """Each value of an inner bag is a row there: a patch writes only its changes."""
    _, table = shop()
    other = sqlite3.connect(":memory:")
    other.execute("create table orders (customer, id, lines)")
    written: list[int] = []

    def write(delta: Delta[Customer]) -> None:
        changes: list[tuple[int, Order, int]] = []
        for edit in delta.edits:
            if not edit.path:
                changes += [(edit.row.id, order, edit.weight) for order in edit.row.orders]
            elif len(edit.path) == 2:
                changes.append((edit.path[0], edit.row, edit.weight))
        for customer, order, weight in sorted(changes, key=lambda change: change[2]):
            row = (customer, order.id, len(order.lines))
            for _ in range(abs(weight)):
                other.execute(
                    "insert into orders values (?, ?, ?)"
                    if weight > 0
                    else "delete from orders where rowid = (select min(rowid) from orders"
                    " where customer = ? and id = ? and lines = ?)",
                    row,
                )
        written.append(len(changes))

    with table.subscribe(write, snapshot=True):
        for number in range(40):
            table.patch(
                0, "orders", added=[Order(number)], removed=[Order(number - 2)] * (number > 1)
            )
            found = Counter(other.execute("select customer, id, lines from orders"))
            assert found == Counter((c.id, o.id, len(o.lines)) for c in table for o in c.orders)
    assert max(written) <= 2


def test_a_transaction_that_fails_within_another_takes_all_patches_back() -> None:
    db, table = shop()
    orders = table.select_many(lambda c: c.orders).select(lambda o: o.id).materialize()
    prices = table.select(lambda c: sum(len(o.lines) for o in c.orders)).materialize()
    with pytest.raises(TransactionError, match="nested in it"), db.transaction():
        table.patch(0, "orders", added=[Order(5)])
        with pytest.raises(ZeroDivisionError), db.transaction():
            table.patch(0, "orders", added=[Order(6)])
            raise ZeroDivisionError
    assert (list(table), list(orders), list(prices)) == ([FULL], [0], [1])
    table.patch(0, "orders", added=[Order(6)])
    assert (sorted(orders), list(prices)) == ([0, 6], [1])
    for view in (orders, prices):
        view.verify()
