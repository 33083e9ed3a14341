"""Nests on Spark equal the same queries in the process."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest

pytest.importorskip("pyspark")

from reactive import Bag, Database
from tests.budget import TIMES
from tests.nests.play import added_up
from tests.nests.replica import Replica
from tests.spark.ways import Ways


class Customer(NamedTuple):
    id: int
    name: str | None


class Order(NamedTuple):
    id: int
    customer: int
    amount: float


class Line(NamedTuple):
    order: int
    what: str


class Basket(NamedTuple):
    id: int
    lines: Bag[Line]
    names: tuple[str, ...]


class Shop:
    """Customers, their orders, and lines of these; `views` are queries over them."""

    def __init__(self, queries: dict[str, Callable[[Any], Any]], **how: Any) -> None:
        self.db = Database(**how)
        self.customers = self.db.table(Customer, name="customers", key="id")
        self.orders = self.db.table(Order, name="orders", key="id")
        self.lines = self.db.table(Line, name="lines")
        self.views = {name: query(self).materialize(name) for name, query in queries.items()}

    def orders_of(self, c: Any) -> Any:
        return self.orders.where(lambda o: o.customer == c.id)

    def lines_of(self, o: Any) -> Any:
        return self.lines.where(lambda line: line.order == o.id)

    def change(self, seed: int, count: int) -> None:
        """One commit: rows come, go, and take the place of others."""
        draw = Random(seed)
        with self.db.transaction():
            for _ in range(count):
                amount = draw.choice((0.0, 0.5, float("nan")))
                self.customers.upsert(Customer(draw.randrange(5), draw.choice(("a", "b", None))))
                self.orders.upsert(Order(draw.randrange(9), draw.randrange(6), amount))
                self.lines.add_all([Line(draw.randrange(9), draw.choice("abc"))] * 2)
                tables: tuple[Any, ...] = (self.customers, self.orders, self.lines)
                for table in tables:
                    rows = sorted(table, key=repr)
                    if rows and draw.random() < 0.3:
                        table.remove(draw.choice(rows))


QUERIES: dict[str, Callable[[Shop], Any]] = {
    "in order": lambda s: s.customers.nest(
        orders=lambda c: (
            s.orders_of(c)
            .order_by(lambda o: o.id, descending=True)
            .limit(2)
            .nest(lines=lambda o: s.lines_of(o).order_by(lambda line: line.what))
        )
    ),
    "by levels": lambda s: s.customers.nest(orders=lambda c: s.orders_of(c).nest(lines=s.lines_of)),
    "taken out": lambda s: (
        s.customers.nest(orders=lambda c: s.orders_of(c).nest(lines=s.lines_of))
        .unnest(lambda c, orders: orders)
        .where(lambda c, orders, o: len(o.lines) > 1 and o.id > 2)
        .select(lambda c, orders, o: (c.name, o.lines))
        .distinct()
    ),
}


def same(view: Any, twin: Any) -> None:
    """Both have the same rows, with the same names, and find them by the same keys."""
    assert Bag(view) == Bag(twin)
    assert len(view) == len(twin)
    if hasattr(twin, "nesting"):
        assert {key: view[key] for key in dict.fromkeys(twin.keys())} == {
            row[0].id: row for row in twin
        }
        assert view.get(77) is None and set(view.keys()) == set(twin.keys())
        assert {type(row) for row in view} == {type(row) for row in twin}
        by_id = {row["id"]: row for row in twin.to_python()}
        assert [sized(row) == sized(by_id[row["id"]]) for row in view.to_python()].count(False) == 0


def sized(data: Any) -> Any:
    """Return plain data with lists in a canonical order."""
    if isinstance(data, dict):
        return {name: sized(value) for name, value in data.items()}
    return sorted(map(repr, map(sized, data))) if isinstance(data, list) else data


def test_nests_are_those_of_the_process(session: Any, offload: Any) -> None:
    """Compare after every flush, by jobs and without, and by the changes that subscribers
    receive."""
    shop, twin = Shop(QUERIES, offload=offload), Shop(QUERIES)
    copies = [(v, Replica(v)) for v in shop.views.values() if hasattr(v, "nesting")]
    inner: list[Any] = []
    hears = shop.views["in order"].subscribe(inner.append, path=(2, "orders"), snapshot=True)
    for each in (shop, twin):
        each.change(1, 8)
    for view in shop.views.values():
        view.offload()
    assert all("state tables" in row.where for row in shop.db.offload_status())
    assert "by a job of its own" in shop.views["taken out"].explain()
    ways = Ways("nests")
    for seed, count in enumerate((0, 3, 1, 6, 2) if TIMES else (3, 0), 2):
        for each in (shop, twin):
            each.change(seed, count)
        with ways.next():
            shop.db.flush()
        for name, view in shop.views.items():
            same(view, twin.views[name])
        for view, copy in copies:
            assert (copy.rows, copy.subscription.error) == (Bag(view), None)
        found = shop.views["in order"].get(2)
        assert added_up(inner) == Bag(() if found is None else found.orders), hears.error
    for view in shop.views.values():
        view.verify()
    by_levels = shop.views["by levels"]
    with patch("reactive.engine.remote.remote_tree.MOST_HERE", 0):
        assert by_levels._contents.pieces() is not None
        assert Bag(iter(by_levels)) == Bag(twin.views["by levels"])
    told = by_levels.explain()
    assert "tree orders by c.id (lines by row.id)" in told
    assert "level orders by row.customer: Spark, state tables, one job per flush" in told
    lists = {row["row"]["id"]: row.asDict(recursive=True) for row in by_levels.to_spark().collect()}
    for row in by_levels:
        found = lists[row.id]["orders"]
        assert Bag((o["row"]["id"], len(o["lines"])) for o in found) == Bag(
            (order.id, len(order.lines)) for order in row.orders
        )
    shop.db.close()


BASKETS = [
    Basket(1, Bag([Line(1, "b"), Line(1, "a"), Line(1, "b")]), ("y", "x", "y")),
    Basket(2, Bag([]), ()),
    Basket(3, Bag([Line(7, "b")]), ("x",)),
]
LISTS = "id long, lines array<struct<what: string, order: int>>, names array<string>"


def as_lists(basket: Basket) -> tuple[Any, ...]:
    lines = [{"what": line.what, "order": line.order} for line in basket.lines]
    return basket.id, lines, list(basket.names)


def test_list_columns_are_bags_and_sequences(session: Any, offload: Any) -> None:
    """A table of rows with bags moves; a table on Spark has bags from list columns. Their elements
    stay in columns, and `to_spark` returns lists."""
    db, twin = Database(offload=offload), Database()
    frame = session.spark.createDataFrame([as_lists(each) for each in BASKETS[:2]], LISTS)
    given = db.spark_table(frame, Basket, name="given")
    held, there = (each.table(Basket, name="held") for each in (db, twin))

    def taken(baskets: Any) -> Any:
        lines = baskets.unnest(lambda b: b.lines).select(lambda b, line: line.what)
        names = baskets.where(lambda b: len(b.lines) > 1).select_many(lambda b: b.names)
        return lines.union(names)

    both = given.union_all(held).distinct().materialize("both")
    out = taken(given.union_all(held)).materialize("out")
    expected = taken(there).materialize()
    held.add_all([BASKETS[0], BASKETS[2]])
    there.add_all([*BASKETS, BASKETS[0]])
    assert Bag(both) == Bag(BASKETS) and Bag(out) == Bag(expected)
    assert "unnest b.lines: Spark columns" in out.explain()
    held.remove(BASKETS[2])
    there.remove(BASKETS[2])
    assert Bag(both) == Bag(BASKETS[:2]) and Bag(out) == Bag(expected)
    shown = {row["id"]: row.asDict(recursive=True) for row in both.to_spark().collect()}
    assert shown[1]["names"] == ["y", "x", "y"] and shown[2]["lines"] == []
    assert [line["what"] for line in shown[1]["lines"]] == ["a", "b", "b"]
    db.close()


def test_what_goes_over_bags_follows_patches_on_spark(session: Any, offload: Any) -> None:
    """The rows cross as lists, old and new; what adds up bags is computed of the whole there."""

    def queries(baskets: Any) -> dict[str, Any]:
        return {
            "taken": baskets.unnest(lambda b: b.lines).select(lambda b, line: (b.id, line.what)),
            "folded": baskets.select(
                lambda b: (
                    b.id,
                    sum(line.order for line in b.lines),
                    max((line.what for line in b.lines), default=None),
                )
            ),
        }

    db, twin = Database(offload=offload), Database()
    held, there = (each.table(Basket, name="held", key="id") for each in (db, twin))
    views = {name: query.distinct().materialize(name) for name, query in queries(held).items()}
    wanted = {name: query.distinct().materialize() for name, query in queries(there).items()}
    for table in (held, there):
        table.add_all([BASKETS[0], Basket(2, Bag([Line(n, "n") for n in range(70)]), ())])
    for view in views.values():
        view.offload()
    for _ in range(2):
        for database, table in ((db, held), (twin, there)):
            table.patch(1, "lines", added=[Line(5, "z")])
            with database.transaction():
                table.patch(2, "lines", added=[Line(99, "c")])
                table.patch(2, "lines", removed=[Line(table[2].lines.count(Line(99, "c")), "n")])
        db.flush()
        for name, view in views.items():
            assert Bag(view) == Bag(wanted[name])
    db.close()


def test_a_nested_view_is_a_frame_with_lists(session: Any, offload: Any) -> None:
    shop = Shop({"in order": QUERIES["in order"]}, offload=offload)
    shop.customers.add(Customer(1, "Ann"))
    shop.orders.add_all([Order(7, 1, 0.5), Order(8, 1, 2.0)])
    shop.lines.add_all([Line(8, "tea"), Line(8, "cake")])
    (row,) = [each.asDict(recursive=True) for each in shop.views["in order"].to_spark().collect()]
    assert row["row"] == {"id": 1, "name": "Ann"}
    assert [order["row"]["id"] for order in row["orders"]] == [8, 7]
    assert [line["what"] for line in row["orders"][0]["lines"]] == ["cake", "tea"]
    shop.db.close()


@pytest.mark.quick
def test_list_columns_are_written_to_files(session: Any, offload: Any, tmp_path: Any) -> None:
    """Spark writes the rows on Spark, and the process the others, with the same lists."""
    db = Database(offload=offload)
    table = db.table(Basket, name="baskets")
    view = table.distinct().materialize("baskets")
    table.add_all(BASKETS[:2])
    folder = str(tmp_path / "rows")
    sinks = [view.write_to(folder), view.write_to(str(tmp_path / "changes"), "changes")]

    def check(*wanted: Basket) -> None:
        db.flush()
        for frame in (session.spark.read.parquet(folder), net()):
            found = [row.asDict(recursive=True) for row in frame.collect()]
            assert sorted((plain(row) for row in found), key=repr) == sorted(
                ((b.id, sorted(b.lines), list(b.names)) for b in wanted), key=repr
            )

    def net() -> Any:
        changes = session.spark.read.parquet(str(tmp_path / "changes"))
        summed = changes.groupBy("id", "lines", "names").sum("weight")
        return summed.filter("`sum(weight)` <> 0").drop("sum(weight)")

    def plain(row: Any) -> Any:
        return row["id"], [Line(**line) for line in row["lines"]], row["names"]

    check(*BASKETS[:2])
    view.offload()
    table.remove(BASKETS[0])
    table.add(BASKETS[2])
    check(*BASKETS[1:])
    view.recall()
    table.add(BASKETS[0])
    check(*BASKETS)
    for sink in sinks:
        sink.stop()
    db.close()


def test_many_rows_in_an_order_go_through_columns(session: Any, offload: Any) -> None:
    """In an order of more than 64 rows, the process uses a `LongTuple` instead of a tuple."""

    def query(s: Shop) -> Any:
        nest = s.customers.nest(orders=lambda c: s.orders_of(c).order_by("id"))
        return nest.select(lambda c, orders: (c.name, orders)).distinct()

    shops = Shop({"long": query}, offload=offload), Shop({"long": query})
    for shop in shops:
        shop.customers.add(Customer(1, "Ann"))
        shop.orders.add_all(Order(n, 1, n / 2) for n in range(70))
    shops[0].views["long"].offload()
    for shop in shops:
        shop.orders.add(Order(-1, 1, 0.0))
        shop.orders.remove(Order(7, 1, 3.5))
    (found,), (wanted,) = (list(shop.views["long"]) for shop in shops)
    assert found == wanted and len(found[1]) == 70
    shops[0].db.close()
