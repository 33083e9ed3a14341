"""Whatever is given commits with the tables: drivers, SQLAlchemy, both kinds of each, Django."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, event, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, scoped_session
from sqlalchemy.orm import sessionmaker as session_maker

from reactive import Database, PlanError, TransactionError
from tests.borders.two_commits.shop import Order, Shop

aiosqlite = pytest.importorskip("aiosqlite")
apsw = pytest.importorskip("apsw")
INSERT = "insert into orders values (?, ?, ?)"
NAMED = text("insert into orders values (:id, :customer, :total)")


class Base(DeclarativeBase): ...


class Mapping(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    customer: Mapped[str]
    total: Mapped[int]


def values(order: Order) -> dict[str, Any]:
    return {"id": order.id, "customer": order.customer, "total": order.total}


def plain(order: Order) -> tuple[Any, ...]:
    return order.id, order.customer, order.total


class Refused(Exception): ...


class Way:
    """A driver object, and a function that writes rows by it."""

    def __init__(self, given: Any, insert: Any) -> None:
        self.given, self.insert = given, insert


def with_sqlite(file: Path, **options: Any) -> Iterator[Way]:
    sql = sqlite3.connect(file, **options)
    yield Way(sql, lambda order: sql.execute(INSERT, plain(order)))
    sql.close()


def without_isolation(file: Path) -> Iterator[Way]:
    yield from with_sqlite(file, isolation_level=None)


def with_apsw(file: Path) -> Iterator[Way]:
    sql = apsw.Connection(str(file))
    yield Way(sql, lambda order: sql.execute(INSERT, plain(order)))
    sql.close()


def with_a_connection(file: Path) -> Iterator[Way]:
    engine = create_engine(f"sqlite:///{file}")
    with engine.connect() as sql:
        yield Way(sql, lambda order: sql.execute(NAMED, values(order)))
    engine.dispose()


def with_a_session(file: Path) -> Iterator[Way]:
    engine = create_engine(f"sqlite:///{file}")
    with Session(engine) as session:
        yield Way(session, lambda order: session.add(Mapping(**values(order))))
    engine.dispose()


def with_a_scoped_session(file: Path) -> Iterator[Way]:
    engine = create_engine(f"sqlite:///{file}")
    session = scoped_session(session_maker(engine))
    yield Way(session, lambda order: session.add(Mapping(**values(order))))
    session.remove()
    engine.dispose()


def with_begin_by_events(file: Path) -> Iterator[Way]:
    """SQLAlchemy with the events that its manual recommends for savepoints of SQLite."""
    engine = create_engine(f"sqlite:///{file}")

    @event.listens_for(engine, "connect")
    def connect(connection: Any, record: Any) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN")

    with Session(engine) as session:
        yield Way(session, lambda order: session.add(Mapping(**values(order))))
    engine.dispose()


WAYS = [
    *(with_sqlite, without_isolation, with_apsw, with_a_connection, with_a_session),
    *(with_a_scoped_session, with_begin_by_events),
]


@pytest.mark.parametrize("ways", WAYS)
def test_both_commit_or_neither_does(shop: Shop, ways: Any) -> None:
    for way in ways(shop.file):
        with shop.db.transaction(commit_with=way.given):
            way.insert(Order(2, "bob", 6))
            shop.orders.add(Order(2, "bob", 6))
        shop.check()
        for order, raises in [(Order(3, "cy", 0), ZeroDivisionError), (Order(3, "cy", 7), Refused)]:
            with pytest.raises(raises), shop.db.transaction(commit_with=way.given):
                way.insert(order)
                shop.orders.add(order)
                if order.total:
                    raise Refused
            shop.check()
        duplicate = (IntegrityError, sqlite3.IntegrityError, apsw.ConstraintError)
        with pytest.raises(duplicate), shop.db.transaction(commit_with=way.given):
            shop.orders.add(Order(4, "dan", 7))
            way.insert(Order(2, "bob", 6))
        shop.check()
        with shop.db.transaction(commit_with=way.given):
            way.insert(Order(5, "eve", 6))
            shop.orders.add(Order(5, "eve", 6))
        shop.check()


async def with_aiosqlite(file: Path) -> Any:
    async with aiosqlite.connect(file) as sql:
        yield Way(sql, lambda order: sql.execute(INSERT, plain(order)))


async def with_aiosqlite_of_no_isolation(file: Path) -> Any:
    async with aiosqlite.connect(file, isolation_level=None) as sql:
        yield Way(sql, lambda order: sql.execute(INSERT, plain(order)))


async def with_an_async_connection(file: Path) -> Any:
    engine = create_async_engine(f"sqlite+aiosqlite:///{file}")
    async with engine.connect() as sql:
        yield Way(sql, lambda order: sql.execute(NAMED, values(order)))
    await engine.dispose()


async def with_an_async_session(file: Path) -> Any:
    engine = create_async_engine(f"sqlite+aiosqlite:///{file}")
    async with AsyncSession(engine) as session:

        async def insert(order: Order) -> None:
            session.add(Mapping(**values(order)))

        yield Way(session, insert)
    await engine.dispose()


ASYNC_WAYS = [
    *(with_aiosqlite, with_aiosqlite_of_no_isolation),
    *(with_an_async_connection, with_an_async_session),
]


@pytest.mark.parametrize("ways", ASYNC_WAYS)
def test_so_do_asynchronous_ones(shop: Shop, ways: Any) -> None:
    async def main() -> None:
        async for way in ways(shop.file):
            with pytest.raises(TransactionError, match="async with"):
                shop.db.transaction(commit_with=way.given).__enter__()
            async with shop.db.transaction(commit_with=way.given):
                await way.insert(Order(2, "bob", 6))
                shop.orders.add(Order(2, "bob", 6))
            shop.check()
            for order, raises in [
                (Order(3, "cy", 0), ZeroDivisionError),
                (Order(3, "cy", 7), Refused),
            ]:
                with pytest.raises(raises):
                    async with shop.db.transaction(commit_with=way.given):
                        await way.insert(order)
                        shop.orders.add(order)
                        if order.total:
                            raise Refused
                shop.check()
            with pytest.raises((IntegrityError, sqlite3.IntegrityError)):
                async with shop.db.transaction(commit_with=way.given):
                    shop.orders.add(Order(4, "dan", 7))
                    await way.insert(Order(2, "bob", 6))
            shop.check()

    asyncio.run(main())


def test_other_tasks_see_the_last_commit_and_a_cancellation_waits_for_the_answer(
    shop: Shop,
) -> None:
    class Slow:
        """A connection that answers on request."""

        def __init__(self) -> None:
            self.asked, self.answer = asyncio.Event(), asyncio.Event()

        async def commit(self) -> None:
            self.asked.set()
            await self.answer.wait()
            shop.sql.commit()

        async def rollback(self) -> None:
            shop.sql.rollback()

    async def write(slow: Slow, number: int) -> None:
        async with shop.db.transaction(commit_with=slow):
            shop.put(Order(number, "bob", 6))

    async def main() -> None:
        for number, is_cancelled in ((2, False), (3, True)):
            slow, old = Slow(), shop.state()
            writing = asyncio.create_task(write(slow, number))
            await slow.asked.wait()
            assert shop.state() == old
            if is_cancelled:
                writing.cancel()
            await asyncio.sleep(0)
            slow.answer.set()
            done = await asyncio.gather(writing, return_exceptions=True)
            assert isinstance(done[0], asyncio.CancelledError) is is_cancelled
            assert shop.state() != old
            shop.check()
        slow = Slow()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                asyncio.get_running_loop().call_later(0.05, slow.answer.set)
                await write(slow, 4)
        shop.check()

    asyncio.run(main())


def test_what_commits_each_statement_by_itself_is_refused(shop: Shop) -> None:
    engine = create_engine(f"sqlite:///{shop.file}", isolation_level="AUTOCOMMIT")
    other = create_engine(f"sqlite:///{shop.file}").execution_options(isolation_level="AUTOCOMMIT")
    before = shop.state()
    for found in (engine, other):
        for given in (Session(found), found.connect()):
            with (
                pytest.raises(TransactionError, match="committed by itself"),
                shop.db.transaction(commit_with=given),
            ):
                raise AssertionError
            given.close()
    assert shop.state() == before
    shop.check()


def test_a_session_of_two_databases_and_one_with_a_savepoint_are_refused(
    shop: Shop, tmp_path: Path
) -> None:
    one, two = (create_engine(f"sqlite:///{file}") for file in (shop.file, tmp_path / "two.db"))
    with Session(binds={Mapping: one}) as session:
        with (
            pytest.raises(TransactionError, match="several databases"),
            shop.db.transaction(commit_with=session),
        ):
            session.add(Mapping(**values(Order(2, "bob", 6))))
            session.flush()
            session.execute(text("create table t(n)"), bind_arguments={"bind": two})
        with shop.db.transaction(commit_with=session):
            session.add(Mapping(**values(Order(2, "bob", 6))))
            shop.orders.add(Order(2, "bob", 6))
        shop.check()
    with Session(one) as session:
        with (
            pytest.raises(TransactionError, match="savepoint"),
            shop.db.transaction(commit_with=session),
        ):
            session.begin_nested()
        with shop.db.transaction(commit_with=session):
            with session.begin_nested():
                session.add(Mapping(**values(Order(3, "cy", 6))))
            shop.orders.add(Order(3, "cy", 6))
    shop.check()


def test_an_error_of_a_listener_after_the_commit_leaves_both_committed(shop: Shop) -> None:
    engine = create_engine(f"sqlite:///{shop.file}")
    with Session(engine) as session:

        @event.listens_for(session, "after_commit")
        def fail(session: Any) -> None:
            raise Refused

        with pytest.raises(Refused), shop.db.transaction(commit_with=session):
            session.add(Mapping(**values(Order(2, "bob", 6))))
            shop.orders.add(Order(2, "bob", 6))
    assert len(shop.orders) == 2
    shop.check()


def test_an_error_of_a_listener_before_the_commit_leaves_both_as_they_were(shop: Shop) -> None:
    engine, before = create_engine(f"sqlite:///{shop.file}"), shop.state()
    with Session(engine) as session:

        @event.listens_for(session, "before_commit")
        def fail(session: Any) -> None:
            raise Refused

        with pytest.raises(Refused), shop.db.transaction(commit_with=session):
            session.add(Mapping(**values(Order(2, "bob", 6))))
            shop.orders.add(Order(2, "bob", 6))
    assert shop.state() == before
    shop.check()


def test_what_makes_sessions_is_no_session(shop: Shop) -> None:
    engine = create_engine(f"sqlite:///{shop.file}")
    for given in (engine, session_maker(engine), Session):
        with pytest.raises(PlanError, match="a session"):
            shop.db.transaction(commit_with=given)


def test_a_sqlite_connection_of_autocommit_begins(tmp_path: Path) -> None:
    """A connection in the autocommit mode of Python 3.12, whose methods do nothing."""

    class Manual(sqlite3.Connection):
        autocommit = True

        def commit(self) -> None: ...

        def rollback(self) -> None: ...

    sql = sqlite3.connect(tmp_path / "manual.db", isolation_level=None, factory=Manual)
    sql.execute("create table orders(id, customer, total)")
    db = Database()
    orders = db.table(Order, key="id")
    with db.transaction(commit_with=sql):
        sql.execute(INSERT, (1, "ann", 5))
        orders.add(Order(1, "ann", 5))
    with pytest.raises(Refused), db.transaction(commit_with=sql):
        sql.execute(INSERT, (2, "ann", 5))
        raise Refused
    assert not sql.in_transaction
    found = sqlite3.connect(tmp_path / "manual.db").execute("select * from orders")
    assert Counter(Order(*row) for row in found) == Counter(orders)
