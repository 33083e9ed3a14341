"""Random sessions over mirrors, from a seed on: `python -m tests.borders.mirrors COUNT SEED`."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.borders.mirrors.sessions import run
from tests.borders.mirrors.shop import shop

EACH = 50
"""Sessions over one shop."""


def main(count: int, seed: int) -> None:
    done: Counter[str] = Counter()
    for number in range(seed, seed + -(-count // EACH)):
        with tempfile.TemporaryDirectory() as folder:
            engine = shop(Path(folder) / "shop.db" if number % 2 else None)
            try:
                world = run(engine, number, EACH)
            except BaseException:
                print(f"seed {number}")
                raise
            done += world.done
            world.mirror.close()
            engine.dispose()
    for name, times in sorted(done.items()):
        print(f"{times:7} {name}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
