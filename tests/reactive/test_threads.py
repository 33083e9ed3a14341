"""Writers and readers in many threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

from reactive import Count, Database, Sum
from tests.replica import Replica

WRITERS = 8
COMMITS = 60


def together(*works: Callable[[], object]) -> None:
    """Run all at once; raise what any of them raised."""
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
    assert db._graph._nodes == {}
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
