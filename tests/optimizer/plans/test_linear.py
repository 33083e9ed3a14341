"""Linear recursions, and the columns that join their rows with inputs; or None."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from optimizer import plan
from optimizer.expr import Attribute, Parameter
from optimizer.plans.closures import linear
from optimizer.plans.explain import headline
from reactive import Database, Min, fixpoint


class Edge(NamedTuple):
    src: int
    dst: int


Query = Callable[[Any, Any], Any]


def generation(edges: Any, others: Any) -> Any:
    return fixpoint(
        lambda r: others.union(
            edges.join(r, on=lambda a, r: a.src == r.src)
            .join(edges, on=lambda a, r, b: r.dst == b.src)
            .select(lambda a, r, b: Edge(a.dst, b.dst))
        )
    )


def both(edges: Any, others: Any) -> Any:
    return fixpoint(
        lambda odd, even: (
            others.union(
                even.where(lambda p: p.src > 0)
                .join(edges, on=lambda p, e: p.dst == e.src)
                .select(lambda p, e: Edge(e.dst, p.src))
            ),
            odd.select(lambda p: Edge(p.dst, p.src))
            .join(edges, on=lambda p, e: p.dst == e.src)
            .select(lambda p, e: Edge(e.dst, p.src)),
        )
    )[0]


READINGS: dict[str, tuple[Query, set[tuple[int, str]] | None]] = {
    "a relation between two sides": (
        generation,
        {(0, "src"), (0, "dst")},
    ),
    "two relations, one of them turned before it is joined": (
        both,
        {(1, "dst"), (0, "src")},
    ),
    "the best of each key": (
        lambda e, o: fixpoint(
            lambda r: e.union(
                r.join(e, on=lambda p, e: p.dst == e.src).select(lambda p, e: Edge(e.dst, p.src))
            ),
            keep=Min(lambda r: r.src),
            by=lambda r: r.dst,
        ),
        None,
    ),
    "joined with itself": (
        lambda e, o: fixpoint(
            lambda r: e.union(
                r.join(r, on=lambda p, q: p.dst == q.src).select(lambda p, q: Edge(q.dst, p.src))
            )
        ),
        None,
    ),
    "a negation": (
        lambda e, o: fixpoint(
            lambda r: e.union(
                r.anti_join(o, on=lambda p, e: p.dst == e.src).select(lambda p: Edge(p.dst, p.src))
            )
        ),
        None,
    ),
    "a key that reads a row of an input alone": (
        lambda e, o: fixpoint(
            lambda r: e.union(
                r.join(e, on=lambda p, e: p.dst == e.src)
                .join(o, on=lambda p, e, f: e.dst == f.src)
                .select(lambda p, e, f: Edge(f.dst, p.src))
            )
        ),
        None,
    ),
    "no input but a seed": (
        lambda e, o: fixpoint(lambda r: e.union(r.select(lambda p: Edge(p.dst, p.src)))),
        None,
    ),
}


@pytest.mark.parametrize("name", READINGS)
def test_a_linear_recursion_tells_by_what_its_rows_meet_those_of_inputs(name: str) -> None:
    query, wanted = READINGS[name]
    db: Any = Database()
    given = db.table(Edge, name="edges"), db.table(Edge, name="others")
    node = db._engine.queries.optimize(query(*given).plan).plan
    while not isinstance(node, plan.Fixpoint):
        node = node.inputs()[0]
    found = linear(node)
    if wanted is None:
        assert found is None
        return
    assert found is not None
    met: list[Any] = [each.match.on for each in found.readings]
    equations = [on.body.operands for on in met]
    assert all(str(other) == str(Attribute(Parameter(1), "src")) for _, other in equations)
    relations = [each.relation for each in found.readings]
    assert {*zip(relations, (own.name for own, _ in equations), strict=True)} == wanted
    assert all(headline(side) == "table edges" for side in found.sides)
