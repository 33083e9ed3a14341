"""Nested views in an order: replicas that apply only edits.

Edits state the changes inside rows that keep their place.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given

from reactive import Bag, Database, Delta, Edit, PlanError
from reactive.engine.dataflow.merge_deltas import DeltaAccumulator
from tests.budget import examples
from tests.nests.drawn import TABLES, Draw, Row, Shape, expected, order, query
from tests.nests.play import COMMITS, change
from tests.nests.replica import Replica, edited
from tests.random_queries.drawn import SEEDS

KEYS: dict[tuple[int, bool], Any] = {
    (1, False): lambda c, x: order(c),
    (2, False): lambda c, x, y: order(c),
    (1, True): lambda c, x: (len(x), order(c)),
    (2, True): lambda c, x, y: (len(x), order(c)),
}
"""Orders by the number of inner levels, and by True if the order reads these."""


@examples(60)
@given(seed=SEEDS)
def test_a_replica_of_edits_has_the_rows_in_their_order(seed: int) -> None:
    random = Random(seed)
    db = Database(optimize=random.random() < 0.75)
    is_keyed = random.random() < 0.4
    tables: dict[str, Any] = {
        name: db.table(Row, name=name, key="id" if is_keyed else None) for name in TABLES
    }
    shape = Draw(random).shape(random.randrange(2, 4))
    key = KEYS[len(shape.inside), random.random() < 0.4]
    limit = random.choice((None, 1, 3))
    for _ in range(random.randrange(3)):
        change(random, db, tables, is_keyed=is_keyed)
    view = in_order(query(tables, shape), key, limit).materialize()
    replica, deltas = Replica(view, ()), list[Delta[Any]]()
    late, held = Replica(view, ()), view.subscribe(deltas.append)
    late.subscription.close()
    for _ in range(COMMITS):
        change(random, db, tables, is_keyed=is_keyed)
        rows = {name: list(table) for name, table in tables.items()}
        assert tuple(view) == wanted(rows, shape, key, limit)
        assert (replica.rows, replica.subscription.error) == (tuple(view), None)
        if random.random() < 0.5:
            read(late, deltas)
    read(late, deltas)
    assert late.rows == tuple(view) and held.error is None


def in_order(made: Any, key: Any, limit: int | None) -> Any:
    made = made.order_by(key)
    return made if limit is None else made.limit(limit)


def wanted(rows: dict[str, list[Row]], shape: Shape, key: Any, limit: int | None) -> Any:
    there = expected({name: Counter(table) for name, table in rows.items()}, shape)
    found = sorted(Counter(there).elements(), key=lambda row: key(*row))
    return tuple(found[:limit])


def read(late: Replica, deltas: list[Delta[Any]]) -> None:
    """Deliver pending deltas to a replica."""
    for delta in deltas:
        late.receive(delta)
    deltas.clear()


@pytest.mark.parametrize("limit", [None, 2])
def test_a_change_inside_of_a_row_that_stays_in_its_place_is_told_by_its_path(limit: Any) -> None:
    db = Database()
    a, b = (db.table(Row, name=name, key="id") for name in "ab")
    nest = a.nest(x=lambda p: b.where(lambda q: q.ref == p.id))
    by_id = in_order(nest, lambda p, x: p.id, limit).materialize()
    by_size = in_order(nest, lambda p, x: -len(x), limit).materialize()
    a.add_all([Row(1, 0, None), Row(2, 0, None)])
    told: list[Any] = []
    held = [
        view.subscribe(lambda delta: told.append((delta.edits, delta.updated)))
        for view in (by_id, by_size)
    ]
    b.add(Row(5, 2, None))
    old: Any = (Row(2, 0, None), Bag([]))
    new: Any = (Row(2, 0, None), Bag([Row(5, 2, None)]))
    inside = (Edit(None, Row(5, 2, None), 1, path=(2, "x")),)
    moved = (Edit(1, old, -1), Edit(0, new, 1))
    assert told == [(inside, ((old, new),)), (moved, ((old, new),))]
    b.remove(Row(5, 2, None))
    assert not any(subscription.error for subscription in held)


def test_deltas_of_several_commits_are_merged_whoever_has_read_their_edits() -> None:
    db = Database()
    a, b = (db.table(Row, name=name, key="id") for name in "ab")
    nest = a.nest(x=lambda p: b.where(lambda q: q.ref == p.id))
    begins: Any = {nest: Bag([]), nest.order_by(lambda p, x: p.id): ()}
    for made, begin in begins.items():
        a.clear()
        told: list[Delta[Any]] = []
        with made.subscribe(told.append, snapshot=True):
            a.add_all([Row(1, 0, None), Row(2, 0, None)])
            b.upsert(Row(5, 1, None))
            b.upsert(Row(5, 2, None))
        assert all(delta.edits for delta in told[1:])
        merged = DeltaAccumulator(told[0])
        for delta in told[1:]:
            merged.add(delta)
        found = merged.delta()
        assert found is not None
        replica = Replica(made.materialize(), begin)
        rows = begin
        for edit in found.edits:
            rows = edited(rows, edit.path, edit, {})
        assert rows == replica.rows


def test_a_view_in_an_order_tells_what_happens_inside_of_one_row() -> None:
    db = Database()
    a, b = (db.table(Row, name=name, key="id") for name in "ab")
    nest = a.nest(x=lambda p: b.where(lambda q: q.ref == p.id))
    view = nest.order_by(lambda p, x: -p.id).limit(2).materialize()
    told: list[Any] = []
    with view.subscribe(lambda delta: told.append((delta.added, delta.removed)), path=(2, "x")):
        b.add(Row(5, 2, None))
        a.add_all([Row(1, 0, None), Row(2, 0, None)])
        b.add_all([Row(6, 2, "t"), Row(7, 1, None)])
        a.add_all([Row(3, 0, None), Row(4, 0, None)])
    five, six = Row(5, 2, None), Row(6, 2, "t")
    assert [(sorted(added), sorted(gone)) for added, gone in told] == [
        ([five], []),
        ([six], []),
        ([], [five, six]),
    ]
    assert [row["id"] for row in view.to_python()] == [4, 3]
    with pytest.raises(PlanError, match="no 'y' inside"):
        view.subscribe(print, path=(2, "y"))


def test_rows_as_they_were_keep_their_names_and_their_order() -> None:
    db = Database()
    a, b = (db.table(Row, name=name, key="id") for name in "ab")
    nest = a.nest(x=lambda p: b.where(lambda q: q.ref == p.id))
    ordered = nest.order_by(lambda p, x: -p.id)
    view = ordered.materialize()
    first = view.limit(1).materialize()
    was, last = nest.previous().materialize(), ordered.limit(1).previous().materialize()
    every = [ordered.previous().materialize(), view.previous().materialize()]
    a.add_all([Row(1, 0, None), Row(2, 0, None)])
    b.add(Row(5, 2, None))
    b.add(Row(6, 2, None))
    assert [len(row.x) for row in [*first, was[2], *last]] == [2, 1, 1]
    for each in every:
        assert [(row.id, len(row.x)) for row in each] == [(2, 1), (1, 0)]
    for each in (first, was, last, *every):
        each.verify()


@pytest.mark.parametrize("kind", ["relation", "view", "ordered"])
def test_a_second_copy_of_a_row_changes_nothing_inside_of_it(kind: str) -> None:
    db = Database()
    a, b, c = (db.table(Row, name=name) for name in "abc")
    nest = a.nest(
        x=lambda p: b.where(lambda q: q.ref == p.id).nest(
            y=lambda q: c.where(lambda r: r.ref == q.id).order_by(order)
        )
    )
    made = nest.order_by(lambda p, x: p.id) if kind == "ordered" else nest
    view: Any = made if kind == "relation" else made.materialize()
    one, two, three = Row(1, 0, None), Row(2, 1, None), Row(3, 2, None)
    a.add(one)
    told: list[Any] = []
    paths: list[Any] = [(one, "x"), (one, "x", two, "y")]
    held = [
        view.subscribe(lambda delta: told.append((delta.added, delta.removed)), path=path)
        for path in paths
    ]
    inner = (two, (three,))
    heard: dict[str, list[Any]] = {
        "one": [],
        "two": [((inner,), ()), ((three,), ())],
        "two again": [((inner,), ())],
        "without a copy": [((), (inner,))],
        "one again": [],
        "without one": [((), (inner,)), ((), (three,))],
        "one twice": [((inner,), ()), ((three,), ())],
    }

    def step(name: str) -> None:
        match name:
            case "one":
                a.add(one)
                c.add(three)
            case "two" | "two again":
                b.add(two)
            case "without a copy":
                a.remove(one)
                b.remove(two)
            case "without one":
                a.remove_all([one, one])
            case _:
                a.add(one, 1 if name == "one again" else 2)

    for name, wanted_ in heard.items():
        told.clear()
        step(name)
        assert told == wanted_, name
    assert not any(subscription.error for subscription in held)
