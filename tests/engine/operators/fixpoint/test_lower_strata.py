"""Recursions over relations below them: left joins, and aggregates of the matches of a row.

After every commit the rows must equal the rows that plain loops compute from scratch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from reactive import Aggregate, Collect, Count, Database, Max, Min, Sum, Table, fixpoint
from tests.engine.operators.fixpoint.graphs import Edge

Rel = Any
Step = Callable[[int, Counter[Edge]], set[int]]
"""The numbers that follow from a number."""
LARGEST = 12


def left_join(reach: Rel, edges: Rel) -> Rel:
    return reach.left_join(edges, on=lambda a, e: a == e.src).select(
        lambda a, e: 7 if e is None else e.dst
    )


def left_join_of_unequal(reach: Rel, edges: Rel) -> Rel:
    joined = reach.left_join(edges, on=lambda a, e: a == e.src and e.dst > a)
    return joined.where(lambda a, e: e is None or e.dst != 5).select(
        lambda a, e: a // 2 if e is None else e.dst
    )


def left_join_twice(reach: Rel, edges: Rel) -> Rel:
    joined = reach.left_join(edges, left_key=lambda a: a, right_key=lambda e: e.src)
    further = joined.left_join(edges, on=lambda a, e, f: e is not None and e.dst == f.src)
    return further.select(lambda a, e, f: f.dst if f else e.dst if e else 0)


def count_by_key(reach: Rel, edges: Rel) -> Rel:
    joined = reach.join(edges, on=lambda a, e: a == e.src)
    return joined.group_by(lambda a, e: a).aggregate(Count()).select(lambda a, n: n)


def sum_of_less(reach: Rel, edges: Rel) -> Rel:
    joined = reach.left_join(edges, on=lambda a, e: e.src < a)
    groups = joined.group_by(lambda a, e: a).aggregate(Sum(lambda a, e: 0 if e is None else e.dst))
    return groups.where(lambda a, total: total <= LARGEST).select(lambda a, total: total)


def extremes(reach: Rel, edges: Rel) -> Rel:
    joined = reach.where(lambda a: a != 4).join(edges, on=lambda a, e: e.dst >= a)
    least, most = Min(lambda a, e: e.src), Max(lambda a, e: e.src)
    groups = joined.group_by(lambda a, e: a).aggregate(least, most)
    return groups.select_many(lambda a, low, high: (low, high))


def product(reach: Rel, edges: Rel) -> Rel:
    groups = reach.join(edges).group_by(lambda a, e: a).aggregate(Collect(lambda a, e: e.dst))
    return groups.select(lambda a, all_: (a + len(all_)) % LARGEST)


def own_aggregate(reach: Rel, edges: Rel) -> Rel:
    joined = reach.join(edges, on=lambda a, e: a == e.src)
    squares: Rel = Aggregate(
        0,
        lambda state, row: state + row[1].dst ** 2,
        lambda state, row: state - row[1].dst ** 2,
    )
    groups = joined.group_by(lambda a, e: a).aggregate(squares)
    return groups.select(lambda a, squares: squares % LARGEST)


def semi_join_of_pairs(reach: Rel, edges: Rel) -> Rel:
    joined = reach.join(edges, on=lambda a, e: a == e.src)
    kept = joined.semi_join(edges, on=lambda a, e, f: e.dst == f.src)
    return kept.where(lambda a, e: a != 3).select(lambda a, e: e.dst)


def _of(edges: Counter[Edge], fits: Callable[[Edge], bool]) -> list[Edge]:
    return [edge for edge in edges.elements() if fits(edge)]


def plain_left_join(a: int, edges: Counter[Edge]) -> set[int]:
    return {e.dst for e in _of(edges, lambda e: e.src == a)} or {7}


def plain_left_join_of_unequal(a: int, edges: Counter[Edge]) -> set[int]:
    found = _of(edges, lambda e: e.src == a and e.dst > a)
    return {e.dst for e in found if e.dst != 5} if found else {a // 2}


def plain_left_join_twice(a: int, edges: Counter[Edge]) -> set[int]:
    found = set()
    first: list[Any] = [*_of(edges, lambda e: e.src == a)]
    for e in first or [None]:
        further = _of(edges, lambda f, e=e: e is not None and e.dst == f.src)  # type: ignore[misc]
        found |= {f.dst for f in further} or {e.dst if e else 0}
    return found


def plain_count_by_key(a: int, edges: Counter[Edge]) -> set[int]:
    found = _of(edges, lambda e: e.src == a)
    return {len(found)} if found else set()


def plain_sum_of_less(a: int, edges: Counter[Edge]) -> set[int]:
    total = sum(e.dst for e in _of(edges, lambda e: e.src < a))
    return {total} if total <= LARGEST else set()


def plain_extremes(a: int, edges: Counter[Edge]) -> set[int]:
    found = [e.src for e in _of(edges, lambda e: e.dst >= a)] if a != 4 else []
    return {min(found), max(found)} if found else set()


def plain_product(a: int, edges: Counter[Edge]) -> set[int]:
    return {(a + edges.total()) % LARGEST} if edges else set()


def plain_own_aggregate(a: int, edges: Counter[Edge]) -> set[int]:
    found = _of(edges, lambda e: e.src == a)
    return {sum(e.dst**2 for e in found) % LARGEST} if found else set()


def plain_semi_join_of_pairs(a: int, edges: Counter[Edge]) -> set[int]:
    found = _of(edges, lambda e: e.src == a and a != 3)
    return {e.dst for e in found if _of(edges, lambda f, e=e: f.src == e.dst)}  # type: ignore[misc]


STEPS: dict[str, tuple[Callable[[Rel, Rel], Rel], Step]] = {
    "left_join": (left_join, plain_left_join),
    "left_join_of_unequal": (left_join_of_unequal, plain_left_join_of_unequal),
    "left_join_twice": (left_join_twice, plain_left_join_twice),
    "count_by_key": (count_by_key, plain_count_by_key),
    "sum_of_less": (sum_of_less, plain_sum_of_less),
    "extremes": (extremes, plain_extremes),
    "product": (product, plain_product),
    "own_aggregate": (own_aggregate, plain_own_aggregate),
    "semi_join_of_pairs": (semi_join_of_pairs, plain_semi_join_of_pairs),
}


def from_scratch(starts: set[int], edges: Counter[Edge], step: Step) -> list[int]:
    found, new = set(starts), set(starts)
    while new:
        new = {b for a in new for b in step(a, edges)} - found
        found |= new
    return sorted(found)


@pytest.mark.long
@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("name", STEPS)
def test_a_recursion_may_read_what_is_below_it(name: str, optimize: bool) -> None:
    query, step = STEPS[name]
    for seed in range(6):
        random = Random(seed)
        db = Database(optimize=optimize)
        starts, edges = db.table(int, name="starts"), db.table(Edge, name="edges")
        view = fixpoint(lambda r: starts.union(query(r, edges))).materialize()
        held, own = Counter[Edge](), set[int]()
        for _ in range(25):
            with db.transaction():
                for _ in range(random.choice([1, 1, 3])):
                    _change(random, edges, held)
                if random.random() < 0.3:
                    _flip(random.randrange(4), starts, own)
            assert sorted(view) == from_scratch(own, held, step), (seed, own, held)
        view.verify()


def _change(random: Random, edges: Table[Edge], held: Counter[Edge]) -> None:
    """Add a row, or remove one."""
    if held and random.random() < 0.45:
        edge = random.choice(sorted(held))
        edges.remove(edge)
        held[edge] -= 1
        held += Counter()
        for each in [each for each in held if not held[each]]:
            del held[each]
    else:
        edge = Edge(random.randrange(8), random.randrange(8))
        edges.add(edge)
        held[edge] += 1


def _flip(number: int, starts: Table[int], own: set[int]) -> None:
    if number in own:
        starts.remove(number)
    else:
        starts.add(number)
    own ^= {number}


def test_what_raises_leaves_all_as_it_was() -> None:
    db = Database()
    starts, edges = db.table(int, name="starts"), db.table(Edge, name="edges")

    def query(reach: Rel) -> Rel:
        joined = reach.left_join(edges, on=lambda a, e: a == e.src)
        groups = joined.group_by(lambda a, e: a).aggregate(Sum(lambda a, e: e.dst if e else 1))
        return starts.union(groups.select(lambda a, total: 60 // total))

    view = fixpoint(query).materialize()
    starts.add(3)
    before = sorted(view)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            edges.add(Edge(3, 0))
        assert sorted(view) == before
        view.verify()
    edges.add(Edge(3, 5))
    assert sorted(view) == [3, 12, 60] and 5 in {e.dst for e in edges}
    with pytest.raises(ZeroDivisionError), db.transaction():
        edges.remove(Edge(3, 5))
        edges.add(Edge(3, 0))
    assert sorted(view) == [3, 12, 60]
    edges.remove(Edge(3, 5))
    assert sorted(view) == before


def test_one_change_of_an_aggregated_input_asks_the_rows_with_its_key_alone() -> None:
    def touched(count: int) -> int:
        db = Database()
        starts, edges = db.table(int, name="starts"), db.table(Edge, name="edges")

        def query(reach: Rel) -> Rel:
            joined = reach.join(edges, on=lambda a, e: a == e.src)
            groups = joined.group_by(lambda a, e: a).aggregate(Count())
            return starts.union(groups.select(lambda a, n: -n))

        view = fixpoint(query).materialize()
        starts.add_all(range(count))
        edges.add_all([Edge(number, 0) for number in range(count)])
        before = view.stats().touched
        edges.add(Edge(5, 1))
        return view.stats().touched - before

    assert touched(30) == touched(3_000)
