"""Lattices in comprehensions: recursive dictionaries of joined values, and joins as aggregates."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import pytest

from reactive import Database, GroupedQuery, PlanError, check
from reactive.lattices import flat, interval, smallest, union
from tests.api.lattice_programs import EXAMPLES, KINDS, Example, Facts, histories, tables_of
from tests.budget import seeds

NODES = 6


def states(db: Database, example: Example, tables: dict[str, Any]) -> GroupedQuery[Any]:
    """Return the query of an example as a dictionary."""
    facts, flow, move, pair = (tables[name] for name in ("fact", "flow", "move", "pair"))
    nodes = db.table(int, name="nodes")
    nodes.add_all(range(NODES))
    join, one, two = example.lattice(), example.one, example.two

    @db.query
    def state() -> Any:
        return {
            n: join(
                (f.value for f in facts if f.n == n),
                [value for m, value in state().items() for f in flow if f.u == m and f.v == n],
                (
                    one(value, m.how)
                    for n, value in state().items()  # another n
                    for m in move
                    if m.u == n and m.v == k
                ),
                (
                    two(x, y)
                    for p in pair
                    if p.v == n
                    for a, x in state().items()
                    if a == p.a
                    for b, y in state().items()
                    if b == p.b
                ),
            )
            for n in nodes
            for k in nodes
            if k == n
        }

    found: GroupedQuery[Any] = state
    return found


@pytest.mark.parametrize("seed", seeds(12, 6))
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_a_dictionary_equals_a_worklist_and_its_text(example: Example, seed: int) -> None:
    db, random = Database(), Random(seed)
    tables, facts = tables_of(db), {kind: set[Any]() for kind in KINDS}
    view = states(db, example, tables).materialize()
    for commit in histories(example, random, nodes=NODES, start=12, commits=8):
        with db.transaction():
            for adds, kind, row in commit:
                (tables[kind].add if adds else tables[kind].remove)(row)
                (facts[kind].add if adds else facts[kind].remove)(row)
        expected: Facts = facts
        assert dict(view) == {row.n: row.value for row in example.by_hand(expected)}
        check(view)
        view.verify()


class Edge(NamedTuple):
    src: str
    dst: str
    length: int


EDGES = (Edge("a", "b", 3), Edge("b", "c", 2), Edge("a", "c", 9), Edge("c", "a", 1))


def tables() -> tuple[Database, Any, Any]:
    db = Database()
    return db, db.table(Edge, name="edges"), db.table(str, name="towns")


def test_keys_may_come_from_any_rows_and_values_from_a_collection() -> None:
    db, edges, towns = tables()
    join = union()

    @db.query
    def before() -> Any:
        return {
            town: join(
                [frozenset([town])],
                {
                    seen
                    for t, seen in before().items()
                    for e in edges
                    if (e.src, e.dst) == (t, town)
                },
            )
            for town in {e.dst for e in edges} | set(towns)
        }

    view = before.materialize()
    edges.add_all(EDGES[:2])
    towns.add("a")
    for change in (lambda: edges.remove(EDGES[0]), lambda: edges.add(EDGES[3]), edges.clear):
        check(view)
        change()
    assert dict(view) == {"a": {"a"}} and view["a"] == {"a"}
    towns.clear()
    assert dict(view) == {}


def test_other_queries_read_a_recursive_dictionary() -> None:
    db, edges, towns = tables()
    least = smallest()

    @db.query
    def cost() -> Any:
        return {
            t: least(
                (0 for _ in [1] if t == "a"),
                (
                    c + e.length
                    for s, c in cost().items()
                    for e in edges
                    if e.src == s
                    if e.dst == t
                ),
            )
            for t in towns
        }

    near = db.query(lambda: {t for t, c in cost().items() if c < 6}).materialize()
    farthest = db.query(lambda: max(cost().values(), default=0)).materialize()
    towns.add_all("abc")
    edges.add_all(EDGES)
    assert set(near) == {"a", "b", "c"} and farthest.value == 5
    edges.remove(EDGES[1])
    assert set(near) == {"a", "b"} and farthest.value == 9
    check(near, farthest)


def test_a_join_is_an_aggregate_wherever_values_are() -> None:
    db, edges, towns = tables()
    wide, longest, ends = interval(), smallest(), union()
    every = db.query(lambda: wide((e.length, e.length) for e in edges)).materialize()
    by_town = db.query(
        lambda: {t: longest([5], (e.length for e in edges if e.dst == t)) for t in towns}
    ).materialize()
    rows = db.query(
        lambda: [(t, ends({frozenset([e.dst]) for e in edges if e.src == t})) for t in towns]
    ).materialize()
    for change in (
        lambda: towns.add_all("abd"),
        lambda: edges.add_all(EDGES),
        lambda: edges.remove(EDGES[0]),
        edges.clear,
    ):
        change()
        check(every, by_town, rows)
    assert (every.value, dict(by_town)) == (None, dict.fromkeys("abd", 5))
    assert set(rows) == {("a", frozenset()), ("b", frozenset()), ("d", frozenset())}
    assert flat()([1, 1], (1,)) == 1 and smallest()([]) is None


def test_values_that_are_none_are_values() -> None:
    db, edges, towns = tables()
    same = flat()
    view = db.query(lambda: {t: same([None], (None for e in edges)) for t in towns}).materialize()
    towns.add("a")
    edges.add(EDGES[0])
    assert dict(view) == {"a": None}
    check(view)


def test_what_is_no_recursion_over_a_lattice_is_refused() -> None:
    db, edges, towns = tables()
    least, about_rows = smallest(), smallest(lambda row: row.cost)

    @db.query
    def step() -> Any:
        return {t: least([1]) for t in towns}

    with pytest.raises(PlanError, match=r"calls itself, and gives no set\n.*\n.*\n.*lattice joins"):

        @db.query
        def values() -> Any:
            return {t: 1 + max(c for s, c in values().items() if s == t) for t in towns}

    with pytest.raises(PlanError, match="does not give a lattice values to join"):

        @db.query
        def starred() -> Any:
            return {t: least(*[c for s, c in starred().items()]) for t in towns}

    with pytest.raises(PlanError, match="a lattice with of= is about rows"):

        @db.query
        def rows() -> Any:
            return {t: about_rows(c for s, c in rows().items() if s == t) for t in towns}

    with pytest.raises(PlanError, match="depends on its own negation"):

        @db.query
        def absent() -> Any:
            return {t: least(1 for e in edges if e.src not in absent()) for t in towns}

    assert dict(step.materialize()) == {}
