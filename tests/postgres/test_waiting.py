"""Sources that begin before their server, or stop, and are repaired."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from reactive import (
    Batch,
    Database,
    Ingestion,
    NotifySource,
    PlanError,
    PostgresSource,
    SourceError,
)
from tests.postgres.test_source import PATIENCE, QUICK, until
from tests.postgres_server import PostgresServer, running_or_skipped


class User(NamedTuple):
    """A row."""

    id: int
    name: str


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with running_or_skipped() as made:
        yield made


@pytest.fixture
def dsn(server: PostgresServer) -> Iterator[str]:
    made = server.new_database()
    server.execute(made, "create table users (id int primary key, name text not null)")
    server.execute(made, "insert into users values (1, 'ann')")
    yield made
    if server._process is None:
        server.start()


def made_of(kind: str, dsn: str, server: PostgresServer) -> PostgresSource | NotifySource:
    """A source of each kind; that of triggers has its trigger."""
    if kind == "log":
        return PostgresSource(dsn, "users", **QUICK)
    source = NotifySource(dsn, "users", **QUICK)
    server.execute(dsn, source.trigger_sql())
    return source


@pytest.mark.parametrize("kind", ["log", "trigger"])
@pytest.mark.parametrize("file", [None, "users.db"])
def test_a_server_that_comes_later_is_waited_for(
    server: PostgresServer, dsn: str, kind: str, file: str | None, tmp_path: Path
) -> None:
    source = made_of(kind, dsn, server)
    server.stop()
    stopped: list[Ingestion[Any]] = []
    with Database(tmp_path / file if file else None) as db:
        users = db.table(User, key="id", name="users")
        reading = db.ingest(source, users, on_stop=stopped.append)
        until(lambda: reading.state == "waiting")
        assert "waits for its server" in str(reading.error)
        assert isinstance(reading.error, SourceError) and reading.error.__cause__ is not None
        assert "waiting" in repr(reading)
        server.start()
        until(lambda: list(users) == [(1, "ann")])
        assert reading.state == "running" and reading.error is None
        server.execute(dsn, "insert into users values (2, 'bob')")
        until(lambda: len(users) == 2)
        assert stopped == []
        reading.stop()
        assert stopped == [reading] and reading.state == "stopped"
        if isinstance(source, PostgresSource):
            source.drop()


def test_who_waits_for_a_source_waits_for_its_server_and_is_told_why(
    server: PostgresServer, dsn: str
) -> None:
    server.stop()
    db = Database()
    users = db.table(User, key="id")
    source = PostgresSource(dsn, "users", **QUICK)
    with db.ingest(source, users) as reading:
        until(lambda: reading.state == "waiting")
        with pytest.raises(
            TimeoutError, match=r"has not come in 0.2 s .*waits for its server"
        ) as e:
            source.catch_up(0.2)
        assert e.value.__cause__ is not None
        server.start()
        source.catch_up(PATIENCE)
        assert list(users) == [(1, "ann")]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("dbname=absent", "does not exist"),
        ("sslmode=require", "does not support SSL"),
        ("sslmode=nonsense", "invalid sslmode"),
        ("user=nobody", "does not exist"),
    ],
)
def test_a_server_that_refuses_is_not_waited_for(
    server: PostgresServer, dsn: str, change: str, said: str
) -> None:
    where = f"{dsn} {change}" if "sslmode" not in change else f"{dsn} host=localhost {change}"
    if change == "sslmode=require":
        where = where.replace("host=localhost", f"port={tcp_port(server)} host=127.0.0.1")
    db = Database()
    stopped: list[Any] = []
    source = PostgresSource(where, "users", **QUICK)
    reading = db.ingest(source, db.table(User, key="id"), on_stop=stopped.append)
    with pytest.raises(SourceError, match=said):
        reading.wait(timeout=PATIENCE)
    until(lambda: stopped == [reading])
    assert reading.state == "failed"


def tcp_port(server: PostgresServer) -> int:
    """The port of a listener of the test's own, which answers that it knows no SSL."""
    import socket
    import threading

    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        while True:
            try:
                taken, _ = listener.accept()
            except OSError:
                return
            taken.recv(64)
            taken.sendall(b"N")  # as a server without SSL does

    threading.Thread(target=answer, daemon=True).start()
    port: int = listener.getsockname()[1]
    return port


def test_a_limit_ends_the_wait(server: PostgresServer, dsn: str) -> None:
    server.stop()
    db = Database()
    source = PostgresSource(dsn, "users", give_up=0.1, **QUICK)
    reading = db.ingest(source, db.table(User, key="id"))
    with pytest.raises(SourceError, match="cannot read Postgres") as raised:
        reading.wait(timeout=PATIENCE)
    assert raised.value.__cause__ is not None and reading.state == "failed"
    with pytest.raises(
        SourceError, match=r"has stopped before its server was reached: .*cannot"
    ) as e:
        source.catch_up()
    assert e.value.__cause__ is reading.error is raised.value
    server.start()
    reading.start()
    source.catch_up(PATIENCE)
    reading.stop()


