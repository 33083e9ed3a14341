"""Histories during which the server, connections or the process that follows are killed.

server    killed and started again while clients are at work: all of its commits still are
          commits of the live tables, each once
process   one with a durable database is killed with SIGKILL, again and again: its file must
          finally equal the server
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from random import Random

from tests.postgres.history import SCHEMA, History, Live
from tests.postgres_server import PostgresServer

PATIENCE = 60
ENDED = (
    "select pg_terminate_backend(pid) from pg_stat_activity "
    "where application_name = 'reactive' and datname = current_database()"
)


def kill_servers(server: PostgresServer, seed: int, steps: int = 80) -> int:
    """Play a history whose server is killed, or its connections are; how often."""
    random = Random(seed)
    dsn = server.new_database()
    server.execute(dsn, SCHEMA)
    history = History(dsn, random)
    history.connect()
    live = Live()
    options = {"temporary": False, "backoff": (0.01, 0.1), "size": 3}
    reading = live.follow(dsn, **options)
    live.source.catch_up(PATIENCE)
    history.states.append(live.state())
    live.states.clear()
    kills = 0
    for _ in range(steps):
        history.step()
        if random.random() < 0.06:
            kills += 1
            if random.random() < 0.5:
                server.execute(dsn, ENDED)
            else:
                server.kill()
                server.start()
                history.connect()
    history.settle()
    live.source.catch_up(PATIENCE)
    history.close()
    reading.stop()
    live.source.drop()
    assert live.states == history.states[1:], f"seed {seed}"
    return kills


def kill_processes(server: PostgresServer, seed: int, kills: int = 4) -> int:
    """Play a history that is followed by a process with a durable database, which is killed."""
    random = Random(seed)
    dsn = server.new_database()
    server.execute(dsn, SCHEMA)
    history = History(dsn, random)
    history.connect()
    for _ in range(30):
        history.step()
    history.settle()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "live.db"
        for _ in range(kills):
            _follow_and_die(dsn, path, history, random)
        live = Live(path)
        reading = live.follow(dsn)
        wanted = history.settle()
        live.source.catch_up(PATIENCE)
        assert live.state() == wanted, f"seed {seed}"
        reading.stop()
        live.db.close()
        live.source.drop()
    history.close()
    return kills


def _follow_and_die(dsn: str, path: Path, history: History, random: Random) -> None:
    level = random.choice(["commit", "group"])
    command = [sys.executable, "-m", "tests.postgres.killing", dsn, str(path), level]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        if random.random() < 0.8:
            child.stdout.readline()
        for _ in range(random.randrange(1, 60)):
            history.step()
        threading.Event().wait(random.random() * 0.05)
        os.kill(child.pid, signal.SIGKILL)


def follow(dsn: str, path: str, level: str) -> None:
    """Main function of the process that is killed."""
    live = Live(path, durability=level)
    live.follow(dsn, size=3)
    print("follows", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    follow(*sys.argv[1:])
