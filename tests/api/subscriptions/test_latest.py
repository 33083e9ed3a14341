"""Readers of the latest changes share one queue; each reads the same deltas as if it were alone."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from functools import partial
from random import Random
from typing import Any

import pytest

from reactive import Database, Delta
from reactive.api.subscriptions.latest import LatestFeed
from tests.budget import seeds
from tests.counted_calls import calls_of


def now(reader: Any) -> Delta[Any] | None:
    """Return the delta that a new reader receives immediately, if any."""

    async def read() -> Delta[Any] | None:
        try:
            return await asyncio.wait_for(anext(reader), 0.001)
        except (TimeoutError, StopAsyncIteration):
            return None

    return asyncio.run(read())


def same(one: Delta[Any] | None, other: Delta[Any] | None) -> bool:
    if one is None or other is None:
        return one is other
    both = (one, other)
    rows = [Counter(dict(each)) for each in both]
    moved = [sorted(each.updated) for each in both]
    return rows[0] == rows[1] and moved[0] == moved[1] and one.is_snapshot == other.is_snapshot


@pytest.mark.parametrize("seed", seeds(80))
@pytest.mark.parametrize("of", ["table", "relation", "view", "order"])
def test_each_reader_is_told_what_one_that_is_alone_is_told(of: str, seed: int) -> None:
    random, db = Random(f"{seed} {of}"), Database()
    table = db.table(tuple[int, int], key=lambda row: row[0])
    evens = table.where(lambda row: row[1] % 2 == 0)
    relation: Any = {
        "table": table,
        "relation": evens,
        "view": evens.materialize(),
        "order": evens.order_by(lambda row: row[1]).materialize(),
    }[of]
    readers: list[tuple[Any, Any]] = []
    for _ in range(60):
        draw = random.random()
        if draw < 0.5:
            table.upsert((random.randrange(5), random.randrange(4)))
        elif draw < 0.6 and len(table):
            table.remove(random.choice(list(table)))
        elif draw < 0.75:
            begins = random.random() < 0.3
            shared = relation.changes(latest=True, snapshot=begins)
            readers.append((shared, alone(relation, snapshot=begins)))
        elif draw < 0.8 and readers:
            readers.pop(random.randrange(len(readers)))
        elif readers:
            shared, single = random.choice(readers)
            if random.random() < 0.1:
                shared.close()
                single.close()
            assert same(now(shared), now(single))
    for shared, single in readers:
        assert same(now(shared), now(single))
        assert now(shared) is None


def alone(relation: Any, *, snapshot: bool) -> Any:
    """A reader that shares nothing: at most two deltas wait, and it reads both."""
    from reactive.api.subscriptions.observe import Changes

    return Changes(lambda f: relation._subscribe_callback(f, snapshot=snapshot, way=None), 1)


def test_a_commit_costs_as_much_for_a_thousand_idle_readers_as_for_one() -> None:
    counts = []
    for readers in (1, 1_000):
        db = Database()
        numbers = db.table(int)
        view = numbers.where(lambda n: n >= 0).materialize()
        held = [view.changes(latest=True) for _ in range(readers)]
        numbers.add_all(range(10))
        counts.append(calls_of(partial(numbers.add, 11)))
        assert len(held) == readers
    assert counts[1] <= counts[0] + 5


def test_what_nobody_reads_any_more_is_not_kept() -> None:
    db = Database()
    numbers = db.table(int)
    view = numbers.materialize()
    kept = view.changes(latest=True)
    (feed,) = db._engine.latest.values()
    assert isinstance(feed, LatestFeed)
    for number in range(50):
        reader = view.changes(latest=True)
        numbers.add(number)
        if number % 2:
            now(reader)
        del reader
    gc.collect()
    numbers.add(50)
    assert len(feed._stretches) <= 2
    told = now(kept)
    assert told is not None and sorted(told.added) == list(range(51))
    del kept, feed
    gc.collect()
    assert len(db._engine.latest) == 0


def test_readers_that_wait_are_all_woken_by_one_commit() -> None:
    db = Database()
    numbers = db.table(int)

    async def serve() -> list[Delta[int]]:
        readers = [numbers.changes(latest=True) for _ in range(20)]
        tasks = [asyncio.create_task(anext(each)) for each in readers]
        await asyncio.sleep(0.01)
        numbers.add(7)
        return await asyncio.wait_for(asyncio.gather(*tasks), 20)

    told = asyncio.run(serve())
    assert [delta.added for delta in told] == [(7,)] * 20
    assert len(set(map(id, told))) == 1


def test_a_reader_ends_when_its_view_is_closed() -> None:
    db = Database()
    numbers = db.table(int)
    view = numbers.materialize()
    reader = view.changes(latest=True)

    async def read() -> list[Delta[int]]:
        return [delta async for delta in reader]

    numbers.add(1)
    view.close()
    told = asyncio.run(asyncio.wait_for(read(), 20))
    assert [delta.added for delta in told] == [(1,)]
