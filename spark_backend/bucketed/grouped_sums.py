"""Count, Sum and Avg by group, whose state is the sums instead of the rows.

    entries of a group:  its rows (input 0), or the sums of rows (input 1), each with a weight
    normal form          one entry: the sums of all of them

Sums are exact (`ExactSum`), so the order of insertions and deletions does not matter, and equal
rows with different bytes need not be distinguished. A group is shown as its first value.

State:  one entry per group.
Cost:   O(changed rows) and O(touched groups).
Source: [dbsp] section 4.2, linear aggregates; [mrql] homomorphism (sums) and answer function.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from optimizer import plan
from reactive.engine.collections.exact import ExactSum
from reactive.engine.collections.zset import Pair, Row, canonical
from reactive.engine.operators.accumulators import AvgAccumulator, CountAccumulator, SumAccumulator
from reactive.engine.operators.plain import chain_over
from reactive.engine.reference.evaluate import through
from spark_backend.bucketed.kept_rows import Bucket, Net
from spark_backend.codec.codec import Codec, loads

OF_ROWS, OF_SUMS = 0, 1


@dataclass(slots=True)
class Sums:
    """The number of rows of a group, and the sum of each summed value."""

    group: Any
    rows: int
    of: list[ExactSum]

    def __bool__(self) -> bool:
        return bool(self.rows or any(self.of))


def is_sums_only(node: plan.Node) -> bool:
    """Return True if a part is an aggregate that only needs sums of its groups."""
    _, base = chain_over(node)
    kinds = (CountAccumulator, SumAccumulator, AvgAccumulator)
    return (
        isinstance(base, plan.Aggregate)
        and base.key is not None
        and all(isinstance(f.accumulator, kinds) and not f.skip_none for f in base.aggregates)
    )


def summed_positions(node: plan.Node) -> list[int]:
    """Return the positions of the summed values in a packed row."""
    return [
        place
        for place, folded in enumerate(_aggregate(node).aggregates, 1)
        if not isinstance(folded.accumulator, CountAccumulator)
    ]


def normal(node: plan.Node, before: Net, new: Net) -> Net:
    """Return the entries after a change: one for each group that is not empty."""
    groups: dict[Any, Sums] = {}
    places = summed_positions(node)
    for net in (before, new):
        for (side, data), weight in net.items():
            if side == OF_SUMS:
                _add_sums(groups, _unpack_sums(data), weight)
            else:
                _add_row(groups, loads(data), weight, places)
    return Counter({(OF_SUMS, _pack_sums(sums)): 1 for sums in groups.values() if sums})


def deltas(node: plan.Node, buckets: Sequence[Bucket]) -> Iterator[tuple[int, Row, int]]:
    """Yield the changes of the output of each bucket: its number, row, weight."""
    for number, before, after in buckets:
        yield from ((number, row, weight) for row, weight in _group_delta(node, before, after))


def _group_delta(node: plan.Node, before: Net, after: Net) -> Iterable[Pair]:
    """Return how the output rows change from the entries `before` to `after` of one bucket, with
    the operators above the aggregate applied."""
    above, base = chain_over(node)
    assert isinstance(base, plan.Aggregate)
    out: Counter[Row] = Counter()
    for net, sign in ((before, -1), (after, 1)):
        for _, data in net:
            row = _group_row(base, _unpack_sums(data))
            if row is not None:
                out[row] += sign
    pairs = [pair for pair in out.items() if pair[1]]
    return [pair for pair in through(above, pairs) if pair[1]] if above else pairs


def _add_row(
    groups: dict[Any, Sums], row: tuple[Any, ...], weight: int, places: Sequence[int]
) -> None:
    """Add a row, `weight` times, to the sums of its group `row[0]`; a missing group is created.

    The sums are of the items of the row at `places`.
    """
    found = groups.get(row[0])
    if found is None:
        found = groups[row[0]] = Sums(row[0], 0, [ExactSum() for _ in places])
    found.rows += weight
    for total, place in zip(found.of, places, strict=True):
        total.add(row[place], weight)


def _add_sums(groups: dict[Any, Sums], given: Sums, weight: int) -> None:
    """Add the sums of a group, `weight` times, to `groups`; a missing group is created."""
    found = groups.get(given.group)
    if found is None:
        found = groups[given.group] = Sums(given.group, 0, [ExactSum() for _ in given.of])
    found.rows += given.rows * weight
    for total, other in zip(found.of, given.of, strict=True):
        total.merge(other, weight)


def _group_row(node: plan.Aggregate, sums: Sums) -> Row | None:
    """Return the output row of a group; None while it has no rows."""
    if sums.rows <= 0:
        return None
    totals = iter(sums.of)
    return (
        sums.group,
        *(_accumulator_result(f.accumulator, sums.rows, totals) for f in node.aggregates),
    )


def _accumulator_result(accumulator: Any, rows: int, totals: Any) -> Any:
    """Return the result as the accumulator would show it."""
    if isinstance(accumulator, CountAccumulator):
        return rows
    total = next(totals).value()
    return canonical(total / rows if isinstance(accumulator, AvgAccumulator) else total)


def _aggregate(node: plan.Node) -> plan.Aggregate:
    """Return the aggregate at the bottom of a chain of nodes."""
    _, base = chain_over(node)
    assert isinstance(base, plan.Aggregate)
    return base


def _pack_sums(sums: Sums) -> bytes:
    return pickle.dumps((_group_codec().dumps(sums.group), sums.rows, sums.of), 5)


def _unpack_sums(data: bytes) -> Sums:
    """Return the sums of a group from their bytes."""
    group, rows, of = pickle.loads(data)
    return Sums(loads(group), rows, of)


@lru_cache(maxsize=1)
def _group_codec() -> Codec:
    return Codec(stable=False)
