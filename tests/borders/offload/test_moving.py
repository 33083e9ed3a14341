"""Views equal their query wherever their parts are, and whenever they move."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any
from weakref import ReferenceType, ref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Count, Database, OffloadError, Sum, fixpoint, iterate
from reactive.engine.dataflow import snapshot
from reactive.engine.remote.remote import Entry
from reactive.engine.remote.remote_operator import WaitingEntries
from tests.borders.offload.elsewhere import Elsewhere, Failing
from tests.budget import examples
from tests.engine.remote.in_memory import InMemory
from tests.random_queries.drawn import SEEDS, commit, draw
from tests.replica import Replica


@pytest.mark.long
@examples(200)
@given(seed=SEEDS, optimize=st.booleans())
def test_random_queries_over_random_moves(seed: int, optimize: bool) -> None:
    drawn, random = draw(seed, count=2), Random(seed)
    db = Database(offload=Elsewhere(), optimize=optimize)
    tables = drawn.open(db)
    relations = drawn.relations(tables)
    views = [relation.materialize() for relation in relations]
    replicas = [Replica(view) for view in views]
    for calls in drawn.script():
        for view in views:
            move(view, random.choice(("move", "recall", "stay", "stay")))
        commit(db, tables, calls)
        if random.random() < 0.5:
            for view, replica in zip(views, replicas, strict=True):
                view.verify()
                replica.check()
    late = [relation.materialize() for relation in relations]
    for view in [*views, *late]:
        view.verify()


def move(view: Any, how: str) -> None:
    """Offload a view if possible, or recall it."""
    match how:
        case "move":
            try:
                view.offload()
            except OffloadError as error:
                assert "cannot be moved" in str(error)
        case "recall":
            view.recall()


@dataclass(frozen=True, slots=True)
class Word:
    text: str
    size: int


@dataclass(frozen=True, slots=True)
class Stat:
    total: int
    size: int


@pytest.mark.parametrize("optimize", [True, False])
def test_named_rows_and_queries_of_views_move(optimize: bool) -> None:
    db = Database(offload=Elsewhere(), optimize=optimize)
    words = db.table(Word, name="words")
    groups = words.group_by("size")
    named = groups.aggregate(n=Count(), total=Sum("size")).materialize()
    own: Any = groups.aggregate(total=Sum("size"), as_=Stat).materialize()
    distinct = words.select(lambda w: w.size).distinct().materialize()
    large = named.where(lambda r: r.n > 1).materialize()
    views: list[Any] = [named, own, distinct, large]
    words.add_all([Word("to", 2), Word("be", 2), Word("not", 3)])

    def check(two: int) -> None:
        assert named == {2: (two, 2 * two), 3: (1, 3)} and named[2].total == 2 * two
        assert own[2] == Stat(2 * two, 2) and 3 in own and own.get(9) is None
        assert sorted(distinct) == [2, 3] and large == [(2, two, 2 * two)]
        for view in views:
            view.verify()

    check(2)
    for two, view in enumerate((named, own, distinct), 3):
        view.offload()
        words.add(Word("or" * two, 2))
        check(two)
    named.recall()
    own.recall()
    words.remove(Word("or" * 5, 2))
    check(4)


def test_a_join_of_an_iteration_moves() -> None:
    db = Database(offload=Elsewhere())
    table: Any = db.table(tuple, name="t")
    rounds = iterate(lambda r: r.where(lambda x: x[0] > 0), table, times=2)
    keys: Any = {"left_key": lambda a: a[0], "right_key": lambda b: b[1]}
    view = rounds.join(table, **keys).materialize()
    view.offload()
    table.add_all([(1, 2), (2, 1), (0, 1)])
    view.verify()
    assert len(db.offload_status()) == 1
    view.recall()
    assert not db.offload_status()
    view.verify()


def test_explain_says_whether_a_recursion_can_move_and_when_it_should() -> None:
    db = Database(offload=Elsewhere())
    edges = db.table(tuple[int, int], name="edges")
    reach = fixpoint(
        lambda r: edges.union(
            r.join(edges, on=lambda p, e: p[1] == e[0]).select(lambda p, e: (p[0], e[1]))
        )
    )
    view = reach.materialize("reach")
    edges.add_all([(1, 2), (2, 3)])
    said = view.explain()
    assert "can move, by partitions of r[0]" in said and "this is the better place" in said
    same = fixpoint(
        lambda r: edges.union(
            edges.join(r, on=lambda a, s: a[0] == s[0])
            .join(edges, on=lambda a, s, b: s[1] == b[0])
            .select(lambda a, s, b: (a[1], b[1]))
        )
    ).materialize("same")
    said = same.explain()
    assert "can move, by rounds" in said and "this is the better place" in said
    with pytest.raises(OffloadError, match="cannot be done in columns"):
        same.offload()


def test_explain_says_that_few_rounds_move_as_operators_do_and_many_as_one() -> None:
    db = Database(offload=Elsewhere())
    edges = db.table(tuple[int, int], name="edges")

    def step(paths: Any) -> Any:
        joined = paths.join(edges, on=lambda p, e: p[1] == e[0])
        return joined.select(lambda p, e: (p[0], e[1]))

    assert "its rounds are written out" in iterate(step, edges, times=2).explain()
    for loop in (iterate(step, edges, until="settled"), iterate(step, edges, times=20)):
        assert "can move, to one Python worker" in loop.explain()


def test_what_callables_prepare_is_handed_over_in_pieces_and_never_waits_as_a_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes, stage, waiting = list[int](), Failing.stage, list[int]()

    def staged(self: Failing, number: int, entries: Any) -> None:
        sizes.append(len(entries))
        stage(self, number, entries)

    def taken(self: WaitingEntries, entries: list[Any]) -> None:
        waiting.append(len(entries))

    monkeypatch.setattr(Failing, "stage", staged)
    db = Database(offload=Elsewhere())
    words = db.table(Word, name="words")
    view = words.group_by(lambda w: w.text).aggregate(Sum(lambda w: w.size)).materialize()
    words.add_all(Word("abc"[n % 3], n) for n in range(20))
    with monkeypatch.context() as watched:
        watched.setattr(WaitingEntries, "take", taken)
        view.offload()
    assert sum(sizes) == 20 and max(sizes) == 3 and sum(waiting) == 0
    words.add(Word("a", 100))
    view.verify()


def test_rows_that_a_query_makes_are_handed_over_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "PIECE", 10)
    made: list[ReferenceType[frozenset[int]]] = []
    there: list[int] = []
    stage = InMemory.stage

    def row(number: int) -> frozenset[int]:
        made.append(ref(found := frozenset([number])))
        return found

    def staged(self: InMemory, number: int, entries: Sequence[Entry]) -> None:
        gc.collect()
        there.append(sum(one() is not None for one in made))
        stage(self, number, pickle.loads(pickle.dumps(entries)))

    monkeypatch.setattr(InMemory, "stage", staged)
    db = Database(offload=Elsewhere())
    numbers = db.table(int, name="numbers")
    view = numbers.select(row).distinct().materialize()
    numbers.add_all(range(100))
    view.offload()
    assert len(there) == 10 and max(there) <= 100 + 2 * 10, "those of the process, and two pieces"
    assert sorted(view, key=sorted) == [frozenset([number]) for number in range(100)]
