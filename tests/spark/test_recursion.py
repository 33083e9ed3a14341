"""Recursions by partitions: after every flush what plain evaluation gives, in one action."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path as Folder
from random import Random
from typing import Any, NamedTuple

import pytest

pytest.importorskip("pyspark")

from optimizer.traverse import without_iterations
from reactive import Count, Database, Min, OffloadError, Sum, fixpoint, iterate
from reactive.engine.reference.evaluate import evaluate_part
from reactive.engine.remote.fragments import LEVEL, Fragment, is_kept_loop, whole_fragment
from spark_backend.cluster.session import Session
from spark_backend.fragments.remote import StateRemote
from spark_backend.fragments.roster import can_be_columns
from spark_backend.recursion.compile import recursion_step
from spark_backend.recursion.partition_recursion import PartitionRecursion
from spark_backend.state import tables
from tests.budget import TIMES

pytestmark = pytest.mark.usefixtures("either_way")


class Edge(NamedTuple):
    src: int
    dst: int


class Way(NamedTuple):
    src: str | None
    dst: str | None
    cost: int


Query = Callable[[Any, Any, Any], Any]


def reach(edges: Any) -> Any:
    return fixpoint(
        lambda reach: edges.union(
            reach.join(edges, on=lambda p, e: p.dst == e.src).select(
                lambda p, e: Edge(p.src, e.dst)
            )
        )
    )


def same_generation(edges: Any) -> Any:
    return fixpoint(
        lambda r: edges.union(
            edges.join(r, on=lambda a, r: a.src == r.src)
            .join(edges, on=lambda a, r, b: r.dst == b.src)
            .select(lambda a, r, b: Edge(a.dst, b.dst))
        )
    )


def even_and_odd(edges: Any, starts: Any) -> Any:
    """Ends of paths with an even and an odd number of edges; then where both are."""

    def step(even: Any, odd: Any) -> Any:
        return (
            starts.union(
                odd.join(edges, on=lambda p, e: p.dst == e.src).select(
                    lambda p, e: Edge(p.src, e.dst)
                )
            ),
            even.join(edges, on=lambda p, e: p.dst == e.src).select(
                lambda p, e: Edge(p.src, e.dst)
            ),
        )

    even, odd = fixpoint(step)
    return even.join(odd, on=lambda a, b: a.dst == b.dst).select(lambda a, b: Edge(a.src, b.src))


QUERIES: dict[str, Query] = {
    "closure, counted": lambda e, f, w: reach(e).group_by(lambda p: p.src).aggregate(Count()),
    "shortest paths": lambda e, f, w: fixpoint(
        lambda r: w.union(
            r.join(w, on=lambda p, e: p.dst == e.src).select(
                lambda p, e: Way(p.src, e.dst, p.cost + e.cost)
            )
        ),
        keep=Min(lambda r: r.cost),
        by=lambda r: (r.src, r.dst),
    ),
    "with a negation, and seeds of another table": lambda e, f, w: fixpoint(
        lambda r: f.union(
            r.join(e, on=lambda p, e: p.dst == e.src).select(lambda p, e: Edge(p.src, e.dst))
        ).union(r.anti_join(e, on=lambda p, e: p.dst == e.src).select(lambda p: Edge(p.src, p.src)))
    ),
    "two rounds of a loop": lambda e, f, w: iterate(
        lambda r: (
            r.join(e, on=lambda r, e: r.src == e.src)
            .group_by(lambda r, e: e.dst)
            .aggregate(Sum(lambda r, e: r.dst))
            .select(lambda node, total: Edge(node, total))
        ),
        f,
        times=2,
    ),
    "same generation": lambda e, f, w: same_generation(e),
    "four rounds of two relations, of which one counts copies": lambda e, f, w: iterate(
        lambda sums, paths: (
            paths.union_all(sums)
            .group_by(lambda p: p.dst)
            .aggregate(Count())
            .select(lambda node, n: Edge(node, n % 7)),
            paths.join(e, on=lambda p, e: p.dst == e.src)
            .select(lambda p, e: Edge(p.src % 2, e.dst))
            .distinct()
            .union_all(sums),
        ),
        (e, f),
        times=4,
    )[0],
    "relations that are defined together": lambda e, f, w: even_and_odd(e, f),
    "until settled": lambda e, f, w: iterate(
        lambda r: (
            r.union_all(e)
            .group_by(lambda p: p.src)
            .aggregate(Min(lambda p: p.dst))
            .select(lambda src, least: Edge(src, least))
        ),
        f,
        until="settled",
    ),
    "an edge at the beginning": lambda e, f, w: fixpoint(
        lambda r: e.union(
            e.join(r, on=lambda e, p: e.dst == p.src).select(lambda e, p: Edge(e.src, p.dst))
        )
    ),
    "a path at the end": lambda e, f, w: fixpoint(
        lambda r: e.union(
            r.join(r, on=lambda p, q: p.dst == q.src).select(lambda p, q: Edge(p.src, q.dst))
        )
    ),
    "with a semi join below a condition": lambda e, f, w: fixpoint(
        lambda r: e.union(
            r.where(lambda p: p.src != 2)
            .semi_join(f, on=lambda p, e: p.dst == e.src)
            .select(lambda p: Edge(p.src, p.src))
            .union(
                r.join(e, on=lambda p, e: p.dst == e.src).select(lambda p, e: Edge(p.src, e.dst))
            )
        )
    ),
}
SAMPLE = (
    "closure, counted",
    "shortest paths",
    "same generation",
    "relations that are defined together",
)
SIZES = (0, 8, 1, 2, 30, 1)
"""The numbers of rows that change in each flush, of which the first is empty; a sample has four."""


def fragment_of(query: Query) -> Fragment:
    db = Database()
    given = (db.table(Edge, name="e"), db.table(Edge, name="f"), db.table(Way, name="w"))
    run = without_iterations(db._engine.queries.optimize(query(*given).plan).plan, is_kept_loop)
    found = whole_fragment(run, lambda node: False)
    assert found is not None
    return found


def remote_of(session: Session, fragment: Fragment, folder: Folder) -> StateRemote:
    return StateRemote(session, fragment, str(folder), stable=False, makers=(recursion_step,))


class History:
    """Rows of the inputs of a fragment, few nodes, so that there are many cycles."""

    def __init__(self, fragment: Fragment, seed: int) -> None:
        self._random, self._fragment = Random(seed), fragment
        self.bags: list[Counter[Any]] = [Counter() for _ in fragment.inputs]

    def changes(self, count: int) -> list[tuple[int, Any, int]]:
        return [self._change() for _ in range(count)]

    def _change(self) -> tuple[int, Any, int]:
        place = self._random.randrange(len(self.bags))
        bag = self.bags[place]
        if bag and self._random.random() < 0.45:
            row, weight = self._random.choice(list(bag)), -1
        else:
            row, weight = self._row(self._fragment.inputs[place]), 1
        bag[row] += weight
        bag += Counter()
        return place, row, weight

    def _row(self, table: Any) -> Any:
        if table.row_type is Edge:
            return Edge(self._random.randrange(6), self._random.randrange(6))
        ends = ("a", "b", "c", None)
        return Way(self._random.choice(ends), self._random.choice(ends), self._random.randrange(5))


@pytest.mark.parametrize("name", QUERIES if TIMES else SAMPLE)
def test_a_recursion_after_every_flush_is_what_plain_evaluation_gives(
    name: str, session: Session, tmp_path: Folder
) -> None:
    fragment = fragment_of(QUERIES[name])
    remote, history = remote_of(session, fragment, tmp_path), History(fragment, len(name))
    out = Counter[Any]()
    for number, size in enumerate(SIZES if TIMES else SIZES[:4]):
        changes = history.changes(size)
        entries = [(p, *remote.pack(p, None, row), n) for p, row, n in changes]
        for row, weight in remote.apply(number, entries):
            out[row] += weight
        bags = {(LEVEL, place): bag for place, bag in enumerate(history.bags)}
        wanted = {row: n for row, n in evaluate_part(fragment.node, bags).items() if n}
        assert {row: n for row, n in out.items() if n} == wanted, number
        assert dict(remote.contents()) == wanted, number


@pytest.mark.usefixtures("by_jobs")
def test_a_flush_is_one_action_whatever_the_depth_and_its_partitions_run_once(
    session: Session, tmp_path: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "SHARE", 100.0)  # nothing is put together meanwhile
    fragment = fragment_of(lambda e, f, w: reach(e))
    remote = remote_of(session, fragment, tmp_path)
    path = [Edge(n, n + 1) for n in range(60)]
    done = [(path, 1), ([Edge(60, 0)], 1), ([Edge(30, 31)], -1), ([Edge(30, 31)], 1)]
    store = session.spark._jsparkSession.sharedState().statusStore()
    for number, (rows, weight) in enumerate(done):
        before = store.executionsCount()
        changed = remote.apply(number, [(0, 0, row, weight) for row in rows])
        assert len(list(changed)) == [1830, 1891, 1891, 1891][number]
        assert store.executionsCount() - before == 1
        made = store.executionsList().last().physicalPlanDescription().partition("\n\n")[0]
        assert made.count("MapInArrow") == 1


def test_a_row_that_loses_a_derivation_as_it_gets_one_from_itself_goes(
    session: Session, tmp_path: Folder
) -> None:
    remote = remote_of(session, fragment_of(lambda e, f, w: reach(e)), tmp_path)
    shown = Counter(dict(remote.apply(0, [(0, 0, Edge(n, n + 1), 1) for n in range(3)])))
    shown.update(dict(remote.apply(1, [(0, 0, Edge(1, 2), -1), (0, 0, Edge(3, 2), 1)])))
    left = {(0, 1), (2, 3), (2, 2), (3, 2), (3, 3)}  # 2 and 3 are no longer reached from 0
    assert {row for row, weight in shown.items() if weight} == left


@pytest.mark.usefixtures("by_jobs")
def test_only_partitions_that_a_change_can_touch_are_given_to_workers(
    session: Session, tmp_path: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = remote_of(session, fragment_of(lambda e, f, w: reach(e)), tmp_path)
    remote.apply(0, [(0, 0, edge, 1) for edge in (Edge(1, 2), Edge(2, 3), Edge(5, 6))])
    touched, find = [], PartitionRecursion._touched_partitions

    def noted(step: Any, flush: Any, derived: Any) -> Any:
        keys = find(step, flush, derived)
        touched.append({row.key for row in keys.collect()})
        return keys

    monkeypatch.setattr(PartitionRecursion, "_touched_partitions", noted)
    come_and_go = [(Edge(1, 3), 1), (Edge(3, 4), 1), (Edge(6, 5), 1), (Edge(1, 3), -1)]
    for number, (edge, weight) in enumerate(come_and_go, 1):
        remote.apply(number, [(0, 0, edge, weight)])
    assert touched == [set(), {1, 2, 3}, {5, 6}, {1}]


def test_a_number_that_its_column_does_not_hold_is_told(session: Session, tmp_path: Folder) -> None:
    remote = remote_of(session, fragment_of(QUERIES["shortest paths"]), tmp_path)
    rows = [Way("a", "b", 2**62), Way("b", "c", 2**62)]
    with pytest.raises(OffloadError, match="cannot keep"):
        remote.apply(0, [(0, 0, row, 1) for row in rows])


def ranks(edges: Any) -> Any:
    """Four rounds over edges, their nodes, and how many each node has."""
    nodes = edges.select_many(lambda e: (e.src, e.dst)).distinct()
    counts = edges.group_by(lambda e: e.src).aggregate(Count())
    counted = edges.join(counts, on=lambda e, of: e.src == of[0]).select(
        lambda e, of: (e.src, e.dst, of[1])
    )
    return iterate(
        lambda r: (
            r.join(counted, on=lambda r, e: r.src == e[0])
            .group_by(lambda r, e: e[1])
            .aggregate(Sum(lambda r, e: r.dst * e[2]))
            .select(lambda node, total: Edge(node, total % 1000))
        ),
        nodes.select(lambda node: Edge(node, 1)),
        times=4,
    )


@pytest.mark.usefixtures("by_jobs")
def test_what_a_worker_is_sent_anyway_is_all_that_is_kept_of_it(
    session: Session, tmp_path: Folder
) -> None:
    fragment = fragment_of(lambda e, f, w: ranks(e))
    remote, history = remote_of(session, fragment, tmp_path), History(fragment, 7)
    bag = Counter[Any]()
    store = session.spark._jsparkSession.sharedState().statusStore()
    for number, size in enumerate((5, 9)):
        entries = [(p, *remote.pack(p, None, row), n) for p, row, n in history.changes(size)]
        for row, weight in remote.apply(number, entries):
            bag[row] += weight
        made = store.executionsList().last().physicalPlanDescription().partition("\n\n")[0]
        assert made.count("MapInArrow") == 1
        wanted = evaluate_part(fragment.node, {(LEVEL, 0): history.bags[0]})
        assert +bag == {row: n for row, n in wanted.items() if n}
    kept = list(remote.shared.tables.manifest.tables)
    assert len([name for name in kept if name.startswith("side")]) == 1
    assert not [name for name in kept if name.startswith(("sums", "by", "rows"))]


@pytest.mark.usefixtures("by_jobs")
def test_a_recursion_in_one_worker_is_one_action(session: Session, tmp_path: Folder) -> None:
    remote = remote_of(session, fragment_of(lambda e, f, w: even_and_odd(e, f)), tmp_path)
    store = session.spark._jsparkSession.sharedState().statusStore()
    path = [(0, 0, Edge(n, (n + 1) % 9), 1) for n in range(9)]
    before = store.executionsCount()
    assert len(list(remote.apply(0, [*path, (1, 0, Edge(7, 0), 1)]))) == 1
    assert store.executionsCount() - before == 1


def test_without_what_makes_its_step_a_recursion_is_not_taken(session: Session) -> None:
    for query in (lambda e, f, w: reach(e), lambda e, f, w: same_generation(e)):
        fragment = fragment_of(query)
        assert can_be_columns(session, fragment, (recursion_step,))
        assert not can_be_columns(session, fragment)


@pytest.mark.quick
def test_a_view_over_a_recursion_moves_is_notified_and_comes_back(offload: Any) -> None:
    db = Database(offload=offload)
    edges = db.table(Edge, name="edges")
    edges.add_all([Edge(n, n + 1) for n in range(5)])
    view = reach(edges).materialize("reach")
    view.offload()
    assert "by partitions of reach.src" in view.explain()
    deltas: list[Any] = []
    with view.subscribe(deltas.append):
        edges.add(Edge(5, 0))
        db.flush()
    assert len(view) == 36
    assert Edge(3, 3) in view
    assert sum(len(list(delta)) for delta in deltas) == 21
    view.verify()
    view.recall()
    edges.remove(Edge(2, 3))
    assert len(view) == 15
    db.close()


def test_a_loop_over_a_table_on_spark_is_there_from_the_start_and_goes_on_after_a_restart(
    offload: Any, session: Session, tmp_path: Folder
) -> None:
    def query(edges: Any) -> Any:
        return iterate(
            lambda r: (
                r.join(edges, on=lambda r, e: r.src == e.src)
                .group_by(lambda r, e: e.dst)
                .aggregate(Sum(lambda r, e: r.dst))
                .select(lambda node, total: Edge(node, total % 97))
            ),
            edges,
            times=12,
        )

    db = Database(offload=offload)
    rows = [Edge(n, (n * n + 1) % 5) for n in range(5)]
    edges = db.spark_table(offload.session.spark.createDataFrame(rows, "src long, dst long"), Edge)
    view = query(edges).materialize("rounds")
    assert "anew in each flush, by this engine in one Python worker" in view.explain()
    edges.add(Edge(2, 4))
    view.verify()
    db.close()

    fragment = fragment_of(lambda e, f, w: query(e))
    changes = [(rows, 1), ([Edge(2, 4), Edge(0, 2)], 1), (rows[:1], -1)]
    bag = Counter[Any]()
    for number, (some, weight) in enumerate(changes):
        remote = StateRemote(
            session, fragment, str(tmp_path), stable=True, makers=(recursion_step,)
        )  # as a later process makes it
        assert remote.resumed == (number - 1 if number else None)
        remote.apply(number, [(0, 0, row, weight) for row in some])
        for row in some:
            bag[row] += weight
        wanted = evaluate_part(fragment.node, {(LEVEL, 0): +bag})
        assert dict(remote.contents()) == {row: n for row, n in wanted.items() if n}
