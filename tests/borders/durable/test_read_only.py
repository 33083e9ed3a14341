"""A file that is read while another process writes it: a snapshot that advances on request."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter as CounterOf
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from reactive import (
    Batch,
    Count,
    Database,
    DurabilityError,
    PlanError,
    TableError,
    TransactionError,
    of,
    tracked,
)
from reactive.borders.durable import sqlite_store
from reactive.borders.durable.sqlite_store import SqliteStore
from reactive.borders.durable.store import MemoryStore
from tests.borders.durable.history import PATTERNS, Model, Tables, commit

PATIENCE = 60


class Order(NamedTuple):
    id: int
    town: str | None
    total: float = 0.0


class Both:
    """A writer of orders and words, and a reader."""

    def __init__(self, path: Path, keep: int) -> None:
        self.path = path
        self.writer = Database(path, keep=keep)
        self.orders = self.writer.table(Order, key="id", name="orders")
        self.words = self.writer.table(str, name="words")
        self.orders.add_all([Order(1, "Ulm"), Order(2, None)])
        self.words.add("to", 2)
        self.reader = Database(path, readonly=True)
        self.read_orders = self.reader.table(Order, key="id", name="orders")
        self.read_words = self.reader.table(str, name="words")
        towns = self.read_orders.group_by(lambda o: o.town)
        self.counts: Any = towns.aggregate(Count()).materialize()
        self.heard: list[Any] = []
        self.parts = self.read_orders.select(lambda o: 1 // (o.total - 7)).materialize()
        self.held = self.read_orders.subscribe(self.heard.append)

    def check(self) -> None:
        assert CounterOf(self.read_orders) == CounterOf(self.orders)
        assert CounterOf(self.read_words) == CounterOf(self.words)
        assert dict(self.counts) == CounterOf(order.town for order in self.orders)

    def close(self) -> None:
        self.reader.close()
        self.writer.close()


@pytest.fixture(params=[0, 1, 100])
def both(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Both]:
    made = Both(tmp_path / "shop.db", request.param)
    yield made
    made.close()


def test_any_row_is_counted(both: Both) -> None:
    rows = [Order(1, "Ulm"), Order(9, "Ulm"), (1, "Ulm", 0.0), "to", None]
    assert [both.read_words.count(row) for row in rows] == [0, 0, 0, 2, 0]
    bag = both.writer.table(Order, name="bag")
    bag.add(Order(1, "Ulm"), 3)
    both.reader.reread()
    read = both.reader.table(Order, name="bag")
    assert [read.count(row) for row in rows] == [3, 0, 0, 0, 0]
    assert [row in read for row in rows] == [True, False, False, False, False]


def test_it_is_as_of_when_it_was_opened_until_it_is_read_again(both: Both) -> None:
    before = (list(both.read_orders), list(both.read_words), dict(both.counts))
    both.check()
    with both.writer.transaction():
        both.orders.remove(Order(1, "Ulm"))
        both.orders.upsert(Order(2, "Bonn", 1.0))
        both.words.add("be")
    both.orders.add(Order(3, "Bonn"))
    both.words.remove("to", 1)
    numbers = both.writer.table(int, name="numbers")
    assert (list(both.read_orders), list(both.read_words), dict(both.counts)) == before
    assert both.heard == []
    both.reader.reread()
    both.check()
    assert len(both.heard) == 1  # one commit
    numbers.add(7)
    assert list(both.reader.table(int, name="numbers")) == [7]
    version = both.reader.version
    both.reader.reread()
    assert both.reader.version == version
    both.reader.reread(both.read_words)
    both.check()


def test_when_a_table_is_made_the_others_go_on_to_its_moment(both: Both) -> None:
    with both.writer.transaction():
        both.orders.clear()
        both.words.clear()
    words = both.reader.table(str, name="words", replace=True)
    assert (len(both.read_orders), dict(both.counts), list(words)) == (0, {}, [])
    with pytest.raises(DurabilityError, match="inside a transaction"), both.reader.transaction():
        both.reader.table(str, name="words", replace=True)


def test_what_a_view_raises_leaves_it_as_it_was(both: Both) -> None:
    both.orders.add(Order(3, "Bonn", 7.0))
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            both.reader.reread()
        assert (len(both.read_orders), dict(both.counts)) == (2, {"Ulm": 1, None: 1})
        with pytest.raises(ZeroDivisionError):
            both.reader.table(str, name="words", replace=True)
        assert list(both.read_words) == ["to", "to"]
    both.orders.remove(Order(3, "Bonn", 7.0))
    both.orders.add(Order(4, "Bonn"))
    both.reader.reread()
    assert dict(both.counts) == {"Ulm": 1, None: 1, "Bonn": 1}


def test_changes_are_refused_and_other_tables_are_not_of_the_file(both: Both) -> None:
    changes: list[Any] = [
        lambda: both.read_orders.add(Order(9, "x")),
        lambda: both.read_orders.add_all([Order(9, "x")]),
        lambda: both.read_orders.remove(Order(1, "Ulm")),
        lambda: both.read_orders.upsert(Order(1, "x")),
        lambda: both.read_orders.update(Order(1, "Ulm"), Order(1, "x")),
        lambda: both.read_orders.delete(1),
        lambda: both.read_orders.replace_all([]),
        lambda: both.read_words.clear(),
        lambda: both.reader.execute("delete from orders"),
    ]
    for change in changes:
        with pytest.raises(TableError, match="open for reading alone"):
            change()
    with pytest.raises(DurabilityError, match="has no table 'numbers'; there are: 'orders'"):
        both.reader.table(int, name="numbers")
    with pytest.raises(PlanError, match="no use for reread"):
        both.reader.table(str, name="words", replace=True, reread=list)
    with pytest.raises(TransactionError, match="inside a transaction"), both.reader.transaction():
        both.reader.reread()
    notes = both.reader.table(str, name="notes", durable=False)
    joined = notes.join(both.read_orders, on=lambda n, o: n == o.town).materialize()
    notes.add("Bonn")
    both.orders.add(Order(3, "Bonn"))
    both.reader.reread()
    assert len(joined) == 1
    both.reader.drop(notes, views=True)
    words = both.reader.table(str, name="words", replace=True)
    both.reader.drop(words)
    both.reader.flush()
    both.orders.add(Order(4, "Bonn"))
    both.reader.reread()
    assert len(both.read_orders) == 4
    assert list(both.words) == ["to", "to"]


def test_the_file_may_be_another_one_or_lack_tables_or_be_gone(both: Both) -> None:
    both.writer.drop(both.words)
    both.reader.reread()
    assert (list(both.read_words), len(both.read_orders)) == ([], 2)
    both.writer.close()
    for path in both.path.parent.glob("shop.db*"):
        path.unlink()
    with pytest.raises(DurabilityError, match="there is no file"):
        both.reader.reread()
    assert len(both.read_orders) == 2
    with Database(both.path, keep=100) as other:
        orders = other.table(Order, key="id", name="orders")
        for number in range(5):
            orders.add(Order(number, "Köln"))
    both.reader.reread()
    assert dict(both.counts) == {"Köln": 5}


def test_the_log_does_not_grow_because_of_who_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_store, "CHECKPOINT", 50)
    path, log = tmp_path / "shop.db", tmp_path / "shop.db-wal"
    with Database(path, keep=5) as db:
        words = db.table(str, name="words")
        with Database(path, readonly=True) as reader:
            read = reader.table(str, name="words")
            sizes = []
            for number in range(30):
                words.add_all(str(number * 1000 + n) for n in range(300))
                reader.reread()
                assert len(read) == len(words)
                assert [past.version for past in reader.history()][-1] == db.version
                sizes.append(log.stat().st_size)
            words.add("to")
            assert [past.version for past in reader.history()][-1] == db.version - 1
    assert sizes[-1] < 3 * sizes[0]


def test_a_file_that_nobody_writes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with Database(path) as db:
        db.table(str, name="words").add("to")
    with Database(path, readonly=True) as one, Database(path, readonly=True) as two:
        assert list(one.table(str, name="words")) == list(two.table(str, name="words")) == ["to"]
        one.reread()
    with Database(path) as db:
        db.table(str, name="words").add("be")
    with Database(path, readonly=True) as db:
        assert sorted(db.table(str, name="words")) == ["be", "to"]


def test_rows_of_another_class_are_migrated_and_not_written(tmp_path: Path) -> None:
    class Old(NamedTuple):
        id: int
        town: str

    path = tmp_path / "shop.db"
    with Database(path, keep=10) as writer:
        orders = writer.table(Old, key="id", name="orders")
        orders.add(Old(1, "Ulm"))
        with Database(path, readonly=True) as reader:
            read = reader.table(Order, key="id", name="orders")
            assert list(read) == [Order(1, "Ulm")]
            orders.add(Old(2, "Bonn"))
            reader.reread()
            assert sorted(read) == [Order(1, "Ulm"), Order(2, "Bonn")]
        assert len(orders) == 2


def test_commits_that_were_not_kept_are_no_gap_in_the_history(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with Database(path, keep=100) as db:
        db.table(str, name="words").add("to")
    with Database(path, readonly=True) as reader:
        words = reader.table(str, name="words")
        with Database(path) as db:
            db.table(str, name="words").add("be")
        with Database(path, keep=100) as db:
            db.table(str, name="words").add("that")
            assert [past.version for past in db.history()] == [3]
        reader.reread()
        assert sorted(words) == ["be", "that", "to"]


@pytest.mark.parametrize(
    "given",
    [
        {"keep": 1},
        {"durability": "group"},
        {"synchronous": "full"},
        {"path": None},
        {"store": MemoryStore()},
        {"path": None, "store": MemoryStore()},
        {"path": "postgresql://host/shop"},
    ],
)
def test_what_means_nothing_to_who_reads_is_refused(tmp_path: Path, given: Any) -> None:
    with pytest.raises(PlanError):
        Database(**{"path": tmp_path / "shop.db", "readonly": True} | given)
    with pytest.raises(DurabilityError, match="there is no file"):
        Database(tmp_path / "shop.db", readonly=True)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("keep", [0, 5, 1000])
def test_after_any_history_the_reader_has_what_the_writer_has(tmp_path: Path, keep: int) -> None:
    model, random = Model(), Random(keep)
    path = str(tmp_path / "shop.db")
    tables = Tables(SqliteStore(path), views=False, keep=keep)
    with Database(path, readonly=True) as reader:
        read = [_read(reader, table) for table in tables.db.tables()]
        for _ in range(40):
            for _ in range(random.choice([0, 1, 1, 3, 8])):
                commit(tables, model, random)
            reader.reread()
            for one, other in zip(read, tables.db.tables(), strict=True):
                assert CounterOf(one) == CounterOf(other)
    tables.db.close()


def _read(reader: Database, table: Any) -> Any:
    key = None if table.plan.key is None else table.plan.key.function
    codec = PATTERNS if table.row_type is re.Pattern else None
    return reader.table(table.row_type, key=key, name=table.name, codec=codec)


WRITER = """
import sys
from reactive import Database
db = Database(sys.argv[1], keep=int(sys.argv[2]), durability="group")
pairs = db.table(tuple[int, int], key=lambda p: p[0], name="pairs")
sums = db.table(int, name="sums")
total = 0
for number in range(10**9):
    with db.transaction():
        pairs.upsert((number % 50, number))
        sums.replace_all([sum(n for _, n in pairs)])
    if not number:
        db.flush()
        print("begun", flush=True)
