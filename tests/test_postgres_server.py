"""The server that other tests talk to."""

from __future__ import annotations

from tests.postgres_server import PostgresServer, running_or_skipped


def test_databases_are_apart(postgres: PostgresServer, database: str) -> None:
    other = postgres.new_database()
    postgres.execute(database, "create table words (word text)")
    tables = "select count(*) from pg_tables where tablename = 'words'"
    assert postgres.execute(database, tables) == [(1,)]
    assert postgres.execute(other, tables) == [(0,)]


def test_a_commit_outlasts_a_server_that_is_killed() -> None:
    with running_or_skipped() as server:
        database = server.new_database()
        server.execute(database, "create table words (word text)")
        server.execute(database, "insert into words values (%s)", ["tea"])
        folder, pid = server.folder, server.pid
        server.kill()
        server.start()
        assert server.pid != pid
        assert server.execute(database, "select * from words") == [("tea",)]
    assert not folder.exists()
