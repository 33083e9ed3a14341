"""Random histories against a Postgres server, with kills: python -m tests.postgres COUNT SEED."""

from __future__ import annotations

import sys
import time

from tests.postgres.killing import kill_processes, kill_servers
from tests.postgres_server import running


def main(count: int, seed: int) -> None:
    began, kills = time.monotonic(), 0
    with running() as server:
        for number in range(seed, seed + count):
            kills += kill_servers(server, number)
            if number % 4 == 0:
                kills += kill_processes(server, number)
            print(f"{number}: {kills} kills, {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
