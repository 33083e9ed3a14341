"""Random queries over random histories equal their evaluation from scratch, after every commit."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given

from optimizer.plans.properties import bindings
from reactive import Database, OrderedView
from tests.budget import examples
from tests.random_queries.drawn import SEEDS, commit, draw, make, some_tuples
from tests.replica import Replica


@examples(150)
@given(seed=SEEDS)
def test_views_equal_their_query_after_every_commit(seed: int) -> None:
    drawn, db = draw(seed, count=2, tables=some_tuples), Database()
    tables = drawn.open(db)
    relations = drawn.relations(tables)
    views = [relation.materialize() for relation in relations]
    replicas = [Replica(view) for view in views]
    for calls in drawn.script():
        commit(db, tables, calls)
        for view, replica in zip(views, replicas, strict=True):
            view.verify()
            replica.check()
    late = [relation.materialize() for relation in relations]
    for view, other in zip(views, late, strict=True):
        other.verify()
        if not isinstance(view, OrderedView):
            assert Counter(dict(view.zset().items())) == Counter(dict(other.zset().items())), drawn


@examples(80)
@given(seed=SEEDS)
def test_deleting_all_rows_returns_all_state_to_zero(seed: int) -> None:
    drawn, db = draw(seed, tables=some_tuples), Database()
    tables = drawn.open(db)
    (view,) = (relation.materialize() for relation in drawn.relations(tables))
    empty = view.stats().rows
    for calls in drawn.script():
        make(tables, calls)
    with db.transaction():
        for table in tables:
            table.clear()
    assert view.stats().rows == empty, drawn
    view.verify()


class Probe:
    """A predicate that records its rows."""

    def __init__(self, bindings: int) -> None:
        self.asked: list[Any] = []
        self.bindings = bindings

    def __call__(self, *row: Any) -> bool:
        self.asked.append(row if self.bindings > 1 else row[0])
        return True


@examples(100)
@given(seed=SEEDS)
def test_no_callable_sees_a_row_that_its_input_does_not_have(seed: int) -> None:
    drawn, db = draw(seed), Database(optimize=False)
    tables = drawn.open(db)
    (relation,) = drawn.relations(tables)
    probe = Probe(bindings(relation.plan))
    whole, probed = relation.materialize(), relation.where(probe).materialize()
    for calls in drawn.script():
        before = Counter(dict(whole.zset().items()))
        probe.asked.clear()
        commit(db, tables, calls)
        allowed = before.keys() | dict(whole.zset().items()).keys()
        assert set(probe.asked) <= allowed, drawn
    probed.close()
