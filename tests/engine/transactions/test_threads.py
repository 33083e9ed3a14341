"""Writers and readers in many threads."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from random import Random
from typing import Any

from reactive import Count, Database, Sum
from reactive.engine.storage.store import BagStore
from tests.replica import Replica

WRITERS = 8
COMMITS = 60


def together(*works: Callable[[], object]) -> None:
    """Run all functions concurrently; raise the error that any of them raised."""
    barrier = threading.Barrier(len(works))

    def run(work: Callable[[], object]) -> None:
        barrier.wait()
        work()

    with ThreadPoolExecutor(len(works)) as pool:
        for future in [pool.submit(run, work) for work in works]:
            future.result(timeout=60)


def test_transfers_between_accounts_never_show_half_done() -> None:
    db = Database()
    accounts = db.table(tuple, name="accounts", key=lambda a: a[0])
    accounts.add_all((name, 0) for name in range(10))
    total = accounts.aggregate(Sum(lambda a: a[1])).materialize()
    parity: Any = accounts.group_by(lambda a: a[0] % 2).aggregate(Sum(lambda a: a[1])).materialize()
    done = threading.Event()
    seen: list[int] = []

    def transfer(seed: int) -> None:
        random = Random(seed)
        for _ in range(COMMITS):
            giver, taker = random.sample(range(10), 2)
            with db.transaction():
                accounts.upsert((giver, accounts[giver][1] - 5))
                accounts.upsert((taker, accounts[taker][1] + 5))

    def read() -> None:
        while not done.is_set():
            assert total.value == 0
            assert sum(row[1] for row in parity.snapshot()) == 0
            assert sum(balance for _, balance in accounts) == 0
            seen.append(len(accounts))

    def write() -> None:
        together(*(lambda seed=seed: transfer(seed) for seed in range(WRITERS)))
        done.set()

    together(write, read, read)
    assert set(seen) == {10}
    assert db.version == 1 + WRITERS * COMMITS
    total.verify()
    parity.verify()


def test_a_look_up_shows_nothing_of_a_commit_that_fails() -> None:
    db = Database()
    accounts: Any = db.table(tuple, name="accounts", key=lambda a: a[0])
    totals: Any = accounts.group_by(lambda a: a[1]).aggregate(Sum(lambda a: a[2])).materialize()
    pairs = accounts.select(lambda a: a[1:]).distinct().materialize()
    inverse = accounts.select(lambda a: 1 // a[3]).materialize()
    accounts.add((0, "even", 10, 1))
    switches, done = sys.getswitchinterval(), threading.Event()

    def write(first: int) -> None:
        for number in range(first, first + 400):
            with suppress(ZeroDivisionError):
                accounts.add((number, "even" if number % 3 else "odd", 1, 0))

    def write_all() -> None:
        try:
            together(lambda: write(1), lambda: write(1000))
        finally:
            done.set()

    def read() -> None:
        while not done.is_set():
            assert (totals["even"], totals.get("odd")) == (10, None)
            assert (len(totals), len(pairs), len(inverse), len(accounts)) == (1, 1, 1, 1)
            assert ("even", 1, 0) not in pairs and ("even", 10, 1) in pairs
            assert "odd" not in totals and accounts.get(1) is None and 2 not in accounts

    sys.setswitchinterval(1e-6)
    try:
        together(write_all, read, read)
    finally:
        sys.setswitchinterval(switches)
    assert list(accounts) == [(0, "even", 10, 1)]


def test_deltas_arrive_in_commit_order_and_add_up() -> None:
    db = Database()
    table = db.table(int, name="t")
    view = table.group_by(lambda n: n % 7).aggregate(Count(), Sum(lambda n: n)).materialize()
    replica = Replica(view)

    def write(seed: int) -> None:
        random = Random(seed)
        for _ in range(COMMITS):
            table.add(random.randrange(50))

    together(*(lambda seed=seed: write(seed) for seed in range(WRITERS)))
    replica.check()
    assert replica.version == WRITERS * COMMITS


def test_snapshots_taken_while_others_write_have_neither_gap_nor_overlap() -> None:
    db = Database()
    table = db.table(int, name="t")
    relation = table.select(lambda n: n % 5)
    view = relation.materialize()
    replicas: list[Any] = []

    def write() -> None:
        for n in range(200):
            table.add(n)

    def subscribe() -> None:
        replicas.extend(Replica(view) for _ in range(40))

    together(write, write, subscribe, subscribe)
    assert len(replicas) == 80
    for replica in replicas:
        replica.check()


def remainder(modulus: int) -> Callable[[int], int]:
    return lambda n: n % modulus


def test_views_made_and_dropped_while_others_write_are_complete() -> None:
    db = Database()
    table = db.table(int, name="t")

    def write() -> None:
        for n in range(150):
            table.add(n % 11)

    def views() -> None:
        for modulus in range(2, 12):
            shared = table.select(remainder(modulus)).distinct()
            view = shared.materialize()
            view.verify()
            del view

    together(write, write, views, views)
    assert db.views() == []
    assert db._engine.graph._nodes == {}
    assert table._node.consumers == []


def test_a_subscriber_may_write_from_any_thread() -> None:
    db = Database()
    orders, log = db.table(int, name="orders"), db.table(int, name="log")
    with orders.subscribe(lambda delta: log.add_all(delta.added)):
        together(
            *(
                lambda base=base: orders.add_all(range(base, base + 50))
                for base in (0, 100, 200, 300)
            )
        )
    assert sorted(log) == sorted(orders)


def test_what_is_taken_back_is_never_read() -> None:
    """Views are read in their operators, without a lock while no thread writes."""
    db = Database()
    numbers: Any = db.table(tuple, name="numbers")
    inside, never, done = threading.Event(), threading.Event(), threading.Event()

    def by(row: Any) -> int:
        if row[0] < 0:
            inside.set()
            never.wait(timeout=0.01)  # the others have changed, and a thread reads
            raise ValueError(row)
        return int(row[0] % 2)

    groups: Any = numbers.group_by(lambda r: abs(r[0]) % 2).aggregate(Count()).materialize()
    each: Any = numbers.select(lambda r: r[0]).distinct().materialize()
    first: Any = numbers.order_by(lambda r: r[0]).limit(3).materialize()
    numbers.add_all((number, 0) for number in range(1, 9))
    last = numbers.group_by(by).aggregate(Count()).materialize()
    reads: list[Callable[[], bool]] = [
        lambda: groups[1] == 4,
        lambda: groups.get(7) is None,
        lambda: dict(groups.snapshot()) == {0: 4, 1: 4},
        lambda: len(each) == 8,
        lambda: -1 not in each and 1 in each,
        lambda: sorted(each) == list(range(1, 9)),
        lambda: [row[0] for row in first] == [1, 2, 3],
        lambda: first[0] == (1, 0),
    ]

    def write() -> None:
        while not done.is_set():
            with suppress(ValueError), db.transaction():
                numbers.remove((1, 0))
                numbers.add_all([(-1, 0), (-3, 0), (10, 0)])

    def read() -> None:
        try:
            for look in reads * 2:
                assert inside.wait(timeout=60)
                inside.clear()
                assert look()
        finally:
            done.set()

    together(write, read)
    assert len(last) == 2


class Elsewhere:
    """A store that only the thread inside the gate may read."""

    def __init__(self, db: Database, store: Any) -> None:
        self._db_lock = db._engine.db_lock
        self._held = store

    def __len__(self) -> int:
        assert self._db_lock.depth
        return len(self._held)

    def count(self, row: Any) -> int:
        assert self._db_lock.depth
        return int(self._held.count(row))


def test_rows_that_are_elsewhere_are_asked_for_inside_the_gate() -> None:
    db = Database()
    words = db.table(str)
    words.add_all(["to", "be", "to"])
    store: Any = Elsewhere(db, words._store)
    words._move_to(store)
    assert (len(words), words.count("to"), "be" in words, "or" in words) == (3, 2, True, False)


def test_a_statement_that_waits_goes_to_the_store_of_when_it_begins() -> None:
    db = Database()
    words = db.table(str)
    view = words.materialize()
    begun = threading.Event()

    def write() -> None:
        begun.set()
        words.add("to")

    writer = threading.Thread(target=write)
    with db._engine.db_lock.inside():
        writer.start()
        begun.wait()
        time.sleep(0.05)  # by then it waits for the gate
        words._move_to(BagStore())
    writer.join()
    assert list(words) == list(view) == ["to"]
