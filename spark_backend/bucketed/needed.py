"""Which rows of a bucket tell how a join changes: a key may have any number of others.

    join             the rows of the other side
    semi, anti       of the right, one row of each key that changes, beside those that change;
                     of the left, all rows where a key has no such row
    left, full, ...  the rows of the other side; of its own side, one row of each key

A row that stays says that its key has partners, before and after: then the others make no
difference. With these go the rows that are written as one that goes.

Sound:  semi, anti and outer joins whose key tells all; what may be equal to a row and written in
        another way has all rows looked at.
State:  none.
Cost:   O(rows of the touched buckets) in columns; objects are made of those that are needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from optimizer import plan
from optimizer.plans.properties import bindings
from reactive.engine.operators.plain import by_key_alone, chain_over, side_key, sides
from spark_backend.bucketed.kept_rows import Net, is_bilinear, present
from spark_backend.bucketed.packed import ENTRIES
from spark_backend.codec.codec import loads
from spark_backend.direct.flush import check_fetched

New = Mapping[int, Net]
"""What changes, by bucket."""
_KEYED = (plan.SemiJoin, plan.AntiJoin, plan.OuterJoin)


def needed(node: plan.Node, table: pa.Table, new: New) -> dict[int, Net] | None:
    """The rows that tell how the output changes, by bucket; None if all are needed."""
    _, base = chain_over(node)
    if is_bilinear(node):
        return nets(new, table.filter(pc.or_(_is_met(table, new), _goes(table, new))))
    if isinstance(base, _KEYED) and by_key_alone(base):
        return _Partners(base).needed(table, new)
    return None


def nets(numbers: Iterable[int], table: pa.Table) -> dict[int, Net]:
    """Rows by their buckets, added up.

    Raises
    ------
    TooMany: there are many.
    """
    check_fetched(table.num_rows)
    found: dict[int, Net] = {number: Counter() for number in numbers}
    columns = (table.column(name).to_pylist() for name in ENTRIES.names)
    for number, side, row, weight in zip(*columns, strict=True):
        found[number][side, row] += weight
    return {number: present(net) for number, net in found.items()}


class _Partners:
    """The rows that tell how a join changes that asks whether a key has partners, and no more."""

    def __init__(self, node: plan.SemiJoin | plan.AntiJoin | plan.OuterJoin) -> None:
        left, right = sides(node)
        self._keys = side_key(left, bindings(node.left)), side_key(right, 1)
        self._is_outer = isinstance(node, plan.OuterJoin)

    def needed(self, table: pa.Table, new: New) -> dict[int, Net] | None:
        """By bucket; None if some rows take back what was written in another way."""
        net = table.group_by(["bucket", "side", "row"]).aggregate([("weight", "sum")])
        if net.num_rows and pc.min(net["weight_sum"]).as_py() < 0:
            return None
        net = net.filter(pc.greater(net["weight_sum"], 0))
        found: dict[int, Net] = {}
        whole: dict[int, set[int]] = {0: set(), 1: set()}
        for number, changes in new.items():
            mine = net.filter(pc.equal(net["bucket"], number))
            found[number] = self._of_bucket(number, mine, changes, whole)
        more = [in_buckets(table, side, numbers) for side, numbers in whole.items()]
        for number, rows in nets(
            new, table.filter(pc.or_(pc.or_(*more), _goes(table, new)))
        ).items():
            found[number] |= rows
        return found

    def _of_bucket(
        self, number: int, net: pa.Table, changes: Net, whole: Mapping[int, set[int]]
    ) -> Net:
        """Rows that stand for others in a bucket; it says of which sides all are needed."""
        changed = {side for side, _ in changes}
        if self._is_outer:
            for side in changed:
                whole[1 - side].add(number)
            if len(changed) > 1:
                return Counter()
            return self._standing(net, changes, changed.pop())[0]
        found, may_turn = self._standing(net, changes, 1)
        if may_turn:
            whole[0].add(number)
        return found

    def _standing(self, net: pa.Table, changes: Net, side: int) -> tuple[Net, bool]:
        """Of a side the rows that change, and one more of each key that changes; and whether a key
        has none of these, so that it may find a partner or lose its last one."""
        net = net.filter(pc.equal(net["side"], side))
        changed = {row for at, row in changes if at == side}
        turning = {self._key(side, row) for row in changed}
        wanted = turning | {self._key(at, row) for at, row in changes if at != side}
        is_changed = pc.is_in(net["row"], pa.array(changed, pa.binary()))
        changing, others = net.filter(is_changed), net.filter(pc.invert(is_changed))
        pairs = zip(changing["row"].to_pylist(), changing["weight_sum"].to_pylist(), strict=True)
        found: Net = Counter({(side, row): weight for row, weight in pairs})
        for row, weight in zip(others["row"], others["weight_sum"], strict=True):
            if not wanted:
                break
            data = row.as_py()
            key = self._key(side, data)
            if key in wanted:
                found[side, data] = weight.as_py()
                wanted.discard(key)
        return present(found), bool(turning & wanted)

    def _key(self, side: int, row: bytes) -> Any:
        of = self._keys[side]
        return None if of is None else of(loads(row))


def in_buckets(table: pa.Table, side: int, numbers: Collection[int]) -> pa.Array:
    """Of each row whether it is of a side and in one of some buckets."""
    is_there = pc.is_in(table["bucket"], pa.array(numbers, pa.int64()))
    return pc.and_(pc.equal(table["side"], side), is_there)


def _is_met(table: pa.Table, new: Mapping[int, Net]) -> pa.Array:
    """Of each row whether a change of the other side meets it."""
    pairs = [(number, side) for number, net in new.items() for side, _ in net]
    met = [
        in_buckets(table, other, {number for number, side in pairs if side != other})
        for other in (0, 1)
    ]
    return pc.or_(*met)


def _goes(table: pa.Table, new: Mapping[int, Net]) -> pa.Array:
    """Of each row whether one that is written the same goes."""
    goes = {row for net in new.values() for (_, row), weight in net.items() if weight < 0}
    return pc.is_in(table["row"], pa.array(goes, pa.binary()))
