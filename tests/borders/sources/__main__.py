"""Kills at length: `python -m tests.borders.sources COUNT SEED`.

For each of `COUNT` database files, the process in which a source runs is killed 20 times.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.borders.sources.killed import killed

KILLS = 20


def main(count: int, seed: int) -> None:
    """Print how many batches there were; it raises at the first that is wrong."""
    for each in range(seed, seed + count):
        with tempfile.TemporaryDirectory() as folder:
            batches = killed(Path(folder) / "a.db", each, KILLS)
        print(f"{each}: {KILLS} kills, {batches} batches", flush=True)


if __name__ == "__main__":
    main(*(int(given) for given in (*sys.argv[1:], *("10", "1")[len(sys.argv) - 1 :])))
