"""Nests as trees: deltas read late or never, failing commits, inserted and deleted labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from threading import Thread
from typing import Any, NamedTuple

import pytest

from optimizer.plans import shredding
from reactive import Bag, Database, Delta
from tests.thresholds import THRESHOLDS, thresholds


class Top(NamedTuple):
    id: int
    link: int


class Part(NamedTuple):
    id: int
    top: int
    link: int


class Leaf(NamedTuple):
    part: int
    what: int


@pytest.fixture(params=["lowest", "as it is", "highest"], autouse=True)
def large(request: pytest.FixtureRequest) -> Iterator[None]:
    name = "optimizer.plans.shredding.LARGE"
    found = THRESHOLDS[name]
    values = {"lowest": found.lowest, "as it is": shredding.LARGE, "highest": found.highest}
    with thresholds({name: values[request.param]}):
        yield


class Rows:
    """Three tables; parts with one label are shown by all tops that link to it."""

    def __init__(self, *, optimize: bool = True) -> None:
        self.db = Database(optimize=optimize)
        self.tops = self.db.table(Top, name="tops")
        self.parts = self.db.table(Part, name="parts")
        self.leaves = self.db.table(Leaf, name="leaves")
        self.view: Any = self.query().materialize()

    def query(self) -> Any:
        return self.tops.nest(
            parts=lambda t: self.parts.where(lambda p: p.top == t.link).nest(
                leaves=lambda p: self.leaves.where(lambda x: x.part == p.link),
                twins=lambda p: self.parts.where(lambda q: q.link == p.id),
            )
        )

    def expected(self) -> Bag[Any]:
        return Bag(
            (
                top,
                Bag(
                    (
                        part,
                        Bag(x for x in self.leaves if x.part == part.link),
                        Bag(q for q in self.parts if q.link == part.id),
                    )
                    for part in self.parts
                    if part.top == top.link
                ),
            )
            for top in self.tops
        )

    def tree(self) -> Any:
        (found,) = [
            n.operator for n in self.db._engine.graph.nodes() if hasattr(n.operator, "settle")
        ]
        return found


def change(rows: Rows, random: Random) -> None:
    """Insert, delete or update up to three rows."""
    makes: dict[Any, Callable[[], Any]] = {
        rows.tops: lambda: Top(random.randrange(2), random.randrange(2)),
        rows.parts: lambda: Part(random.randrange(3), random.randrange(2), random.randrange(2)),
        rows.leaves: lambda: Leaf(random.randrange(2), random.randrange(3)),
    }
    for _ in range(random.choice((1, 1, 3))):
        table: Any = random.choice(list(makes))
        held = list(table)
        if held and random.random() < 0.4:
            table.remove(random.choice(held))
        elif held and random.random() < 0.3:
            table.update(random.choice(held), makes[table]())
        else:
            table.add(makes[table]())


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
def test_deltas_that_are_read_late_say_what_those_say_that_are_read_at_once(seed: int) -> None:
    random, rows = Random(seed), Rows()
    at_once: list[Any] = []
    kept: list[Delta[Any]] = []
    edited: list[Delta[Any]] = []

    def read(delta: Delta[Any]) -> None:
        at_once.append((delta.zset, Bag(map(repr, delta.edits)), Bag(delta.updated)))

    def edits_only(delta: Delta[Any]) -> None:
        assert delta.edits
        edited.append(delta)

    held = [rows.view.subscribe(each) for each in (read, kept.append, edits_only)]
    before = rows.view.zset()
    for _ in range(14):
        with rows.db.transaction():
            change(rows, random)
        if random.random() < 0.5:
            assert Bag(rows.view) == rows.expected()
        rows.view.verify()
        assert rows.db.version >= len(kept)
    for others in (kept, edited):
        assert [delta.zset for delta in others] == [zset for zset, _, _ in at_once]
    assert [Bag(map(repr, delta.edits)) for delta in edited] == [edits for _, edits, _ in at_once]
    assert [Bag(delta.updated) for delta in kept] == [updated for _, _, updated in at_once]
    for delta in kept:
        before = before + delta.zset
    assert before == rows.view.zset() and held[0].error is None


def test_a_commit_that_fails_leaves_what_is_kept_as_it_was() -> None:
    random, rows = Random(7), Rows()
    said: list[Any] = []
    held = rows.view.subscribe(lambda delta: said.append(delta.zset), snapshot=True)
    raising = rows.leaves.where(lambda x: 1 // (x.what - 99) < 9).materialize()
    more = rows.view.where(lambda top, parts: len(list(parts)) > 0).materialize()
    for _ in range(20):
        with rows.db.transaction():
            change(rows, random)
        top = next(iter(rows.tops), None)
        assert top is None or rows.view.get(top) is not None
        before, told = rows.expected(), len(said)
        with pytest.raises(ZeroDivisionError), rows.db.transaction():
            change(rows, random)
            rows.leaves.add(Leaf(random.randrange(2), 99))
        assert Bag(rows.view) == before == rows.expected() and len(said) == told
        assert all(rows.view[each.row] == each for each in rows.view)
        rows.view.verify()
        more.verify()
    assert (
        sum(said[1:], said[0]) == rows.view.zset() and held.error is None and raising.name is None
    )


def test_labels_that_nobody_shows_keep_no_bag_and_tell_nothing() -> None:
    rows = Rows()
    told: list[Delta[Any]] = []
    held = rows.view.subscribe(told.append)
    rows.leaves.add_all([Leaf(1, n) for n in range(100)])
    rows.parts.add(Part(0, 0, 1))
    assert not told and not len(rows.view)
    rows.tops.add(Top(0, 0))
    (part,) = rows.view[Top(0, 0)].parts
    assert len(part.leaves) == 100 and len(told) == 1
    rows.tops.remove(Top(0, 0))
    rows.parts.remove(Part(0, 0, 1))
    rows.leaves.add(Leaf(1, 100))
    assert not any(level.bags for level in rows.tree().levels[1:])
    rows.parts.add(Part(0, 0, 1))
    assert len(told) == 2
    rows.tops.add(Top(0, 0))
    (part,) = rows.view[Top(0, 0)].parts
    assert len(part.leaves) == 101 and held.error is None


@pytest.mark.long
def test_a_change_inside_touches_a_row_of_each_index_whatever_there_is() -> None:
    touched = []
    for size in (10, 200):
        rows = Rows()
        rows.tops.add_all([Top(n, n % 5) for n in range(size)])
        rows.parts.add_all([Part(n, n % 5, 1 + n) for n in range(size)])
        rows.leaves.add_all([Leaf(1, n) for n in range(size)])
        before = rows.view.stats().touched
        rows.leaves.add(Leaf(1, -1))
        touched.append(rows.view.stats().touched - before)
        rows.view.verify()
    assert touched[0] == touched[1] <= 3


def test_readers_in_other_threads_see_whole_commits() -> None:
    rows = Rows()
    wrong: list[Any] = []
    kept: list[Delta[Any]] = []
    rows.tops.add(Top(0, 0))
    rows.parts.add(Part(0, 0, 0))
    held = rows.view.subscribe(kept.append)
    is_over = False

    def read() -> None:
        while not is_over:
            (part,) = rows.view[Top(0, 0)].parts
            wrong.extend([part] * (len(part.leaves) % 2))
            wrong.extend(delta for delta in kept[-2:] if len(delta.updated) != 1)

    thread = Thread(target=read)
    thread.start()
    for n in range(150):
        with rows.db.transaction():
            rows.leaves.add_all([Leaf(0, n), Leaf(0, -n - 1)])
    is_over = True
    thread.join()
    assert not wrong and held.error is None
    rows.view.verify()


def test_it_is_the_same_without_rules() -> None:
    plain, rows = Rows(optimize=False), Rows()
    for step in range(12):
        change(plain, Random(step))
        change(rows, Random(step))
        assert Bag(plain.view) == Bag(rows.view)


def test_a_bag_that_is_read_before_the_delta_that_changed_it_is_the_one_of_now() -> None:
    rows = Rows()
    rows.tops.add(Top(0, 0))
    rows.parts.add(Part(0, 0, 1))
    rows.leaves.add_all([Leaf(1, n) for n in range(100)])
    told: list[Delta[Any]] = []
    with rows.view.subscribe(told.append):
        rows.leaves.add(Leaf(1, 100))
        (part,) = rows.view[Top(0, 0)].parts
    ((old, new),) = told[0].updated
    assert [len(part.leaves) for row in (old, new) for part in row.parts] == [100, 101]
    assert len(part.leaves) == 101
