"""Crash tests at length: `python -m tests.borders.durable COUNT SEED [STEP]`.

For each of `COUNT` lives, simulate a kill and a power loss at every `STEP`th write (default 1).
Also kill some processes, fail every `STEP`th call of SQLite and every `STEP`th call of SQLite on
its files, and raise exceptions from outside. The reopened database must hold a prefix of the
commits that contains every acknowledged commit. Lives of sinks are tested the same way: their
batches must add up to the view.
"""

from __future__ import annotations

import sys
from collections import Counter

from tests.borders.durable.crashed import crashed_everywhere, failed_everywhere
from tests.borders.durable.killed import killed
from tests.borders.durable.raised import interrupted, raised_everywhere, refused_everywhere
from tests.borders.durable.told import refused_everywhere as refused_telling
from tests.borders.durable.told import told_everywhere

PROCESSES = 40
"""Number of calls from one killed process to the next."""


def main(count: int, seed: int, step: int) -> None:
    """Print how many there were; it raises at the first that is wrong."""
    found = Counter[str]()
    for each in range(seed, seed + count):
        found += crashed_everywhere(each, step=step)
        found["process"] += killed(each, step=PROCESSES * step)
        found["raised"] += raised_everywhere(each, step=10 * step)
        found["refused"] += refused_everywhere(each, step=10 * step)
        found["failed"] += failed_everywhere(each, step=10 * step)
        for level in ("commit", "group", "exit"):
            found["telling"] += told_everywhere(each, level, step)
            found["refused telling"] += refused_telling(each, level, 10 * step)
        found["interrupted"] += interrupted(each, 20, "group" if each % 2 else "commit")
        print(f"{each}: {', '.join(f'{n} {kind}' for kind, n in found.items())}", flush=True)


if __name__ == "__main__":
    main(*(int(given) for given in (*sys.argv[1:], *("10", "1", "1")[len(sys.argv) - 1 :])))
