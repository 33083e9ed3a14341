"""Rounds over a kept layout: exactly the result of rounds by rows, or not used."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.callables.captures import meaning
from optimizer.expr import Constant, Local, Operation
from reactive import Avg, Collect, Count, Database, Max, Min, Sum, iterate
from reactive.engine.operators.loop.loop_recomputation import AdaptiveLoop
from reactive.engine.operators.loops import whole_round as whole
from reactive.engine.operators.loops.kept_rounds import (
    KeptRounds,
    are_alike,
    arrange_rounds,
    class_of_values,
)
from tests.budget import examples, sampled

Rel = Any


class Edge(NamedTuple):
    src: Any
    dst: Any
    weight: Any


class Rank(NamedTuple):
    node: Any
    value: Any


@dataclass(frozen=True)
class Name:
    text: str


NAMES: dict[str, list[Any]] = {
    "integers": list(range(5)),
    "texts and none": ["a", "b", "c", "d", None],
    "floats": [0.0, 0.5, 1.5, 2.5, 3.5],
    "tuples": [(n % 2, f"{n}") for n in range(5)],
    "records": [Name(f"{n}") for n in range(5)],
    "equal across classes": [1, 1.0, True, 0, -0.0],
    "tuples equal across classes": [(1, "x"), (1.0, "x"), (True, "x"), (2, "x"), ("x", 2)],
}
WEIGHTS: dict[str, list[Any]] = {
    "integers": [1, 2, 3],
    "floats": [0.1, 0.7, 1e17],
    "both": [1, 0.1, 3],
    "with nan": [1.5, nan, -2.0],
    "with infinities": [1.0, float("inf"), float("-inf")],
    "that raise": [1.0, 0, None],
}


@pytest.fixture(autouse=True)
def only_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds are evaluated whole, also where operators would follow changes of so few rows."""
    monkeypatch.setattr(AdaptiveLoop, "_consider", lambda self, changed: None)


def nodes_of(edges: Rel) -> Rel:
    return edges.select_many(lambda e: (e.src, e.dst)).distinct()


def ranks(edges: Rel, times: int) -> Rel:
    """Shares by weights, and a part for all."""
    totals = edges.group_by(lambda e: e.src).aggregate(Sum(lambda e: e.weight))
    shares = edges.join(totals, left_key=lambda e: e.src, right_key=lambda t: t[0]).select(
        lambda e, t: (e.src, e.dst, e.weight, t[1])
    )
    nothing = nodes_of(edges).select(lambda n: Rank(n, 0.0))

    def step(ranks: Rel) -> Rel:
        given = shares.join(ranks, left_key=lambda s: s[0], right_key=lambda r: r.node).select(
            lambda s, r: Rank(s[1], r.value * s[2] / s[3])
        )
        sums = given.union_all(nothing).group_by(lambda r: r.node).aggregate(Sum(lambda r: r.value))
        return sums.select(lambda node, total: Rank(node, 0.15 + 0.85 * total))

    return iterate(step, nodes_of(edges).select(lambda n: Rank(n, 1.0)), times=times)


def sinks(edges: Rel, times: int) -> Rel:
    """Nodes without incoming edges lose their row from round to round, so keys change."""

    def step(ranks: Rel) -> Rel:
        given = ranks.join(edges, on=lambda r, e: r.node == e.src)
        sums = given.group_by(lambda r, e: e.dst).aggregate(
            Sum(lambda r, e: r.value * 2 + e.weight), Count()
        )
        return sums.select(lambda node, total, n: Rank(node, total / n))

    return iterate(step, nodes_of(edges).select(lambda n: Rank(n, 3)), times=times)


def twice_at_first(edges: Rel, times: int) -> Rel:
    """The first rows have keys several times; from the first round on keys are unique."""

    def step(ranks: Rel) -> Rel:
        given = edges.join(ranks, on=lambda e, r: e.src == r.node).select(
            lambda e, r: Rank(e.dst, r.value)
        )
        both = (
            ranks.union_all(given)
            .group_by(lambda r: r.node)
            .aggregate(Max(lambda r: r.value), Min(lambda r: r.value), Count())
        )
        return both.select(lambda node, most, least, n: Rank(node, most - least / n))

    starts = edges.select_many(lambda e: (Rank(e.src, e.weight), Rank(e.dst, 2)))
    return iterate(step, starts, times=times)


