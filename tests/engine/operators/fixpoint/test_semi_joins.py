"""Semi-joins within a recursion, also of several bindings."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from reactive import Database, fixpoint
from tests.budget import seeds

Pair = tuple[int, int]
Step = Callable[[Any, Any, Any], Any]


def one(r: Any, edges: Any, doors: Any) -> Any:
    """Ends of ways that have a door."""
    return r.semi_join(doors, on=lambda x, d: x[1] == d[0])


def several(r: Any, edges: Any, doors: Any) -> Any:
    """Edges from there, to where there is a door."""
    return (
        r.join(edges, on=lambda x, e: x[1] == e[0])
        .semi_join(doors, on=lambda x, e, d: e[1] == d[0])
        .select(lambda x, e: (x[0], e[1]))
    )


def without_keys(r: Any, edges: Any, doors: Any) -> Any:
    """Edges from there, while there is a door of a lower number."""
    return (
        r.join(edges, on=lambda x, e: x[1] == e[0])
        .semi_join(doors, on=lambda x, e, d: d[1] < e[1])
        .select(lambda x, e: (x[0], e[1]))
    )


def of_itself(r: Any, edges: Any, doors: Any) -> Any:
    """Edges from there, to where something leads on."""
    return (
        r.join(edges, on=lambda x, e: x[1] == e[0])
        .semi_join(r, on=lambda x, e, y: e[1] == y[0])
        .select(lambda x, e: (x[0], e[1]))
    )


def unread(r: Any, edges: Any, doors: Any) -> Any:
    """Edges from there, if there is a door, to where there is one."""
    return (
        r.join(doors)
        .join(edges, on=lambda x, d, e: x[1] == e[0])
        .join(doors, on=lambda x, d, e, f: e[1] == f[0] and f[1] != 2)
        .select(lambda x, d, e, f: (x[0], e[1]))
    )


def made(step: Step, starts: Any, edges: Any, doors: Any) -> Any:
    return fixpoint(lambda r: starts | step(r, edges, doors))


def derived(step: Step, known: set[Pair], edges: list[Pair], doors: list[Pair]) -> set[Pair]:
    """Return the rows that one round adds, in plain Python."""
    on = [(x, e) for x in known for e in edges if x[1] == e[0]]
    match step.__name__:
        case "one":
            return {x for x in known if any(x[1] == d[0] for d in doors)}
        case "several":
            return {(x[0], e[1]) for x, e in on if any(e[1] == d[0] for d in doors)}
        case "without_keys":
            return {(x[0], e[1]) for x, e in on if any(d[1] < e[1] for d in doors)}
        case "of_itself":
            return {(x[0], e[1]) for x, e in on if any(e[1] == y[0] for y in known)}
        case _:
            return {
                (x[0], e[1])
                for x, e in on
                if doors and any(e[1] == f[0] and f[1] != 2 for f in doors)
            }


def reached(step: Step, starts: list[Pair], edges: list[Pair], doors: list[Pair]) -> set[Pair]:
    known = set(starts)
    while True:
        new = known | derived(step, known, edges, doors)
        if new == known:
            return known
        known = new


@pytest.mark.parametrize("step", [one, several, without_keys, of_itself, unread])
@pytest.mark.parametrize("optimize", [True, False])
def test_they_equal_their_naive_evaluation_after_every_commit(step: Step, optimize: bool) -> None:
    for seed in seeds(20):
        random = Random(seed)
        db = Database(optimize=optimize)
        tables: list[Any] = [db.table(tuple, name=name) for name in ("starts", "edges", "doors")]
        view = made(step, *tables).materialize()
        for _ in range(25):
            table = random.choice(tables)
            if len(table) and random.random() < 0.4:
                table.remove(random.choice(sorted(table)))
            else:
                table.add((random.randrange(4), random.randrange(4)))
            assert set(view) == reached(step, *map(sorted, tables))
        view.verify()