"""


@pytest.mark.long
@pytest.mark.parametrize("keep", [0, 10_000])
def test_another_process_that_writes_is_seen_at_moments_between_its_commits(
    tmp_path: Path, keep: int
) -> None:
    path = tmp_path / "shop.db"
    command = [sys.executable, "-c", WRITER, str(path), str(keep)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        try:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "begun\n"
            with Database(path, readonly=True) as reader:
                pairs = reader.table(tuple[int, int], key=lambda p: p[0], name="pairs")
                sums = reader.table(int, name="sums")
                seen: set[Any] = set()
                until = time.monotonic() + PATIENCE
                while len(seen) < 10:
                    assert time.monotonic() < until
                    assert [sum(n for _, n in pairs)] == list(sums)
                    seen.add(sums.first())
                    reader.reread()
                os.kill(writer.pid, signal.SIGKILL)
                writer.wait()
                reader.reread()
                assert [sum(n for _, n in pairs)] == list(sums)
        finally:
            writer.kill()


@tracked
@dataclass
class Item:
    id: int
    price: float


@pytest.mark.parametrize("keep", [0, 9])
def test_objects_are_not_assigned_to_and_are_made_anew(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "shop.db"
    with Database(path, keep=keep) as writer:
        items = writer.table(Item, key="id", name="items")
        items.add_all([Item(1, 2.0), Item(2, 3.0)])
        with Database(path, readonly=True) as reader:
            read = reader.table(Item, key="id", name="items")
            prices = read.select(lambda i: i.price).materialize()
            one: Item = of(read[1])
            with pytest.raises(TableError, match="open for reading alone"):
                one.price = 7.0
            with pytest.raises(TableError, match="open for reading alone"):
                read.add(Item(3, 1.0))
            assert (one.price, sorted(prices)) == (2.0, [2.0, 3.0])
            of(items[1]).price = 9.0
            items.add(Item(3, 4.0))
            reader.reread()
            assert (of(read[1]).price, sorted(prices)) == (9.0, [3.0, 4.0, 9.0])


def test_a_source_does_not_feed_a_table_that_is_read(both: Both) -> None:
    source = both.reader.ingest
    with pytest.raises(DurabilityError, match="open for reading alone"):
        source(None, both.read_orders, name="orders").take(Batch([Order(9, "x")], token=1))
