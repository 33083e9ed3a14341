"""Tasks write during another task's transaction: each works as if it were alone."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple

import pytest

from reactive import (
    ConflictError,
    Count,
    Database,
    PlanError,
    Sum,
    Table,
    TransactionError,
    tracked,
)
from tests.budget import seeds
from tests.moments import Moments


class Item(NamedTuple):
    key: int
    value: int


Delta = list[tuple[str, Any, int]]
"""A table's name, a row, and how often it came or went."""


class World:
    """Two tables with views, and their expected contents in plain Python."""

    def __init__(self) -> None:
        self.db = Database()
        self.tables: dict[str, Table[Any, Any]] = {
            "bag": self.db.table(int, name="bag"),
            "keyed": self.db.table(Item, name="keyed", key="key"),
        }
        bag, keyed = self.tables.values()
        self.views = {
            "sums": keyed.aggregate(Sum(lambda i: i.value), Count()).materialize(),
            "joined": keyed.join(bag, on=lambda i, n: i.value == n).materialize(),
            "set": bag.distinct().materialize(),
        }
        self.committed: dict[str, Counter[Any]] = {"bag": Counter(), "keyed": Counter()}
        self.beneath: dict[int, Delta] = {}
        """The commits since each open transaction began to write, by its number."""

    def check(self, seen: dict[str, Counter[Any]]) -> None:
        """Compare all readings of the running task."""
        for name, table in self.tables.items():
            assert Counter(table) == seen[name], name
            assert len(table) == seen[name].total()
        keyed = self.tables["keyed"]
        for key in range(4):
            found = next((row for row in seen["keyed"] if row.key == key), None)
            assert keyed.get(key) == found
        assert self.tables["bag"].count(1) == seen["bag"][1]
        bag, items = self.committed["bag"], self.committed["keyed"]
        assert set(self.views["set"]) == set(bag)
        assert len(self.views["joined"]) == sum(bag[item.value] for item in items)

    def commit(self, delta: Delta) -> None:
        apply(self.committed, delta)
        net: Counter[Any] = Counter()
        for name, row, weight in delta:
            net[name, row] += weight
        for known in self.beneath.values():
            known += [(*what, weight) for what, weight in net.items() if weight]


def apply(state: dict[str, Counter[Any]], delta: Delta) -> None:
    for name, row, weight in delta:
        state[name][row] += weight
        assert state[name][row] >= 0
        state[name] = +state[name]


def statement(random: Random, world: World, seen: dict[str, Counter[Any]]) -> Delta:
    """Run a statement that `seen` allows; return its changes."""
    bag, keyed = world.tables["bag"], world.tables["keyed"]
    items = {item.key: item for item in seen["keyed"]}
    new = Item(random.randrange(4), random.randrange(3))
    match random.randrange(6):
        case 0 | 1:
            number = random.randrange(3)
            bag.add(number)
            return [("bag", number, 1)]
        case 2 if seen["bag"]:
            number = random.choice(sorted(seen["bag"]))
            bag.remove(number)
            return [("bag", number, -1)]
        case 3 if items:
            gone = random.choice(sorted(items.values()))
            keyed.remove(gone)
            return [("keyed", gone, -1)]
        case 4 if new.key not in items:
            keyed.add_all([new])
            return [("keyed", new, 1)]
        case _:
            old = items.get(new.key)
            keyed.upsert(new)
            if old == new:
                return []
            return [*([] if old is None else [("keyed", old, -1)]), ("keyed", new, 1)]


def conflict(mine: Delta, others: Delta) -> bool:
    """Tell if both touch a key, or a row of the bag other than by two additions."""
    for name, row, weight in mine:
        for other_name, other, other_weight in others:
            if name != other_name:
                continue
            if name == "keyed" and row.key == other.key:
                return True
            if name == "bag" and row == other and min(weight, other_weight) < 0:
                return True
    return False