def merged(edges: Rel, times: int) -> Rel:
    """A select makes one name of several: rows no longer tell the groups that they are of."""

    def step(ranks: Rel) -> Rel:
        given = edges.join(ranks, on=lambda e, r: e.src == r.node)
        sums = given.group_by(lambda e, r: (e.dst, e.src)).aggregate(Avg(lambda e, r: r.value))
        return sums.select(lambda key, mean: Rank(key[0], mean + 1))

    return iterate(step, nodes_of(edges).select(lambda n: Rank(n, 0.5)), times=times)


def pairs(edges: Rel, times: int) -> Rel:
    """Split a name of two parts and rebuild it in each round."""

    def step(rows: Rel) -> Rel:
        given = edges.join(rows, on=lambda e, r: (e.src == r[0][0]) & (e.dst == r[0][1]))
        sums = given.group_by(lambda e, r: (r[0][0], r[0][1])).aggregate(
            Sum(lambda e, r: e.weight * r[1]), Collect(lambda e, r: e.weight)
        )
        return sums.select(lambda key, total, some: (key, total + len(some)))

    return iterate(step, edges.select(lambda e: ((e.src, e.dst), 1)).distinct(), times=times)


def two(edges: Rel, times: int) -> Rel:
    """The second relation of a round reads the first one of that round."""

    def step(left: Rel, right: Rel) -> tuple[Rel, Rel]:
        left = (
            edges.join(right, on=lambda e, r: e.dst == r.node)
            .group_by(lambda e, r: e.src)
            .aggregate(Sum(lambda e, r: e.weight * r.value), Sum(lambda e, r: r.value**2))
            .select(lambda node, up, down: Rank(node, up / (1 + down)))
        )
        right = (
            edges.join(left, on=lambda e, r: e.src == r.node)
            .group_by(lambda e, r: e.dst)
            .aggregate(Sum(lambda e, r: e.weight * r.value), Sum(lambda e, r: r.value**2))
            .select(lambda node, up, down: Rank(node, up / (1 + down)))
        )
        return left, right

    sources = edges.select(lambda e: Rank(e.src, 1.0)).distinct()
    targets = edges.select(lambda e: Rank(e.dst, 2.0)).distinct()
    left, right = iterate(step, (sources, targets), times=times)
    return left.union_all(right)


