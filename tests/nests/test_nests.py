"""Nested views against comprehensions over lists: drawn ones, and known faults of other systems."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given

from reactive import Bag, Database, ZSet
from tests.budget import examples
from tests.nests.drawn import NAN, Row
from tests.nests.play import play
from tests.nests.replica import Replica
from tests.nests.tuples import play_tuples
from tests.random_queries.drawn import SEEDS


@examples(120)
@given(seed=SEEDS)
def test_a_nest_is_what_comprehensions_give(seed: int) -> None:
    play(seed)


@examples(200)
@given(seed=SEEDS)
def test_a_nest_of_tuples_is_what_comprehensions_give(seed: int) -> None:
    play_tuples(seed)


def levels(db: Database) -> tuple[Any, Any, Any, Any]:
    """Three tables, whose rows each refer to a row of the table before, and a view of them."""
    a, b, c = (db.table(Row, name=name, key="id") for name in "abc")
    view = a.nest(
        x=lambda p: b.where(lambda q: q.tag == p.tag).nest(
            y=lambda q: c.where(lambda r: r.ref == q.id)
        )
    ).materialize()
    return a, b, c, view


def test_a_third_level_is_kept_where_two_parents_share_a_child() -> None:
    """Regression test for the fault of TanStack #1501 and #1685."""
    a, b, c, view = levels(Database())
    replica = Replica(view)
    a.add_all([Row(1, 0, "x"), Row(2, 0, "x")])
    b.add(Row(5, 0, "x"))
    c.add(Row(8, 5, None))
    c.add(Row(9, 5, None))
    both = [Row(8, 5, None), Row(9, 5, None)]
    assert [sorted(x.y) for row in view for x in row.x] == [both, both]
    a.delete(1)
    c.delete(8)
    a.add(Row(1, 0, "x"))
    assert [sorted(x.y) for row in view for x in row.x] == [both[1:], both[1:]]
    assert replica.rows == Bag(view)
    view.verify()


def inside(pairs: Any, p: Any) -> Any:
    return pairs.where(lambda q, r: q.ref == p.id).select(lambda q, r: r)


def test_a_join_inside_does_not_look_at_all_of_its_source() -> None:
    """Regression test for the fault of TanStack #1709."""
    touched = []
    for size in (50, 5_000):
        db = Database()
        a, b, c = (db.table(Row, name=name, key="id") for name in "abc")
        a.add_all([Row(n, 0, None) for n in range(20)])
        b.add_all([Row(n, n % 1_000, n) for n in range(size)])
        c.add_all([Row(n, 0, n) for n in range(size)])
        pairs = b.join(c, on=lambda q, r: q.tag == r.tag)
        view = a.nest(x=partial(inside, pairs)).materialize()
        b.update(Row(4, 4, 4), Row(4, 3, 4))
        c.update(Row(8, 0, 8), Row(8, 1, 8))  # the indexes are there from now on
        before = view.stats().touched
        b.update(Row(3, 3, 3), Row(3, 4, 3))
        a.add(Row(30, 0, None))
        c.update(Row(7, 0, 7), Row(7, 1, 7))
        touched.append(view.stats().touched - before)
        view.verify()
    assert touched[0] + 10 > touched[1]


@pytest.mark.parametrize("optimize", [True, False])
def test_a_parent_comes_after_its_children_goes_and_returns(optimize: bool) -> None:
    a, b, c, view = levels(Database(optimize=optimize))
    replica = Replica(view)
    c.add(Row(8, 5, None))
    b.add(Row(5, 0, "x"))
    assert not len(view)
    for _ in range(2):
        a.add(Row(1, 0, "x"))
        assert view[1].x == Bag([(Row(5, 0, "x"), Bag([Row(8, 5, None)]))])
        assert replica.rows == Bag(view)
        a.delete(1)
        assert not replica.rows
    b.delete(5)
    a.add(Row(1, 0, "x"))
    assert view[1].x == Bag([])
    b.add(Row(5, 0, "x"))
    assert [len(x.y) for x in view[1].x] == [1]
    view.verify()
    assert replica.rows == Bag(view)


def test_nan_of_a_row_further_out_is_equal_to_nothing() -> None:
    rows = Database().table(Row, name="rows")
    rows.add(Row(1, 2, float("nan")))
    view = rows.nest(
        x=lambda b: rows.where(lambda o: o.id == b.id).nest(
            y=lambda c: rows.where(lambda o: o.tag == b.tag and o.ref == c.ref)
        )
    ).materialize()
    ((_, inner),) = view
    assert [list(x.y) for x in inner] == [[]]


def test_a_row_that_goes_with_a_nan_had_nothing_inside() -> None:
    rows = Database().table(Row, name="rows")
    view = rows.nest(x=lambda b: rows.where(lambda o: o.tag == b.tag)).materialize()
    replica = Replica(view)
    rows.add(Row(1, 2, NAN))
    rows.remove(Row(1, 2, NAN))
    assert (replica.rows, replica.subscription.error) == (Bag(), None)


def test_a_row_of_which_a_copy_goes_is_found() -> None:
    rows = Database().table(Row, name="rows")
    view = rows.nest(x=lambda b: rows.order_by(lambda o: o.ref)).materialize()
    rows.add(Row(1, 2, None), 2)
    rows.remove(Row(1, 2, None))
    assert view[Row(1, 2, None)].x == (Row(1, 2, None),)


def test_a_row_of_negative_weight_is_not_found_and_hides_no_other() -> None:
    db = Database()
    a, gone = db.table(Row, name="a"), db.table(Row, name="gone")
    net = a.union_all(gone.negate())
    view = net.nest(x=lambda p: net.where(lambda q: q.ref == p.ref)).materialize()
    gone.add(Row(1, 2, None), 2)
    a.add(Row(3, 2, None))
    a.add(Row(1, 2, None))
    assert (len(view), view.keys(), view.get(Row(1, 2, None))) == (1, [Row(3, 2, None)], None)
    assert view.zset() == ZSet(
        {
            (Row(1, 2, None), Bag([Row(3, 2, None)])): -1,
            (Row(3, 2, None), Bag([Row(3, 2, None)])): 1,
        }
    )
    a.add(Row(1, 2, None), 2)
    assert len(view[Row(1, 2, None)].x) == 2
    view.verify()


@pytest.mark.parametrize("optimize", [True, False])
def test_a_key_with_nan_matches_nothing_where_it_reads_another_query(optimize: bool) -> None:
    rows = Database(optimize=optimize).table(Row, name="rows")
    rows.add_all([Row(1, 2, NAN), Row(2, 0, (NAN, 1)), Row(3, 0, (1, 1))])
    pairs = rows.join(
        rows,
        left_key=lambda r: (r.tag, any(o.id == r.id for o in rows)),
        right_key=lambda r: (r.tag, True),
    ).materialize()
    whole = rows.join(
        rows,
        left_key=lambda r: r.tag if any(o.id == r.id for o in rows) else None,
        right_key=lambda r: r.tag,
    ).materialize()
    view = rows.nest(
        x=lambda b: rows.join(
            rows, left_key=lambda o: o.tag if o.id == b.id else b.tag, right_key=lambda p: p.tag
        )
    ).materialize()
    assert sorted((p.id, q.id) for p, q in pairs) == [(2, 2), (3, 3)]
    assert [(p.id, q.id) for p, q in whole] == [(3, 3)]
    assert {row.id: len(x) for row, x in view} == {1: 0, 2: 0, 3: 3}
