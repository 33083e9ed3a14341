"""Ways to rows that are not there: adding what a complete way misses makes the row appear."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from reactive import Count, Database, PlanError, TableError, fixpoint
from tests.budget import examples
from tests.random_queries.drawn import SEEDS, commit, draw


@given(seed=SEEDS)
@examples(1_000)
def test_what_a_complete_way_misses_makes_the_row(seed: int) -> None:
    drawn = draw(seed, steps=4)
    db = Database(keep=100)
    tables = drawn.open(db)
    view = drawn.relations(tables)[0].materialize()
    seen: dict[Any, int] = {}
    for made in drawn.script():
        commit(db, tables, made)
        now = dict(view.zset().items())
        seen |= now
        for row in [each for each in seen if now.get(each, 0) <= 0][:3]:
            for way in view.why_not(row):
                assert way.missing or way.reason
                if way.is_complete:
                    assert _appears(db, view, row, way), (drawn, row, str(way))
        assert dict(view.zset().items()) == now


def _appears(db: Database, view: Any, row: Any, way: Any) -> bool:
    """Return True if a row is there once the missing rows are added, or a table refuses them."""
    with db.suppose():
        try:
            for name, missing in way.missing:
                db.table(name).add(missing)
        except TableError:
            return True  # two missing rows have one key
        return bool(view.count(row) > 0)


def test_the_longest_prefix_that_holds_is_told() -> None:
    db = Database()
    edges = db.table(tuple[int, int], name="edges")
    edges.add_all([(1, 2), (3, 9)])
    reach = fixpoint(
        lambda reach: edges.union(
            reach.join(edges, on=lambda p, e: p[1] == e[0]).select(lambda p, e: (p[0], e[1]))
        )
    ).materialize("reach")
    ways = [str(way) for way in reach.why_not((1, 9))]
    assert ways[0] == "edges (1, 3) is missing; edges (3, 9) holds; reach (1, 2) holds" or (
        "edges (2, 9) is missing; reach (1, 2) holds" in ways
    )
    assert "edges (1, 9) is missing" in ways


def test_the_condition_that_fails_is_told() -> None:
    db = Database()
    orders = db.table(tuple[int, int], name="orders", key=lambda o: o[0])
    paid = db.table(int, name="paid")
    orders.add_all([(1, 5), (2, 50)])
    paid.add(2)
    large = orders.where(lambda o: o[1] > 10).anti_join(paid, on=lambda o, p: o[0] == p)
    view = large.select(lambda o: o[0]).materialize("large")
    assert "where o[1] > 10 is false for (1, 5)" in str(view.why_not(1))
    assert "paid has 2" in str(view.why_not(2))
    assert "no row of orders" in str(view.why_not(3))


def test_fields_may_be_asked_for() -> None:
    db = Database()
    db.execute("create table t (a int, b text)")
    db.execute("insert into t values (1, 'x')")
    view = db.sql("select a, b from t where a > 1").materialize()
    assert "is false" in str(view.why_not(b="x"))


def test_a_taken_key_is_told() -> None:
    db = Database()
    users = db.table(tuple[int, str], name="users", key=lambda u: u[0])
    users.add((1, "ann"))
    view = users.where(lambda u: u[1] != "eve").materialize()
    (way,) = view.why_not((1, "bob"))
    assert not way.is_complete and "with its key" in way.reason


def test_a_group_with_other_values_and_a_place_beyond_a_limit_are_told() -> None:
    db = Database()
    words = db.table(str, name="words")
    words.add_all(["a", "b", "c"])
    counts = words.group_by(len).aggregate(Count()).materialize()
    assert "the row of this group is (1, 3)" in str(counts.why_not((1, 2)))
    first = words.order_by(lambda w: w).limit(2).materialize()
    assert "number 3 of 3" in str(first.why_not("c"))


def test_a_row_or_fields_are_needed() -> None:
    view = Database().table(tuple[int, str], name="t").materialize()
    with pytest.raises(PlanError, match="takes a row, or values of fields"):
        view.why_not()
    with pytest.raises(PlanError, match="takes a row, or values of fields"):
        view.why_not((1, "a"), name=1)
