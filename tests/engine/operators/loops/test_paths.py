"""Joins in a circle run as one operator: right after every commit, without pairs of two inputs."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from reactive import Count, Database, Max, Monoid, Sum
from reactive.engine.collections.index import NOTHING, bucket_pairs
from reactive.engine.collections.trie import Trie, common_keys, count_joined_pairs
from reactive.engine.operators.index_by import IndexBy
from reactive.engine.operators.loops.cyclic_count import CyclicCount
from reactive.engine.operators.loops.cyclic_join import CyclicJoin, CyclicJoinRunner
from reactive.engine.transactions.transaction import Transaction
from tests.budget import sampled, seeds


@dataclass(frozen=True, slots=True)
class Edge:
    src: Any
    dst: Any


def triangles(a: Any, b: Any, c: Any) -> Any:
    return a.join(b, on=lambda x, y: x.dst == y.src).join(
        c, on=lambda x, y, z: y.dst == z.src and z.dst == x.src
    )


def count(a: Any, b: Any, c: Any) -> Any:
    return triangles(a, b, c).aggregate(Count())


def count_back(a: Any, b: Any, c: Any) -> Any:
    """Count the other way round, with a condition on the count."""
    two = a.join(b, on=lambda x, y: x.src == y.dst)
    found = two.join(c, on=lambda x, y, z: y.src == z.dst and z.src == x.dst)
    return found.group_by(lambda x, y, z: "all").aggregate(Count(), Sum(lambda x, y, z: 0.5))


def count_askew(a: Any, b: Any, c: Any) -> Any:
    """Count triangles whose edges do not go around, so that a row has another role in each."""
    two = a.join(b, on=lambda x, y: x.dst == y.src)
    return two.join(c, on=lambda x, y, z: y.dst == z.dst and z.src == x.src).aggregate(Count())


def count_from_some(a: Any, b: Any, c: Any) -> Any:
    return triangles(a.where(lambda x: x.src != 0), b, c).aggregate(Count())


def count_all_of_some(a: Any, b: Any, c: Any) -> Any:
    some = [each.where(lambda x: x.src != 0) for each in (a, b, c)]
    return triangles(*some).aggregate(Count(), Sum(lambda x, y, z: 2))


def corners(a: Any, b: Any, c: Any) -> Any:
    return triangles(a, b, c).select(lambda x, y, z: (x.src, y.src, z.src)).distinct()


def all_rows(a: Any, b: Any, c: Any) -> Any:
    return triangles(a, b, c)


def by_corner(a: Any, b: Any, c: Any) -> Any:
    found = triangles(a, b, c).where(lambda x, y, z: x.src != y.dst and z.src > 0)
    return found.group_by(lambda x, y, z: x.src).aggregate(Count(), Sum(lambda x, y, z: z.src))


def with_keys(a: Any, b: Any, c: Any) -> Any:
    two = a.join(b, left_key=lambda x: x.dst, right_key=lambda y: y.src)
    return two.join(
        c, left_key=lambda x, y: y.dst, right_key=lambda z: z.src, on=lambda x, y, z: z.dst == x.src
    )


def with_tuples(a: Any, b: Any, c: Any) -> Any:
    two = a.join(b, left_key=lambda x: x.dst, right_key=lambda y: y.src)
    return two.join(
        c, left_key=lambda x, y: (y.dst, x.src), right_key=lambda z: (z.src, z.dst)
    ).select(lambda x, y, z: (x.src, y.src, z.src))


def with_equal_tuples(a: Any, b: Any, c: Any) -> Any:
    two = a.join(b, on=lambda x, y: (x.dst,) == (y.src,))
    return two.join(c, on=lambda x, y, z: (y.dst, z.dst) == (z.src, x.src)).select(
        lambda x, y, z: (x.src, y.src, z.src)
    )


def count_equal_tuples(a: Any, b: Any, c: Any) -> Any:
    two = a.join(b, on=lambda x, y: (x.dst,) == (y.src,))
    on = two.join(c, on=lambda x, y, z: (y.dst,) == (z.src,) and (z.dst,) == (x.src,))
    return on.aggregate(Count())


def count_with_keys(a: Any, b: Any, c: Any) -> Any:
    two = a.join(b, left_key=lambda x: x.dst, right_key=lambda y: y.src)
    return two.join(
        c, left_key=lambda x, y: (y.dst, x.src), right_key=lambda z: (z.src, z.dst)
    ).aggregate(Count())


def a_chain_with_keys(a: Any, b: Any, c: Any) -> Any:
    two = a.join(b, left_key=lambda x: x.dst, right_key=lambda y: y.src)
    return two.join(c, left_key=lambda x, y: y.dst, right_key=lambda z: z.src)


def squares(a: Any, b: Any, c: Any) -> Any:
    return (
        a.join(b, on=lambda w, x: w.dst == x.src and w.src < 3)
        .join(c, on=lambda w, x, y: x.dst == y.src)
        .join(a, on=lambda w, x, y, z: y.dst == z.src and z.dst == w.src and w.src <= y.src)
        .select(lambda w, x, y, z: (w.src, x.src, y.src, z.src))
    )


def a_chain(a: Any, b: Any, c: Any) -> Any:
    two = a.join(b, on=lambda x, y: x.dst == y.src and x.src != 3)
    return two.join(c, on=lambda x, y, z: y.dst == z.src)


def a_star(a: Any, b: Any, c: Any) -> Any:
    return (
        a.join(b, on=lambda x, y: x.dst == y.src)
        .join(c, on=lambda x, y, z: x.src == z.dst and z.src != 1)
        .join(b, on=lambda x, y, z, w: x.dst == w.dst)
        .select(lambda x, y, z, w: (x.src, y.dst, z.src, w.src))
    )


def alike(a: Any, b: Any, c: Any) -> Any:
    """Join inputs that each share three values."""
    two = a.join(b, on=lambda x, y: x.dst == y.src and (x.src == x.dst) == (y.src == y.dst))
    return (
        two.join(
            c,
            on=lambda x, y, z: (
                y.dst == z.src and z.dst == x.src and (z.src == z.dst) == (y.src == y.dst)
            ),
        )
        .group_by(lambda x, y, z: x.src)
        .aggregate(Count(), Sum(lambda x, y, z: z.src))
    )


def with_a_kind(a: Any, b: Any, c: Any) -> Any:
    """A circle, and a further input, which one of them leads to by a third value."""
    return triangles(a, b, c).join(b, on=lambda x, y, z, w: (x.src == x.dst) == w.src)


def cliques(a: Any, b: Any, c: Any) -> Any:
    """Find four nodes, each with an edge to all later ones."""
    three = a.join(b, on=lambda x, y: x.dst == y.src).join(
        c, on=lambda x, y, z: z.src == x.src and z.dst == y.dst
    )
    return (
        three.join(a, on=lambda x, y, z, u: u.src == y.dst)
        .join(b, on=lambda x, y, z, u, v: v.src == y.src and v.dst == u.dst)
        .join(c, on=lambda x, y, z, u, v, w: w.src == x.src and w.dst == u.dst)
        .select(lambda x, y, z, u, v, w: (x.src, y.src, z.dst, w.dst))
    )


def to_and_fro(a: Any, b: Any, c: Any) -> Any:
    """No value is left to be found, once there is one row."""
    two = a.join(b, on=lambda x, y: x.dst == y.src and y.dst == x.src)
    return two.join(c, on=lambda x, y, z: z.src == x.src and z.dst == y.src).where(
        lambda x, y, z: x.src != 1
    )


def with_labels(a: Any, b: Any, c: Any) -> Any:
    """One input has one value to meet."""
    found = triangles(a, b, c).join(
        b.where(lambda w: w.dst != 2), on=lambda x, y, z, w: z.src == w.src
    )
    return found.group_by(lambda x, y, z, w: w.src).aggregate(
        Count(), Max(lambda x, y, z, w: y.dst)
    )


COUNTS = (count, count_from_some, count_all_of_some, count_back, count_askew)
QUERIES = (
    *(*COUNTS, corners, all_rows, by_corner),
    *(with_keys, with_tuples, squares, a_chain, a_star),
    *(alike, with_a_kind, cliques, to_and_fro, with_labels),
    *(with_equal_tuples, count_equal_tuples, count_with_keys, a_chain_with_keys),
)
WIDE = (count, corners, all_rows, by_corner, with_tuples, squares)
PLAIN: tuple[Any, ...] = tuple(range(5))
ODD: tuple[Any, ...] = (0, 1, True, 1.0, None, "a", float("nan"), 2)
NESTED: tuple[Any, ...] = (0, (0,), (float("nan"),), (0, float("nan")), float("nan"))


class Side:
    def __init__(self, query: Any, *, optimize: bool, of_one: bool) -> None:
        self.db = Database(optimize=optimize)
        names = "a" if of_one else "abc"
        self.tables: list[Any] = [self.db.table(Edge, name=name) for name in names]
        self.relation = query(*(self.tables * 3)[:3])
        self.view = self.relation.materialize()

    def commit(self, changes: list[tuple[int, Edge, int]]) -> str | None:
        try:
            with self.db.transaction():
                for place, edge, weight in changes:
                    table = self.tables[place % len(self.tables)]
                    if weight > 0:
                        table.add(edge)
                    else:
                        table.discard(edge)
        except Exception as error:
            return type(error).__name__
        return None

    def rows(self) -> Counter[Any]:
        return Counter(dict(self.view.zset().items()))


def history(random: Random, values: tuple[Any, ...], commits: int) -> Any:
    for _ in range(commits):
        many = random.choice((1, 1, 2, 8))
        yield [
            (
                random.randrange(3),
                Edge(random.choice(values), random.choice(values)),
                random.choice((1, 1, -1)),
            )
            for _ in range(many)
        ]


@pytest.mark.long
@sampled
@pytest.mark.parametrize("of_one", [True, False])
@pytest.mark.parametrize("values", [PLAIN, ODD, NESTED])
@pytest.mark.parametrize("query", QUERIES)
def test_they_equal_the_plan_as_written(query: Any, values: tuple[Any, ...], of_one: bool) -> None:
    for seed in seeds(3):
        fast, plain = (Side(query, optimize=o, of_one=of_one) for o in (True, False))
        for changes in history(Random(seed), values, 40):
            assert fast.commit(changes) == plain.commit(changes)
            assert fast.rows() == plain.rows()
        late = fast.relation.materialize()
        assert Counter(dict(late.zset().items())) == plain.rows()
        with fast.db.transaction():
            for table in fast.tables:
                table.clear()
        assert fast.view.stats().rows == Side(query, optimize=True, of_one=of_one).view.stats().rows


@pytest.mark.parametrize(
    ("query", "of_one", "kind"),
    [
        (count, True, CyclicCount),
        (count_all_of_some, True, CyclicCount),
        (count_back, True, CyclicCount),
        (count, False, CyclicCount),
        (count_from_some, True, CyclicCount),
        (count_askew, True, CyclicCount),
        (by_corner, True, CyclicJoin),
        (with_labels, False, CyclicJoin),
        (all_rows, True, CyclicJoinRunner),
        (cliques, False, CyclicJoinRunner),
        (to_and_fro, True, CyclicJoinRunner),
        (alike, True, IndexBy),
        (with_a_kind, True, IndexBy),
    ],
)
def test_a_cycle_of_inputs_with_two_values_to_meet_needs_no_index(
    query: Any, of_one: bool, kind: type[Any]
) -> None:
    side = Side(query, optimize=True, of_one=of_one)
    operators = [type(n.operator) for n in side.db._engine.graph.nodes()]
    assert kind in operators
    assert (IndexBy in operators) == (kind is IndexBy)


def test_edges_that_meet_themselves_are_counted_as_often_as_they_do() -> None:
    side = Side(count, optimize=True, of_one=True)
    (edges,) = side.tables
    for edge, triangles_now in (
        (Edge(1, 1), 1),  # around and around
        (Edge(1, 1), 8),  # any of two, three times
        (Edge(1, 2), 8),
        (Edge(2, 1), 8 + 3 * 2),  # to 2, back, and around one of two
    ):
        edges.add(edge)
        assert side.view.value == triangles_now
        side.view.verify()
    edges.remove(Edge(1, 1))
    assert side.view.value == 1 + 3
    side.view.verify()


@pytest.mark.parametrize("query", [a_chain, a_star])
def test_joins_without_a_circle_hold_no_pairs_either(query: Any) -> None:
    side = Side(query, optimize=True, of_one=False)
    assert "multiway join" in str(side.relation.explain())
    for table in side.tables:
        table.add_all(Edge(n % 4, n % 3) for n in range(60))
    held = [n.operator for n in side.db._engine.graph.nodes() if hasattr(n.operator, "footprint")]
    assert all(isinstance(operator, IndexBy) for operator in held)
    assert all(operator.index.rows <= 12 for operator in held)
    side.view.verify()


@pytest.mark.parametrize("query", WIDE)
def test_no_pairs_of_two_inputs_are_held(query: Any) -> None:
    side = Side(query, optimize=True, of_one=True)
    way = "count cycles" if query is count else "join cycles"
    assert f"{way} join" in str(side.relation.explain())
    hub = [Edge(n, 1_000) for n in range(50)] + [Edge(1_000, n) for n in range(100, 150)]
    side.tables[0].add_all(hub)  # 2,500 ways through the hub, and no circle
    assert len(side.view) == (1 if query is count else 0)
    held = [n.operator for n in side.db._engine.graph.nodes() if hasattr(n.operator, "footprint")]
    assert all(operator.footprint()[0] <= 3 * len(hub) for operator in held)


def test_a_change_goes_through_the_smaller_side() -> None:
    side = Side(count, optimize=True, of_one=True)
    side.tables[0].add_all(Edge(1, n) for n in range(10, 1_000))
    side.tables[0].add_all([Edge(5, 0), Edge(6, 0)])
    before = side.view.stats().touched
    side.tables[0].add(Edge(0, 1))  # 990 edges continue from 1, two lead to 0
    assert side.view.stats().touched - before < 50
    side.tables[0].add(Edge(10, 0))
    assert side.view.value == 3
    side.view.verify()


def test_indexes_are_shared_among_inputs_and_views() -> None:
    side = Side(with_a_kind, optimize=True, of_one=True)
    other = with_a_kind(*side.tables * 3).select(lambda x, y, z, w: (x.src, w.dst)).materialize()
    indexes = [n for n in side.db._engine.graph.nodes() if isinstance(n.operator, IndexBy)]
    assert len(indexes) == 4  # two tries, of both ends, and by either alone
    side.tables[0].add_all([Edge(1, 2), Edge(2, 3), Edge(3, 1), Edge(0, 5)])
    assert len(side.view) == len(other) == 3


def test_an_exception_above_is_the_users() -> None:
    side = Side(
        lambda a, b, c: triangles(a, b, c).select(lambda x, y, z: 1 // x.src),
        optimize=True,
        of_one=True,
    )
    side.commit([(0, Edge(1, 2), 1), (0, Edge(2, 3), 1), (0, Edge(3, 1), 1)])
    assert sorted(side.view) == [0, 0, 1]
    assert side.commit([(0, Edge(2, 0), 1), (0, Edge(0, 1), 1)]) == "ZeroDivisionError"
    assert sorted(side.view) == [0, 0, 1]
    side.commit([(0, Edge(2, 3), -1)])
    assert not len(side.view)


@dataclass(frozen=True, slots=True)
class Line:
    """An edge of which there may be several between two nodes."""

    src: Any
    dst: Any
    name: int


@pytest.mark.parametrize("query", [count, all_rows, by_corner, squares, cliques, to_and_fro])
@pytest.mark.parametrize("seed", seeds(4))
def test_several_rows_may_have_the_same_ends(query: Any, seed: int) -> None:
    random = Random(seed)
    fast, plain = Database(), Database(optimize=False)
    views = []
    for db in (fast, plain):
        lines = db.table(Line)
        views.append((lines, query(lines, lines, lines).materialize()))
    held: list[Line] = []
    for _ in range(60):
        came = [Line(random.randrange(4), random.randrange(4), random.randrange(3))]
        came += [came[0]] * random.randrange(2)
        went = random.sample(held, min(len(held), random.randrange(4)))
        for lines, _ in views:
            with Transaction(lines._engine):
                lines.add_all(came)
                lines.remove_all(went)
        held += came
        for line in went:
            held.remove(line)
        (_, one), (_, other) = views
        assert Counter(dict(one.zset().items())) == Counter(dict(other.zset().items()))


@pytest.mark.parametrize("many_times", [0, 32], ids=["by what changed", "as a copy"])
def test_a_trie_is_what_was_added_and_can_be_looked_at_as_it_was(
    many_times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reactive.engine.collections.trie.MANY_TIMES", many_times)
    random, trie, model = Random(2), Trie(), Counter[Any]()
    for _ in range(500):
        delta = []
        before = {key: dict(below) for key, below in _below(model).items()}
        for _ in range(random.randrange(4)):
            key = (random.randrange(3), random.randrange(3))
            row, weight = (*key, random.randrange(2)), random.choice((1, 1, -1))
            delta.append((key, (row, weight)))
            trie.add(key, row, weight)
            model[row] += weight
        model = Counter({row: n for row, n in model.items() if n})
        assert Counter(dict(pair for _, pair in trie.items())) == model
        assert trie.rows == len(model)
        assert set(trie.by_first) == set(_below(model))
        was = trie.find_before(delta)
        for first in range(3):
            had, now = before.get(first, {}), trie.by_first.get(1, {})
            found = was(first, NOTHING)
            known = {} if found is NOTHING else {k: found[k] for k in range(3) if k in found}
            assert {k: dict(bucket_pairs(rows)) for k, rows in known.items()} == had
            if found is not NOTHING:
                both = had.keys() & now.keys()
                assert count_joined_pairs(found, now) == count_joined_pairs(now, found)
                assert count_joined_pairs(found, now) == sum(
                    sum(had[k].values()) * sum(n for _, n in bucket_pairs(now[k])) for k in both
                )
                assert set(common_keys(found, now)) == set(common_keys(now, found)) == both
    assert trie.bytes() > 0


def _below(rows: Counter[Any]) -> dict[Any, dict[Any, dict[Any, int]]]:
    found: dict[Any, dict[Any, dict[Any, int]]] = {}
    for row, weight in rows.items():
        found.setdefault(row[0], {}).setdefault(row[1], {})[row] = weight
    return found


def test_a_batch_with_as_many_copies_as_there_are_rows_is_not_taken_for_all_of_them() -> None:
    db = Database()
    lines = db.table(Line)
    view = all_rows(lines, lines, lines).materialize()
    lines.add(Line(1, 1, 0))
    lines.add_all([Line(1, 1, 1), Line(1, 1, 1)])
    assert len(view) == 27
    view.verify()


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("snapshot", [True, False])
def test_a_key_that_cannot_be_computed_raises_when_a_view_is_made(
    optimize: bool, snapshot: bool
) -> None:
    """It raises for present rows as for later ones."""
    db = Database(optimize=optimize)
    edges = db.table(Edge)
    two = edges.join(edges, on=lambda x, y: x.src + 1 == y.src + 1).where(lambda x, y: x.src >= 0)
    three: Any = two.join(edges, on=lambda x, y, z: x.src + 1 == z.src + 1)
    query = three.select(lambda x, y, z: x.src + 1)
    edges.add_all([Edge(0, 0), Edge(None, 0)])
    with pytest.raises(TypeError, match="NoneType"):
        if snapshot:
            query.subscribe(print, snapshot=True)
        else:
            query.materialize()
    edges.remove(Edge(None, 0))
    view = query.materialize()
    assert list(view) == [1]
    with pytest.raises(TypeError, match="NoneType"):
        edges.add(Edge(None, 0))
    assert list(view) == [1]


def opaque() -> Any:
    return eval("lambda a, b, c: 1 // b.dst")


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize(
    "above",
    [
        lambda joined: joined.aggregate(Monoid(0, math.gcd, of=opaque())),
        lambda joined: joined.select(opaque()).union_all(joined.select(lambda a, b, c: a.src)),
        lambda joined: joined.semi_join(joined.select(opaque()), on=lambda a, b, c, n: a.src == n),
        lambda joined: joined.where(opaque()).union_all(joined),
    ],
)
def test_nothing_is_asked_of_a_row_that_comes_and_goes_in_a_commit(
    above: Any, optimize: bool
) -> None:
    db = Database(optimize=optimize)
    ends, middle = db.table(Edge, name="ends"), db.table(Edge, name="middle")
    joined = ends.join(middle, on=lambda a, b: a.dst == b.src).join(
        ends, on=lambda a, b, c: b.dst == c.src and a.src == c.dst
    )
    view = above(joined).materialize()
    ends.add(Edge(0, 1))
    middle.add(Edge(1, 0))
    with db.transaction():  # 1 -> 1 -> 0 -> 1, if the first edge were still there
        ends.remove(Edge(0, 1))
        ends.add_all([Edge(1, 1), Edge(2, 1)])
    view.verify()
    with pytest.raises(ZeroDivisionError):
        ends.add(Edge(0, 1))


def test_inputs_that_come_to_one_index_from_different_segments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Equal selections are one node of the graph, also below two segments."""
    monkeypatch.setattr("optimizer.rewriting.optimize.HIGHEST", 2)
    views = []
    for optimize in (True, False):
        table: Any = Database(optimize=optimize).table(tuple, name="edges")
        a, b = table.select(lambda e: (e[0], e[1])), table.select(lambda e: (e[0], e[-1]))
        c = table.select(lambda e: (e[0], e[1]))
        joined = a.join(b, on=lambda x, y: x[1] == y[0]).join(
            c, on=lambda x, y, z: y[1] == z[0] and x[0] == z[1]
        )
        view = joined.materialize()
        table.add((0, 1))
        table.add_all([(2, 1), (1, 1), (3, 4), (3, 1), (1, 3)])
        view.verify()
        table.remove_all([(1, 1), (3, 4)])
        view.verify()
        views.append(Counter(view))
    assert views[0] == views[1]
