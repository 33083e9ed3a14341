"""A reader never waits for an open transaction of another thread, and sees the last commit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

from reactive import Count, Database, TransactionError
from reactive.engine.storage.row_check import KeyedStore
from reactive.engine.storage.store import BagStore
from reactive.engine.transactions.row_gate import CommittedRows

PATIENCE = 30


class Shop:
    """A bag and a keyed table, with views."""

    def __init__(self, *, optimize: bool = True) -> None:
        self.db = Database(optimize=optimize)
        self.words: Any = self.db.table(str, name="words")
        self.prices: Any = self.db.table(tuple, name="prices", key=lambda p: p[0])
        self.lengths: Any = self.words.group_by(len).aggregate(Count()).materialize()
        self.number = self.words.aggregate(Count()).materialize()
        self.sorted = self.words.order_by(lambda w: w).materialize()
        self.words.add_all(["a", "bb", "bb"])
        self.prices.add_all([("a", 1), ("b", 2)])

    def change(self) -> None:
        """Insert, delete, update and reinsert rows in a transaction."""
        self.words.add_all(["ccc", "a"])
        self.words.remove("bb")
        self.words.remove("a")
        self.prices.upsert(("a", 9))
        self.prices.delete("b")
        self.prices.add(("c", 3))

    def as_of_the_last_commit(self) -> None:
        words, prices = self.words, self.prices
        assert len(words) == 3 and sorted(words) == ["a", "bb", "bb"]
        assert sorted(words.items()) == [("a", 1), ("bb", 2)]
        assert [words.count(w) for w in ("a", "bb", "ccc", 7)] == [1, 2, 0, 0]
        assert "bb" in words and "ccc" not in words
        assert len(prices) == 2 and sorted(prices) == [("a", 1), ("b", 2)]
        assert prices["a"] == ("a", 1) and prices.get("b") == ("b", 2)
        assert "b" in prices and "c" not in prices and prices.get("c") is None
        assert words.stats().rows == 3 and "3 rows" in repr(words)
        assert self.lengths[2] == 2 and self.number.value == 3 and self.sorted[0] == "a"
        assert self.lengths.stats().rows == 2
        made = words.group_by(lambda w: w).aggregate(Count()).materialize()
        assert dict(made) == {"a": 1, "bb": 2}
        made.verify()
        late: Any = prices.select(lambda p: p[1]).materialize()
        assert sorted(late) == [1, 2]
        heard: list[Any] = []
        with words.subscribe(heard.append, snapshot=True):
            pass
        assert [delta.is_snapshot for delta in heard] == [True]


@contextmanager
def open_elsewhere(shop: Shop) -> Iterator[None]:
    """Keep a transaction with changes open in another thread during the block."""
    changed, done = threading.Event(), threading.Event()

    def hold() -> None:
        with shop.db.transaction():
            shop.change()
            changed.set()
            assert done.wait(PATIENCE), "a reader has waited for this transaction"

    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(hold)
        assert changed.wait(PATIENCE)
        try:
            yield
        finally:
            done.set()
            held.result(PATIENCE)


@pytest.mark.parametrize("optimize", [True, False])
def test_no_read_waits_for_a_transaction_of_another_thread(optimize: bool) -> None:
    shop = Shop(optimize=optimize)
    with open_elsewhere(shop):
        shop.as_of_the_last_commit()
    assert sorted(shop.words) == ["a", "bb", "ccc"]
    assert sorted(shop.prices) == [("a", 9), ("c", 3)]
    assert dict(shop.lengths) == {1: 1, 2: 1, 3: 1}


def test_a_view_made_meanwhile_follows_the_commit_then() -> None:
    shop = Shop()
    with open_elsewhere(shop):
        view = shop.words.select(lambda w: w + "!").materialize()
        assert sorted(view) == ["a!", "bb!", "bb!"]
    assert sorted(view) == ["a!", "bb!", "ccc!"]
    view.verify()


def test_a_subscription_made_meanwhile_hears_the_commit_once() -> None:
    shop = Shop()
    heard: list[Any] = []
    with open_elsewhere(shop):
        subscription = shop.words.subscribe(heard.append, snapshot=True)
    assert [(d.is_snapshot, sorted(d.added), sorted(d.removed)) for d in heard] == [
        (True, ["a", "bb", "bb"], []),
        (False, ["ccc"], ["bb"]),
    ]
    subscription.close()


def test_one_sees_the_changes_of_ones_own_transaction() -> None:
    shop = Shop()
    with shop.db.transaction():
        shop.change()
        assert len(shop.words) == 3 and shop.words.count("ccc") == 1 and "bb" in shop.words
        assert shop.prices["a"] == ("a", 9) and shop.prices.get("b") is None
        assert sorted(shop.prices.zset().items()) == [(("a", 9), 1), (("c", 3), 1)]
        assert shop.number.value == 3


def test_another_task_sees_the_last_commit() -> None:
    shop = Shop()

    async def main() -> None:
        async with shop.db.transaction():
            shop.change()
            await asyncio.create_task(look())
            await asyncio.to_thread(shop.as_of_the_last_commit)
            assert shop.prices["a"] == ("a", 9)

    async def look() -> None:
        shop.as_of_the_last_commit()
        with pytest.raises(TransactionError, match="started in the transaction"):
            shop.words.add("x")

    asyncio.run(main())
    assert sorted(shop.prices) == [("a", 9), ("c", 3)]


def test_a_writer_waits_for_the_transaction_to_end() -> None:
    shop = Shop()
    with ThreadPoolExecutor(1) as pool:
        with open_elsewhere(shop):
            written = pool.submit(shop.words.add, "late")
            assert not written.done()
            shop.as_of_the_last_commit()
        written.result(PATIENCE)
    assert sorted(shop.words) == ["a", "bb", "ccc", "late"]
    assert dict(shop.lengths) == {1: 1, 2: 1, 3: 1, 4: 1}


def test_rows_are_taken_from_an_iterator_before_anybody_waits() -> None:
    """A slow generator keeps neither readers nor other writers waiting."""
    shop = Shop()

    def rows() -> Iterator[str]:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(shop.words.add, "first").result(PATIENCE)
        yield "second"

    shop.words.add_all(rows())
    assert sorted(shop.words)[-2:] == ["first", "second"]
    shop.words.remove_all(w for w in list(shop.words) if pool_reads(lambda: w in shop.words))
    shop.words.replace_all(w for w in ("x", "y") if pool_reads(lambda: len(shop.words) == 0))
    assert sorted(shop.words) == ["x", "y"]


def pool_reads(read: Callable[[], Any]) -> Any:
    """Return the result of a read in another thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(read).result(PATIENCE)


