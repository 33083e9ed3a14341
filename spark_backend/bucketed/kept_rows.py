"""Deltas of operators by buckets whose state is their rows: any operator with rows in buckets.

    d part  =  part(after) - part(before)

A join is bilinear; its work depends on the changed rows and their matches:

    d(L join R)  =  dL join R after  +  L before join dR

Linear nodes may end a part: the rules hold for the whole part.

State:  the rows of all inputs, pickled; equal rows have one encoding.
Cost:   O(rows of the touched buckets).
Source: [dbsp] the chain rule, bilinear operators.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from optimizer import plan
from optimizer.plans.properties import below_wheres, nodes
from reactive.engine.collections.zset import Pair, Row
from reactive.engine.operators.plain import chain_over
from reactive.engine.reference.bags import Bag
from reactive.engine.reference.evaluate import evaluate_part
from reactive.engine.remote.fragments import LEVEL
from spark_backend.codec.codec import loads

Net = Counter[tuple[int, bytes]]
"""Weights by input and packed row."""
SETS = (plan.Distinct, plan.SetOperation)


class Bucket(NamedTuple):
    """The entries of a bucket before and after a change, in normal form."""

    number: int
    before: Net
    after: Net


def normal(node: plan.Node, before: Net, new: Net) -> Net:
    """Return the entries after a change.

    If some are deleted, equal rows with different bytes are merged.
    """
    after = Counter(before)
    for key, weight in new.items():
        after[key] += weight
    after = drop_zeros(after)
    if all(weight > 0 for weight in after.values()):
        return after
    forms: dict[tuple[int, Row], tuple[int, bytes]] = {}
    found: Net = Counter()
    for (side, data), weight in after.items():
        found[forms.setdefault((side, loads(data)), (side, data))] += weight
    return drop_zeros(found)


def deltas(node: plan.Node, buckets: Sequence[Bucket]) -> Iterator[tuple[int, Row, int]]:
    """Yield the changes of the output of each bucket: its number, row, weight.

    If each output row identifies its bucket, all buckets are evaluated together.
    """
    key = _bucket_key(node)
    if key is None or len(buckets) < 2:
        for number, before, after in buckets:
            yield from ((number, row, weight) for row, weight in _bucket_delta(node, before, after))
        return
    was = [_unpack_bags(node, bucket.before) for bucket in buckets]
    now = [_unpack_bags(node, bucket.after) for bucket in buckets]
    numbers = {
        key(row): bucket.number
        for times in (was, now)
        for bucket, bags in zip(buckets, times, strict=True)
        for bag in bags
        for row in bag
    }
    for row, weight in _output_change(node, _merge_buckets(was), _merge_buckets(now)):
        yield numbers[key(row)], row, weight


def _bucket_delta(node: plan.Node, before: Net, after: Net) -> Iterable[Pair]:
    """Return how the output of a bucket changes."""
    if is_bilinear(node):
        return _join_delta(node, before, after).items()
    return _output_change(node, _unpack_bags(node, before), _unpack_bags(node, after))


def _output_change(node: plan.Node, before: tuple[Bag, ...], after: tuple[Bag, ...]) -> list[Pair]:
    """Return how the output changes, with nonzero weights, from the rows of each input before and
    after."""
    out = _evaluate(node, after)
    out.subtract(_evaluate(node, before))
    return [pair for pair in out.items() if pair[1]]


def _bucket_key(node: plan.Node) -> Callable[[Row], Any] | None:
    """Return a function of output rows whose value differs between buckets.

    Return None if there is none.
    """
    base = below_wheres(node)
    if isinstance(base, plan.Aggregate):
        return itemgetter(0)
    return _identity if isinstance(base, SETS) else None


def _merge_buckets(bags: Sequence[tuple[Bag, ...]]) -> tuple[Bag, ...]:
    """Merge the rows of all buckets, which are disjoint."""
    return tuple(
        Counter(dict(chain.from_iterable(b.items() for b in of))) for of in zip(*bags, strict=True)
    )


def _identity(row: Row) -> Row:
    return row


def subtract_nets(after: Net, before: Net) -> Net:
    """Return the difference of two nets."""
    found = Counter(after)
    for key, weight in before.items():
        found[key] -= weight
    return drop_zeros(found)


def drop_zeros(net: Counter[Any]) -> Counter[Any]:
    """Return the net without entries of weight 0."""
    return Counter({key: weight for key, weight in net.items() if weight})


def is_bilinear(node: plan.Node) -> bool:
    """Return True if a change on one side needs only the matching rows of the other side."""
    return isinstance(chain_over(node)[1], plan.Join)


def _join_delta(node: plan.Node, before: Net, after: Net) -> Bag:
    """Return the delta of a join; only the rows that a change of the other side needs are
    unpacked."""
    (left_new, right_new), out = _unpack_bags(node, subtract_nets(after, before)), Counter[Row]()
    if left_new:
        out.update(_evaluate(node, (left_new, _unpack_bags(node, after, only=1)[1])))
    if right_new:
        out.update(_evaluate(node, (_unpack_bags(node, before, only=0)[0], right_new)))
    return drop_zeros(out)


def _evaluate(node: plan.Node, bags: tuple[Bag, ...]) -> Bag:
    """Evaluate a part over the rows of its inputs."""
    if not any(bags):
        return Counter()
    return evaluate_part(node, {(LEVEL, place): bag for place, bag in enumerate(bags)})


def _unpack_bags(node: plan.Node, net: Net, only: int | None = None) -> tuple[Bag, ...]:
    """Return the rows of each input, or of one. Different bytes may decode to equal rows."""
    bags: tuple[Bag, ...] = tuple(Counter() for _ in range(_count_inputs(node)))
    for (place, data), weight in net.items():
        if only in (None, place):
            bags[place][loads(data)] += weight
    return tuple(drop_zeros(bag) for bag in bags)


def _count_inputs(node: plan.Node) -> int:
    """Return the number of inputs of a part."""
    return sum(isinstance(each, plan.Recursive) for each in nodes(node))
