"""Nests whose levels are offloaded, each as parts: they equal comprehensions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import pytest
from hypothesis import given

from reactive import Bag, Database, OffloadError
from reactive.engine.compiler.levels import levels_of
from reactive.engine.remote.fragments import Fragment
from reactive.engine.remote.remote import Remote
from reactive.engine.remote.remote_tree import RemoteTree
from tests.borders.offload.elsewhere import NO_VIEWS, InOneBucket, Together
from tests.borders.offload.test_overflow import settle
from tests.budget import examples
from tests.engine.remote.test_quiet import Telling
from tests.nests.drawn import TABLES, Draw, Row, expected, query
from tests.nests.play import Hearing, _key, _table, change
from tests.nests.replica import Replica
from tests.nests.test_nests import levels
from tests.random_queries.drawn import SEEDS


def is_there(view: Any) -> bool:
    """Return True if the levels of a view are offloaded."""
    return isinstance(view._node.inputs[0].operator, RemoteTree)


@pytest.mark.long
@examples(6)
@given(seed=SEEDS)
def test_a_nest_is_the_same_wherever_its_levels_are(seed: int) -> None:
    """Levels move, return and move again; a flush has several commits; some subscribe later."""
    random = Random(seed)
    db = Database(offload=Together(threshold_rows=random.choice((None, None, 3))))
    is_keyed = random.random() < 0.5
    tables = {name: _table(db, name, is_keyed=is_keyed) for name in TABLES}
    draw = Draw(random)
    shapes = (draw.shape(random.randrange(2, 5)) for _ in range(100))
    shape = next(shape for shape in shapes if has_levels(query(tables, shape)))
    for _ in range(random.randrange(6)):
        change(random, db, tables, is_keyed=is_keyed)
    view = query(tables, shape).materialize()
    hearing = None
    for _ in range(6):
        move(random, view)
        if hearing is None and random.random() < 0.4:
            name = next(iter(shape.inside))
            hearing = Hearing(view, (_key(random, shape, is_keyed=is_keyed), name))
        for _ in range(random.randrange(3)):
            change(random, db, tables, is_keyed=is_keyed)
        weights = expected({name: dict(t.zset().items()) for name, t in tables.items()}, shape)
        there = Bag(weights)
        assert (Bag(view), len(view)) == (there, len(there))
        assert dict(view.zset().items()) == weights
        view.verify()
        if hearing is not None:
            hearing.check()
        assert all(view.count(row) == count for row, count in weights.items())
        if not is_keyed:
            assert sorted(map(repr, view.keys())) == sorted({repr(row[0]) for row in there})
            assert all(view[row[0]] == row for row in there)
    db.close()


def has_levels(relation: Any) -> bool:
    """Return True if the nest has a level inside, not only values."""
    return levels_of(relation._engine.offloading.plan_of(relation._run())) is not None


def move(random: Random, view: Any) -> None:
    try:
        random.choice((view.offload, view.offload, view.recall, int))()
    except OffloadError as error:
        assert "cannot be moved" in str(error)


def rows(count: int, start: int = 0) -> list[Row]:
    return [Row(n, n % 10, "x") for n in range(start, start + count)]


def test_a_nest_that_outgrows_the_process_moves_by_itself_and_comes_back() -> None:
    """Its tables move with it, because nothing else reads them."""
    db = Database(offload=Together(threshold_rows=300))
    a, b, c, view = levels(db)
    a.add_all(rows(10))
    c.add_all(rows(40))
    assert not is_there(view)
    b.add_all(rows(200))
    settle(db)
    assert is_there(view) and len(db._offloading.spilling.stores) == 3
    names = [line.operator for line in db.offload_status()]
    assert names[0] == "level rows by row.id" and "level y by row.ref" in names
    assert "level x by q.id: in memory, apart" in view.explain()
    view.verify()
    assert view[3].x.count((Row(7, 7, "x"), Bag([Row(7, 7, "x"), *rows(40)[17::10]]))) == 1
    for n in range(200):
        b.delete(n)
        if n % 50 == 49:
            settle(db)
    a.replace_all([])
    c.replace_all([])
    for n in range(4):
        b.add_all(rows(40, 1_000 * n))
        settle(db)
        b.replace_all([])
        settle(db)
    assert not is_there(view)
    view.verify()


def test_bags_of_levels_elsewhere_are_not_kept() -> None:
    db = Database(offload=Together())
    a, b, _, view = levels(db)
    a.add_all(rows(5))
    view.offload()
    with view.subscribe(lambda delta: list(delta)):
        b.add_all(rows(100))
        assert len(view[0].x) == 100
        db.flush()
    b.add(Row(-1, 0, "x"))
    assert [len(row.x) for row in view] == [101] * 5
    operator = view._node.inputs[0].operator
    assert not any(level.bags for level in operator.levels)


class Later(Together):
    """An offload that reports the changes of parts later."""

    def begin(
        self, part: Fragment, name: str, views: Mapping[str, str] = NO_VIEWS, of: object = None
    ) -> Remote:
        remote = _Telling(part, self)
        self.begun.append(remote)
        return remote


class _Telling(Telling, InOneBucket):
    pass


def test_what_changes_in_levels_is_fetched_only_if_somebody_listens() -> None:
    """A subscriber that is added during a flush misses none of its changes."""
    offload = Later()
    db = Database(offload=offload)
    a, b, c, view = levels(db)
    a.add_all(rows(2))
    view.offload()
    for n in range(3):
        b.add(Row(n, 0, "x"))
        c.add(Row(n, n, None))
        db.flush()
        assert len(view[1].x) == n + 1
    parts = [remote.operator for remote in db._offloading.remotes]
    assert not any(part.fetched for part in parts)
    offload.let.clear()
    offload.applying.clear()
    a.delete(1)
    b.add(Row(5, 0, "x"))
    flushing = threading.Thread(target=db.flush)
    flushing.start()
    assert offload.applying.wait(30)
    heard: list[Any] = []
    subscription = view.subscribe(heard.append)
    offload.let.set()
    flushing.join()
    assert [edit.path for delta in heard for edit in delta.edits] == [(), (0, "x")]
    b.add(Row(6, 0, "x"))
    db.flush()
    assert [edit.path for edit in heard[1].edits] == [(0, "x")]
    subscription.close()
    view.verify()


def test_levels_that_cannot_be_reached_are_computed_in_the_process_again() -> None:
    offload = Together()
    db = Database(offload=offload)
    a, b, _, view = levels(db)
    a.add_all(rows(2))
    view.offload()
    b.add(Row(5, 0, "x"))
    offload.gone = True
    with pytest.raises(OffloadError, match=r"gone for good(.|\n)*not up to date: the view made"):
        len(view)
    assert [row.id for row in view.read(stale_ok=True)] == [0, 1]
    view.recall()
    assert not is_there(view) and len(view[1].x) == 1
    view.verify()


def test_a_delta_that_is_kept_is_as_of_its_flush() -> None:
    db = Database(offload=Together())
    a, b, _, view = levels(db)
    a.add(Row(1, 0, "x"))
    view.offload()
    heard: list[Any] = []
    subscription = view.subscribe(heard.append)
    for n in range(3):
        b.add(Row(n, 0, "x"))
        db.flush()
    view.recall()
    b.add(Row(9, 0, "x"))
    assert [len(delta.updated[0][1].x) for delta in heard] == [1, 2, 3, 4]
    subscription.close()


def test_levels_over_tables_that_are_elsewhere_are_there_from_the_start() -> None:
    db = Database(offload=Together())
    a, c = db.table(Row, name="a", key="id"), db.table(Row, name="c")
    b = db.spark_table(rows(9), Row, name="b", key="id")
    view = a.nest(
        x=lambda p: b.where(lambda q: q.ref == p.id).nest(
            y=lambda q: c.where(lambda r: r.ref == q.id)
        )
    ).materialize()
    assert is_there(view)
    copy = Replica(view)
    acts: tuple[Callable[[], object], ...] = (
        lambda: a.add_all(rows(3)),
        lambda: c.add_all(rows(5, 20)),
        lambda: b.add(Row(21, 1, None)),
        lambda: b.remove(Row(0, 0, "x")),
        lambda: a.delete(2),
        lambda: c.add(Row(7, 21, None)),
    )
    for act in acts:
        act()
        db.flush()
        view.verify()
        assert (copy.rows, copy.subscription.error) == (Bag(view), None)
    assert sorted(len(found.y) for row in view for found in row.x) == [1, 1]
