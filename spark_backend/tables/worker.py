"""What runs in Python workers: how a part's output changes where entries came in.

The log of a bucket has all entries that it was ever given, those that came last among them:

    before = entries of earlier versions        after = all entries
    d part = part(after) - part(before)

A join is bilinear, and takes work by what changed and what that matches:

    d(L join R)  =  dL join R after  +  L before join dR

Where a part ends with nodes that look at one row after the other, these are linear, and the same
holds of all of it.

Pure functions over Arrow batches; Spark is not needed to try them.
"""

from __future__ import annotations

import pickle
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

import pyarrow as pa

from optimizer import plan
from optimizer.plans.properties import nodes
from reactive.collections.zset import Pair, Row
from reactive.operators.plain import LINEAR
from reactive.reference.evaluate import Bag, evaluate_part
from reactive.remote.fragments import LEVEL
from spark_backend.codec.codec import Codec, loads

DELTA = pa.schema([("row", pa.binary()), ("weight", pa.int64())])
DELTA_DDL = "row binary, weight long"
FAILED = 0
"""The weight of what is no row, but says why there is none: no delta has such a weight."""
FROM_SCRATCH = "reactive.reference."
"""The modules of an evaluation from scratch."""
Net = dict[tuple[int, bytes], int]
Entries = Iterable[tuple[int, int, bytes, int]]
"""Input, version, packed row, weight."""


def changes(
    shipped: bytes, classes: dict[str, bytes], shown: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The delta that came after a number, of buckets with their logs."""
    adopt(classes)
    node, codec = _loaded(shipped), _codec()
    for batch in batches:
        try:
            found = delta(node, _entries(batch.column("log")), shown)
            rows = [codec.dumps(row) for row, _ in found]
            weights = [weight for _, weight in found]
        except Exception as error:
            rows, weights = [pickle.dumps(failure(error))], [FAILED]
        yield pa.record_batch([pa.array(rows, pa.binary()), pa.array(weights)], schema=DELTA)


def delta(node: plan.Node, entries: Entries, shown: int) -> list[Pair]:
    """How the output of a part changes from a number on, given all entries of touched buckets."""
    before, last = _split(entries, shown)
    if _is_bilinear(node):
        return list(_of_join(node, before, last).items())
    after = Counter(before)
    after.update(last)
    out = evaluated(node, _bags(node, after))
    out.subtract(evaluated(node, _bags(node, before)))
    return [pair for pair in out.items() if pair[1]]


def output(node: plan.Node, entries: Iterable[tuple[int, bytes, int]]) -> Bag:
    """What a part makes of the entries of some buckets."""
    return evaluated(node, _bags(node, _net(entries)))


def failure(error: Exception) -> tuple[str, str, str | None]:
    """The type and message of an exception, and the row that it was about if that can be seen."""
    found, traceback = None, error.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_globals.get("__name__", "").startswith(FROM_SCRATCH):
            names = ("arguments", "row", "member", "value")
            found = next((frame.f_locals[n] for n in names if n in frame.f_locals), found)
        traceback = traceback.tb_next
    return type(error).__name__, str(error), None if found is None else f"{found!r:.200}"


def shipped(paths: list[str], module: str, name: str, *given: Any) -> Callable[..., Any]:
    """A function for `mapInArrow`: it calls one of a module with what is given, and the batches.

    It carries nothing that a worker would have to import before it has the driver's paths.
    """

    def run(batches: Any) -> Any:
        import importlib
        import sys

        sys.path.extend([path for path in paths if path not in sys.path])
        return getattr(importlib.import_module(module), name)(*given, batches)

    return run


def adopt(classes: dict[str, bytes]) -> None:
    """Make the classes of the driver's script known by the name that rows know them by."""
    main = sys.modules["__main__"]
    for name, data in classes.items():
        if name not in vars(main):
            setattr(main, name, pickle.loads(data))


def evaluated(node: plan.Node, bags: tuple[Bag, ...]) -> Bag:
    """A part of given inputs."""
    if not any(bags):
        return Counter()
    return evaluate_part(node, {(LEVEL, place): bag for place, bag in enumerate(bags)})


def _is_bilinear(node: plan.Node) -> bool:
    while isinstance(node, LINEAR):
        node = node.input
    return isinstance(node, plan.Join)


def _of_join(node: plan.Node, before: Net, last: Net) -> Bag:
    after = Counter(before)
    after.update(last)
    left_before, _ = _bags(node, before)
    left_changes, right_changes = _bags(node, last)
    _, right_after = _bags(node, after)
    out = evaluated(node, (left_changes, right_after)) if left_changes else Counter[Row]()
    if right_changes:
        out.update(evaluated(node, (left_before, right_changes)))
    return Counter({row: weight for row, weight in out.items() if weight})


def _split(entries: Entries, shown: int) -> tuple[Net, Net]:
    """The weights up to a number, and the weights of later entries."""
    before: Counter[tuple[int, bytes]] = Counter()
    last: Counter[tuple[int, bytes]] = Counter()
    for place, version, row, weight in entries:
        (before if version <= shown else last)[place, row] += weight
    return before, last


def _net(entries: Iterable[tuple[int, bytes, int]]) -> Net:
    net: Counter[tuple[int, bytes]] = Counter()
    for place, row, weight in entries:
        net[place, row] += weight
    return net


def _bags(node: plan.Node, net: Net) -> tuple[Bag, ...]:
    """The rows of each input. Bytes that differ may be of rows that are equal."""
    bags: tuple[Bag, ...] = tuple(Counter() for _ in range(_inputs(node)))
    for (place, data), weight in net.items():
        if weight:
            bags[place][loads(data)] += weight
    return tuple(Counter({row: n for row, n in bag.items() if n}) for bag in bags)


def _inputs(node: plan.Node) -> int:
    """How many inputs a part has."""
    return sum(isinstance(each, plan.Recursive) for each in nodes(node))


def _entries(logs: Any) -> Entries:
    """The entries of all buckets of a batch; which is whose does not matter."""
    flat = logs.flatten()
    columns = [flat.field(name).to_pylist() for name in ("side", "version", "row", "weight")]
    return zip(*columns, strict=True)


@lru_cache(maxsize=1)
def _codec() -> Codec:
    return Codec(stable=False)


@lru_cache(maxsize=16)
def _loaded(data: bytes) -> plan.Node:
    node: plan.Node = pickle.loads(data)
    return node
