"""Rows per second of a table of Postgres that is followed, beside a loop by hand with the driver.

    snapshot    200,000 rows into a keyed table    twin: a cursor, a class, `add_all`
    changes     100,000 rows in transactions of 100   twin: the same messages, a dictionary of rows
    latency     from COMMIT until a view's subscriber is notified, of one row
    durable     commits of one row to a table that Postgres keeps   twin: INSERT, commit

The twin of changes is a minimal program: it decodes inserts with the same decoder, and
has one table, no transactions, no errors and no position.

python -m asv_benchmarks.postgres
"""

from __future__ import annotations

import select
import threading
import time
from statistics import median
from typing import Any, NamedTuple

import psycopg2
import psycopg2.extras

from reactive import Count, Database, PostgresSource
from reactive.borders.sources.postgres import feed
from tests.postgres_server import PostgresServer, running

ROWS = 200_000
CHANGES, EACH = 100_000, 100
COMMITS = 200


class Item(NamedTuple):
    """A row."""

    id: int
    name: str
    price: float
    kind: str


TABLE = "create table items (id int primary key, name text, price float8, kind text)"
FILL = "insert into items select n, 'name ' || n, n / 7.0, 'kind ' || n % 50 from generate_series"


def snapshot(server: PostgresServer) -> tuple[float, float]:
    """Seconds of a source, and of the twin."""
    dsn = server.new_database()
    server.execute(dsn, TABLE)
    server.execute(dsn, f"{FILL}(1, {ROWS}) n")
    live = Database().table(Item, key="id")
    began = time.perf_counter()
    connection = psycopg2.connect(dsn)
    with connection, connection.cursor("items") as cursor:
        cursor.itersize = 5000
        cursor.execute("select id, name, price, kind from items")
        while rows := cursor.fetchmany(5000):
            live.add_all([Item(*row) for row in rows])
    connection.close()
    twin = time.perf_counter() - began
    db = Database()
    items = db.table(Item, key="id")
    source = PostgresSource(dsn, "items")
    began = time.perf_counter()
    with db.ingest(source, items):
        source.catch_up()
        ours = time.perf_counter() - began
        assert len(items) == ROWS
    return ours, twin


def changes(server: PostgresServer) -> tuple[float, float]:
    """Seconds of CPU and waiting for rows that were committed before, and of the twin."""
    dsn = server.new_database()
    server.execute(dsn, TABLE)
    db = Database()
    items = db.table(Item, key="id")
    source = PostgresSource(dsn, "items", temporary=False)
    reading = db.ingest(source, items)
    source.catch_up()
    reading.stop()
    server.execute(dsn, "select pg_create_logical_replication_slot('twin', 'pgoutput')")
    connection = psycopg2.connect(dsn)
    with connection.cursor() as cursor:
        for start in range(0, CHANGES, EACH):
            cursor.execute(f"{FILL}({start}, {start + EACH - 1}) n")
            connection.commit()
    connection.close()
    began = time.perf_counter()
    assert len(_by_hand(dsn)) == CHANGES
    twin = time.perf_counter() - began
    began = time.perf_counter()
    reading.start()
    source.catch_up()
    ours = time.perf_counter() - began
    assert len(items) == CHANGES
    reading.stop()
    source.drop()
    return ours, twin


def _by_hand(dsn: str) -> dict[int, Item]:
    kind = psycopg2.extras.LogicalReplicationConnection
    connection = psycopg2.connect(dsn, connection_factory=kind)
    cursor = connection.cursor()
    options = {"proto_version": "1", "publication_names": "reactive_items"}
    cursor.start_replication("twin", decode=False, options=options)
    items: dict[int, Item] = {}
    while len(items) < CHANGES:
        message = cursor.read_message()
        if message is None:
            select.select([connection], [], [], 1)
            continue
        event = feed.decode(message.payload)
        if isinstance(event, feed.Insert):
            number, name, price, of = event.new
            assert number is not None and name is not None and price is not None
            items[int(number)] = Item(int(number), name, float(price), of or "")
    connection.close()
    return items


def latencies(server: PostgresServer) -> tuple[list[float], list[float]]:
    """Return the seconds from before COMMIT, and from after it, to the notification of a row."""
    dsn = server.new_database()
    server.execute(dsn, TABLE)
    db = Database()
    items = db.table(Item, key="id")
    counts = items.group_by(lambda item: item.kind).aggregate(Count()).materialize()
    source = PostgresSource(dsn, "items")
    heard = threading.Event()
    when: list[float] = [0.0]

    def hear(delta: Any) -> None:
        when[0] = time.perf_counter()
        heard.set()

    before, after = [], []
    connection = psycopg2.connect(dsn)
    with db.ingest(source, items), counts.subscribe(hear), connection.cursor() as cursor:
        source.catch_up()
        for number in range(COMMITS):
            heard.clear()
            cursor.execute("insert into items values (%s, 'x', 1, 'a')", [number])
            began = time.perf_counter()
            connection.commit()
            done = time.perf_counter()
            heard.wait()
            before.append(when[0] - began)
            after.append(when[0] - done)
    connection.close()
    return before, after


def durable(server: PostgresServer) -> tuple[float, float]:
    """Return the seconds of a commit of one row through the store, and of a plain INSERT of it.

    Both are medians, measured in turns.
    """
    dsn = server.new_database()
    server.execute(dsn, TABLE)
    connection = psycopg2.connect(dsn)
    ours, twin = [], []
    with Database(server.url(dsn.rpartition("=")[2])) as db, connection.cursor() as cursor:
        items = db.table(Item, key="id", name="items")
        for number in range(5 * COMMITS):
            item = Item(number, f"name {number}", number / 7, "kind")
            began = time.perf_counter()
            cursor.execute("insert into items values (%s, %s, %s, %s)", item)
            connection.commit()
            twin.append(time.perf_counter() - began)
            began = time.perf_counter()
            items.add(item)
            ours.append(time.perf_counter() - began)
    connection.close()
    return median(ours), median(twin)


def main() -> None:
    with running() as server:
        ours, twin = snapshot(server)
        print(
            f"snapshot: {ROWS / ours:,.0f} rows/s, by hand {ROWS / twin:,.0f}, {ours / twin:.2f} x"
        )
        ours, twin = changes(server)
        print(
            f"changes: {CHANGES / ours:,.0f} rows/s, by hand {CHANGES / twin:,.0f}, "
            f"{ours / twin:.2f} x"
        )
        before, after = latencies(server)
        print(
            f"latency: median {1000 * median(before):.2f} ms from COMMIT, "
            f"{1000 * median(after):.2f} ms from its answer; "
            f"99% {1000 * sorted(before)[int(0.99 * COMMITS)]:.2f} ms"
        )
        ours, twin = durable(server)
        print(
            f"durable: {1000 * ours:.2f} ms for a commit of a row, {1000 * twin:.2f} for an "
            f"INSERT, {ours / twin:.2f} x"
        )


if __name__ == "__main__":
    main()
