"""The shop in a process of its own, which can be stopped and killed."""

from __future__ import annotations

import json
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
from websockets.sync.client import ClientConnection, connect

from reactive.engine.runtime.closeable import Closeable

ROOT = Path(__file__).parents[3]
PATIENCE = 120.0
"""Seconds, of a machine with much else to do."""


class Shop(Closeable):
    """The shop of a file, at a port that is free."""

    def __init__(self, file: Path) -> None:
        self.file = file
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=PATIENCE)
        self._open = ExitStack()
        self.start()

    def start(self) -> None:
        """Begin, and wait until it answers."""
        where = ["--file", str(self.file), "--port", str(self.port)]
        command = [sys.executable, "-m", "examples.shop", *where]
        self.process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        until(self._answers)

    def kill(self) -> None:
        """Kill the process as `kill -9` does."""
        self.process.kill()
        self.process.communicate()

    def terminate(self) -> str:
        """End the process as `kill` does; return its stderr."""
        self.process.terminate()
        return self.process.communicate(timeout=PATIENCE)[1]

    def order(self, customer: str, cents: int) -> int:
        wanted = {"customer": customer, "what": "tea", "cents": cents}
        answer = self.client.post("/orders", json=wanted)
        answer.raise_for_status()
        return int(answer.json())

    def watch(self) -> Browser:
        where = f"ws://127.0.0.1:{self.port}/leaders"
        return Browser(self._open.enter_context(connect(where, open_timeout=PATIENCE)))

    def subscribers(self) -> int:
        return int(self.client.get("/metrics").json()["subscribers"])

    def by_sql(self) -> list[dict[str, Any]]:
        """The leaderboard, as SQLite has it."""
        with sqlite3.connect(self.file) as file:
            file.row_factory = sqlite3.Row
            found = file.execute(LEADERS).fetchall()
        file.close()
        return [dict(row) for row in found]

    def _answers(self) -> bool:
        assert self.process.poll() is None, self.process.communicate()[1]
        try:
            return self.client.get("/metrics").is_success
        except httpx.TransportError:
            return False

    def close(self) -> None:
        self.client.close()
        if self.process.poll() is None:
            self.kill()
        with suppress(OSError):
            self._open.close()


LEADERS = """
    select name, count(*) as orders, sum(cents) as cents
    from orders join customers on customers.id = customer_id
    group by name order by cents desc, name limit 10
"""


class Browser:
    """The state of a browser that applies the received edits."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.rows: list[dict[str, Any]] = []

    def hear(self) -> int:
        """Take the next message; the version that it leads to."""
        told = json.loads(self.socket.recv(timeout=PATIENCE))
        if told["is_snapshot"]:
            self.rows = []
        for edit in told["edits"]:
            if edit["weight"] > 0:
                self.rows.insert(edit["position"], edit["row"])
            else:
                assert self.rows.pop(edit["position"]) == edit["row"]
        return int(told["version"])

    def hear_of(self, rows: list[dict[str, Any]]) -> None:
        """Take messages until these are the rows."""
        until(lambda: self.rows == rows or (self.hear() and self.rows == rows))

    def close(self) -> None:
        self.socket.close()


def until(condition: Any) -> None:
    """Wait until it is so."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)
