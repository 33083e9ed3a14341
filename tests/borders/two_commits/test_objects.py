"""Objects that change beside SQL: assigned values commit with it, or are undone with it."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from reactive import Database, Sum, TransactionError, of, tracked
from reactive.borders.two_commits.rereading import rereading
from tests.budget import seeds

SCHEMA = """
create table customers(name text primary key);
create table orders(
    id integer primary key, customer text references customers deferrable initially deferred,
    total integer
);
insert into customers values ('ann'), ('bob');
insert into orders values (1, 'ann', 5), (2, 'bob', 7), (3, 'ann', 9);
"""


@tracked
@dataclass
class Order:
    id: int
    customer: str
    total: int
    lines: list[str]


class Refused(Exception): ...


class Shop:
    """Orders in SQL, as objects, and in a view over them."""

    def __init__(self, path: Path | None = None) -> None:
        self.sql = sqlite3.connect(":memory:")
        self.sql.executescript(SCHEMA)
        self.sql.execute("pragma foreign_keys = on")
        self.db = Database() if path is None else Database(path)
        self.orders: Any = self.db.table(Order, key="id", name="orders")
        self.objects = self.as_objects()
        self.orders.add_all(self.objects)
        grouped = self.orders.group_by(lambda o: o.customer)
        self.spent: Any = grouped.aggregate(Sum(lambda o: o.total)).materialize()
        self.parts: Any = self.orders.select(lambda o: (60 // o.total, len(o.lines))).materialize()

    def rows(self) -> list[Any]:
        return self.sql.execute("select id, customer, total from orders").fetchall()

    def as_objects(self) -> list[Order]:
        return [Order(number, customer, total, []) for number, customer, total in self.rows()]

    def assign(self, number: int, *, customer: str, total: int) -> None:
        """Assign the same values to object and SQL row, and append a line to the object only."""
        found = self.objects[number]
        found.customer, found.total = customer, total
        found.lines.append("changed")
        statement = "update orders set customer = ?, total = ? where id = ?"
        self.sql.execute(statement, (customer, total, found.id))

    def state(self) -> Any:
        return [(o.id, o.customer, o.total, [*o.lines]) for o in self.objects], self.db.version

    def check(self) -> None:
        """Objects, their table, the view and SQL agree."""
        found = Counter((o.id, o.customer, o.total) for o in self.objects)
        assert found == Counter(self.rows())
        assert found == Counter((o.id, o.customer, o.total) for o in self.orders)
        query = "select customer, sum(total) from orders group by customer"
        assert Counter(self.spent) == Counter(self.sql.execute(query))
        self.parts.verify()
        assert self.db.check_silent() == []
        assert not self.sql.in_transaction


@pytest.fixture
def shop() -> Iterator[Shop]:
    made = Shop()
    yield made
    made.db.close()
    made.sql.close()


def test_what_was_assigned_is_one_commit_with_sql(shop: Shop) -> None:
    heard: list[Any] = []
    following = shop.spent.subscribe(heard.append)
    heard.clear()
    version = shop.db.version
    with shop.db.transaction(commit_with=shop.sql):
        shop.assign(0, customer="bob", total=6)
        shop.assign(2, customer="bob", total=10)
    assert shop.db.version == version + 1
    assert len(heard) == 1
    assert list(shop.spent) == [("bob", 23)]
    assert [*shop.objects[0].lines] == ["changed"]
    shop.check()
    following.close()


@pytest.mark.parametrize("how", ["a view", "the block", "SQL at COMMIT", "SQL in the block"])
def test_whoever_refuses_objects_are_as_they_were(shop: Shop, how: str) -> None:
    old = shop.state()
    total, customer = (0 if how == "a view" else 4), ("eve" if how == "SQL at COMMIT" else "bob")
    kinds = (ZeroDivisionError, Refused, sqlite3.IntegrityError)
    with pytest.raises(kinds), shop.db.transaction(commit_with=shop.sql):
        shop.assign(0, customer="bob", total=6)
        shop.assign(1, customer=customer, total=total)
        if how == "the block":
            raise Refused
        if how == "SQL in the block":
            shop.sql.execute("insert into customers values ('ann')")
    assert shop.state() == old
    shop.check()
    with shop.db.transaction(commit_with=shop.sql):
        shop.assign(1, customer="ann", total=4)
    shop.check()


@pytest.mark.parametrize("rereads", [False, True])
def test_objects_are_as_before_if_the_answer_is_lost_and_their_table_is_read_again(
    rereads: bool,
) -> None:
    class Losing:
        def commit(self) -> None:
            made.sql.commit()
            raise ConnectionError("lost")

        def rollback(self) -> None:
            made.sql.rollback()

    made = Shop()
    if rereads:
        rereading(made.db._engine).by[made.orders] = made.as_objects
    with (
        pytest.raises(TransactionError, match="outcome unknown"),
        made.db.transaction(commit_with=Losing()),
    ):
        made.assign(0, customer="bob", total=6)
    (first, *_) = made.objects
    assert (1, "bob", 6) in made.rows()
    assert (first.customer, first.total, [*first.lines]) == ("ann", 5, [])
    if rereads:
        assert (made.orders[1].customer, made.orders[1].total) == ("bob", 6)
    else:
        assert made.orders[1].total == 5
    assert made.db.check_silent() == []
    made.parts.verify()
    made.db.close()


def test_a_durable_table_of_objects_is_refused(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "live.db")
    old = shop.state()
    with (
        pytest.raises(TransactionError, match="is durable"),
        shop.db.transaction(commit_with=shop.sql),
    ):
        shop.assign(0, customer="bob", total=6)
    assert shop.state() == old
    shop.check()
    shop.db.close()


def test_objects_of_a_table_in_doubt_are_refused_until_it_is_read_again(shop: Shop) -> None:
    def read() -> list[Order]:
        if is_lost:
            raise ConnectionError("cannot be reached")
        return shop.as_objects()

    is_lost = False
    again = rereading(shop.db._engine)
    again.begin(shop.orders, read)
    shop.objects = [of(row) for row in sorted(shop.orders, key=lambda o: o.id)]
    shop.check()
    is_lost, old = True, shop.state()
    again.expect([shop.orders], ConnectionError("lost"))
    with (
        pytest.raises(TransactionError, match="was in doubt"),
        shop.db.transaction(commit_with=shop.sql),
    ):
        shop.assign(0, customer="bob", total=6)
    assert shop.state() == old
    is_lost = False
    shop.db.reread()
    assert shop.db.in_doubt == {}


@pytest.mark.parametrize("seed", seeds(80))
def test_after_any_history_objects_are_the_rows_of_sql(shop: Shop, seed: int) -> None:
    rng = Random(seed)
    for _ in range(12):
        old = shop.state()
        try:
            with shop.db.transaction(commit_with=shop.sql):
                for _ in range(rng.randint(0, 3)):
                    customer = rng.choice(["ann", "bob", "bob", "ann", "eve"])
                    total = rng.randint(0, 9) if rng.random() < 0.4 else rng.randint(1, 9)
                    shop.assign(rng.randrange(3), customer=customer, total=total)
                if rng.random() < 0.2:
                    raise Refused
        except (ZeroDivisionError, Refused, sqlite3.IntegrityError):
            assert shop.state() == old
        shop.check()
