"""Durable tables in Postgres whose server, connection or process is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import psycopg2
import pytest

from reactive import Count, Database, Sum
from reactive.borders.durable import postgres_store
from reactive.borders.durable.sqlite_tables import Cost
from reactive.errors import DurabilityError
from tests.postgres.killing import ENDED
from tests.postgres_server import PostgresServer, running_or_skipped

STORE_ENDED = ENDED.replace("'reactive'", "'reactive store'")


class Order(NamedTuple):
    """A row."""

    id: int
    town: str | None
    total: float


def orders_of(db: Database) -> Any:
    return db.table(Order, key="id", name="orders")


def test_rows_are_columns_that_others_read(postgres: PostgresServer) -> None:
    database = postgres.new_database()
    name = database.rpartition("=")[2]
    with Database(postgres.url(name)) as db:
        orders_of(db).add_all([Order(1, "Ulm", 2.5), Order(2, None, -0.0), Order(3, "a\0b", 1)])
        with pytest.raises(DurabilityError, match="is open in another"):
            Database(postgres.url(name))
    query = "select id, town, total, _odd from reactive.orders order by id"
    found = postgres.execute(database, query)
    assert found[:2] == [(1, "Ulm", 2.5, None), (2, None, 0.0, None)]
    with Database(postgres.url(name)) as db:
        second, third = sorted(orders_of(db))[1:]
        assert repr(second) == "Order(id=2, town=None, total=-0.0)"
        assert repr(third) == "Order(id=3, town='a\\x00b', total=1)"


def test_the_state_of_a_view_is_read_again(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cost, "pays", True)
    name = postgres.new_database().rpartition("=")[2]
    for state in ("computed", "read", "read"):
        with Database(postgres.url(name), keep=10) as db:
            orders = orders_of(db)
            towns = orders.group_by(lambda o: o.town).aggregate(Count(), Sum(lambda o: o.id))
            view = towns.materialize("towns", kept=True)
            assert view.kept_state().state == state
            number = len(orders)
            orders.add_all([Order(number, "Ulm", 2.5), Order(number + 1, None, 1.0)])
            db.verify()


@pytest.mark.long
def test_what_is_acknowledged_outlasts_the_server_and_the_connection() -> None:
    """A commit that was not written is written over another connection."""
    random = Random(5)
    with running_or_skipped() as server:
        database = server.new_database()
        name = database.rpartition("=")[2]
        wanted: dict[int, Order] = {}
        db = Database(server.url(name))
        orders = orders_of(db)
        for number in range(40):
            order = Order(random.randrange(5), None, float(number))
            if random.random() < 0.2:
                if random.random() < 0.5:
                    server.kill()
                    server.start()
                else:
                    server.execute(database, STORE_ENDED)
            orders.upsert(order)
            wanted[order.id] = order
            assert {row.id: row for row in orders} == wanted
        db.close()
        with Database(server.url(name)) as db:
            assert {row.id: row for row in orders_of(db)} == wanted


def test_what_cannot_be_written_has_not_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_store, "PATIENCE", 0.2)
    with running_or_skipped() as server:
        url = server.url(server.new_database().rpartition("=")[2])
        with Database(url) as db:
            orders = orders_of(db)
            orders.add(Order(1, "Ulm", 1.0))
            server.kill()
            with pytest.raises(DurabilityError, match="cannot write"):
                orders.add(Order(2, "Bonn", 2.0))
            server.start()
        with Database(url) as db:
            assert [row.id for row in orders_of(db)] == [1]


@pytest.mark.parametrize("stands", [True, False])
def test_a_lost_answer_is_found_out(
    postgres: PostgresServer, stands: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit whose answer is lost with its connection exists once, successful or not."""
    database = postgres.new_database()
    with Database(postgres.url(database.rpartition("=")[2])) as db:
        orders = orders_of(db)
        orders.add(Order(1, "Ulm", 1.0))
        store: Any = db._engine.journal.store
        real = store._connection

        class Losing:
            closed = 0

            def __getattr__(self, name: str) -> Any:
                return getattr(real, name)

            def commit(self) -> None:
                if stands:
                    real.commit()
                real.close()
                self.closed = 1
                raise psycopg2.OperationalError("the connection is lost")

        monkeypatch.setattr(store, "_connection", Losing())
        orders.add(Order(2, "Bonn", 2.0))
        assert len(orders) == 2
        orders.add(Order(3, "Köln", 2.0))
    with Database(postgres.url(database.rpartition("=")[2])) as db:
        assert sorted(row.id for row in orders_of(db)) == [1, 2, 3]


def test_a_database_that_lost_its_lock_writes_no_more(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_store, "PATIENCE", 0.2)
    database = postgres.new_database()
    url = postgres.url(database.rpartition("=")[2])
    db = Database(url)
    orders = orders_of(db)
    orders.add(Order(1, "Ulm", 1.0))
    postgres.execute(database, STORE_ENDED)
    with Database(url) as other:
        orders_of(other).add(Order(2, "Bonn", 2.0))
        with pytest.raises(DurabilityError):
            orders.add(Order(3, "Köln", 3.0))
    with pytest.raises(DurabilityError, match="close the database, and open it anew"):
        orders.add(Order(3, "Köln", 3.0))
    assert len(orders) == 1
    db.close()


WRITER = """
import sys
from reactive import Count, Database, Sum
with Database(sys.argv[1], durability=sys.argv[2]) as db:
    numbers, doubles = db.table(int, name="numbers"), db.table(int, name="doubles", key=abs)
    while True:
        number = len(numbers)
        with db.transaction():
            numbers.add(number)
            doubles.add(2 * number)
        if sys.argv[2] == "commit":
            print(number, flush=True)
"""


@pytest.mark.long
@pytest.mark.parametrize("level", ["commit", "group"])
def test_a_process_that_is_killed_leaves_a_prefix(postgres: PostgresServer, level: str) -> None:
    database = postgres.new_database()
    url = postgres.url(database.rpartition("=")[2])
    acknowledged = -1
    root = Path(__file__).parents[3]
    for lines in (1, 7, 30):
        command = [sys.executable, "-c", WRITER, url, level]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root) as child:
            assert child.stdout is not None
            if level == "commit":
                for _ in range(lines):
                    acknowledged = int(child.stdout.readline())
            else:
                count = "select count(*) from pg_stat_activity where application_name = %s"
                while postgres.execute(database, count, ["reactive store"]) == [(0,)]:
                    pass
            child.send_signal(signal.SIGKILL)
        while True:
            try:
                db = Database(url)
                break
            except DurabilityError:  # the server has not missed it yet
                pass
        with db:
            numbers = sorted(db.table(int, name="numbers"))
            assert numbers == list(range(len(numbers)))
            assert len(numbers) > acknowledged
            doubles = sorted(db.table(int, name="doubles", key=abs))
            assert doubles == [2 * number for number in numbers]
