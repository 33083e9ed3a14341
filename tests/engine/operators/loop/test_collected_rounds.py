"""UNION ALL recursions equal plain Python after every commit, and follow small changes."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database, FixpointError, Table, iterate
from reactive.engine.operators.loop.loop_recomputation import LoopRecomputation
from reactive.engine.operators.loops.whole_round import WholeRound
from tests.budget import examples

Rel = Any


class Edge(NamedTuple):
    src: int
    dst: int


class Path(NamedTuple):
    src: int
    dst: int
    depth: int


QUERY = """
with recursive p(src, dst, depth) as (
    select src, dst, 1 from edges
    union all
    select p.src, e.dst, p.depth + 1 from p join edges e on p.dst = e.src where p.depth < {depth}
) select * from p
"""
STOPPED = """
with recursive p(src, dst, depth) as (
    select src, dst, 1 from edges
    union all
    select p.src, e.dst, p.depth + 1 from p join edges e on p.dst = e.src
    where p.depth < {depth} and not exists (select * from stops s where s.node = p.dst)
) select * from p
"""
NODES = st.integers(0, 4)
EDITS = st.lists(
    st.lists(st.tuples(st.sampled_from("ees"), st.booleans(), NODES, NODES), max_size=4),
    min_size=1,
    max_size=10,
)


class Stop(NamedTuple):
    node: int


def paths(edges: Counter[Edge], stops: Counter[Stop], depth: int) -> Counter[tuple[int, ...]]:
    """Return all paths of up to `depth` edges, each as often as it can be walked."""
    last: Counter[tuple[int, ...]] = Counter({(e.src, e.dst, 1): n for e, n in edges.items()})
    found = Counter(last)
    for _ in range(depth - 1):
        following = Counter[tuple[int, ...]]()
        for (src, mid, n), times in last.items():
            for e, more in edges.items():
                if e.src == mid and Stop(mid) not in stops:
                    following[src, e.dst, n + 1] += times * more
        last = following
        found.update(last)
    return found


def by_methods(edges: Rel, depth: int) -> Rel:
    """The recursion written as a loop, whose step is a union of two linear ones."""
    start = edges.select(lambda e: Path(e.src, e.dst, 1))

    def step(last: Rel, found: Rel) -> tuple[Rel, Rel]:
        walked = last.where(lambda p: p.depth < depth).join(edges, on=lambda p, e: p.dst == e.src)
        odd = walked.where(lambda p, e: p.depth % 2 == 1)
        even = walked.where(lambda p, e: p.depth % 2 == 0)
        following = odd.union_all(even).select(lambda p, e: Path(p.src, e.dst, p.depth + 1))
        return following, found.union_all(following)

    return iterate(step, (start, start), until="settled")[1]


@pytest.mark.parametrize("how", [QUERY, STOPPED, "methods"], ids=["sql", "stopped", "methods"])
@examples(40)
@given(edits=EDITS, depth=st.integers(1, 5))
def test_rows_are_those_of_plain_python(how: str, edits: Any, depth: int) -> None:
    db = Database()
    edges, stops = db.table(Edge, name="edges"), db.table(Stop, name="stops")
    query = by_methods(edges, depth) if how == "methods" else db.sql(how.format(depth=depth))
    view = query.materialize()
    for transaction in edits:
        with db.transaction():
            for kind, is_new, src, dst in transaction:
                table: Table[Any] = edges if kind == "e" else stops
                row: Any = Edge(src, dst) if kind == "e" else Stop(src)
                if is_new or row not in table:
                    table.add(row)
                else:
                    table.remove(row)
        stopped = Counter(stops) if how == STOPPED else Counter[Stop]()
        assert Counter({tuple(row): n for row, n in view.zset().items()}) == paths(
            Counter(edges), stopped, depth
        )
    view.verify()


def chains(count: int) -> list[Edge]:
    return [Edge(10 * n + place, 10 * n + place + 1) for n in range(count) for place in range(6)]


def touched_by_a_change(count: int) -> int:
    """Return the rows that one more edge touches, after some changes."""
    db = Database()
    edges = db.table(Edge, name="edges")
    view = db.sql(QUERY.format(depth=6)).materialize()
    edges.add_all(chains(count))
    for _ in range(3):
        edges.add(Edge(2, 40))
        edges.remove(Edge(2, 40))
    before = view.stats().touched
    edges.add(Edge(2, 40))
    return int(view.stats().touched - before)


def test_a_change_touches_the_rows_derived_from_it() -> None:
    few, many = touched_by_a_change(100), touched_by_a_change(1_000)
    assert few == many < 200


def test_a_change_that_is_undone_leaves_the_operators_as_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    db = Database()
    edges = db.table(Edge, name="edges")
    view = db.sql(QUERY.format(depth=6)).materialize()
    edges.add_all(chains(100))
    for _ in range(3):
        edges.add(Edge(2, 40))
        edges.remove(Edge(2, 40))
    monkeypatch.setattr(LoopRecomputation, "evaluate", lambda self: pytest.fail("recomputed"))
    with pytest.raises(FixpointError), db.transaction():
        edges.add(Edge(3, 50))
        raise FixpointError("for this test")
    guard = edges.where(lambda e: 1 // (e.src - 7) < 5).materialize()
    with pytest.raises(ZeroDivisionError), db.transaction():
        edges.add(Edge(3, 50))
        edges.remove(Edge(12, 13))
        edges.add(Edge(7, 0))
    edges.add(Edge(12, 31))
    view.verify()
    guard.close()


ENDLESS = """
with recursive p(src, dst) as (
    select src, dst from edges union all select p.src, e.dst from p join edges e on p.dst = e.src
) select * from p
"""


@pytest.mark.parametrize("more", [[], [Edge(0, 0), Edge(1, 1)]], ids=["a cycle", "growing"])
def test_a_recursion_without_an_end_is_refused_while_its_rows_are_few(
    more: list[Edge], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No round sees more rows than there are different ones, however often each is derived."""
    sizes: list[int] = []
    run = WholeRound.round

    def counted(rounds: WholeRound, rows: Any) -> Any:
        sizes.append(sum(map(len, rows)))
        return run(rounds, rows)

    monkeypatch.setattr(WholeRound, "round", counted)
    db = Database()
    edges = db.table(Edge, name="edges")
    view = db.sql(ENDLESS).materialize()
    edges.add(Edge(0, 1))
    with pytest.raises(FixpointError, match="has not settled"):
        edges.add_all([Edge(1, 0), *more])
    assert max(sizes) <= 4 and list(view) == [Edge(0, 1)]
    edges.add(Edge(1, 2))
    view.verify()


def test_a_cycle_is_refused_by_operators_too() -> None:
    """Operators that do not end are given up; the rounds from the start are refused."""
    db = Database()
    edges = db.table(Edge, name="edges")
    view = db.sql(ENDLESS).materialize()
    edges.add_all(chains(50))
    for _ in range(3):
        edges.add(Edge(2, 40))
        edges.remove(Edge(2, 40))
    with pytest.raises(FixpointError, match="has not settled"):
        edges.add(Edge(3, 2))
    edges.add(Edge(3, 9))
    view.verify()