def raising_late(edges: Rel, times: int) -> Rel:
    """Values count down; the fourth round divides by zero in a field that no query reads."""

    def step(ranks: Rel) -> Rel:
        given = edges.join(ranks, on=lambda e, r: e.src == r[0])
        both = given.group_by(lambda e, r: e.dst).aggregate(Min(lambda e, r: r[1]))
        return both.select(lambda node, least: (node, least - 1, 12 // (least - 1)))

    return iterate(step, nodes_of(edges).select(lambda n: (n, 4, 0)), times=times)


def unread(edges: Rel, times: int) -> Rel:
    """A round that looks at nothing of the last one's rows but how many there are."""

    def step(rows: Rel) -> Rel:
        counts = rows.join(edges).group_by(lambda r, e: e.dst).aggregate(Count())
        return counts.select(lambda node, n: (node, n % 7))

    return iterate(step, edges.select(lambda e: (e.src, 1)), times=times)


def padded(edges: Rel, times: int) -> Rel:
    """Nodes without incoming edges have a constant row in each round."""

    def step(ranks: Rel) -> Rel:
        given = ranks.join(edges, on=lambda r, e: r.node == e.src)
        sums = given.group_by(lambda r, e: e.dst).aggregate(
            Sum(lambda r, e: r.value * e.weight), Count()
        )
        return (
            nodes_of(edges)
            .left_join(sums, on=lambda n, s: n == s[0])
            .select(lambda n, s: Rank(n, 0.5 if s is None else 0.15 + s[1] / s[2]))
        )

    return iterate(step, nodes_of(edges).select(lambda n: Rank(n, 1)), times=times)


def padded_and_read_at_once(edges: Rel, times: int) -> Rel:
    """The second relation reads the padded rows of the same round."""

    def step(left: Rel, right: Rel) -> tuple[Rel, Rel]:
        sums = (
            edges.join(right, on=lambda e, r: e.dst == r.node)
            .group_by(lambda e, r: e.src)
            .aggregate(Sum(lambda e, r: e.weight * r.value))
        )
        left = (
            nodes_of(edges)
            .left_join(sums, on=lambda n, s: n == s[0])
            .select(lambda n, s: Rank(n, 2 if s is None else s[1]))
        )
        right = (
            edges.join(left, on=lambda e, r: e.src == r.node)
            .group_by(lambda e, r: e.dst)
            .aggregate(Sum(lambda e, r: e.weight * r.value), Sum(lambda e, r: r.value**2))
            .select(lambda node, up, down: Rank(node, up / (1 + down)))
        )
        return left, right

    targets = edges.select(lambda e: Rank(e.dst, 2.0)).distinct()
    every = nodes_of(edges).select(lambda n: Rank(n, 1.0))
    left, right = iterate(step, (every, targets), times=times)
    return left.union_all(right)


def padded_in_part(edges: Rel, times: int) -> Rel:
    """Groups without a constant row are dropped, and a constant row may be twice there."""

    def step(ranks: Rel) -> Rel:
        sums = (
            ranks.join(edges, on=lambda r, e: r.node == e.src)
            .group_by(lambda r, e: e.dst)
            .aggregate(Sum(lambda r, e: r.value + e.weight))
        )
        sources = edges.select(lambda e: e.src)
        return sources.left_join(sums, on=lambda n, s: n == s[0]).select(
            lambda n, s: Rank(n, s[1] if s else 1)
        )

    return iterate(step, edges.select(lambda e: Rank(e.src, 1.0)), times=times)


def without_partners(edges: Rel, times: int) -> Rel:
    """Constant rows without a row of the last round count in each round."""

    def step(ranks: Rel) -> Rel:
        return (
            nodes_of(edges)
            .left_join(edges, on=lambda n, e: n == e.dst)
            .left_join(ranks, on=lambda n, e, r: (None if e is None else e.src) == r.node)
            .group_by(lambda n, e, r: n)
            .aggregate(Sum(lambda n, e, r: 0.5 if r is None else r.value * e.weight), Count())
            .select(lambda n, total, count: Rank(n, 0.15 + total / count))
        )

    return iterate(step, nodes_of(edges).select(lambda n: Rank(n, 1.0)), times=times)


LOOPS = (
    *(ranks, sinks, twice_at_first, merged, pairs, two, raising_late, unread),
    *(padded, padded_and_read_at_once, padded_in_part, without_partners),
)


def edits_of(names: list[Any], weights: list[Any]) -> st.SearchStrategy[Any]:
    edge = st.builds(Edge, *[st.sampled_from(names)] * 2, st.sampled_from(weights))
    return st.lists(st.lists(st.tuples(st.booleans(), edge), max_size=6), min_size=1, max_size=8)


class Side:
    """A database with a loop; an error leaves it unchanged."""

    def __init__(self, loop: Callable[[Rel, int], Rel], times: int, *, optimize: bool) -> None:
        self.db = Database(optimize=optimize)
        self.edges = self.db.table(Edge, name="edges")
        self.view = loop(self.edges, times).materialize()

    def edit(self, transaction: list[tuple[bool, Edge]]) -> type | None:
        before = Counter(dict(self.view.zset().items()))
        try:
            with self.db.transaction():
                for is_new, edge in transaction:
                    if is_new or edge not in self.edges:
                        self.edges.add(edge)
                    else:
                        self.edges.remove(edge)
        except Exception as error:
            assert Counter(dict(self.view.zset().items())) == before
            return type(error)
        return None


@pytest.mark.long
@sampled
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("names", NAMES)
def test_rows_are_those_of_rounds_by_the_reference(
    names: str, weights: str, loop: Callable[[Rel, int], Rel]
) -> None:
    @examples(16)
    @given(edits=edits_of(NAMES[names], WEIGHTS[weights]), times=st.integers(3, 6))
    def run(edits: list[list[tuple[bool, Edge]]], times: int) -> None:
        sides = [Side(loop, times, optimize=optimize) for optimize in (True, False)]
        for transaction in edits:
            raised, other = (side.edit(transaction) for side in sides)
            assert (raised is None) is (other is None)
            if loop is not without_partners:  # its rows may raise two errors: either is reported
                assert raised == other
            mine, theirs = (Counter(dict(side.view.zset().items())) for side in sides)
            assert mine == theirs

    run()


def layouts_of(loop: Callable[[Rel, int], Rel], edges: list[Edge], times: int) -> list[int]:
    """Return the rounds over a layout in each commit, one edge per commit."""
    found: list[int] = []
    run = KeptRounds.run

    def counted(kept: KeptRounds, rounds: int) -> Any:
        found[-1] += rounds
        return run(kept, rounds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KeptRounds, "run", counted)
        side = Side(loop, times, optimize=True)
        for edge in edges:
            found.append(0)
            side.edges.add(edge)
    return found


RING = [Edge(n, (n + 1) % 4, 1.5) for n in range(4)]


@pytest.mark.parametrize("names", ["integers", "texts and none", "floats", "tuples"])
@pytest.mark.parametrize("loop", [ranks, two, padded, padded_and_read_at_once])
def test_a_loop_whose_keys_stay_has_a_layout_in_every_commit(
    names: str, loop: Callable[[Rel, int], Rel]
) -> None:
    edges = [Edge(NAMES[names][e.src], NAMES[names][e.dst], 1.5) for e in RING]
    assert layouts_of(loop, edges, 5) == [5] * 4


def test_keys_that_stay_after_a_round_have_a_layout_from_then_on() -> None:
    assert layouts_of(twice_at_first, RING[:1] * 3, 5)[-1] == 4
    assert layouts_of(sinks, [*RING, *RING], 5)[-1] == 5


@pytest.mark.parametrize("loop", [merged, unread])
def test_a_loop_whose_rows_do_not_tell_their_groups_has_none(
    loop: Callable[[Rel, int], Rel],
) -> None:
    crowded = [*RING, Edge(2, 1, 0.5)]
    assert layouts_of(loop, crowded, 5)[-1] == 0


def test_there_is_none_while_groups_go_from_round_to_round() -> None:
    """All groups disappear with one edge; the node without incoming edges does with three."""
    edges = [Edge(0, 1, 1.5), Edge(1, 0, 1.5), Edge(2, 0, 1.5)]
    assert layouts_of(sinks, edges, 5) == [0, 0, 4]


def test_rows_without_a_group_do_not_hinder_a_layout() -> None:
    edges = [Edge(0, 1, 1.5), Edge(1, 0, 1.5), Edge(2, 0, 1.5)]
    assert layouts_of(padded, edges, 5) == [5, 5, 5]
    assert layouts_of(padded_and_read_at_once, edges, 5) == [5, 5, 5]
    assert layouts_of(without_partners, edges, 5) == [5, 5, 5]
    assert layouts_of(padded_in_part, edges, 5) == [0, 0, 5]  # the second is not tried


def test_keys_that_are_equal_and_not_the_same_have_none() -> None:
    assert layouts_of(ranks, [Edge(1, 2, 1.5), Edge(2, 1.0, 1.5)], 5) == [5, 0]


def test_a_layout_is_tried_seldom_where_keys_do_not_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def counted(*given: Any) -> KeptRounds | None:
        tried.append(1)
        return arrange_rounds(*given)

    monkeypatch.setattr("reactive.engine.operators.loops.whole_round.arrange_rounds", counted)
    side = Side(sinks, 9, optimize=True)
    for n in range(60):
        side.edges.add(Edge(n, n + 1, 1.0))
    assert 0 < len(tried) < 2 * whole.TRIES * 6


def rows_made(times: int) -> int:
    """The rows of ranks that one edge more makes."""
    side = Side(ranks, times, optimize=True)
    side.edges.add_all(RING)
    made = 0

    def count(frame: Any, event: str, _: object) -> None:
        nonlocal made
        made += event == "call" and frame.f_code is Rank.__new__.__code__

    sys.setprofile(count)
    try:
        side.edges.add(Edge(1, 3, 0.5))
    finally:
        sys.setprofile(None)
    return made


def test_no_row_is_made_between_rounds() -> None:
    """The number of rows made is that of the result, for any number of rounds."""
    assert rows_made(3) == rows_made(30) == 4


@pytest.mark.parametrize(
    ("keys", "alike"),
    [
        ([1, 2, 1], True),
        ([1, True], False),
        ([True, "a", None], True),
        ([0.5, 1.5, 0.0], True),
        ([0.0, -0.0], False),
        ([(1, "a"), (1, "b")], True),
        ([(1, "a"), (1.0, "a")], False),
        ([(1,), (1, 2)], False),
        ([Name("a"), Name("a")], False),
        ([Name("a"), Name("b")], True),
    ],
)
def test_keys_are_alike_where_equal_ones_are_known_to_be_the_same(
    keys: list[Any], alike: bool
) -> None:
    assert are_alike(keys) is alike


@pytest.mark.parametrize("symbol", "+-*/")
@pytest.mark.parametrize("left", [2, 2.0, True, "a"])
@pytest.mark.parametrize("right", [2, 2.0, True, "a"])
def test_the_class_of_values_is_that_of_python_or_not_known(
    left: Any, right: Any, symbol: Any
) -> None:
    expr = Operation(symbol, (Local("kept_0"), Constant(right, meaning(right))))
    found = class_of_values(expr, {Local("kept_0"): type(left)})
    both = {type(left), type(right)}
    assert (found is None) is not (both <= {int, float})
    if found is not None:
        assert found is type(eval(f"left {symbol} right"))
