"""Random queries over random histories equal their evaluation from scratch, after every commit."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optimizer.plans.properties import bindings
from reactive import Database, OrderedView
from tests import generate
from tests.replica import Replica

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@settings(max_examples=120, deadline=None, suppress_health_check=SLOW)
@given(data=st.data(), history=generate.HISTORIES)
def test_views_equal_their_query_after_every_commit(data: Any, history: Any) -> None:
    db = Database()
    bag, keyed = generate.tables(db)
    relations = [data.draw(generate.finals([bag, keyed])) for _ in range(2)]
    views = [relation.materialize() for relation in relations]
    replicas = [Replica(view) for view in views]
    for commit in history:
        with db.transaction():
            for change in commit:
                generate.apply(bag, keyed, change)
        for view, replica in zip(views, replicas, strict=True):
            view.verify()
            replica.check()
    late = [relation.materialize() for relation in relations]
    for view, other in zip(views, late, strict=True):
        other.verify()
        if not isinstance(view, OrderedView):
            assert Counter(dict(view.items())) == Counter(dict(other.items()))


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(data=st.data(), history=generate.HISTORIES)
def test_deleting_all_rows_returns_all_state_to_zero(data: Any, history: Any) -> None:
    db = Database()
    bag, keyed = generate.tables(db)
    view = data.draw(generate.finals([bag, keyed])).materialize()
    empty = view.stats().rows
    for commit in history:
        for change in commit:
            generate.apply(bag, keyed, change)
    with db.transaction():
        bag.clear()
        keyed.clear()
    assert view.stats().rows == empty
    view.verify()


class Probe:
    """A predicate that remembers the rows it was asked about."""

    def __init__(self, bindings: int) -> None:
        self.asked: list[Any] = []
        self.bindings = bindings

    def __call__(self, *row: Any) -> bool:
        self.asked.append(row if self.bindings > 1 else row[0])
        return True


@settings(max_examples=80, deadline=None, suppress_health_check=SLOW)
@given(data=st.data(), history=generate.HISTORIES)
def test_no_callable_sees_a_row_that_its_input_does_not_have(data: Any, history: Any) -> None:
    db = Database(optimize=False)
    bag, keyed = generate.tables(db)
    relation = data.draw(generate.finals([bag, keyed]))
    probe = Probe(bindings(relation.plan))
    whole, probed = relation.materialize(), relation.where(probe).materialize()
    for commit in history:
        before = Counter(dict(whole.items()))
        probe.asked.clear()
        with db.transaction():
            for change in commit:
                generate.apply(bag, keyed, change)
        allowed = before.keys() | dict(whole.items()).keys()
        assert set(probe.asked) <= allowed
    probed.close()
