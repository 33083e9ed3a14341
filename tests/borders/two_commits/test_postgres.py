"""Both commit or neither does beside a real Postgres server, also if it is killed in the middle."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from reactive import Database, Sum, TransactionError
from tests.borders.two_commits.shop import Order
from tests.budget import cases
from tests.postgres_server import PostgresServer, running_or_skipped

psycopg = pytest.importorskip("psycopg")
psycopg2 = pytest.importorskip("psycopg2")
sqlalchemy = pytest.importorskip("sqlalchemy")
pytest.importorskip("sqlalchemy.orm")
PATIENCE = 60
SCHEMA = """
create table orders(id integer primary key, customer text, total integer);
create function slow() returns trigger language plpgsql as
    $$ begin if new.total = 13 then perform pg_sleep(20); end if; return new; end $$;
create constraint trigger slowly after insert on orders deferrable initially deferred
    for each row execute function slow();
create table customers(name text primary key deferrable initially deferred);
"""
COMMITS = "select count(*) from pg_stat_activity where query ilike 'commit' and state = 'active'"


class Store:
    """A table of orders beside one of Postgres."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.dsn = server.new_database()
        server.execute(self.dsn, SCHEMA)
        self._open: list[Any] = []
        self.db = Database()
        self.orders: Any = self.db.table(Order, key="id", reread=self.read)
        self.notes: Any = self.db.table(str, name="notes")
        grouped = self.orders.group_by(lambda o: o.customer)
        self.spent: Any = grouped.aggregate(Sum(lambda o: o.total)).materialize()
        self.parts: Any = self.orders.select(lambda o: 60 // o.total).materialize()

    def opened(self, sql: Any) -> Any:
        self._open.append(sql)
        return sql

    def close(self) -> None:
        self.db.close()
        for sql in self._open:
            with suppress(psycopg.Error, sqlalchemy.exc.DBAPIError):
                sql.close()

    def read(self) -> list[Order]:
        rows = self.server.execute(self.dsn, "select id, customer, total from orders")
        return [Order(*row) for row in rows]

    def check(self) -> None:
        assert Counter(self.orders) == Counter(self.read())
        query = "select customer, sum(total) from orders group by customer"
        assert Counter(self.spent) == Counter(self.server.execute(self.dsn, query))
        self.parts.verify()

    def wait(self) -> None:
        """Wait until nothing is in doubt."""
        until = time.monotonic() + PATIENCE
        while self.db.in_doubt:
            assert time.monotonic() < until, self.db.in_doubt
            time.sleep(0.02)


@pytest.fixture
def store(postgres: PostgresServer) -> Iterator[Store]:
    made = Store(postgres)
    yield made
    made.close()


def by_driver(module: Any) -> Callable[[Store], Any]:
    def connect(store: Store) -> tuple[Any, Callable[[Order], object]]:
        sql = store.opened(module.connect(store.dsn))
        return sql, lambda o: _insert(sql.cursor(), o)

    return connect


def by_sqlalchemy(store: Store) -> tuple[Any, Callable[[Order], object]]:
    engine = sqlalchemy.create_engine(
        "postgresql+psycopg://",
        creator=lambda: psycopg.connect(store.dsn),
        poolclass=sqlalchemy.pool.NullPool,
    )
    session = store.opened(sqlalchemy.orm.Session(engine))
    statement = sqlalchemy.text("insert into orders values (:id, :customer, :total)")
    values = ("id", "customer", "total")
    return session, lambda o: session.execute(statement, {n: getattr(o, n) for n in values})


def _insert(cursor: Any, order: Order) -> None:
    values = (order.id, order.customer, order.total)
    cursor.execute("insert into orders values (%s, %s, %s)", values)


WAYS = [by_driver(psycopg), by_driver(psycopg2), by_sqlalchemy]
NAMES = ["psycopg", "psycopg2", "sqlalchemy"]


def put(store: Store, insert: Callable[[Order], object], order: Order) -> None:
    insert(order)
    store.orders.add(order)


@pytest.mark.parametrize("way", WAYS, ids=NAMES)
def test_both_commit_or_neither_does(store: Store, way: Any) -> None:
    sql, insert = way(store)
    with store.db.transaction(commit_with=sql):
        put(store, insert, Order(1, "ann", 5))
    store.check()
    with pytest.raises(ZeroDivisionError), store.db.transaction(commit_with=sql):
        put(store, insert, Order(2, "bob", 0))
    store.check()
    with store.db.transaction(commit_with=sql):
        put(store, insert, Order(2, "bob", 6))
    store.check()
    assert len(store.orders) == 2


@pytest.mark.parametrize("way", WAYS, ids=NAMES)
def test_a_refusal_at_commit_passes(store: Store, way: Any) -> None:
    sql, insert = way(store)
    execute = sql.cursor().execute if hasattr(sql, "cursor") else sql.connection().exec_driver_sql
    with pytest.raises(Exception, match="duplicate key"), store.db.transaction(commit_with=sql):
        put(store, insert, Order(1, "ann", 5))
        for _ in range(2):
            execute("insert into customers values ('ann')")  # looked at at COMMIT
    assert len(store.orders) == 0
    store.check()
    with store.db.transaction(commit_with=sql):
        put(store, insert, Order(1, "ann", 5))
    store.check()


def test_a_serialization_failure_passes(store: Store) -> None:
    one, two = (store.opened(psycopg.connect(store.dsn)) for _ in range(2))
    for sql in (one, two):
        sql.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
        sql.execute("select sum(total) from orders")
    with store.db.transaction(commit_with=one):
        put(store, lambda o: _insert(one.cursor(), o), Order(1, "ann", 5))
    with (
        pytest.raises(psycopg.errors.SerializationFailure),
        store.db.transaction(commit_with=two),
    ):
        put(store, lambda o: _insert(two.cursor(), o), Order(2, "bob", 5))
    store.check()
    assert len(store.orders) == 1


@pytest.mark.parametrize("way", WAYS, ids=NAMES)
def test_a_transaction_with_a_failed_statement_is_refused(store: Store, way: Any) -> None:
    """Postgres would roll back silently at COMMIT."""
    sql, insert = way(store)
    with (
        pytest.raises(TransactionError, match="has failed"),
        store.db.transaction(commit_with=sql),
    ):
        put(store, insert, Order(1, "ann", 5))
        with suppress(psycopg.Error, psycopg2.Error, sqlalchemy.exc.DBAPIError):
            insert(Order(1, "ann", 5))
    assert len(store.orders) == 0
    store.check()


def test_autocommit_is_refused(store: Store) -> None:
    for module in (psycopg, psycopg2):
        sql = module.connect(store.dsn)
        sql.autocommit = True
        with (
            pytest.raises(TransactionError, match="autocommit mode"),
            store.db.transaction(commit_with=sql),
        ):
            raise AssertionError
        sql.close()
        sql = module.connect(store.dsn)
        sql.close()
        with (
            pytest.raises(TransactionError, match="connection is closed"),
            store.db.transaction(commit_with=sql),
        ):
            store.orders.add(Order(1, "ann", 5))
    store.check()


def test_an_asynchronous_connection(store: Store) -> None:
    import asyncio

    async def main() -> None:
        sql = await psycopg.AsyncConnection.connect(store.dsn)
        for order, raises in [(Order(1, "ann", 5), ()), (Order(2, "ann", 0), ZeroDivisionError)]:
            with suppress(*(raises,) if raises else ()):
                async with store.db.transaction(commit_with=sql):
                    values = (order.id, order.customer, order.total)
                    await sql.execute("insert into orders values (%s, %s, %s)", values)
                    store.orders.add(order)
        await sql.close()
        assert len(store.orders) == 1
        store.check()

    asyncio.run(main())


@pytest.mark.parametrize("way", cases(WAYS[0], WAYS[2]))
def test_a_server_killed_in_the_middle_of_the_commit(way: Any) -> None:
    with running_or_skipped() as server:
        store = Store(server)
        sql, insert = way(store)
        with store.db.transaction(commit_with=sql):
            put(store, insert, Order(1, "ann", 5))

        def kill() -> None:
            while server.execute(store.dsn, COMMITS) == [(0,)]:
                time.sleep(0.01)
            server.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        with (
            pytest.raises(TransactionError, match="outcome unknown") as info,
            store.db.transaction(commit_with=sql),
        ):
            put(store, insert, Order(2, "bob", 13))  # its commit takes long
            store.notes.add("bought")
        killer.join(PATIENCE)
        assert "in doubt: table 'Order'" in str(info.value) and "'notes'" in str(info.value)
        doubtful(store, [Order(1, "ann", 5)])
        server.start()
        store.wait()
        assert list(store.orders) == [Order(1, "ann", 5)]
        goes_on(store, way)


def through_the_driver(sql: Any, how: str) -> None:
    if how == "text":
        sql.cursor().execute("commit")
    elif how == "with":
        with sql:
            pass
    else:
        getattr(sql, how)()


@pytest.mark.long
@pytest.mark.parametrize("how", ["commit", "rollback", "text", "with"])
@pytest.mark.parametrize("goes_on", [False, True])
@pytest.mark.parametrize("is_joined", [False, True])
@pytest.mark.parametrize("module", [psycopg, psycopg2], ids=["psycopg", "psycopg2"])
def test_who_ends_it_within_the_block_is_told(
    store: Store, module: Any, how: str, goes_on: bool, is_joined: bool
) -> None:
    if module is psycopg and how == "with":
        pytest.skip("it closes the connection")
    if module is psycopg and how == "text" and goes_on and not is_joined:
        pytest.skip("nobody commits by text where commit() is refused")
    sql = store.opened(module.connect(store.dsn))
    if is_joined:
        _insert(sql.cursor(), Order(1, "ann", 5))
    with (
        pytest.raises((TransactionError, psycopg.ProgrammingError), match="within"),
        store.db.transaction(commit_with=sql),
    ):
        store.orders.add(Order(2, "bob", 6))
        _insert(sql.cursor(), Order(2, "bob", 6))
        through_the_driver(sql, how)
        if goes_on:
            _insert(sql.cursor(), Order(3, "bob", 6))
    assert not store.orders
    is_refused = module is psycopg and not is_joined and how != "text"
    stands = [] if is_refused or how == "rollback" else [1, 2][not is_joined :]
    if module is psycopg2 and how == "text" and goes_on:  # which does not begin another one
        stands.append(3)
    assert [order.id for order in store.read()] == stands
    store.db.reread()
    with store.db.transaction(commit_with=sql):
        put(store, lambda o: _insert(sql.cursor(), o), Order(4, "dan", 7))
    store.check()


@pytest.mark.parametrize("is_joined", [False, True])
def test_a_transaction_of_psycopg_within_the_block_is_a_savepoint(
    store: Store, is_joined: bool
) -> None:
    sql = store.opened(psycopg.connect(store.dsn, row_factory=psycopg.rows.dict_row))
    if is_joined:
        sql.execute("select 1")
    with store.db.transaction(commit_with=sql):
        with suppress(psycopg.IntegrityError), sql.transaction():
            for _ in range(2):
                _insert(sql.cursor(), Order(1, "ann", 6))
        with sql.transaction():
            put(store, lambda o: _insert(sql.cursor(), o), Order(2, "bob", 6))
        with pytest.raises(ZeroDivisionError), sql.transaction():
            _insert(sql.cursor(), Order(3, "cy", 6))
            raise ZeroDivisionError
    store.check()
    transaction = store.db.transaction(commit_with=sql)
    with pytest.raises(ZeroDivisionError), transaction, sql.transaction():
        put(store, lambda o: _insert(sql.cursor(), o), Order(4, "dan", 0))
    store.check()
    with store.db.transaction(commit_with=sql):  # and nothing is done in SQL
        store.notes.add("to")
    assert (len(store.orders), list(store.notes)) == (1, ["to"])


def test_a_server_killed_when_it_has_committed() -> None:
    class AnswerLost(psycopg.Connection):  # type: ignore[misc, name-defined]
        @contextmanager
        def transaction(self) -> Iterator[Any]:
            with super().transaction() as block:
                yield block
            server.kill()
            self.execute("select 1")

    with running_or_skipped() as server:
        store = Store(server)
        sql = store.opened(AnswerLost.connect(store.dsn))
        with (
            pytest.raises(TransactionError, match="outcome unknown"),
            store.db.transaction(commit_with=sql),
        ):
            put(store, lambda o: _insert(sql.cursor(), o), Order(2, "bob", 6))
        doubtful(store, [])
        server.start()
        store.wait()
        assert list(store.orders) == [Order(2, "bob", 6)]
        goes_on(store, WAYS[0])


def doubtful(store: Store, rows: list[Order]) -> None:
    """Check that tables show the last commit, and that rows in doubt commit with nothing."""
    assert list(store.orders) == rows
    store.parts.verify()
    assert [*store.db.in_doubt] == ["Order"]

    class Other:
        def commit(self) -> None:
            raise AssertionError

        def rollback(self) -> None: ...

    with (
        pytest.raises(TransactionError, match="was in doubt"),
        store.db.transaction(commit_with=Other()),
    ):
        store.orders.add(Order(7, "eve", 5))
    assert list(store.orders) == rows
    store.notes.add("others go on")


def goes_on(store: Store, way: Any) -> None:
    sql, insert = way(store)
    with store.db.transaction(commit_with=sql):
        put(store, insert, Order(9, "eve", 5))
    store.check()
    store.close()
