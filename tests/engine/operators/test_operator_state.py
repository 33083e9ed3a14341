"""Operators begin with the state of others of their kind, and go on as these do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pkgutil import walk_packages
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reactive import Avg, Count, Database, Max, Min, Sum, fixpoint, iterate
from reactive.borders.durable.rows.packed import Packer, Unpacker
from reactive.borders.durable.rows.values import Unstorable
from reactive.engine.collections.zset import consolidate
from reactive.engine.dataflow.restoration import Restoration, states_of
from reactive.engine.operators.aggregate import GroupStates, State
from reactive.engine.operators.fixpoint.fixpoint import Fixpoint
from reactive.engine.operators.index_by import IndexBy
from tests.budget import sampled
from tests.random_queries.drawn import SEEDS, commit, draw


class Arc(NamedTuple):
    source: int
    target: int


class Rank(NamedTuple):
    node: int
    value: float


COMPUTED = {
    "IndexBy": "made of the rows of its input, and of a table only when it is asked",
    **dict.fromkeys(
        ("ViewRows", "SignedBag", "SingleRow", "GroupRows", "Records", "SignedRecords"),
        "holds the rows of its input and no more",
    ),
    **dict.fromkeys(
        ("Operator", "OperatorState", "OwnOperators"),
        "holds what a class of the user keeps, which gets all rows in one step",
    ),
    **dict.fromkeys(
        (
            "CyclicCount",
            "CyclicRows",
            "CyclicJoinRunner",
            "CyclicJoin",
            "OuterJoinRunner",
            "GroupedOuterJoin",
        ),
        "the rows of its inputs are what takes long, and it would have to hold them again",
    ),
    **dict.fromkeys(
        ("KeyMatching", "CheckedMatching", "BoundMatching", "HashMatching", "PredicateMatching"),
        "holds rows of its inputs by what matches them",
    ),
    **dict.fromkeys(
        ("AsofJoin", "MatchingJoin", "OuterJoin"),
        "holds rows of its inputs by what matches them",
    ),
    **dict.fromkeys(
        ("MovingWindow", "OrderBy", "Top", "Sequences"), "sorts rows, which is done in C"
    ),
    "LatticeFixpoint": "holds values of the user's lattice, which a new program may join otherwise",
    **dict.fromkeys(("Reduce", "KeptGroups"), "holds what a function of the user has made"),
    **dict.fromkeys(
        (
            "ClosingAggregates",
            "ClosingAsofJoin",
            "ClosingDistinct",
            "ClosingPointwise",
            "ClosingSessions",
            "ClosingUnion",
            "ClosedRows",
            "ExpiringIndexBy",
            "Watermark",
        ),
        "of a stream, which is not stored",
    ),
    **dict.fromkeys(
        ("SessionGroup", "WindowGroups", "WindowPartition", "PlacedRows", "PlacedPartition"),
        "sorts rows, which is done in C",
    ),
    "SumsBeyond": "sorts the rows of its inputs, with sums that are added up at once",
    "ExtremesBy": "sorts the values of each key, which its rows hold",
    "CollectedRounds": "the loop that owns it builds it again, of the rows that it collects",
    "Tree": "bags in rows are objects that views have given out",
}
"""Operators with state that is recomputed, with the reason."""


def _same_ends(arcs: Any) -> Any:
    """Pairs of nodes at the ends of arcs that begin at such a pair, or at one node."""

    def step(pairs: Any) -> Any:
        one = pairs.join(arcs, on=lambda p, a: p.source == a.source)
        two = one.join(arcs, on=lambda p, a, b: p.target == b.source)
        first = arcs.join(arcs, on=lambda a, b: a.source == b.source)
        return first.select(lambda a, b: Arc(a.target, b.target)).union(
            two.select(lambda p, a, b: Arc(a.target, b.target))
        )

    return fixpoint(step)


def _reached(arcs: Any, start: Any) -> Any:
    return fixpoint(
        lambda paths: start.union(
            paths.join(arcs, on=lambda p, a: p.target == a.source).select(
                lambda p, a: Arc(p.source, a.target)
            )
        )
    )


def _ranks(arcs: Any, **how: Any) -> Any:
    nodes = arcs.select(lambda a: a.source).union(arcs.select(lambda a: a.target))
    degree = arcs.group_by(lambda a: a.source).aggregate(Count())

    def step(now: Any) -> Any:
        sent = now.join(arcs, on=lambda r, a: r.node == a.source).join(
            degree, on=lambda r, a, d: a.source == d[0]
        )
        return (
            sent.select(lambda r, a, d: Rank(a.target, 0.85 * r.value / d[1]))
            .union_all(nodes.select(lambda n: Rank(n, 0.15)))
            .group_by(lambda r: r.node)
            .aggregate(Sum(lambda r: r.value))
            .select(lambda node, value: Rank(node, value))
        )

    return iterate(step, nodes.select(lambda n: Rank(n, 1.0)), **how)


class Way(NamedTuple):
    source: int
    target: int
    length: int


def _shortest(arcs: Any) -> Any:
    """The shortest way between nodes, where an arc is as long as its end says."""
    first = arcs.select(lambda a: Way(a.source, a.target, a.target % 3 + 1))
    return fixpoint(
        lambda ways: first.union(
            ways.join(arcs, on=lambda w, a: w.target == a.source).select(
                lambda w, a: Way(w.source, a.target, w.length + a.target % 3 + 1)
            )
        ),
        keep=Min(lambda w: w.length),
        by=lambda w: (w.source, w.target),
    )


RELATIONS: dict[str, Callable[[Any], Any]] = {
    "closure": lambda arcs: _reached(arcs, arcs),
    "closure of some": lambda arcs: _reached(arcs, arcs.where(lambda a: a.source % 3 != 1)),
    "rules": _same_ends,
    "shortest ways": _shortest,
    "closure of a closure": lambda arcs: _reached(
        _reached(arcs, arcs.where(lambda a: a.source % 2 == 1)), arcs
    ),
    "sums over a closure": lambda arcs: (
        _reached(arcs, arcs)
        .join(arcs, on=lambda p, a: p.target == a.source)
        .group_by(lambda p, a: p.source)
        .aggregate(Count(), Sum(lambda p, a: a.target))
    ),
    "sums over rules": lambda arcs: (
        _same_ends(arcs)
        .join(arcs.select(lambda a: a.source).distinct(), on=lambda p, node: p.target == node)
        .group_by(lambda p, node: node)
        .aggregate(Count())
    ),
    "sums over sums": lambda arcs: (
        arcs.group_by(lambda a: a.source)
        .aggregate(Count())
        .join(arcs, on=lambda source, count, a: source == a.target)
        .group_by(lambda source, count, a: a.source)
        .aggregate(Sum(lambda source, count, a: count), Max(lambda source, count, a: count))
    ),
    "distinct": lambda arcs: arcs.select(lambda a: a.target % 5).distinct(),
    "sums": lambda arcs: arcs.group_by(lambda a: a.source).aggregate(
        Count(), Sum(lambda a: a.target), Avg(lambda a: a.target)
    ),
    "one sum": lambda arcs: arcs.aggregate(Sum(lambda a: a.target / 4)),
    "greatest": lambda arcs: arcs.group_by(lambda a: a.source).aggregate(Max(lambda a: a.target)),
    "sums of a join": lambda arcs: (
        arcs.join(arcs, on=lambda a, b: a.target == b.source)
        .group_by(lambda a, b: a.source)
        .aggregate(Count(), Sum(lambda a, b: b.target))
    ),
    "sums of sums": lambda arcs: (
        arcs.group_by(lambda a: a.source)
        .aggregate(Count())
        .group_by(lambda source, count: count)
        .aggregate(Count())
    ),
    "closure above sums": lambda arcs: _reached(
        arcs,
        arcs.group_by(lambda a: a.source)
        .aggregate(Count())
        .select(lambda source, count: Arc(source, count)),
    ),
    "union": lambda arcs: arcs.select(lambda a: a.source).union(arcs.select(lambda a: a.target)),
    "difference": lambda arcs: arcs.select(lambda a: a.source).difference(
        arcs.select(lambda a: a.target)
    ),
    "intersection": lambda arcs: arcs.select(lambda a: a.source).intersection_all(
        arcs.select(lambda a: a.target)
    ),
    "rounds": lambda arcs: _ranks(arcs, times=4),
    "settled": lambda arcs: _ranks(
        arcs, until="settled", tolerance=1e-3, of=lambda r: r.value, contraction=0.85, norm="sum"
    ),
}
NAMES = list(RELATIONS)
BAD = 987654
"""A node that makes a view raise."""


@contextmanager
def restored(db: Database, restoration: Restoration) -> Iterator[None]:
    graph = db._engine.graph
    graph.restoration = restoration
    try:
        yield
    finally:
        graph.restoration = None


def packed(state: Any) -> Any:
    """A state as it is read again."""
    packer = Packer()
    for value in state.values():
        (packer.column if isinstance(value, list) else packer.plain)(value)
    unpacker = Unpacker(packer.bytes())
    return {
        name: unpacker.column() if isinstance(value, list) else unpacker.plain()
        for name, value in state.items()
    }


def change(random: Random, held: list[Arc], nodes: int) -> tuple[list[Arc], list[Arc]]:
    gone = random.sample(held, min(len(held), random.randint(0, 4)))
    come = [
        Arc(random.randrange(nodes), random.randrange(nodes)) for _ in range(random.randint(0, 4))
    ]
    for arc in gone:
        held.remove(arc)
    held += come
    return gone, come


def play(db: Database, table: Any, gone: list[Arc], come: list[Arc]) -> None:
    with db.transaction():
        for arc in gone:
            table.remove(arc)
        table.add_all(come)


@sampled
@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", NAMES)
def test_views_of_restored_operators_stay_right(name: str, seed: int) -> None:
    random = Random(seed)
    first, held, nodes = Database(), list[Arc](), random.choice([4, 12, 30])
    arcs = first.table(Arc, name="arcs")
    view = RELATIONS[name](arcs).materialize()
    for _ in range(random.randint(0, 15)):
        play(first, arcs, *change(random, held, nodes))
    (leaf,) = [leaf for leaf in first._engine.graph.leaves() if leaf.rank == view._node.rank]
    states = {name: packed(state) for name, state in states_of(leaf, {})}

    second = Database()
    again = second.table(Arc, name="arcs")
    again.add_all(held)
    restoration = Restoration(states.get)
    with restored(second, restoration):
        other = RELATIONS[name](again).materialize()
    assert restoration.read.keys() == states.keys()
    assert states or name == "greatest"
    second.verify()
    for _ in range(20):
        gone, come = change(random, held, nodes)
        play(second, again, gone, come)
        second.verify()
    assert len(other) >= 0


@sampled
@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", NAMES)
def test_states_of_before_some_commits_are_brought_up_to_date(name: str, seed: int) -> None:
    random = Random(seed)
    first, held, nodes = Database(), list[Arc](), random.choice([4, 12, 30])
    arcs = first.table(Arc, name="arcs")
    view = RELATIONS[name](arcs).materialize()
    for _ in range(random.randint(0, 15)):
        play(first, arcs, *change(random, held, nodes))
    (leaf,) = [leaf for leaf in first._engine.graph.leaves() if leaf.rank == view._node.rank]
    states = {name: packed(state) for name, state in states_of(leaf, {})}
    since: list[tuple[Arc, int]] = []
    for _ in range(random.randint(0, 5)):
        gone, come = change(random, held, nodes)
        since += [*((arc, -1) for arc in gone), *((arc, 1) for arc in come)]

    second = Database()
    again = second.table(Arc, name="arcs")
    again.add_all(held)
    store: Any = again._store
    changed = [(store.held_row(Arc(*arc)), n) for arc, n in consolidate(since)]
    restoration = Restoration(states.get, {again._node: changed})
    with restored(second, restoration):
        other = RELATIONS[name](again).materialize()
    assert restoration.read.keys() == states.keys()
    second.verify()
    for _ in range(20):
        gone, come = change(random, held, nodes)
        play(second, again, gone, come)
        second.verify()
    assert len(other) >= 0


@pytest.mark.long
@settings(max_examples=60)
@given(SEEDS, st.booleans())
def test_random_queries_begin_with_any_state_and_stay_right(seed: int, is_late: bool) -> None:
    check_drawn(seed, is_late=is_late)


def check_drawn(seed: int, *, is_late: bool) -> int:
    """Restore the views of random queries in the middle of a history; how many states were read.

    is_late: whether the states are of some commits before.
    """
    random, drawn = Random(seed), draw(seed, count=2)
    first, made = Database(), [*drawn.script()]
    tables = drawn.open(first)
    views = [relation.materialize() for relation in drawn.relations(tables)]
    at = random.randrange(len(made) + 1)
    before = random.randint(0, at) if is_late else at
    states: dict[str, State] = {}
    for place, calls in enumerate([*made, []]):
        if place == before:
            states = stored(first, views)
            held = [Counter(table) for table in tables]
        if place == at:
            break
        commit(first, tables, calls)
    second = Database()
    again = drawn.open(second)
    for table, other in zip(tables, again, strict=True):
        other.add_all(list(table))
    changed = {
        other._node: [(other._store.held_row(row), n) for row, n in net(Counter(other), was)]
        for other, was in zip(again, held, strict=True)
    }
    restoration = Restoration(states.get, changed if is_late else None)
    with restored(second, restoration):
        others = [relation.materialize() for relation in drawn.relations(again)]
    second.verify()
    for calls in made[at:]:
        commit(second, again, calls)
        second.verify()
    assert len(others) == len(views)
    return len(restoration.read)


def net(now: Counter[Any], was: Counter[Any]) -> list[tuple[Any, int]]:
    return [(row, n) for row in now | was if (n := now[row] - was[row])]


def stored(db: Database, views: list[Any]) -> dict[str, State]:
    """The states of all operators of views that can be stored, as they are read again."""
    found = {}
    for view in views:
        for name, state in states_of(view._node, {}):
            with suppress(Unstorable):
                found[name] = packed(state)
    assert db.views()
    return found


def stateful() -> Iterator[type]:
    """The classes of operators with state."""
    for package in ("operators", "dataflow"):
        root = import_module(f"reactive.{package}")
        for module in walk_packages(root.__path__, f"{root.__name__}."):
            for kind in vars(import_module(module.name)).values():
                if isinstance(kind, type) and kind.__module__ == module.name and _has_state(kind):
                    yield kind


def _has_state(kind: type) -> bool:
    if getattr(kind, "_is_protocol", False) or kind is GroupStates:
        return False
    return all(hasattr(kind, name) for name in ("step", "undo", "commit"))


def test_each_operator_with_state_is_restored_or_computed_for_a_reason() -> None:
    restored = {kind.__name__ for kind in stateful() if "restore" in vars(kind)}
    others = {kind.__name__ for kind in stateful()} - restored
    assert others - {"Tolerate"} == COMPUTED.keys()
    assert {
        "Fixpoint",
        "Closure",
        "LoopContinuation",
        "AdaptiveLoop",
        "GroupAggregates",
        "Distinct",
    } <= restored


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", NAMES)
def test_a_first_commit_that_fails_leaves_restored_operators_right(name: str, seed: int) -> None:
    random, first, held = Random(seed), Database(), list[Arc]()
    arcs = first.table(Arc, name="arcs")
    view = RELATIONS[name](arcs).materialize()
    for _ in range(6):
        play(first, arcs, *change(random, held, 6))
    states = {name: packed(state) for name, state in states_of(view._node, {})}
    second = Database()
    again = second.table(Arc, name="arcs")
    again.add_all(held)
    with restored(second, Restoration(states.get)):
        relation = RELATIONS[name](again)
        other = relation.materialize()
        above = relation.select(lambda *row: 1 // (str(BAD) not in str(row))).materialize()
    for _ in range(2):
        with suppress(ZeroDivisionError):
            play(second, again, held[:1], [Arc(BAD, BAD), Arc(BAD, 1)])
            play(second, again, [Arc(BAD, BAD), Arc(BAD, 1)], held[:1])
        other.verify()
    for _ in range(6):
        play(second, again, *change(random, held, 6))
        other.verify()
    assert len(other) == len(above)


@pytest.mark.parametrize("name", ["rules", "shortest ways"])
def test_a_restored_fixpoint_builds_its_indexes_at_the_first_change(name: str) -> None:
    first = Database()
    arcs = first.table(Arc, name="arcs")
    arcs.add_all([Arc(n % 7, n) for n in range(30)])
    view = RELATIONS[name](arcs).materialize()
    states = {name: packed(state) for name, state in states_of(view._node, {})}
    second = Database()
    again = second.table(Arc, name="arcs")
    again.add_all(list(arcs))
    with restored(second, Restoration(states.get)):
        other = RELATIONS[name](again).materialize()
    (node,) = [node for node in other._node.upstream() if isinstance(node.operator, Fixpoint)]
    assert sorted(other) == sorted(view)
    before = node.operator.footprint()[1]
    again.add(Arc(3, 4))
    assert node.operator.footprint()[1] > 2 * before
    second.verify()


def test_indexes_of_restored_rows_are_built_at_the_first_look_up() -> None:
    name = "closure of a closure"
    first = Database()
    arcs = first.table(Arc, name="arcs")
    arcs.add_all([Arc(n % 7, n) for n in range(30)])
    view = RELATIONS[name](arcs).materialize()
    states = {name: packed(state) for name, state in states_of(view._node, {})}
    second = Database()
    again = second.table(Arc, name="arcs")
    again.add_all(list(arcs))
    with restored(second, Restoration(states.get)):
        other = RELATIONS[name](again).materialize()
    indexes = [n.operator for n in other._node.upstream() if isinstance(n.operator, IndexBy)]
    assert indexes and not any(index.is_made for index in indexes)
    again.add(Arc(3, 4))
    assert any(index.is_made for index in indexes)
    second.verify()
