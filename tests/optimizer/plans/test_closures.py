"""Recursions that are closures, and recursions that only look like one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

from optimizer import plan
from optimizer.plans.clauses import clauses
from optimizer.plans.closures import Closure, closure_of
from optimizer.rewriting.optimize import optimize
from reactive import Database, fixpoint

Rel = Any


class Edge(NamedTuple):
    src: Any
    dst: Any


class Road(NamedTuple):
    src: str
    dst: str
    miles: float


@dataclass(frozen=True, slots=True)
class Link:
    src: Any
    dst: Any


@dataclass(frozen=True)
class Checked:
    src: Any
    dst: Any

    def __post_init__(self) -> None:
        assert self.src


@dataclass(frozen=True)
class Loose:
    src: Any
    dst: Any = field(compare=False)


@dataclass(frozen=True)
class Odd:
    src: Any
    dst: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Odd)


@dataclass(eq=False)
class Same:
    src: Any
    dst: Any


DB = Database()
EDGES, LINKS, ROADS = DB.table(Edge), DB.table(Link), DB.table(Road)


def after(reach: Rel, edges: Rel, make: Any) -> Rel:
    return reach.join(edges, on=lambda p, e: p.dst == e.src).select(lambda p, e: make(p.src, e.dst))


def by(edges: Rel, make: Any) -> Rel:
    return fixpoint(lambda reach: edges.union(after(reach, edges, make)))


CLOSURES: dict[str, Callable[[], Rel]] = {
    "named tuples": lambda: by(EDGES, Edge),
    "dataclasses": lambda: by(LINKS, Link),
    "the other side": lambda: fixpoint(lambda reach: EDGES.union(after(EDGES, reach, Edge))),
    "both sides": lambda: fixpoint(lambda reach: EDGES.union(after(reach, reach, Edge))),
    "several clauses": lambda: fixpoint(
        lambda reach: after(EDGES, reach, Edge).union(EDGES).union(after(reach, reach, Edge))
    ),
    "the equation turned": lambda: fixpoint(
        lambda reach: EDGES.union(
            reach.join(EDGES, on=lambda p, e: e.dst == p.src).select(
                lambda p, e: Edge(e.src, p.dst)
            )
        )
    ),
    "keys": lambda: fixpoint(
        lambda reach: EDGES.union(
            reach.join(EDGES, left_key=lambda p: p.dst, right_key=lambda e: e.src).select(
                lambda p, e: Edge(dst=e.dst, src=p.src)
            )
        )
    ),
    "items": lambda: fixpoint(
        lambda reach: EDGES.union(
            reach.join(EDGES, on=lambda p, e: p[1] == e[0]).select(lambda p, e: Edge(p[0], e[1]))
        )
    ),
    "of other rows": lambda: fixpoint(
        lambda reach: ROADS.select(lambda r: (r.src, r.dst)).union(
            reach.join(ROADS, on=lambda p, r: p[1] == r.src).select(lambda p, r: (p[0], r.dst))
        )
    ),
    "of what a select makes of them": lambda: by(
        ROADS.where(lambda r: r.miles > 3).select(lambda r: Edge(r.src, r.dst)), Edge
    ),
    "of a query": lambda: by(EDGES.where(lambda e: e.src != e.dst).distinct(), Edge),
}

OTHERS: dict[str, Callable[[], Rel]] = {
    "another base": lambda: fixpoint(
        lambda reach: EDGES.where(lambda e: e.src == 1).union(after(reach, EDGES, Edge))
    ),
    "ends that meet": lambda: fixpoint(
        lambda reach: EDGES.union(
            reach.join(EDGES, on=lambda p, e: p.dst == e.dst).select(
                lambda p, e: Edge(p.src, e.src)
            )
        )
    ),
    "the middle": lambda: fixpoint(
        lambda reach: EDGES.union(
            reach.join(EDGES, on=lambda p, e: p.dst == e.src).select(
                lambda p, e: Edge(p.dst, e.dst)
            )
        )
    ),
    "a second condition": lambda: fixpoint(
        lambda reach: EDGES.union(
            reach.join(EDGES, on=lambda p, e: p.dst == e.src and p.src != e.dst).select(
                lambda p, e: Edge(p.src, e.dst)
            )
        )
    ),
    "a where on what is derived": lambda: fixpoint(
        lambda reach: EDGES.union(after(reach.where(lambda p: p.dst != 3), EDGES, Edge))
    ),
    "a third field": lambda: fixpoint(
        lambda reach: ROADS.union(
            reach.join(ROADS, on=lambda p, r: p.dst == r.src).select(
                lambda p, r: Road(p.src, r.dst, p.miles)
            )
        )
    ),
    "a value computed": lambda: fixpoint(
        lambda reach: EDGES.union(
            reach.join(EDGES, on=lambda p, e: p.dst == e.src).select(
                lambda p, e: Edge(p.src, abs(e.dst))
            )
        )
    ),
    "rows that check themselves": lambda: by(DB.table(Checked), Checked),
    "rows equal by one field": lambda: by(DB.table(Loose), Loose),
    "rows with an equality of their own": lambda: by(DB.table(Odd), Odd),
    "rows equal to themselves alone": lambda: by(DB.table(Same), Same),
    "a table that is not stored": lambda: by(DB.table(Edge, stored=False), Edge),
    "rows of any length": lambda: fixpoint(
        lambda reach: DB.table(tuple, name="t").union(
            reach.join(reach, on=lambda p, q: p[1] == q[0]).select(lambda p, q: (p[0], q[1]))
        )
    ),
    "few rounds": lambda: fixpoint(
        lambda reach: EDGES.union(after(reach, EDGES, Edge)), max_rounds=9_999
    ),
    "several relations": lambda: fixpoint(
        lambda a, b: (EDGES.union(after(b, EDGES, Edge)), after(a, EDGES, Edge))
    )[0],
}


def found(relation: Rel) -> Closure | None:
    node = optimize(relation.plan).plan
    if isinstance(node, plan.Component):
        node = node.input
    assert isinstance(node, plan.Fixpoint)
    return closure_of(node, clauses(node))


@pytest.mark.parametrize("name", CLOSURES)
def test_a_closure_is_recognized(name: str) -> None:
    assert found(CLOSURES[name]()) is not None


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_none_is_not(name: str) -> None:
    assert found(OTHERS[name]()) is None


def test_selects_are_looked_through_if_they_cannot_raise() -> None:
    edges = ROADS.select(lambda r: Edge(r.dst, r.src))
    below = found(by(edges, Edge))
    assert below is not None and isinstance(below.source, plan.Table) and not below.is_row
    rates = ROADS.select(lambda r: (r.src, 1 / r.miles, r.dst))
    above = found(by(rates.select(lambda r: Edge(r[0], r[2])), Edge))
    assert above is not None and isinstance(above.source, plan.Select)
