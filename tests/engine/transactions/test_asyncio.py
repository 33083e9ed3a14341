"""Transactions and changes under asyncio."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from reactive import Count, Database, Table, TransactionError


@pytest.fixture
def db() -> Database:
    return Database()


@pytest.fixture
def words(db: Database) -> Table[str]:
    return db.table(str, name="words")


def test_changes_arrive_in_order_and_none_is_missed(words: Table[str]) -> None:
    async def main() -> list[Any]:
        heard = []
        with words.changes(snapshot=True) as changes:
            words.add("b")  # before the loop asks for anything
            async for delta in changes:
                heard.append((delta.is_snapshot, delta.added))
                if len(heard) == 4:
                    break
                words.add("c")
        return heard

    words.add("a")
    assert asyncio.run(main()) == [
        (True, ("a",)),
        (False, ("b",)),
        (False, ("c",)),
        (False, ("c",)),
    ]


def test_changes_from_another_thread_wake_the_loop(words: Table[str]) -> None:
    async def main() -> int:
        view = words.aggregate(Count()).materialize()
        changes = view.changes()

        def write() -> None:
            for _ in range(50):
                words.add("a")

        thread = threading.Thread(target=write)
        thread.start()
        total = 0
        async for delta in changes:
            total = delta.updated[0][1]
            if total == 50:
                break
        thread.join()
        changes.close()
        return total

    assert asyncio.run(asyncio.wait_for(main(), 30)) == 50


def test_closing_ends_the_iteration_after_what_waits(words: Table[str]) -> None:
    async def main() -> list[Any]:
        changes = words.changes()
        words.add("a")
        changes.close()
        return [delta.added async for delta in changes]

    assert asyncio.run(main()) == [("a",)]


def test_a_waiting_iteration_ends_when_it_is_closed(words: Table[str]) -> None:
    async def main() -> list[Any]:
        changes = words.changes()
        asyncio.get_running_loop().call_later(0.01, changes.close)
        return [delta async for delta in changes]

    assert asyncio.run(asyncio.wait_for(main(), 10)) == []


def test_tasks_wait_for_each_others_transactions(db: Database, words: Table[str]) -> None:
    pairs = words.group_by(lambda w: w[0]).aggregate(Count()).materialize()

    async def write(letter: str) -> None:
        for n in range(5):
            async with db.transaction():
                words.add(f"{letter}{n}")
                await asyncio.sleep(0)
                words.add(f"{letter}{n}'")

    async def read() -> None:
        for _ in range(50):
            assert all(count % 2 == 0 for _, count in pairs)
            await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(*(write(letter) for letter in "abcd"), read())

    asyncio.run(main())
    assert dict(pairs) == dict.fromkeys("abcd", 10)
    assert db.version == 20


def test_another_tasks_statement_in_the_middle_is_a_commit_of_its_own(
    db: Database, words: Table[str]
) -> None:
    view = words.materialize()

    async def main() -> None:
        inside = asyncio.Event()
        go_on = asyncio.Event()

        async def long() -> None:
            async with db.transaction():
                words.add("a")
                inside.set()
                await go_on.wait()

        task = asyncio.create_task(long())
        await inside.wait()
        assert list(words) == []
        words.add("b")
        assert (list(words), list(view), db.version) == (["b"], ["b"], 1)
        go_on.set()
        await task

    asyncio.run(main())
    assert sorted(words) == sorted(view) == ["a", "b"]


def test_a_failing_async_transaction_rolls_back(db: Database, words: Table[str]) -> None:
    async def main() -> None:
        async with db.transaction():
            words.add("a")
            await asyncio.sleep(0)
            raise KeyError("mine")

    with pytest.raises(KeyError):
        asyncio.run(main())
    assert (len(words), db.version) == (0, 0)
    words.add("b")
    assert db.version == 1


def test_a_cancelled_task_neither_keeps_nor_loses_the_lock(db: Database, words: Table[str]) -> None:
    async def hold() -> None:
        async with db.transaction():
            words.add("a")
            await asyncio.sleep(60)

    async def main() -> None:
        holder = asyncio.create_task(hold())
        await asyncio.sleep(0.01)
        waiter = asyncio.create_task(hold())
        await asyncio.sleep(0.01)
        waiter.cancel()
        holder.cancel()
        await asyncio.gather(holder, waiter, return_exceptions=True)
        words.add("b")

    asyncio.run(main())
    assert list(words) == ["b"]


def test_a_callable_that_writes_is_told_so_inside_a_task_too(
    db: Database, words: Table[str]
) -> None:
    other = db.table(str, name="other")

    def copied(word: str, to: Any = (other,)) -> str:
        to[0].add(word)
        return word

    async def main() -> None:
        view = words.select(copied).materialize()
        with pytest.raises(TransactionError, match="a callable of a query cannot change tables"):
            words.add("a")
        async with db.transaction():
            other.add("b")
        assert not len(view) and list(other) == ["b"]

    asyncio.run(main())
