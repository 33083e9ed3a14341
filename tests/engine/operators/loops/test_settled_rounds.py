"""Rounds over a layout until settled: exactly the rows of single rounds, or not used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import inf, nan
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Count, Database, FixpointError, Max, Sum, iterate
from reactive.engine.operators.loops.settled_rounds import SettlingRounds
from reactive.engine.operators.loops.whole_round import WholeRound
from tests.budget import examples, sampled

Rel = Any
WORDS: dict[str, Any] = {"until": "settled", "tolerance": 0.05, "of": lambda r: r.value}
CONTRACTION = {**WORDS, "contraction": 0.5, "norm": "sum"}


class Edge(NamedTuple):
    src: Any
    dst: Any
    weight: Any


class Rank(NamedTuple):
    node: Any
    value: Any


class Seen(NamedTuple):
    node: Any
    value: Any
    more: Any


def nodes_of(edges: Rel) -> Rel:
    return edges.select_many(lambda e: (e.src, e.dst)).distinct()


def ranks(edges: Rel, words: dict[str, Any]) -> Rel:
    degrees = edges.group_by(lambda e: e.src).aggregate(Count())
    shares = edges.join(degrees, left_key=lambda e: e.src, right_key=lambda d: d[0])
    nothing = nodes_of(edges).select(lambda n: Rank(n, 0.0))

    def step(ranks: Rel) -> Rel:
        given = shares.join(ranks, on=lambda e, d, r: e.src == r.node).select(
            lambda e, d, r: Rank(e.dst, r.value * e.weight / d[1])
        )
        sums = given.union_all(nothing).group_by(lambda r: r.node).aggregate(Sum(lambda r: r.value))
        return sums.select(lambda node, total: Rank(node, 0.15 + 0.5 * total))

    return iterate(step, nodes_of(edges).select(lambda n: Rank(n, 1.0)), **words)


def padded(edges: Rel, words: dict[str, Any]) -> Rel:
    def step(ranks: Rel) -> Rel:
        given = ranks.join(edges, on=lambda r, e: r.node == e.src)
        sums = given.group_by(lambda r, e: e.dst).aggregate(
            Sum(lambda r, e: r.value * e.weight), Count()
        )
        return (
            nodes_of(edges)
            .left_join(sums, on=lambda n, s: n == s[0])
            .select(lambda n, s: Rank(n, 0.5 if s is None else 0.15 + s[1] / s[2] / 2))
        )

    return iterate(step, nodes_of(edges).select(lambda n: Rank(n, 1)), **words)


def with_a_field_that_no_round_reads(edges: Rel, words: dict[str, Any]) -> Rel:
    """A row that is not passed on keeps all of its fields."""

    def step(seen: Rel) -> Rel:
        given = seen.join(edges, on=lambda s, e: s.node == e.src)
        sums = given.group_by(lambda s, e: e.dst).aggregate(
            Sum(lambda s, e: s.value * e.weight), Max(lambda s, e: s.value)
        )
        return sums.select(lambda node, total, most: Seen(node, total / 8, most))

    starts = edges.select(lambda e: Seen(e.dst, 1.0, 2.0)).distinct()
    return iterate(step, starts, **{**words, "by": lambda s: s.node})


def two(edges: Rel, words: dict[str, Any]) -> Rel:
    """Only one of the relations has a tolerance; the other one reads it in the same round."""

    def step(left: Rel, right: Rel) -> tuple[Rel, Rel]:
        left = (
            edges.join(right, on=lambda e, r: e.dst == r.node)
            .group_by(lambda e, r: e.src)
            .aggregate(Sum(lambda e, r: e.weight * r.value))
            .select(lambda node, total: Rank(node, total / 4))
        )
        right = (
            edges.join(left, on=lambda e, r: e.src == r.node)
            .group_by(lambda e, r: e.dst)
            .aggregate(Max(lambda e, r: r.value))
            .select(lambda node, most: Rank(node, most // 0.25 / 4))
        )
        return left, right

    sources = edges.select(lambda e: Rank(e.src, 1.0)).distinct()
    targets = edges.select(lambda e: Rank(e.dst, 2.0)).distinct()
    of = {"of": (words["of"], None), "tolerance": (words["tolerance"], None)}
    given = {**words, **of}
    given.pop("contraction", None), given.pop("norm", None)
    left, right = iterate(step, (sources, targets), **given)
    return left.union_all(right)


def exact(edges: Rel, words: dict[str, Any]) -> Rel:
    """Without a tolerance, rounds end when no row changes."""

    def step(ranks: Rel) -> Rel:
        given = ranks.join(edges, on=lambda r, e: r.node == e.src).select(
            lambda r, e: Rank(e.dst, r.value)
        )
        both = given.union_all(ranks).group_by(lambda r: r.node).aggregate(Max(lambda r: r.value))
        return both.select(lambda node, most: Rank(node, most))

    starts = edges.group_by(lambda e: e.dst).aggregate(Max(lambda e: e.weight))
    return iterate(step, starts.select(lambda n, most: Rank(n, most)), until="settled")


LOOPS = (ranks, padded, with_a_field_that_no_round_reads, two, exact)
WEIGHTS: dict[str, list[Any]] = {
    "numbers": [0, 1, 0.5, -0.25],
    "with others": [1.0, nan, inf, -inf],
    "that raise": [1.0, None, 0.5],
}


def edits_of(weights: list[Any]) -> st.SearchStrategy[Any]:
    edge = st.builds(Edge, *[st.integers(0, 4)] * 2, st.sampled_from(weights))
    return st.lists(st.lists(st.tuples(st.booleans(), edge), max_size=6), min_size=1, max_size=8)


class Side:
    """A database with a loop; rounds are single ones if `single`."""

    def __init__(self, loop: Callable[..., Rel], words: Any, *, single: bool) -> None:
        self.single = single
        self.db = Database()
        self.edges = self.db.table(Edge, name="edges")
        self.view = loop(self.edges, words).materialize()

    def edit(self, transaction: list[tuple[bool, Edge]]) -> type | None:
        with pytest.MonkeyPatch.context() as patch:
            if self.single:
                patch.setattr(WholeRound, "settle", lambda self, rows, done, most: (rows, 0, False))
            try:
                with self.db.transaction():
                    for is_new, edge in transaction:
                        if is_new or edge not in self.edges:
                            self.edges.add(edge)
                        else:
                            self.edges.remove(edge)
            except Exception as error:
                return type(error)
        return None


@sampled
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("words", [WORDS, CONTRACTION], ids=["anew", "continued"])
def test_rows_are_those_of_single_rounds(
    words: Any, weights: str, loop: Callable[..., Rel]
) -> None:
    @examples(20)
    @given(edits=edits_of(WEIGHTS[weights]))
    def run(edits: Any) -> None:
        given = {**words, "max_rounds": 40} if loop is not exact else words
        sides = [Side(loop, given, single=single) for single in (False, True)]
        for transaction in edits:
            raised, other = (side.edit(transaction) for side in sides)
            assert raised == other
            mine, theirs = (Counter(dict(side.view.zset().items())) for side in sides)
            assert mine == theirs

    run()


RING = [Edge(n, (n + 1) % 9, 1.0) for n in range(9)] + [Edge(n, 3 * n % 9, 0.5) for n in range(9)]


def rounds_settled(loop: Callable[..., Rel], words: Any) -> list[int]:
    """Return the rounds over a layout of a load and of one change."""
    found: list[int] = []
    run = SettlingRounds.run

    def counted(rounds: SettlingRounds, most: int) -> int:
        found.append(run(rounds, most))
        return found[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SettlingRounds, "run", counted)
        side = Side(loop, words, single=False)
        side.edges.add_all(RING)
        side.edges.add_all([Edge(n, (n + 4) % 9, 0.25) for n in range(9)] * 20)
    return found


@pytest.mark.parametrize("loop", LOOPS)
def test_all_rounds_of_a_loop_with_constant_keys_are_over_a_layout(
    loop: Callable[..., Rel],
) -> None:
    found = rounds_settled(loop, {**WORDS, "tolerance": 1e-6})
    assert len(found) == 3  # of no rows, of the load, of the change
    assert min(found[1:]) > 1


def test_a_loop_that_does_not_settle_is_refused_after_as_many_rounds() -> None:
    side = Side(ranks, {**WORDS, "max_rounds": 3}, single=False)
    with pytest.raises(FixpointError, match="after 3 rounds"):
        side.edges.add_all([Edge(0, 1, 40.0), Edge(1, 0, 40.0)])
    assert list(side.view) == []
