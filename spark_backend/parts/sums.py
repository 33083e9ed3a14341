"""What is kept of a group whose aggregates are sums: rows, amounts, and values that are odd.

    Count       rows
    Sum, Avg    an amount (`limbs.py`) of the values that fit, and the odd ones as they are

All of it is linear: what a group had before is what it has now, less what came last. So Spark has
to keep sums only, and the change of a group is known from the entries that made it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from optimizer import plan
from reactive.collections.zset import Row, canonical
from reactive.operators.accumulators import AvgAccumulator, CountAccumulator, SumAccumulator
from spark_backend.codec.codec import Codec, loads
from spark_backend.codec.limbs import NOTHING, Amount, amount, minus, narrow, plus, times, total
from spark_backend.parts.groups import decode

Odd = dict[tuple[int, bytes], int]
"""The weight of each value that fits no column: by its place among those summed, and pickled."""


class Held(NamedTuple):
    """The sums of a group as a constant."""

    rows: int
    amounts: tuple[Amount, ...]
    odd: tuple[tuple[tuple[int, bytes], int], ...]


@dataclass(slots=True)
class Sums:
    """Of a group, or of a change of a group; `shown` is the group if its bytes do not tell it."""

    rows: int
    amounts: list[Amount]
    odd: Odd
    shown: bytes | None = None

    def add(self, values: tuple[Any, ...], weight: int, codec: Codec) -> None:
        """Take in a row."""
        self.rows += weight
        amounts = self.amounts
        for at, value in enumerate(values):
            found = amount(value, weight)
            if found is None:
                self._add_odd([((at, codec.dumps(value)), weight)])
            else:
                amounts[at] = found if amounts[at] is NOTHING else plus(amounts[at], found)

    def add_held(self, held: Held, weight: int) -> None:
        """Take in the sums of a group."""
        self.rows += held.rows * weight
        self.amounts = [
            plus(*pair) for pair in zip(self.amounts, times(held.amounts, weight), strict=True)
        ]
        self._add_odd((key, count * weight) for key, count in held.odd)

    def narrowed(self, codec: Codec) -> Sums:
        """The same, with what columns cannot hold among the odd values."""
        for at, found in enumerate(self.amounts):
            self.amounts[at], rest = narrow(found)
            if rest:
                self._add_odd(((at, codec.dumps(value)), weight) for value, weight in rest)
        return self

    def less(self, change: Sums, odd: Odd) -> Sums:
        """The sums before a change, which had these odd values."""
        pairs = zip(self.amounts, change.amounts, strict=True)
        return Sums(self.rows - change.rows, [minus(*pair) for pair in pairs], odd, self.shown)

    def __bool__(self) -> bool:
        """Whether anything is in it."""
        return bool(self.rows or self.odd or any(any(found[:-1]) for found in self.amounts))

    def _add_odd(self, pairs: Iterable[tuple[tuple[int, bytes], int]]) -> None:
        add_odd(self.odd, pairs)


def nothing(count: int, shown: bytes | None = None) -> Sums:
    """The sums of no rows, for `count` values that are summed."""
    return Sums(0, [NOTHING] * count, {}, shown)


def add_odd(odd: Odd, pairs: Iterable[tuple[tuple[int, bytes], int]]) -> None:
    """Add weights of odd values to others."""
    for key, weight in pairs:
        new = odd.get(key, 0) + weight
        if new:
            odd[key] = new
        else:
            odd.pop(key, None)


def summed(node: plan.Aggregate) -> list[int]:
    """The places, in a row that is kept, of the values that are summed."""
    accumulators = [folded.accumulator for folded in node.aggregates]
    return [
        place
        for place, accumulator in enumerate(accumulators, 1)
        if not isinstance(accumulator, CountAccumulator)
    ]


def row_of(node: plan.Aggregate, group: bytes, sums: Sums) -> Row | None:
    """What a group shows; None while it has no rows."""
    if sums.rows <= 0:
        return None
    results, at = [decode(group) if sums.shown is None else loads(sums.shown)], 0
    for folded in node.aggregates:
        if isinstance(folded.accumulator, CountAccumulator):
            results.append(sums.rows)
        else:
            results.append(_result(folded.accumulator, sums, at))
            at += 1
    return tuple(results)


def _result(accumulator: Any, sums: Sums, at: int) -> Any:
    """As the fold itself shows it."""
    odd = [(loads(data), weight) for (place, data), weight in sums.odd.items() if place == at]
    found = total(sums.amounts[at], odd)
    if isinstance(accumulator, AvgAccumulator):
        return canonical(found / sums.rows)
    assert isinstance(accumulator, SumAccumulator)
    return found
