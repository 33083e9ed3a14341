"""Recursions that decompose into many small ones: their partition column, or None."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from optimizer import plan
from optimizer.plans.closures import partition
from reactive import Database, Min, fixpoint


class Edge(NamedTuple):
    src: int
    dst: int


class Path(NamedTuple):
    src: int
    dst: int
    cost: float


Query = Callable[[Any, Any, Any], Any]
QUERIES: dict[str, tuple[Query, str | None]] = {
    "an edge at the end": (
        lambda e, p, t: fixpoint(
            lambda r: e.union(
                r.join(e, on=lambda p, e: p.dst == e.src).select(lambda p, e: Edge(p.src, e.dst))
            )
        ),
        "r.src",
    ),
    "an edge at the beginning": (
        lambda e, p, t: fixpoint(
            lambda r: e.union(
                e.join(r, on=lambda e, p: e.dst == p.src).select(lambda e, p: Edge(e.src, p.dst))
            )
        ),
        "r.dst",
    ),
    "a path at the end": (
        lambda e, p, t: fixpoint(
            lambda r: e.union(
                r.join(r, on=lambda p, e: p.dst == e.src).select(lambda p, e: Edge(p.src, e.dst))
            )
        ),
        "r.src",
    ),
    "an edge at either end": (
        lambda e, p, t: fixpoint(
            lambda r: e.union(
                r.join(e, on=lambda p, e: p.dst == e.src).select(lambda p, e: Edge(p.src, e.dst))
            ).union(
                e.join(r, on=lambda e, p: e.dst == p.src).select(
                    lambda e, p: Edge(e.src + 1, p.dst)
                )
            )
        ),
        None,
    ),
    "tuples": (
        lambda e, p, t: fixpoint(
            lambda r: t.union(
                r.join(t, on=lambda p, e: p[1] == e[0]).select(lambda p, e: (p[0], e[1]))
            )
        ),
        "r[0]",
    ),
    "shortest paths": (
        lambda e, p, t: fixpoint(
            lambda r: p.union(
                r.join(p, on=lambda p, e: p.dst == e.src).select(
                    lambda p, e: Path(p.src, e.dst, p.cost + e.cost)
                )
            ),
            keep=Min(lambda r: r.cost),
            by=lambda r: (r.src, r.dst),
        ),
        "r.src",
    ),
    "shortest paths from anywhere": (
        lambda e, p, t: fixpoint(
            lambda r: p.union(
                r.join(p, on=lambda p, e: p.dst == e.src).select(
                    lambda p, e: Path(p.src, e.dst, p.cost + e.cost)
                )
            ),
            keep=Min(lambda r: r.cost),
            by=lambda r: r.dst,
        ),
        None,
    ),
    "below other joins": (
        lambda e, p, t: fixpoint(
            lambda r: t.union(
                r.anti_join(e, on=lambda p, e: p[1] == e.src)
                .where(lambda p: p[0] > 0)
                .join(t, on=lambda p, e: p[1] == e[0])
                .select(lambda p, e: (p[0], e[1]))
            )
        ),
        "r[0]",
    ),
    "same generation": (
        lambda e, p, t: fixpoint(
            lambda r: e.union(
                e.join(r, on=lambda a, r: a.src == r.src)
                .join(e, on=lambda a, r, b: r.dst == b.src)
                .select(lambda a, r, b: Edge(a.dst, b.dst))
            )
        ),
        None,
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_recursion_is_many_small_ones_if_every_step_keeps_a_column(name: str) -> None:
    query, column = QUERIES[name]
    db = Database()
    tables = (
        db.table(Edge, name="e"),
        db.table(Path, name="p"),
        db.table(tuple[int, int], name="t"),
    )
    found = partition(_run(db, query(*tables)))
    assert (found and found.column_name) == column


def test_a_closure_over_itself_is_written_as_one_that_grows_by_an_edge() -> None:
    query, _ = QUERIES["a path at the end"]
    db = Database()
    edges = db.table(Edge, name="e")
    found = partition(_run(db, query(edges, edges, edges)))
    assert found is not None
    assert found.sides() == (edges.plan,)
    assert found.seeds == (edges.plan,)


def test_relations_that_are_defined_together_are_not_taken_apart() -> None:
    db = Database()
    edges = db.table(Edge, name="e")
    odd, even = fixpoint(
        lambda odd, even: (
            edges.union(
                even.join(edges, on=lambda p, e: p.dst == e.src).select(
                    lambda p, e: Edge(p.src, e.dst)
                )
            ),
            odd.join(edges, on=lambda p, e: p.dst == e.src).select(lambda p, e: Edge(p.src, e.dst)),
        )
    )
    for relation in (odd, even):
        run = _run(db, relation)
        assert partition(run.input if isinstance(run, plan.Component) else run) is None


def _run(db: Database, relation: Any) -> plan.Node:
    return db._engine.queries.optimize(relation.plan).plan
