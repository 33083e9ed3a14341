"""Recursions in a worker, run in this process, without Spark."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa

from optimizer.plans.clauses import apart_from_sides
from reactive import Database, Sum, iterate
from reactive.engine.remote.fragments import LEVEL
from spark_backend.codec.arrow import arrow_type, from_arrow, to_arrow
from spark_backend.codec.schema import Typed, kept_as
from spark_backend.recursion.compile import _serialize_relations
from spark_backend.recursion.loop_worker import LoopTask, loop_changes


class Rank(NamedTuple):
    page: int
    rank: float


class Link(NamedTuple):
    src: int
    dst: int


KINDS: Any = (kept_as(Rank), kept_as(Link), kept_as(Rank))
Bag = dict[Any, int]


def task_of(**options: Any) -> bytes:
    """Six rounds of ranks over links, from some ranks on."""
    db: Any = Database()
    links, starts = db.table(Link, name="links"), db.table(Rank, name="starts")

    def step(ranks: Any) -> Any:
        given = links.join(ranks, on=lambda e, r: r.page == e.src)
        halved = given.select(lambda e, r: Rank(e.dst, r.rank / 2)).union_all(starts)
        total = halved.group_by(lambda r: r.page).aggregate(Sum(lambda r: r.rank))
        return total.select(lambda page, rank: Rank(page, rank))

    node = iterate(step, starts, times=6, **options).plan
    over, sides = apart_from_sides(node, LEVEL)  # type: ignore[arg-type]
    order = {"starts": KINDS[2], "links": KINDS[1]}
    kinds: tuple[Typed, ...] = (KINDS[0], *(order[side.name] for side in sides))  # type: ignore[attr-defined]
    assert [side.name for side in sides] == ["starts", "links"]  # type: ignore[attr-defined]
    return pickle.dumps(LoopTask(_serialize_relations(over), kinds, 1))


def run(task: bytes, before: Bag, starts: Bag, links: Bag) -> Bag:
    of: LoopTask = pickle.loads(task)
    given = [_batch(of.kinds, kind, bag) for kind, bag in enumerate((before, starts, links)) if bag]
    found = Counter[Any]()
    for batch in loop_changes(task, {}, given):
        rows = from_arrow(of.kinds[0], batch.column("row0"))
        for row, weight in zip(rows, batch.column("weight").to_pylist(), strict=True):
            found[row] += weight
    return {row: n for row, n in found.items() if n}


def _batch(kinds: Sequence[Typed], of: int, bag: Bag) -> pa.RecordBatch:
    size, rows = len(bag), list(bag)
    columns = [pa.nulls(size, arrow_type(kept)) for kept in kinds]
    columns[of] = to_arrow(kinds[of], rows)
    names = ["kind", "weight", *(f"row{kind}" for kind in range(len(kinds)))]
    given = [pa.array([of] * size, pa.int32()), pa.array(list(bag.values()), pa.int64()), *columns]
    return pa.record_batch(given, names)


RING = {Link(n, (n + 1) % 5): 1 for n in range(5)}
STARTS = {Rank(n, 1.0): 1 for n in range(5)}


@pytest.mark.quick
def test_the_change_is_what_the_rounds_come_to_without_what_was_there() -> None:
    task = task_of()
    first = run(task, {}, STARTS, RING)
    assert set(first) == {Rank(n, 2 - 1 / 64) for n in range(5)}
    assert run(task, first, STARTS, RING) == {}
    less = {**RING, Link(4, 0): 0}
    change = run(task, first, STARTS, less)
    assert change[Rank(0, 2 - 1 / 64)] == -1 and change[Rank(0, 1.0)] == 1
    assert run(task, {**first, Rank(9, 9.0): 1}, {}, {}) == {
        **dict.fromkeys(first, -1),
        Rank(9, 9.0): -1,
    }


def test_with_a_tolerance_only_keys_change_whose_value_has_moved_that_far() -> None:
    task = task_of(tolerance=0.25, of=lambda r: r.rank, by=lambda r: r.page)
    first = run(task, {}, STARTS, RING)
    more = {**STARTS, Rank(0, 1.0): 0, Rank(0, 1.75): 1}
    assert {row.page for row in run(task, first, more, RING)} == {0, 1}
    assert run(task, first, {**STARTS, Rank(0, 1.0): 0, Rank(0, 1.1): 1}, RING) == {}


def test_what_is_there_twice_is_told() -> None:
    task = task_of(tolerance=0.25, of=lambda r: r.rank, by=lambda r: r.rank < 0)
    with pytest.raises(RuntimeError, match="one row of each key"):
        run(task, {}, STARTS, RING)
