"""Time a change of each query, as a comprehension and as methods, in turns in one process.

python -m asv_benchmarks.comprehensions [--rows 5000] [--turns 25] [--only having "top of each"]

Both sides get the same changes. The ratio is the median over the turns: in one turn the machine is
equally busy for both.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from random import Random
from typing import Any

from asv_benchmarks.comprehensions.pairs import Shop, pairs
from asv_benchmarks.table import machine, markdown, verdict
from asv_benchmarks.turns import Beside, Times, beside, in_turns

ROWS, TURNS, CHANGES, MOST = 5_000, 25, 40, 1.1
NAMES = tuple(pairs(Shop(100)))


class Side:
    """A shop with the view of one query of it."""

    def __init__(self, name: str, side: int, rows: int, changes: int) -> None:
        self.shop = Shop(rows)
        self.shop.choose(changes)
        query: Any = pairs(self.shop)[name][side]
        self.view = (query if side else self.shop.db.query(query)).materialize()
        self._random = Random(3)
        self._number = 0

    def change(self) -> None:
        """Commit some changes."""
        for _ in range(CHANGES):
            self.shop.change(self._number, self._random)
            self._number += 1


def timed(name: str, rows: int, turns: int) -> Beside:
    """Microseconds of a change of the comprehension (`engine`) and of the methods (`twin`)."""
    sides = [Side(name, side, rows, (1 + turns) * CHANGES) for side in (0, 1)]
    times: Times = ([], [])
    in_turns(sides, ([], []), Side.change)
    for _ in range(turns):
        in_turns(sides, times, Side.change, CHANGES)
    return beside(times)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the measurements that the command line selects."""
    parser = argparse.ArgumentParser(prog="asv_benchmarks.comprehensions")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--only", nargs="*", choices=NAMES, default=NAMES)
    given = parser.parse_args(arguments)
    found = {name: timed(name, given.rows, given.turns) for name in given.only}
    header = ("query", "comprehension, µs", "methods, µs", "times", f"at most {MOST:g}")
    lines = [
        (n, f"{b.engine:.1f}", f"{b.twin:.1f}", f"{b.ratio:.2f}", verdict(b.ratio <= MOST))
        for n, b in found.items()
    ]
    print("\n".join([machine(), "", *markdown(header, lines)]))


if __name__ == "__main__":
    main()
