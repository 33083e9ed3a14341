"""`iterate`: a fixed number of rounds of any step, live, against plain loops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database, Table, fixpoint, iterate
from tests.budget import examples
from tests.engine.operators.fixpoint.follow import Follower
from tests.engine.operators.fixpoint.graphs import Edge, chain, closure, cycle

Rel = Any
Bag = Counter[Any]

NODES = st.integers(0, 4)
EDGES = st.builds(Edge, NODES, NODES)
EDITS = st.lists(st.tuples(st.booleans(), EDGES), min_size=4, max_size=20)


def edit(table: Table[Any], is_new: bool, row: Any) -> None:
    """Add a row, or remove it if it is there."""
    if is_new or row not in table:
        table.add(row)
    else:
        table.remove(row)


def longer(walks: Rel, edges: Rel) -> Rel:
    return walks.join(edges, on=lambda w, e: w.dst == e.src).select(lambda w, e: Edge(w.src, e.dst))


def walked(edges: Bag, times: int) -> Bag:
    """Walks of `times` edges more than one, counted by their ends."""
    walks = Counter(edges)
    for _ in range(times):
        more: Bag = Counter()
        for w, n in walks.items():
            for e, m in edges.items():
                if w.dst == e.src:
                    more[Edge(w.src, e.dst)] += n * m
        walks = more
    return walks


@pytest.mark.parametrize("times", [0, 1, 2, 5])
def test_walks_are_counted_as_often_as_there_are(times: int) -> None:
    """A power of the matrix of a graph, with self loops and several edges between two nodes."""

    @examples(25)
    @given(edits=EDITS)
    def run(edits: list[tuple[bool, Edge]]) -> None:
        edges: Table[Edge] = Database().table(Edge, name="edges")
        view = iterate(lambda walks: longer(walks, edges), edges, times=times).materialize()
        follower = Follower(view)
        for is_new, edge in edits:
            edit(edges, is_new, edge)
            follower.agree(walked(Counter(edges), times))
        view.verify()
        edges.clear()
        assert (list(view), view.stats().rows) == ([], 0)

    run()


def test_no_rounds_give_the_start() -> None:
    words: Table[str] = Database().table(str, name="words")
    view = Follower(iterate(lambda r: r.select(lambda w: w + "!"), words, times=0).materialize())
    words.add_all(["be", "be", "to"])
    view.agree(Counter(words))
    words.remove("be")
    view.agree(Counter(words))


def test_every_round_doubles_a_bag() -> None:
    words: Table[str] = Database().table(str, name="words")
    view = iterate(lambda r: r.union_all(r), words, times=6).materialize()
    words.add_all(["be", "be", "to"])
    assert dict(view.zset().items()) == {"be": 128, "to": 64}
    words.remove("be")
    assert dict(view.zset().items()) == {"be": 64, "to": 64}


@pytest.mark.parametrize("times", [1, 2, 3, 4])
def test_a_step_that_takes_away_what_it_has_goes_back_and_forth(times: int) -> None:
    """Positions that are won in `times` moves: positions with a move to a position not won."""

    @examples(20)
    @given(edits=EDITS)
    def run(edits: list[tuple[bool, Edge]]) -> None:
        moves: Table[Edge] = Database().table(Edge, name="moves")
        won = iterate(
            lambda won: (
                moves.anti_join(won, on=lambda m, n: m.dst == n).select(lambda m: m.src).distinct()
            ),
            moves.select(lambda m: m.src).where(lambda n: n < 0),
            times=times,
        )
        follower = Follower(won.materialize())
        for is_new, move in edits:
            edit(moves, is_new, move)
            wanted: set[int] = set()
            for _ in range(times):
                wanted = {m.src for m in moves if m.dst not in wanted}
            follower.agree(Counter(wanted))

    run()


# Nesting.


def test_iterations_nest() -> None:
    numbers: Table[int] = Database().table(int, name="numbers")
    inner: Callable[[Rel], Rel] = lambda r: r.select(lambda n: n * 2)  # noqa: E731
    view = iterate(
        lambda outer: iterate(inner, outer, times=2).union_all(outer.where(lambda n: n > 4)),
        numbers,
        times=3,
    ).materialize()
    follower = Follower(view)

    def wanted(rows: list[int]) -> list[int]:
        for _ in range(3):
            rows = [4 * n for n in rows] + [n for n in rows if n > 4]
        return rows

    for number in (1, 2, 2, 5, 0):
        numbers.add(number)
        follower.agree(Counter(wanted(list(numbers))))
    numbers.remove(2)
    follower.agree(Counter(wanted(list(numbers))))
    view.verify()


def closed(edges: Rel) -> Rel:
    return fixpoint(lambda reach: edges.union(longer(reach, edges)))


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_recursion_in_every_round(times: int) -> None:
    """Keep in each round the pairs of the closure without a way back, reversed."""

    @examples(15)
    @given(edits=EDITS)
    def run(edits: list[tuple[bool, Edge]]) -> None:
        edges: Table[Edge] = Database().table(Edge, name="edges")

        def turned(pairs: Rel) -> Rel:
            reach = closed(pairs)
            back = reach.select(lambda p: Edge(p.dst, p.src))
            return back.difference(reach)

        follower = Follower(iterate(turned, edges, times=times).materialize())
        for is_new, edge in edits:
            edit(edges, is_new, edge)
            wanted = set(edges)
            for _ in range(times):
                pairs = closure(wanted)
                wanted = {Edge(p.dst, p.src) for p in pairs} - pairs
            follower.agree(Counter(wanted))

    run()


def test_rounds_inside_a_recursion() -> None:
    """The recursion takes two steps at a time, and so finds the pairs of an odd distance."""

    @examples(20)
    @given(edits=EDITS)
    def run(edits: list[tuple[bool, Edge]]) -> None:
        edges: Table[Edge] = Database().table(Edge, name="edges")
        reach: Rel = fixpoint(
            lambda reach: edges.union(iterate(lambda r: longer(r, edges), reach, times=2))
        )
        follower = Follower(reach.materialize())
        for is_new, edge in edits:
            edit(edges, is_new, edge)
            once, twice = set(edges), set(walked(Counter(set(edges)), 1))
            known: set[Edge] = set()
            while True:
                found = once | {Edge(a.src, b.dst) for a in known for b in twice if a.dst == b.src}
                if found == known:
                    break
                known = found
            follower.agree(Counter(known))

    run()


def test_rounds_over_a_recursion_and_a_recursion_over_rounds() -> None:
    edges: Table[Edge] = Database().table(Edge, name="edges")
    far = iterate(lambda r: longer(r, edges).distinct(), closed(edges), times=2)
    over = closed(far.select(lambda p: Edge(p.dst, p.src)))
    views = [Follower(far.materialize()), Follower(over.materialize())]
    for edge in (*cycle(1, 2, 3), *chain(3, 4, 5, 6)):
        edges.add(edge)
        far_pairs = set(walked(Counter(closure(edges)), 0))
        for _ in range(2):
            far_pairs = {Edge(a.src, b.dst) for a in far_pairs for b in edges if a.dst == b.src}
        views[0].agree(Counter(far_pairs))
        views[1].agree(Counter(closure(Edge(p.dst, p.src) for p in far_pairs)))


def test_every_round_keeps_the_first_few() -> None:
    numbers: Table[int] = Database().table(int, name="numbers")
    view = Follower(
        iterate(
            lambda r: r.union_all(r.select(lambda n: n + 1)).order_by(lambda n: -n).limit(3),
            numbers,
            times=3,
        ).materialize()
    )

    def wanted(rows: list[int]) -> list[int]:
        for _ in range(3):
            rows = sorted([*rows, *(n + 1 for n in rows)], reverse=True)[:3]
        return rows

    for number in (4, 1, 4, 9, 2):
        edit(numbers, False, number)
        view.agree(Counter(wanted(list(numbers))))


# Work.


def test_a_change_that_dies_in_a_round_touches_no_later_round() -> None:
    def touched(times: int) -> int:
        numbers: Table[int] = Database().table(int, name="numbers")
        view: Any = iterate(
            lambda r: r.where(lambda n: n > 0).select(lambda n: n - 1).distinct(),
            numbers,
            times=times,
        ).materialize()
        numbers.add_all([3, 1000])
        before = view.stats().touched
        numbers.add(2)
        numbers.remove(2)
        numbers.add(1000)
        return int(view.stats().touched - before)

    assert touched(10) == touched(60)
