"""Crash tests at length: `python -m tests.durable COUNT SEED [STEP]`.

Of each of `COUNT` histories, one kill at every `STEP`th call of SQLite (1 without it), the same
calls raising, and exceptions from outside. What is opened again is a prefix with every commit that
was acknowledged.
"""

from __future__ import annotations

import sys

from tests.durable.killed import killed_everywhere
from tests.durable.raised import interrupted, raised_everywhere


def main(count: int, seed: int, step: int) -> None:
    """Print how many there were; it raises at the first that is wrong."""
    kills = errors = interrupts = 0
    for each in range(seed, seed + count):
        kills += killed_everywhere(each, step=step)
        errors += raised_everywhere(each, step=step)
        interrupts += interrupted(each, 20, "group" if each % 2 else "commit")
        print(f"{each}: {kills} kills, {errors} errors, {interrupts} interrupts", flush=True)


if __name__ == "__main__":
    main(*(int(given) for given in (*sys.argv[1:], *("10", "1", "1")[len(sys.argv) - 1 :])))
