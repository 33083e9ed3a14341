"""No partial commit remains: rows that raise late, interrupts, statements within statements."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from reactive import Database
from reactive.engine.dataflow.delivery_queue import DeliveryQueue
from reactive.engine.dataflow.schedule import LATEST
from reactive.engine.storage.store import BagStore


class Late:
    """A row whose hash raises at its n-th call, and whose comparison raises on request."""

    calls, fails_at, compares = 0, 0, True

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        Late.calls += 1
        if Late.calls == Late.fails_at:
            raise ValueError("a hash that fails")
        return hash(self.number)

    def __eq__(self, other: object) -> bool:
        if not Late.compares:
            raise ValueError("a comparison that fails")
        return isinstance(other, Late) and self.number == other.number


@pytest.fixture(autouse=True)
def late_rows_behave() -> Iterator[None]:
    yield
    Late.calls = Late.fails_at = 0
    Late.compares = True


@pytest.mark.parametrize("act", ["add", "add again", "add two", "remove", "remove one of two"])
@pytest.mark.parametrize("fails_at", [1, 2, 3])
def test_a_store_stays_whole_when_a_hash_fails_at_any_call(act: str, fails_at: int) -> None:
    store = BagStore()
    one = Late(1)
    for _ in range({"add": 0, "add two": 0, "remove one of two": 2}.get(act, 1)):
        store.add(one, 1)
    before = (list(store.pairs()), len(store))
    Late.calls, Late.fails_at = 0, fails_at
    try:
        if act.startswith("add"):
            store.add(Late(1), 2 if act == "add two" else 1)
        else:
            store.remove(one, 1)
    except ValueError:
        Late.fails_at = 0
        assert (list(store.pairs()), len(store)) == before
    Late.fails_at = 0
    assert len(store) == sum(count for _, count in store.pairs())
    assert all(type(row) is Late for row, _ in store.pairs())


@pytest.mark.parametrize("reading", [lambda rows: rows, lambda rows: rows.order_by(id)])
def test_rows_that_do_not_compare_differ_where_their_hashes_do(reading: Any) -> None:
    rows = Database().table(Late, identity=True)
    view = reading(rows).materialize()
    old, new = Late(1), Late(2)
    rows.add(old)
    Late.compares = False
    rows.update(old, new)
    Late.compares = True
    assert list(rows) == list(view) == [new]


@pytest.mark.parametrize("fails_at", range(1, 12))
def test_an_order_goes_on_when_a_hash_fails_at_any_call(fails_at: int) -> None:
    rows = Database().table(Late, identity=True)
    view = rows.order_by(lambda r: r.number % 2).materialize()
    rows.add_all([Late(1), Late(3)])
    Late.calls, Late.fails_at = 0, fails_at
    try:
        rows.add(Late(5))
    except ValueError:
        Late.fails_at = 0
    Late.fails_at = 0
    assert sorted(r.number for r in view) == sorted(r.number for r in rows)


def test_a_commit_within_a_statement_that_fails_is_told() -> None:
    db = Database()
    outer, inner = db.table(int, name="outer"), db.table(int, name="inner")
    told: list[Any] = []
    subscription = inner.subscribe(lambda delta: told.append(delta.added))

    def rows() -> Iterator[int]:
        inner.add(1)
        yield 1
        raise LookupError

    with pytest.raises(LookupError):
        outer.add_all(rows())
    assert (told, list(inner), list(outer)) == ([(1,)], [1], [])
    subscription.close()


class Interrupted(DeliveryQueue):
    """A queue that is interrupted as soon as it contains the deliveries."""

    __slots__ = ("is_due",)
    is_due: bool

    def extend(self, deliveries: Any) -> None:
        super().extend(deliveries)
        if self.is_due:
            raise KeyboardInterrupt


@pytest.mark.parametrize("commits", [1, LATEST + 3])
def test_an_interrupt_after_a_commit_stands_takes_nothing_back(commits: int) -> None:
    db = Database()
    delivery_queue = Interrupted()
    delivery_queue.is_due = False
    db._engine.delivery_queue = db._engine.graph.delivery_queue = delivery_queue
    numbers = db.table(int)
    view = numbers.select(lambda n: -n).materialize()
    told: list[Any] = []
    subscription = view.subscribe(lambda delta: told.append(delta.added))
    for number in range(commits):
        numbers.add(number)
    delivery_queue.is_due = True
    with pytest.raises(KeyboardInterrupt):
        numbers.add(1000)
    delivery_queue.is_due = False
    assert 1000 in numbers and -1000 in view and db.version == commits + 1
    assert told[-2] == (-1000,)  # and then all rows, which were computed again
    numbers.remove(1000)
    view.verify()
    subscription.close()


def test_another_task_may_look_a_key_up_while_one_waits_in_a_transaction() -> None:
    db = Database()
    rows: Any = db.table(tuple, key=lambda r: r[0])
    rows.add((1, 1))

    async def other() -> tuple[Any, ...]:
        return rows[1], rows.get(1), 1 in rows

    async def main() -> None:
        async with db.transaction():
            rows.add((2, 2))
            assert await asyncio.create_task(other()) == ((1, 1), (1, 1), True)

    asyncio.run(main())


def test_transactions_may_end_in_another_order() -> None:
    db = Database()
    numbers = db.table(int)
    view = numbers.select(lambda n: -n).materialize()
    first, second = db.transaction(), db.transaction()
    first.__enter__()
    numbers.add(1)
    second.__enter__()
    first.__exit__(None, None, None)
    numbers.add(2)
    assert (db._engine.db_lock.is_mine, len(view)) == (True, 0)
    second.__exit__(None, None, None)
    assert (db._engine.db_lock.is_mine, sorted(view)) == (False, [-2, -1])


def test_a_transaction_that_nobody_ends_is_rolled_back() -> None:
    db = Database()
    numbers = db.table(int)
    view = numbers.select(lambda n: -n).materialize()
    dropped = db.transaction()
    dropped.__enter__()
    numbers.add(1)
    del dropped
    assert (db._engine.db_lock.owner, list(numbers), list(view)) == (None, [], [])
    numbers.add(2)
    assert list(view) == [-2]
