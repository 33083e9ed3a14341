"""Inputs below a recursion of which only the presence of a partner counts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import pytest

from reactive import Database, fixpoint
from tests.budget import TIMES, drawing


class Edge(NamedTuple):
    a: Any
    b: Any


Condition = Callable[..., Any]
CONDITIONS: dict[str, Condition] = {
    "end": lambda p, q, y: y.a == q.b % 3,
    "start": lambda p, q, y: y.a == p[0] % 3,
    "two keys": lambda p, q, y: y.a == q.b and y.b == p[0] * 2,
    "a test of the left": lambda p, q, y: q.b > 1 and y.a == q.b,
    "a test of the right": lambda p, q, y: y.a == q.b % 3 and y.b == 1,
    "key of both": lambda p, q, y: p[0] + y.a == q.b,
}


def query(edges: Any, marks: Any, on: Condition, *, semi: bool) -> Any:
    pairs = edges.select(lambda e: (e.a, e.b))

    def step(r: Any) -> Any:
        joined = r.join(edges, on=lambda p, q: p[1] == q.a)
        if semi:
            return joined.semi_join(marks, on=on).select(lambda p, q: (p[0], q.b))
        return joined.join(marks, on=on).select(lambda p, q, y: (p[0], q.b))

    return fixpoint(lambda r: pairs.union(step(r)))


def expected(edges: list[Edge], marks: list[Edge], on: Condition) -> set[Any]:
    """Evaluate the recursion from scratch; raise what the condition raises."""
    found = {(e.a, e.b) for e in edges}
    while True:
        longer = {
            (p[0], q.b)
            for p in found
            for q in edges
            if p[1] == q.a and sum(bool(on(p, q, y)) for y in marks)
        }
        if longer <= found:
            return found
        found |= longer


@pytest.mark.parametrize("semi", [True, False])
@pytest.mark.parametrize("name", CONDITIONS)
def test_rows_and_exceptions_are_those_of_nested_loops(name: str, semi: bool) -> None:
    random, on = drawing(), CONDITIONS[name]
    for _ in range(20 if TIMES else 4):
        db = Database()
        edges, marks = db.table(Edge, name="edges"), db.table(Edge, name="marks")
        rows: tuple[list[Edge], list[Edge]] = ([], [])
        view = query(edges, marks, on, semi=semi).materialize()
        for _ in range(25):
            side = random.randrange(2)
            table, after = (edges, marks)[side], (rows[0].copy(), rows[1].copy())
            new = Edge(random.randrange(5), random.choice((None, 2.5, *range(9))))
            gone = [after[side].pop()] if after[side] and random.random() < 0.5 else []
            after[side].append(new)
            found: set[Any] | None = None
            with suppress(TypeError):
                found = expected(*after, on)
            try:
                with db.transaction():
                    for row in gone:
                        table.remove(row)
                    table.add(new)
            except TypeError:
                assert found is None, (name, new)
            else:
                assert found is not None, (name, new)
                rows = after
                assert set(view) == found, name
            view.verify()


@pytest.mark.parametrize("semi", [True, False])
@pytest.mark.parametrize("name", ["end", "start"])
def test_derived_rows_meet_one_partner(name: str, semi: bool) -> None:
    touched = []
    for count in (30, 300):
        db = Database()
        edges, marks = db.table(Edge, name="edges"), db.table(Edge, name="marks")
        marks.add_all(Edge(n % 3, n) for n in range(count))
        edges.add_all(Edge(n, n + 1) for n in range(20))
        view = query(edges, marks, CONDITIONS[name], semi=semi).materialize()
        before = view.stats().touched
        edges.add(Edge(20, 21))
        touched.append(view.stats().touched - before)
    assert touched[0] == touched[1]
