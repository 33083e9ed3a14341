"""Cyclic joins whose rows are read have the right rows at every weight, and can be undone."""

from __future__ import annotations

import copy
import dataclasses
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from reactive import Avg, Count, Database, Delta, Max, Min, Sum
from reactive.engine.collections.neighbour_rows import NeighbourRows, subtract_row
from reactive.engine.operators.loops.cyclic_count import CyclicCount
from reactive.engine.operators.loops.cyclic_join import CyclicJoin, CyclicJoinRunner
from tests.budget import sampled, seeds
from tests.engine.operators.loops.test_cyclic_count import JOINS, MADE, Edge, Late, operators
from tests.thresholds import WAYS, thresholds

TRIANGLES = JOINS[0]


def state(held: NeighbourRows) -> Any:
    return copy.deepcopy((held.onward, held.back))


def rows_of(db: Database) -> Any:
    """Return the stored rows of the join of a database."""
    (found,) = (n.operator for n in db._engine.graph.nodes())
    return found._rows if isinstance(found, CyclicJoin) else found.rows


LISTED: list[Any] = [lambda joined: joined]
OF_THREE: list[Any] = [
    lambda j: j.where(lambda x, y, z: x.label <= y.label).select(lambda x, y, z: (x.src, z.dst)),
    lambda j: j.group_by(lambda x, y, z: x.label).aggregate(
        Count(), Sum(lambda x, y, z: y.label), Min(lambda x, y, z: z.label)
    ),
    lambda j: j.aggregate(Avg(lambda x, y, z: 0.5 * z.label), Max(lambda x, y, z: x.label)),
]
OF_FOUR: list[Any] = [
    lambda j: j.group_by(lambda x, y, z, w: (x.src, w.label)).aggregate(
        Count(), Sum(lambda x, y, z, w: w.label / 2)
    ),
    lambda j: j.select(lambda x, y, z, w: (x.label, w.dst)).distinct(),
]
OF_SIX: list[Any] = [
    lambda j: j.group_by(lambda x, y, z, u, v, w: v.label).aggregate(
        Count(), Max(lambda x, y, z, u, v, w: u.label)
    ),
]
SINKS: list[list[Any]] = [
    *[LISTED + OF_THREE] * 3,
    *[LISTED + OF_FOUR] * 3,
    LISTED + OF_SIX,
]
"""The query above each of the joins."""


def change(
    tables: list[Any], held: list[tuple[Any, Edge]], ends: list[Any], random: Random
) -> None:
    for _ in range(random.choice((1, 1, 4))):
        if held and random.random() * 20 < len(held):
            table, edge = held.pop(random.randrange(len(held)))
            table.remove(edge)
            continue
        edge = Edge(random.choice(ends), random.choice(ends), random.randrange(3))
        held.append((random.choice(tables), edge))
        held[-1][0].add(edge)


