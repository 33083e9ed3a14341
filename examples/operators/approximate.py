"""An approximate count of different rows in small state, which also takes deletions.

python -m examples.operators.approximate

HyperLogLog keeps the most zeros at the end of a hash, for each of 2**bits buckets of hashes, and so
cannot forget a row. This operator counts the rows of each number of zeros, so that a deletion is
exact: the estimate is that of the rows that are left, whatever came and went.

State:  at most 2**bits * 64 numbers, however many rows there are.
Cost:   O(2**bits) per commit, for the estimate.
Source: Flajolet and others, *HyperLogLog*, 2007.
"""

from __future__ import annotations

import math
from hashlib import blake2b
from typing import Any, ClassVar

from reactive import Database, Operator


class Distinct(Operator[Any, int]):
    """Emit one row: the estimated number of different rows, within some 104% / 2**(bits / 2)."""

    is_bounded: ClassVar[bool] = True

    def __init__(self, bits: int = 8) -> None:
        self.bits = bits
        self.counts: list[dict[int, int]] = [{} for _ in range(2**bits)]
        self.shown: int | None = None

    def step(self, rows: list[tuple[Any, int]]) -> list[tuple[int, int]]:
        for row, weight in rows:
            bucket, zeros = self._place(row)
            counts = self.counts[bucket]
            counts[zeros] = counts.get(zeros, 0) + weight
            if not counts[zeros]:
                del counts[zeros]
        before, self.shown = self.shown, self._estimate()
        return [(self.shown, 1)] if before is None else [(before, -1), (self.shown, 1)]

    def _place(self, row: Any) -> tuple[int, int]:
        """Return the bucket of a row, and the zeros at the end of the rest of its hash, plus 1."""
        number = int.from_bytes(blake2b(repr(row).encode(), digest_size=8).digest(), "big")
        rest = number >> self.bits | 1 << 63 - self.bits
        return number % 2**self.bits, (rest & -rest).bit_length()

    def _estimate(self) -> int:
        size = len(self.counts)
        ranks = [max(counts, default=0) for counts in self.counts]
        estimate = 0.7213 / (1 + 1.079 / size) * size**2 / sum(2.0**-rank for rank in ranks)
        empty = ranks.count(0)
        return round(size * math.log(size / empty) if empty and estimate < 2.5 * size else estimate)


def main() -> None:
    db = Database()
    visits = db.table(str, name="visits")
    visitors = visits.through(Distinct, bits=10).materialize("visitors")
    visits.add_all(f"visitor {number % 5000}" for number in range(20_000))
    print("different visitors, of 5000:", visitors.value)
    visits.remove_all(
        [f"visitor {number % 5000}" for number in range(20_000) if number % 5000 > 99]
    )
    print("different visitors, of 100:", visitors.value)


if __name__ == "__main__":
    main()
