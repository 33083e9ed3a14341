"""Live tables have the states of the Postgres tables after each commit, in their order."""

from __future__ import annotations

from random import Random

import pytest

from tests.budget import TIMES
from tests.postgres.history import SCHEMA, History, Live
from tests.postgres.killing import kill_processes, kill_servers
from tests.postgres_server import PostgresServer, running_or_skipped

PATIENCE = 30
SEED = 3


@pytest.mark.long
@pytest.mark.parametrize("seed", range(30 * TIMES or 3))
def test_each_commit_is_a_commit(postgres: PostgresServer, database: str, seed: int) -> None:
    postgres.execute(database, SCHEMA)
    history = History(database, Random(seed))
    history.connect()
    for _ in range(20):
        history.step()
    history.settle()
    live = Live()
    reading = live.follow(database)
    live.source.catch_up(PATIENCE)
    assert live.state() == history.settle()
    history.states = history.states[-1:]
    live.states.clear()
    for _ in range(60):
        history.step()
    assert history.settle() == history.states[-1]
    live.source.catch_up(PATIENCE)
    assert live.states == history.states[1:]
    history.close()
    reading.stop()


def test_servers_are_killed() -> None:
    with running_or_skipped() as server:
        assert kill_servers(server, SEED, steps=40)


@pytest.mark.long
def test_processes_are_killed(postgres: PostgresServer) -> None:
    kill_processes(postgres, SEED, kills=2)