@pytest.mark.long
@sampled
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("are_several", [False, True])
@pytest.mark.parametrize("number", range(len(JOINS)))
def test_what_is_read_of_a_cycle_is_right_in_every_place(
    number: int, are_several: bool, way: str
) -> None:
    for seed in seeds(3):
        with thresholds(WAYS[way]), Database() as db:
            random = Random(seed)
            tables: list[Any] = [
                db.table(Edge, name=name) for name in ("abc" if are_several else "a")
            ]
            made = [random.choice(MADE)] * 3 if random.random() < 0.5 else random.choices(MADE, k=3)
            given = [make(table) for make, table in zip(made, (tables * 3)[:3], strict=True)]
            joined = JOINS[number](*given)
            relations = [sink(joined) for sink in SINKS[number]]
            views = [relation.materialize() for relation in relations]
            heard: Counter[Any] = Counter()

            def hear(delta: Delta[Any], heard: Counter[Any] = heard) -> None:
                for row, weight in delta.items():
                    heard[row] += weight

            subscription = views[0].subscribe(hear)
            failing = tables[0].select(lambda e: 1 // (e.label != 2 or e.src != 1)).materialize()
            ends = [*range(random.choice((3, 6))), *random.choice(([], [None, float("nan"), True]))]
            held: list[tuple[Any, Edge]] = []
            for _ in range(random.choice((6, 25))):
                before = held.copy()
                try:
                    with db.transaction():
                        change(tables, held, ends, random)
                except ZeroDivisionError:
                    held[:] = before
                for view in views:
                    view.verify()
            assert +heard == Counter(dict(views[0].zset().items()))
            for relation in relations:
                relation.materialize().verify()
            for table in tables:
                table.clear()
            assert not len(views[0]) and len(failing) == len(tables[0]) == 0
            subscription.close()


@pytest.mark.parametrize("weights", [(1,), (1, 2, -3)])
def test_rows_are_held_by_both_ends_as_often_as_they_are_there(weights: tuple[int, ...]) -> None:
    random, held, known = Random(1), NeighbourRows(), Counter[Any]()
    for _ in range(300):
        row = (random.randrange(4), random.randrange(4), random.randrange(2))
        weight = random.choice(weights)
        if weight == 1 and known[row] and random.random() < 0.7:
            weight = -known[row]
        known[row] += weight
        held.add(row[0], row[1], row, weight)
        found = Counter({row: times for _, _, row, times in held.items()})
        assert found == Counter({row: times for row, times in known.items() if times})
        assert held.footprint()[0] == len(found)
        assert {(u, v) for u in held.onward for v in held.onward[u]} == {
            (u, v) for v in held.back for u in held.back[v]
        }
    for row, times in known.items():
        if times:
            held.add(row[0], row[1], row, -times)
    assert state(held) == ({}, {})


@pytest.mark.parametrize("is_unary", [False, True])
def test_ends_are_given_the_rows_that_they_had(is_unary: bool) -> None:
    held = NeighbourRows(is_unary=is_unary)
    held.add(1, 2, "a", 1)
    for pairs in ([("a", 1), ("b", 1)], [("b", 3)], []):
        held.put(1, 2, pairs)
        held.put(1, 2, pairs)
        assert held.rows(1, 2) == pairs
        assert bool(held.back) == (bool(pairs) and not is_unary)


def test_rows_are_joined_without_the_one_that_changes() -> None:
    held = NeighbourRows()
    for row, weight in (("a", 1), ("b", 2)):
        held.add(0, 1, row, weight)
    both = held.onward[0][1]
    assert subtract_row(both, "b", 1) == subtract_row(both, "b", -1) == [("a", 1), ("b", 1)]
    assert subtract_row(both, "b", 2) == subtract_row("a", "c", 1) == [("a", 1)]
    assert subtract_row(both, "c", -1) == [("a", 1), ("b", 2)]


@pytest.mark.parametrize("times", range(1, 30))
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("is_crowded", [True, False])
def test_rows_that_were_added_partially_are_undone(
    times: int, is_first: bool, is_crowded: bool
) -> None:
    db = Database()
    edges = db.table(Edge)
    view = TRIANGLES(edges, edges, edges).materialize()
    if not is_first:
        edges.add_all([Edge(1, 2), Edge(2, 2), Edge(2, 1), *[Edge(1, 2, 7)] * is_crowded])
    (held,) = rows_of(db)._held
    assert bool(rows_of(db)._crowded) == (is_crowded and not is_first)
    before, rows, end = state(held), Counter(dict(view.zset().items())), Late(times)
    new = [Edge(2, 3), Edge(1, 3), Edge(1, end), Edge(end, 1)]
    try:
        edges.add_all(new)
    except ArithmeticError:
        assert state(held) == before
        assert Counter(dict(view.zset().items())) == rows
    end.times = 0
    view.verify()


def test_ends_that_have_no_hash_are_joined_by_two() -> None:
    db = Database()
    edges: Any = db.table(Edge)
    two = edges.join(edges, on=lambda x, y: [x.dst] == [y.src])
    view = two.join(
        edges, on=lambda x, y, z: [y.dst] == [z.src] and [z.dst] == [x.src]
    ).materialize()
    assert not operators(db) & {CyclicJoin, CyclicJoinRunner} or not len(edges)
    edges.add_all(Edge(*pair) for pair in ((1, 2), (2, 3), (3, 1)))
    assert len(view) == 3
    view.verify()


@dataclass(frozen=True, slots=True)
class Loose:
    """An edge with a hash, whatever its fields are."""

    src: Any = field(hash=False)
    dst: Any = field(hash=False)
    label: Any = field(default=0, hash=False)


@sampled
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("name", ["src", "dst", "label"])
@pytest.mark.parametrize("sink", [lambda joined: joined, lambda joined: joined.aggregate(Count())])
@pytest.mark.parametrize("number", range(len(JOINS)))
def test_rows_with_an_end_that_has_no_hash_are_taken_back_and_joined_by_two(
    number: int, sink: Any, name: str, is_first: bool, caplog: pytest.LogCaptureFixture
) -> None:
    db = Database()
    edges: Any = db.table(Loose)
    view = sink(JOINS[number](edges, edges, edges)).materialize()
    cyclic = {CyclicCount, CyclicJoin, CyclicJoinRunner}
    assert operators(db) & cyclic
    if not is_first:
        edges.add_all([Loose(1, 2, 2), Loose(2, 3, 1)])
    edges.add(dataclasses.replace(Loose(1, 3, 1), **{name: [3]}))
    view.verify()
    edges.add_all([Loose(1, 3, 1), Loose([1], [2], [2]), Loose([2], [3]), Loose([1], [3])])
    assert not operators(db) & cyclic
    view.verify()
    assert not caplog.records


def test_the_loops_look_at_weights_from_the_first_row_on_that_is_not_alone() -> None:
    db = Database()
    edges = db.table(Edge)
    view = TRIANGLES(edges, edges, edges).materialize()
    edges.add_all([Edge(1, 2), Edge(2, 3), Edge(1, 3)])
    assert "without(" not in str(view.explain(code=True)) and len(view) == 1
    edges.add(Edge(1, 2, 1))
    assert "without(" in rows_of(db).source and len(view) == 2
    edges.remove(Edge(1, 2))
    edges.add(Edge(1, 2, 1))
    assert list(view.zset().items()) == [((Edge(1, 2, 1), Edge(2, 3), Edge(1, 3)), 2)]
    view.verify()


@pytest.mark.parametrize("number", range(len(JOINS)))
def test_updates_are_told_as_such(number: int) -> None:
    db = Database()
    edges: Any = db.table(Edge)
    view = JOINS[number](edges, edges, edges).materialize()
    ends = [(1, 2), (2, 3), (1, 3), (3, 4), (2, 4), (1, 4), (2, 1), (3, 2), (4, 1), (1, 1)]
    edges.add_all(Edge(u, v, (u + v) % 3) for u, v in ends)
    told: list[Delta[Any]] = []
    subscription = view.subscribe(told.append)
    random = Random(number)
    updated = 0
    for _ in range(30):
        some = random.sample(sorted(edges, key=repr), random.choice((1, 1, 3)))
        before = Counter(dict(view.zset().items()))
        with db.transaction():
            for edge in some:
                edges.update(edge, Edge(edge.src, edge.dst, 10 + random.randrange(3)))
        view.verify()
        for delta in told:
            updated += len(delta.updated)
            after = before.copy()
            for old, new in delta.updated:
                after[old] -= 1
                after[new] += 1
                ends_of = [[(e.src, e.dst) for e in row] for row in (old, new)]
                assert ends_of[0] == ends_of[1]
            for row in delta.removed:
                after[row] -= 1
            for row in delta.added:
                after[row] += 1
            assert +after == Counter(dict(view.zset().items()))
        told.clear()
    assert updated or not len(view)
    subscription.close()


def test_a_change_touches_what_it_joins_and_no_more_in_larger_tables() -> None:
    touched = []
    for size in (30, 3_000):
        db = Database()
        edges = db.table(Edge)
        view = TRIANGLES(edges, edges, edges).materialize()
        edges.add_all(Edge(n, n + 1) for n in range(size))
        edges.add_all(Edge(n, 10_000) for n in range(3))
        before = view.stats().touched
        edges.add(Edge(10_000, 20_000))
        edges.add(Edge(0, 20_000))
        edges.remove(Edge(0, 10_000))
        touched.append(view.stats().touched - before)
    assert touched[0] == touched[1] < 20
