"""Nested rows in files: the inner rows are lists of structs, and are read as written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest

from reactive import Database, OffloadError
from spark_backend import ChangesFolder, RowsFolder
from spark_backend.sinks.rows import WEIGHT


class Customer(NamedTuple):
    id: int
    name: str | None


class Order(NamedTuple):
    id: int
    customer: int
    price: float


class Line(NamedTuple):
    order: int
    what: str | None


class Shop:
    """A nested view, and the tables below it."""

    def __init__(self) -> None:
        self.db = Database()
        self.customers = self.db.table(Customer, name="customers", key="id")
        self.orders = self.db.table(Order, name="orders", key="id")
        self.lines = self.db.table(Line, name="lines")
        self.view = self.customers.nest(
            orders=lambda c: self.orders.where(lambda o: o.customer == c.id).nest(
                lines=lambda o: self.lines.where(lambda line: line.order == o.id)
            ),
            ranked=lambda c: self.orders.where(lambda o: o.customer == c.id).order_by("id"),
        ).materialize("tree")

    def change(self, seed: int) -> None:
        """One commit."""
        draw = Random(seed)
        with self.db.transaction():
            for _ in range(3):
                price = draw.choice((0.5, float("nan"), 2.0))
                self.customers.upsert(Customer(draw.randrange(3), draw.choice(("a", None))))
                self.orders.upsert(Order(draw.randrange(5), draw.randrange(3), price))
                self.lines.add_all([Line(draw.randrange(5), draw.choice(("x", "y", None)))] * 2)
            if seed % 2:
                self.lines.remove(draw.choice(sorted(self.lines, key=repr)))
                self.orders.remove(draw.choice(sorted(self.orders, key=repr)))

    def expected(self) -> list[Any]:
        """The rows as dictionaries and lists, written out by hand."""
        return told(
            {
                "row": c._asdict(),
                "orders": [
                    {
                        "row": o._asdict(),
                        "lines": [line._asdict() for line in self.lines if line.order == o.id],
                    }
                    for o in self.orders
                    if o.customer == c.id
                ],
                "ranked": [o._asdict() for o in sorted(self.orders, key=str) if o.customer == c.id],
            }
            for c in self.customers
        )


def told(rows: Any) -> list[Any]:
    """Rows and bags in one order, with the one NaN."""

    def plain(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: plain(each, key) for key, each in value.items()}
        if isinstance(value, list):
            found = [plain(each) for each in value]
            return found if name == "ranked" else sorted(found, key=repr)
        return repr(value)

    return sorted((plain(row) for row in rows), key=repr)


def net(folder: Path) -> list[Any]:
    """Return the net of all changes in a folder, in the form of `told`."""
    found: dict[str, list[Any]] = {}
    for path in sorted(folder.glob("batch=*/*.parquet")):
        for row in pq.ParquetFile(path).read().to_pylist():
            weight = row.pop(WEIGHT)
            entry = found.setdefault(repr(told([row])), [row, 0])
            entry[1] += weight
    return told(row for row, weight in found.values() for _ in range(weight))


def test_files_have_the_rows_after_every_commit(tmp_path: Path) -> None:
    shop = Shop()
    shop.change(0)
    rows, changes = RowsFolder(tmp_path / "rows"), ChangesFolder(tmp_path / "changes")
    sinks = [shop.view.write_to(rows), shop.view.write_to(changes)]
    for seed in range(1, 7):
        for sink in sinks:
            sink.flush()
        assert told(rows.read().to_pylist()) == net(tmp_path / "changes") == shop.expected()
        shop.change(seed)


@pytest.mark.parametrize("kind", [RowsFolder, ChangesFolder])
def test_another_process_goes_on_after_what_is_written(
    tmp_path: Path, kind: Callable[[Path], Any]
) -> None:
    """The next process finds the same rows, also more than 64 in an order, and writes nothing."""
    for _ in range(2):
        shop = Shop()
        shop.change(5)
        shop.lines.add(Line(100, "tea"))
        shop.orders.upsert_all(Order(n, 1, n / 2) for n in range(100, 180))
        sink = shop.view.write_to(kind(tmp_path))
        sink.flush()
        sink.stop()
        assert sink.position.batch == 0
    shop.lines.add(Line(110, "new"))
    sink = shop.view.write_to(kind(tmp_path))
    sink.flush()
    assert sink.position.batch == 1


@pytest.mark.parametrize("kind", [RowsFolder, ChangesFolder])
def test_lists_that_have_all_been_empty_are_of_the_types_of_their_classes(
    tmp_path: Path, kind: Callable[[Path], Any]
) -> None:
    shop = Shop()
    shop.customers.add(Customer(1, None))
    sink = shop.view.write_to(kind(tmp_path))
    sink.flush()
    (path, *_) = tmp_path.rglob("*.parquet")
    inside = pq.ParquetFile(path).schema_arrow.field("orders").type.value_type
    assert inside.field("row").type.names == ["id", "customer", "price"]
    assert inside.field("lines").type.value_type.names == ["order", "what"]
    for seed in range(3):
        shop.change(seed)
        sink.flush()
    read = told(RowsFolder(tmp_path).read().to_pylist()) if kind is RowsFolder else net(tmp_path)
    assert read == shop.expected()


def test_lists_of_what_nothing_is_known_of_are_of_no_type_while_all_are_empty(
    tmp_path: Path,
) -> None:
    db = Database()
    keys, pairs = db.table(int, name="keys"), db.table(tuple, name="pairs")
    view = keys.nest(pairs=lambda k: pairs.where(lambda p: p[0] == k)).materialize()
    keys.add(1)
    sink = view.write_to(RowsFolder(tmp_path))
    with pytest.raises(OffloadError, match="'pairs' has had nothing but None, or empty lists"):
        sink.flush()
    pairs.add((1, "x"))
    sink.flush()
    assert RowsFolder(tmp_path).read().column("pairs").to_pylist() == [[{"_1": 1, "_2": "x"}]]