def test_transactions_and_reads_of_many_threads_agree() -> None:
    """Every look is of one commit: each commit moves a word from one length to another."""
    shop = Shop()
    shop.words.replace_all(["a" * n for n in range(1, 9)])
    done = threading.Event()

    def write(seed: int) -> None:
        random = Random(seed)
        for _ in range(60):
            with shop.db.transaction():
                word = random.choice(sorted(shop.words))
                shop.words.remove(word)
                shop.words.add("a" * random.randrange(1, 9))
        done.set()

    def read() -> None:
        while not done.is_set():
            assert len(shop.words) == 8 == len(list(shop.words))
            assert sum(n for _, n in shop.words.items()) == 8 == shop.number.value
            assert sum(n for _, n in shop.lengths.snapshot()) == 8

    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(write, seed) for seed in (1, 2)] + [pool.submit(read)] * 2
        for future in futures:
            future.result(PATIENCE)
    shop.lengths.verify()


@pytest.mark.parametrize("seed", range(30))
def test_what_was_committed_is_what_the_store_was(seed: int) -> None:
    random = Random(seed)
    bag, keyed = BagStore(), KeyedStore(lambda row: row[0])
    for n in range(6):
        bag.add(n % 4, 1)
        keyed.add((n, 0), 1)
    rows, held = sorted(bag.pairs()), sorted(keyed.by_key.values())
    of_bag, of_keyed = [], []
    for _ in range(12):
        n = random.randrange(6)
        of_bag.append(bag.remove(n, 1) if bag.count(n) and random.random() < 0.5 else bag.add(n, 2))
        old = keyed.get(n)
        if old is not None:
            of_keyed.append(keyed.remove(old, 1))
        if random.random() < 0.7:
            of_keyed.append(keyed.add((n, random.randrange(3)), 1))
    net: dict[Any, int] = {}
    for row, weight in of_bag:
        net[row] = net.get(row, 0) + weight
    before = CommittedRows(bag, [pair for pair in net.items() if pair[1]])
    assert sorted(before.pairs()) == rows and len(before) == 6
    assert [before.count(n) for n in range(6)] == [dict(rows).get(n, 0) for n in range(6)]
    net = {}
    for row, weight in of_keyed:
        net[row] = net.get(row, 0) + weight
    then = CommittedRows(keyed, [pair for pair in net.items() if pair[1]], keyed.key)
    assert sorted(row for row, _ in then.pairs()) == held
    assert [then.get(n) for n in range(7)] == [
        dict.get({r[0]: r for r in held}, n) for n in range(7)
    ]