def test_a_wait_is_ended_by_stop(server: PostgresServer, dsn: str) -> None:
    server.stop()
    db = Database()
    source = PostgresSource(dsn, "users", backoff=(60, 60))
    reading = db.ingest(source, db.table(User, key="id"))
    until(lambda: reading.state == "waiting")
    reading.stop(timeout=PATIENCE)
    assert (reading.state, reading.error) == ("stopped", None)


def test_who_waits_is_told_what_a_commit_has_raised(server: PostgresServer, dsn: str) -> None:
    db = Database()
    users = db.table(User, key="id")
    view = users.select(lambda user: user.name.index("n")).materialize()
    source = PostgresSource(dsn, "users", temporary=False, **QUICK)
    reading = db.ingest(source, users)
    source.catch_up(PATIENCE)
    server.execute(dsn, "insert into users values (2, 'bob'), (3, 'lin')")
    with pytest.raises(SourceError, match=r"has stopped before .*substring not found") as raised:
        source.catch_up(PATIENCE)
    assert isinstance(raised.value.__cause__, ValueError)
    reading.start(on_error="drop")
    source.catch_up(PATIENCE)
    assert sorted(users) == [(1, "ann"), (3, "lin")]
    assert [error.row for error in reading.errors] == [(2, "bob")]
    assert view.count(1) == 1
    reading.stop()
    source.drop()


def test_a_source_whose_slot_is_gone_begins_anew_by_a_call(
    server: PostgresServer, dsn: str
) -> None:
    db = Database()
    users = db.table(User, key="id")
    source = PostgresSource(dsn, "users", temporary=False, **QUICK)
    with db.ingest(source, users) as reading:
        source.catch_up(PATIENCE)
    server.execute(dsn, "select pg_drop_replication_slot(%s)", (reading.token["slot"],))
    server.execute(dsn, "insert into users values (2, 'bob')")
    reading.start()
    with pytest.raises(SourceError, match="start\\(anew=True\\)"):
        reading.wait(timeout=PATIENCE)
    heard: list[Any] = []
    with users.subscribe(heard.append):
        reading.start(anew=True)
        source.catch_up(PATIENCE)
    assert sorted(users) == [(1, "ann"), (2, "bob")] and len(heard) == 1
    with pytest.raises(SourceError, match="is running already"):
        reading.start(anew=True)
    reading.stop()
    source.drop()


def test_a_nullable_column_is_told_and_its_first_null_stops_a_source_that_has_waited(
    server: PostgresServer, dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.execute(dsn, "alter table users alter name drop not null")
    db = Database()
    users = db.table(User, key="id")
    source = PostgresSource(dsn, "users", **QUICK)
    reading = db.ingest(source, users)
    with pytest.raises(SourceError, match="may be NULL"):
        reading.wait(timeout=PATIENCE)
    server.stop()
    reading.start()
    until(lambda: reading.state == "waiting")
    with caplog.at_level(logging.WARNING, "reactive"):
        server.start()
        source.catch_up(PATIENCE)
    assert "column 'name' of 'users' may be NULL" in caplog.text
    assert list(users) == [(1, "ann")]
    server.execute(dsn, "insert into users values (2, null)")
    with pytest.raises(Exception, match="name"):
        reading.wait(timeout=PATIENCE)
    assert list(users) == [(1, "ann")]


def numbers(since: Any, stop: Any) -> Iterator[Batch[int]]:
    for number in range(since or 0, 3):
        yield Batch([10 // (1 - number)], token=number + 1)


def test_a_source_of_any_kind_tells_that_it_has_stopped() -> None:
    db = Database()
    told: list[tuple[Any, ...]] = []
    rows = db.table(int)

    def note(reading: Ingestion[int]) -> None:
        told.append((reading.state, type(reading.error), reading.token))

    reading = db.ingest(numbers, rows, on_stop=note)
    until(lambda: len(told) == 1)
    assert told == [("failed", ZeroDivisionError, 1)]
    with pytest.raises(ZeroDivisionError):
        reading.run()
    assert len(told) == 2
    with pytest.raises(PlanError, match="cannot be read anew"):
        reading.start(anew=True)
    with pytest.raises(PlanError, match="no policy"):
        reading.start(on_error="skip")  # type: ignore[arg-type]


def test_a_service_may_start_it_again_where_it_is_told(caplog: pytest.LogCaptureFixture) -> None:
    db = Database()
    rows, tries = db.table(int), list[int]()

    def flaky(since: Any, stop: Any) -> Iterator[Batch[int]]:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError("not yet")
        yield Batch([1], token=1)

    def again(reading: Ingestion[int]) -> None:
        if reading.state == "failed":
            reading.start()
        else:
            raise RuntimeError("nobody listens")

    reading = db.ingest(flaky, rows, on_stop=again)
    until(lambda: reading.state == "ended" and "nobody listens" in caplog.text)
    assert list(rows) == [1] and len(tries) == 3