async def work(number: int, random: Random, world: World) -> None:
    """Play one task: statements, transactions of one step and of several."""
    for _ in range(random.randrange(1, 5)):
        await asyncio.sleep(0)
        world.check(world.committed)
        match random.randrange(4):
            case 0 | 1:
                world.commit(statement(random, world, world.committed))
            case 2:
                with world.db.transaction():
                    seen = {name: Counter(rows) for name, rows in world.committed.items()}
                    delta: Delta = []
                    for _ in range(random.randrange(3)):
                        made = statement(random, world, seen)
                        apply(seen, made)
                        delta += made
                world.commit(delta)
            case _:
                await long(number, random, world)
        world.check(world.committed)


async def long(number: int, random: Random, world: World) -> None:
    """Play a transaction with others in the middle; whether it must be refused is known."""
    fails, delta, seen, is_over = random.random() < 0.2, list[Any](), world.committed, False
    try:
        async with world.db.transaction():
            for _ in range(random.randrange(1, 5)):
                made = statement(random, world, seen)
                if made and not delta:
                    seen = {name: Counter(rows) for name, rows in seen.items()}
                    world.beneath[number] = []
                apply(seen, made)
                delta += made
                world.check(seen)
                for _ in range(random.randrange(3)):
                    await asyncio.sleep(0)
                world.check(seen if delta else world.committed)
                seen = seen if delta else world.committed
            beneath = world.beneath.pop(number, [])
            is_over = True
            if fails:
                raise ZeroDivisionError
    except ConflictError as error:
        assert conflict(delta, beneath) and not fails
        assert "of table" in str(error)
    except ZeroDivisionError:
        assert fails
    else:
        assert not conflict(delta, beneath)
        world.commit(delta)
    finally:
        if not is_over:  # it was cancelled
            world.beneath.pop(number, None)


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(10_000, share=100))
def test_tasks_are_as_if_each_had_been_alone(seed: int) -> None:
    random = Random(seed)
    world = World()

    async def main() -> None:
        tasks = [
            asyncio.create_task(work(number, Random(seed * 10 + number), world))
            for number in range(random.randrange(2, 6))
        ]
        for _ in range(random.randrange(20)):
            await asyncio.sleep(0)
        if random.random() < 0.5:
            random.choice(tasks).cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task

    asyncio.run(main())
    world.check(world.committed)
    for view in world.views.values():
        view.verify()
    assert (world.db._engine.aside, world.db._engine.db_lock.aside) == ((), None)


