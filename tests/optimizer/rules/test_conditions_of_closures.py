"""Conditions on a closure that may raise: tested on its first rows, with the same exceptions."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import pytest

from reactive import Database, fixpoint
from tests.budget import TIMES, drawing


class Edge(NamedTuple):
    src: Any
    dst: Any


Condition = Callable[[Any], Any]
CONDITIONS: dict[str, Condition] = {
    "less": lambda p: p[0] < 3,
    "sum": lambda p: p[0] * 2 + 1 < 6,
    "between": lambda p: 1 <= p[0] < 4,
    "two": lambda p: p[0] > 0 and p[0] % 2 == 1,
    "or": lambda p: p[0] == 1 or p[0] > 3,
    "end": lambda p: p[1] < 3,
    "both": lambda p: p[0] < p[1],
}


def closure(edges: Any, *, is_left: bool) -> Any:
    """Return the closure of edges, which extends paths at their end, or at their start."""
    pairs = edges.select(lambda e: (e.src, e.dst))
    if is_left:
        return fixpoint(
            lambda r: pairs.union(
                r.join(edges, on=lambda p, e: p[1] == e.src).select(lambda p, e: (p[0], e.dst))
            )
        )
    return fixpoint(
        lambda r: pairs.union(
            r.join(edges, on=lambda p, e: e.dst == p[0]).select(lambda p, e: (e.src, p[1]))
        )
    )


def paths(edges: list[Edge]) -> set[tuple[Any, Any]]:
    found = {(e.src, e.dst) for e in edges}
    while True:
        longer = {(a, e.dst) for a, b in found for e in edges if b == e.src}
        if longer <= found:
            return found
        found |= longer


def vertex(random: Random) -> Any:
    return random.choice(("x", 2.5)) if random.random() < 0.06 else random.randrange(6)


@pytest.mark.parametrize("is_left", [True, False])
@pytest.mark.parametrize("name", CONDITIONS)
def test_rows_and_exceptions_are_those_of_all_paths(name: str, is_left: bool) -> None:
    random, condition = drawing(), CONDITIONS[name]
    for _ in range(20 if TIMES else 4):
        db = Database()
        edges = db.table(Edge, name="edges")
        rows: list[Edge] = []
        view = closure(edges, is_left=is_left).where(condition).materialize()
        for _ in range(25):
            after = rows.copy()
            gone = (
                [after.pop(random.randrange(len(after)))] if after and random.random() < 0.5 else []
            )
            new = [Edge(vertex(random), vertex(random)) for _ in range(random.choice((0, 1, 2)))]
            after += new
            expected, raised = set(), False
            for path in paths(after):
                try:
                    expected |= {path} if condition(path) else set()
                except TypeError:
                    raised = True
            try:
                with db.transaction():
                    for row in gone:
                        edges.remove(row)
                    edges.add_all(new)
            except TypeError:
                assert raised, (name, new)
            else:
                assert not raised, (name, new)
                rows = after
            if not raised:
                assert set(view) == expected, name
            view.verify()


def test_paths_from_other_places_are_not_touched() -> None:
    touched = []
    for count in (200, 2000):
        db = Database()
        edges = db.table(Edge, name="edges")
        edges.add_all(Edge(n, n + 1) for n in range(100, 100 + count, 2))
        view = closure(edges, is_left=True).where(lambda p: p[0] < 20).materialize()
        edges.add(Edge(1, 2))
        before = view.stats().touched
        edges.add(Edge(2, 3))
        edges.add(Edge(101, 102))
        touched.append(view.stats().touched - before)
    assert touched[0] == touched[1]
