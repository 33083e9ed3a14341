"""Mirrors of asynchronous engines."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import event, insert, select, update, util
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import (
    AsyncEngine,
    async_sessionmaker,
    create_async_engine,
)

from reactive import AsyncMirror, Database, PlanError, Sum, mirror
from tests.borders.mirrors.sessions import ACTS, Poisoned, World
from tests.borders.mirrors.shop import CLASSES, Base, Customer, Order


async def made(path: Path) -> AsyncEngine:
    engine = create_async_engine(f"sqlite+aiosqlite:///{path}")
    event.listen(engine.sync_engine, "connect", _keep)
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    return engine


def _keep(connection: Any, record: Any) -> None:
    connection.execute("pragma foreign_keys = on")


def test_asynchronous_sessions_are_followed(tmp_path: Path) -> None:
    async def main() -> None:
        engine = await made(tmp_path / "shop.db")
        sessions = async_sessionmaker(engine)
        db = Database()
        async with sessions() as session:
            session.add(Order(id=1, total=20, customer=Customer(name="ann")))
            await session.commit()
        m = mirror(db, sessions, Order, Customer)
        with pytest.raises(PlanError, match="it is awaited"):
            m[Order]
        await m
        assert isinstance(m, AsyncMirror)
        totals = m[Order].aggregate(Sum(lambda o: o.total)).materialize()
        async with sessions() as session:
            order = await session.get_one(Order, 1)
            order.total = 7
            await session.flush()
            assert list(totals) == [20]
            await session.commit()
            assert list(totals) == [7]
            await session.execute(update(Order).values(total=9))
            await session.rollback()
            assert list(totals) == [7]
        risky = m[Order].select(lambda o: 100 // o.total).materialize()
        async with sessions() as session:
            order = await session.get_one(Order, 1)
            order.total = 0
            with pytest.raises(ZeroDivisionError):
                await session.commit()
            await session.rollback()
            assert await session.scalar(select(Order.total)) == 7
        assert list(risky) == [14]
        async with sessions() as session, db.transaction(commit_with=session):
            order = await session.get_one(Order, 1)
            order.total = 10
        assert list(totals) == [10]
        await m.reload()
        m.close()
        await engine.dispose()

    asyncio.run(main())


def test_tasks_that_commit_together_take_turns(tmp_path: Path) -> None:
    async def main() -> None:
        engine = await made(tmp_path / "shop.db")
        sessions = async_sessionmaker(engine)
        db = Database()
        log = db.table(int, name="log")
        async with sessions.begin() as session:
            await session.execute(insert(Customer), [{"id": 1, "name": "a"}])
        async with mirror(db, sessions, Order, Customer) as m:
            total = m[Order].aggregate(Sum(lambda o: o.total)).materialize()
            sums: list[int] = []

            async def add(number: int) -> None:
                async with sessions.begin() as session:
                    session.add(Order(customer_id=1, total=number))
                async with db.transaction():
                    log.add(number)

            async def read() -> None:
                for _ in range(200):
                    sums.append(sum(total))
                    await asyncio.sleep(0)

            await asyncio.gather(read(), *(add(n) for n in range(1, 11)))
            assert list(total) == [55]
            assert sorted(log) == [*range(1, 11)]
            assert sums == sorted(sums)
        await engine.dispose()

    asyncio.run(main())


def test_a_mirror_that_could_not_be_loaded_leaves_nothing() -> None:
    async def main() -> None:
        engine = create_async_engine("sqlite+aiosqlite://")
        db = Database()
        with pytest.raises(SQLAlchemyError, match="no such table"):
            await mirror(db, engine, Order)
        assert db.tables() == []
        await engine.dispose()

    asyncio.run(main())


def test_random_asynchronous_sessions(tmp_path: Path) -> None:
    """Run the sessions of `test_sessions.py` by `run_sync`, with the same results."""

    async def main() -> None:
        engine = await made(tmp_path / "shop.db")
        sessions, random = async_sessionmaker(engine), Random()
        db = Database()
        m = await mirror(db, sessions, *CLASSES)
        world = World.__new__(World)
        world.engine, world.db, world.mirror, world.trace = engine.sync_engine, db, m, []
        world._make_views()
        for _ in range(8):
            async with sessions() as session:
                try:
                    for _ in range(4):
                        await session.run_sync(random.choice(ACTS), random)
                    await (session.commit() if random.random() < 0.8 else session.rollback())
                except (SQLAlchemyError, Poisoned):
                    await session.rollback()
            async with engine.connect() as connection:
                await connection.run_sync(lambda _: None)
            await _checked(world, engine)
        m.close()
        await engine.dispose()

    asyncio.run(main())


async def _checked(world: World, engine: AsyncEngine) -> None:
    await util.greenlet_spawn(world.check)