async def beside(
    db: Database, inside: Callable[[], object], meanwhile: Callable[[], object]
) -> None:
    """Do something in the middle of the transaction of another task."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def long() -> None:
        async with db.transaction():
            inside()
            begun.set()
            await go_on.wait()

    task = asyncio.create_task(long())
    await begun.wait()
    try:
        meanwhile()
    finally:
        go_on.set()
        await task


def test_at_no_moment_is_a_row_lost_or_there_twice() -> None:
    moment, where = 0, "the first"
    while where:
        db = Database()
        bag, keyed = db.table(int), db.table(Item, key="key")
        view = bag.distinct().materialize()
        bag.add(1)

        def inside(bag: Any = bag, keyed: Any = keyed) -> None:
            bag.add_all([2, 3])
            bag.remove(1)
            keyed.add(Item(1, 1))

        def meanwhile(bag: Any = bag, moment: int = moment) -> None:
            nonlocal where
            with Moments(moment) as moments, suppress(KeyboardInterrupt):
                bag.add(4)
            where = moments.where or ""

        asyncio.run(beside(db, inside, meanwhile))
        assert sorted(bag) in ([2, 3], [2, 3, 4]), where
        assert sorted(bag) == sorted(view)
        assert list(keyed) == [Item(1, 1)]
        view.verify()
        moment += 7


def test_at_no_moment_is_what_ends_over_another_commit_half_there() -> None:
    moment, where = 0, "the first"
    while where:
        db = Database()
        bag = db.table(int)
        view = bag.distinct().materialize()

        async def main(db: Any = db, bag: Any = bag, moment: int = moment) -> str:
            begun, go_on = asyncio.Event(), asyncio.Event()

            async def long() -> str:
                transaction = db.transaction()
                await transaction.__aenter__()
                bag.add_all([2, 3])
                begun.set()
                await go_on.wait()
                with Moments(moment) as moments:
                    try:
                        await transaction.__aexit__(None, None, None)
                    except KeyboardInterrupt:
                        transaction._end_all()
                return moments.where or ""

            task = asyncio.create_task(long())
            await begun.wait()
            bag.add(4)
            go_on.set()
            return await task

        where = asyncio.run(main())
        assert sorted(bag) in ([4], [2, 3, 4]), where
        assert sorted(bag) == sorted(view), where
        view.verify()
        bag.add(5)
        assert 5 in view
        moment += 7


def test_a_row_that_comes_again_is_the_object_that_operators_know() -> None:
    db = Database()
    table = db.table(Item, key="key")
    known = Item(1, 1)
    table.add(known)
    view = table.order_by(lambda i: i.value).materialize()

    def inside() -> None:
        table.remove(known)

    async def main() -> None:
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def long() -> None:
            async with db.transaction():
                inside()
                begun.set()
                await go_on.wait()
                table.add(Item(1, 1))

        task = asyncio.create_task(long())
        await begun.wait()
        table.add(Item(2, 2))
        go_on.set()
        await task

    asyncio.run(main())
    assert table[1] is known and list(view) == [Item(1, 1), Item(2, 2)]
    table.remove(Item(1, 1))
    assert list(view) == [Item(2, 2)]


def test_what_replaced_what_is_told_of_a_transaction_that_was_set_aside() -> None:
    db = Database()
    table = db.table(Item, name="items")
    table.add_all([Item(1, 1), Item(2, 2)])
    told: list[Any] = []

    async def main() -> None:
        with table.subscribe(told.append):
            await beside(
                db,
                lambda: table.update(Item(1, 1), Item(1, 5)),
                lambda: table.update(Item(2, 2), Item(2, 7)),
            )

    asyncio.run(main())
    assert [delta.updated for delta in told] == [
        ((Item(2, 2), Item(2, 7)),),
        ((Item(1, 1), Item(1, 5)),),
    ]


class Sql:
    """Something that takes a while to commit."""

    def __init__(self) -> None:
        self.committing = asyncio.Event()
        self.answer = asyncio.Event()

    async def commit(self) -> None:
        self.committing.set()
        await self.answer.wait()

    async def rollback(self) -> None: ...


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_statement_beside_a_commit_of_sql_is_refused_only_for_the_same_row(
    is_refused: bool,
) -> None:
    db = Database()
    table = db.table(Item, name="items", key="key")
    sums = table.aggregate(Sum(lambda i: i.value)).materialize()

    async def main() -> None:
        sql = Sql()
        if is_refused:

            async def refuse() -> None:
                await Sql.commit(sql)
                raise ValueError("refused")

            sql.commit = refuse  # type: ignore[method-assign]

        async def both() -> None:
            async with db.transaction(commit_with=sql):
                table.add(Item(1, 1))

        task = asyncio.create_task(both())
        await sql.committing.wait()
        table.add(Item(2, 10))
        assert (list(table), sums.value) == ([Item(2, 10)], 10)
        with pytest.raises(ConflictError, match=r"key 1 of table 'items'[^\n]*being committed"):
            table.upsert(Item(1, 5))
        with pytest.raises(ConflictError, match="key 1"), db.transaction():
            table.add(Item(3, 3))
            table.add(Item(1, 5))
        assert (list(table), sums.value) == ([Item(2, 10)], 10)
        sql.answer.set()
        if is_refused:
            with pytest.raises(TransactionError, match="refused"):
                await task
        else:
            await task

    asyncio.run(main())
    assert sums.value == (10 if is_refused else 11)
    assert len(table) == (1 if is_refused else 2)
    sums.verify()


@tracked
class Lamp:
    name: str
    is_on: bool

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_on = False


def test_what_cannot_be_beside_a_transaction_says_so() -> None:
    db = Database()
    lamps, words = db.table(Lamp, key="name"), db.table(str, name="words")
    lamp = Lamp("a")
    lamps.add(lamp)

    def assign() -> None:
        lamp.is_on = True

    def refused(what: str, act: Callable[[], object]) -> Callable[[], None]:
        def meanwhile() -> None:
            with pytest.raises(TransactionError, match=what):
                act()

        return meanwhile

    async def main() -> None:
        await beside(db, assign, refused("tracked objects", lambda: words.add("b")))
        await beside(db, lambda: words.add("a"), refused("another task", db.close))
        await beside(db, lambda: words.add("a"), refused("another task", lambda: db.drop(words)))

        async def child() -> None:
            with pytest.raises(TransactionError, match="started in the transaction"):
                words.add("c")
            with (
                pytest.raises(TransactionError, match="started in the transaction"),
                db.transaction(),
            ):
                words.add("c")

        async with db.transaction():
            words.add("d")
            await asyncio.create_task(child())
            assert sorted(words) == ["a", "a", "d"]

    asyncio.run(main())
    assert sorted(words) == ["a", "a", "d"]


def test_a_thread_waits_until_those_that_are_set_aside_have_ended() -> None:
    db = Database()
    words = db.table(str)

    async def main() -> list[str]:
        begun, go_on, order = asyncio.Event(), asyncio.Event(), list[str]()

        async def long() -> None:
            async with db.transaction():
                words.add("a")
                begun.set()
                await go_on.wait()
                order.append("the transaction")

        def write() -> None:
            words.add("c")
            order.append("the thread")

        task = asyncio.create_task(long())
        await begun.wait()
        words.add("b")
        thread = asyncio.create_task(asyncio.to_thread(write))
        await asyncio.sleep(0.05)
        go_on.set()
        await task
        await thread
        return order

    assert asyncio.run(main()) == ["the transaction", "the thread"]
    assert sorted(words) == ["a", "b", "c"]


def test_a_transaction_that_nobody_ends_is_undone_by_the_garbage_collector() -> None:
    db = Database()
    words = db.table(str)

    async def main() -> None:
        held = [db.transaction()]

        async def forgotten() -> None:
            held[0].__enter__()
            words.add("a")

        await asyncio.create_task(forgotten())
        words.add("b")
        held.clear()

    asyncio.run(main())
    words.add("c")
    assert sorted(words) == ["b", "c"]
    assert db._engine.aside == ()


async def _again(db: Database, table: Table[Item, int], tries: list[int]) -> None:
    @db.transaction(retry=2)
    async def count() -> int:
        item = table[1]
        tries.append(item.value)
        table.upsert(item._replace(value=item.value + 1))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return item.value

    async def other() -> None:
        await asyncio.sleep(0)
        table.upsert(Item(1, 10 * len(tries)))

    found = await asyncio.gather(count(), other())
    assert found[0] == 10


def test_a_function_runs_again_after_a_conflict() -> None:
    db = Database()
    table = db.table(Item, key="key")
    table.add(Item(1, 0))
    tries: list[int] = []
    asyncio.run(_again(db, table, tries))
    assert (tries, list(table)) == ([0, 10], [Item(1, 11)])


def test_a_function_runs_again_so_often_and_no_more() -> None:
    db = Database()
    words = db.table(str)
    tries: list[str] = []

    @db.transaction(retry=2)
    def never(word: str) -> None:
        tries.append(word)
        words.add(word)
        raise ConflictError("as if")

    @db.transaction(retry=0)
    def once(word: str) -> str:
        words.add(word)
        return word

    with pytest.raises(ConflictError):
        never("a")
    assert (tries, list(words)) == (["a"] * 3, [])
    with pytest.raises(ConflictError), db.transaction():
        never("a")
    assert (len(tries), once("b"), list(words)) == (4, "b", ["b"])
    assert never.__name__ == "never"


def test_a_block_cannot_run_again() -> None:
    db = Database()
    with pytest.raises(TransactionError, match="decorate a function"), db.transaction(retry=3):
        raise AssertionError

    async def main() -> None:
        async with db.transaction(retry=3):
            raise AssertionError

    with pytest.raises(TransactionError, match="decorate a function"):
        asyncio.run(main())
    for wrong in (-1, True, "3"):
        with pytest.raises(PlanError, match="give a number"):
            db.transaction(retry=wrong)  # type: ignore[arg-type]
    with pytest.raises(TransactionError, match="retry=0"):
        db.transaction()(print)
