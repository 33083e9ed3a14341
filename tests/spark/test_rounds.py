"""Recursions by rounds: what a worker makes of changes, and this process."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path as Folder
from random import Random
from typing import Any, NamedTuple

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa

from optimizer import plan
from optimizer.plans.closures import Linear, linear
from reactive import Database, fixpoint
from reactive.engine.reference.evaluate import evaluate, evaluate_part
from reactive.engine.remote.fragments import LEVEL
from spark_backend.cluster.session import Session
from spark_backend.codec.arrow import arrow_type, from_arrow, to_arrow
from spark_backend.codec.schema import kept_as
from spark_backend.recursion import by_rounds
from spark_backend.recursion.compile import _serialize_program
from spark_backend.recursion.rounds_worker import NUMBERS, RoundsTask, rounds_changes
from spark_backend.state import tables
from tests.budget import TIMES
from tests.spark.test_recursion import QUERIES, History, fragment_of, remote_of
from tests.spark.ways import jobs, way


class Edge(NamedTuple):
    src: int
    dst: int


KIND: Any = kept_as(Edge)
SIZES = (6, 1, 2, 1, 9, 1, 3, 1, 14, 1)


def steps_of(edges: Any, seeds: Any) -> dict[str, Any]:
    def turned(r: Any) -> Any:
        return seeds.union(
            r.join(edges, on=lambda p, e: p.dst == e.src).select(lambda p, e: Edge(e.dst, p.src))
        )

    def generation(r: Any) -> Any:
        return seeds.union(
            edges.join(r, on=lambda a, r: a.src == r.src)
            .join(edges, on=lambda a, r, b: r.dst == b.src)
            .select(lambda a, r, b: Edge(a.dst, b.dst))
        )

    def both(odd: Any, even: Any) -> Any:
        return (
            seeds.union(
                even.where(lambda p: p.src != p.dst)
                .join(edges, on=lambda p, e: p.dst == e.src)
                .select(lambda p, e: Edge(e.dst, p.src))
            ),
            odd.join(edges, on=lambda p, e: p.dst == e.src)
            .select(lambda p, e: Edge(e.dst, p.src))
            .union(odd.select(lambda p: Edge(p.dst, p.dst))),
        )

    def longer(r: Any) -> Any:
        return seeds.union(
            r.join(edges, on=lambda p, e: p.dst == e.src).select(
                lambda p, e: Edge(p.src + 1, e.dst)
            )
        )

    return {"turned": turned, "generation": generation, "both": both, "longer": longer}


class Followed:
    """A recursion whose state is stored here; a worker receives its changes."""

    def __init__(self, name: str, **options: Any) -> None:
        db: Any = Database()
        tables = db.table(Edge, name="edges"), db.table(Edge, name="seeds")
        made = fixpoint(steps_of(*tables)[name], **options)
        first = made[0] if isinstance(made, tuple) else made
        node = db._engine.queries.optimize(first.plan).plan
        while not isinstance(node, plan.Fixpoint):
            (node,) = node.inputs()
        found = linear(node)
        assert found is not None
        self.of: Linear = found
        self.tables = [table.plan for table in tables]
        seeds = [place for place, some in enumerate(found.seeds) for _ in some]
        count = len(node.names)
        self.inputs = [*found.sides, *(seed for some in found.seeds for seed in some)]
        self.task = RoundsTask(
            _serialize_program(found),
            (KIND,) * count,
            (KIND,) * len(found.sides),
            (KIND,) * len(seeds),
            tuple(seeds),
        )
        self.known: list[Counter[Any]] = [Counter() for _ in range(count * len(NUMBERS))]
        self.bags: list[Counter[Any]] = [Counter(), Counter()]
        self.flushes = 0
        self.pending: list[tuple[int, Any, int]] = []

    def rows(self, relation: int) -> dict[Any, int]:
        return {row: n for row, n in self.known[relation * len(NUMBERS)].items() if n}

    def wanted(self, relation: int) -> dict[Any, int]:
        node = plan.Component(self.of.node, relation) if len(self.of.own) > 1 else self.of.node
        return {row: n for row, n in self._evaluated(node, self.bags).items() if n}

    def change(self, place: int, row: Any, weight: int) -> None:
        self.pending.append((place, row, weight))

    def flush(self) -> None:
        after = [Counter(bag) for bag in self.bags]
        for place, row, weight in self.pending:
            after[place][row] += weight
        self.pending = []
        before = [self._evaluated(node, self.bags) for node in self.inputs]
        now = [self._evaluated(node, after) for node in self.inputs]
        for bag, was in zip(now, before, strict=True):
            bag.subtract(was)
        count, sides = len(self.of.own), len(self.of.sides)
        bags = [*before[:sides], *now]
        batches = [self._known(relation) for relation in range(count)]
        batches += [self._batch(kind, bag) for kind, bag in enumerate(bags, count)]
        self.flushes += 1
        for found in rounds_changes(pickle.dumps(self.task), {}, 1 << (32 + self.flushes), batches):
            relation = found.column("kind")[0].as_py()
            rows = from_arrow(KIND, found.column(f"row{relation}"))
            for number, name in enumerate(NUMBERS):
                of = self.known[relation * len(NUMBERS) + number]
                for row, more in zip(rows, found.column(name).to_pylist(), strict=True):
                    of[row] += more
        self.bags = [+bag for bag in after]

    def _evaluated(self, node: Any, bags: Any) -> Counter[Any]:
        names = {"edges": bags[0], "seeds": bags[1]}
        return Counter(evaluate(node, lambda table: names[table.name].items()))

    def _known(self, relation: int) -> pa.RecordBatch:
        some = self.known[relation * len(NUMBERS) : (relation + 1) * len(NUMBERS)]
        rows = list(some[0])
        return self._made(relation, rows, [[bag[row] for row in rows] for bag in some])

    def _batch(self, kind: int, bag: Counter[Any]) -> pa.RecordBatch:
        return self._made(kind, list(bag), [list(bag.values()), *[[0] * len(bag)] * 3])

    def _made(self, kind: int, rows: list[Any], numbers: list[list[int]]) -> pa.RecordBatch:
        kinds = self.task.kinds
        columns = [pa.array([kind] * len(rows), pa.int32())]
        columns += [pa.array(values, pa.int64()) for values in numbers]
        for place, kept in enumerate(kinds):
            made = to_arrow(kept, rows) if place == kind else pa.nulls(len(rows), arrow_type(kept))
            columns.append(made)
        names = ["kind", *NUMBERS, *(f"row{place}" for place in range(len(kinds)))]
        return pa.record_batch(columns, names)


@pytest.mark.quick
@pytest.mark.parametrize("seed", range(3 * TIMES + 3))
@pytest.mark.parametrize("name", ["turned", "generation", "both"])
def test_what_is_known_follows_changes_as_evaluation_from_scratch(name: str, seed: int) -> None:
    of, random = Followed(name), Random(seed)
    for size in SIZES:
        for _ in range(size):
            place = random.randrange(2)
            there = of.bags[place]
            if there and random.random() < 0.5:
                row = random.choice(sorted(there))
                there_now = there[row] + sum(w for p, r, w in of.pending if (p, r) == (place, row))
                if there_now > 0:
                    of.change(place, row, -1)
            else:
                of.change(place, Edge(random.randrange(5), random.randrange(5)), 1)
        of.flush()
        for relation in range(len(of.of.own)):
            assert of.rows(relation) == of.wanted(relation)


def test_rounds_that_come_to_no_end_are_told() -> None:
    of = Followed("longer", max_rounds=50)
    for place, row in ((0, Edge(1, 2)), (0, Edge(2, 3)), (1, Edge(0, 1))):
        of.change(place, row, 1)
    of.flush()
    assert of.rows(0) == {Edge(0, 1): 1, Edge(1, 2): 1, Edge(2, 3): 1}
    of.change(0, Edge(3, 1), 1)
    with pytest.raises(RuntimeError, match=r"not come to an end after 50 rounds; .* Edge"):
        of.flush()


@pytest.mark.parametrize("name", ["same generation", "relations that are defined together"])
def test_rounds_in_the_process_look_up_what_they_meet_in_the_buckets_of_a_base(
    name: str, session: Session, tmp_path: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "PER_BUCKET", 4)
    monkeypatch.setattr(tables, "SHARE", 100.0)
    fragment = fragment_of(QUERIES[name])
    remote, history = remote_of(session, fragment, tmp_path), History(fragment, 5)
    shown = Counter[Any]()
    for number, size in enumerate((20, 2, 3, 1, 2, 4)):
        monkeypatch.setattr(by_rounds, "MOST_TAKEN", -1 if number % 2 else 10_000)
        entries = [(p, *remote.pack(p, None, row), n) for p, row, n in history.changes(size)]
        with way(is_job=False), jobs() as by_jobs:
            for row, weight in remote.apply(number, entries):
                shown[row] += weight
        assert not number or not by_jobs
        bags = {(LEVEL, place): bag for place, bag in enumerate(history.bags)}
        wanted = {row: n for row, n in evaluate_part(fragment.node, bags).items() if n}
        assert {row: n for row, n in shown.items() if n} == wanted, number
    assert dict(remote.contents()) == wanted
