"""The scenarios, on every operator: as single events, as one batch, and built late."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from reactive import Database, TableError
from tests.scenarios.histories import HISTORIES, Add, Event, History
from tests.scenarios.play import ONE, SIDES, Play, Side
from tests.scenarios.queries import QUERIES, Query
from tests.scenarios.rows import A, B, Item

every_query = pytest.mark.parametrize("query", QUERIES, ids=lambda q: q.name)
every_history = pytest.mark.parametrize("history", HISTORIES, ids=lambda h: h.name)


def sides(query: Query) -> Sequence[Side]:
    return SIDES if query.binary else (ONE,)


@every_history
@every_query
def test_single_events_and_one_batch_agree(query: Query, history: History) -> None:
    for side in sides(query):
        with Play(query, side, history.start) as singles, Play(query, side, history.start) as batch:
            singles.singles(history.events)
            batch.batch(history.events)
            assert dict(batch.view.items()) == dict(singles.view.items()), side.name
            assert batch.replica.net() == singles.replica.net(), side.name
            assert batch.replica.deltas <= 1, side.name


@every_query
def test_a_batch_from_nothing_gives_what_a_view_made_late_gives(query: Query) -> None:
    for side in sides(query):
        for history in HISTORIES:
            events: list[Event] = [*map(Add, history.start), *history.events]
            with Play(query, side, ()) as play:
                play.batch(events)
                with query.build(play.left, play.right).distinct().materialize() as late:
                    assert set(late) == set(play.view)
                play.view.close()
                play.replica.subscription.close()
                with query.build(play.left, play.right).materialize() as late:
                    assert Counter(late) == Counter(play.wanted())


@every_query
def test_removing_from_an_empty_table_is_refused_and_changes_nothing(query: Query) -> None:
    for side in sides(query):
        with Play(query, side, ()) as play:
            for n in play.moving:
                with pytest.raises(TableError):
                    play.tables()[n].remove(NEVER_THERE)
            play.check()
            assert play.replica.deltas == 0


@every_query
def test_updating_in_an_empty_table_is_refused_and_changes_nothing(query: Query) -> None:
    for side in sides(query):
        with Play(query, side, ()) as play:
            with pytest.raises(TableError):
                play.left.update(NEVER_THERE, A)
            with pytest.raises(TableError), play.db.transaction():
                play.left.add(B)
                play.right.update(NEVER_THERE, A)
            play.check()
            assert play.replica.deltas == 0


@every_query
def test_removing_everything_returns_all_state_to_zero(query: Query) -> None:
    db = Database()
    left, right = db.table(Item, name="left"), db.table(Item, name="right")
    view = query.build(left, right).materialize()
    before = view.stats().rows
    for table in (left, right):
        table.add_all([A, A, B])
    for table in (right, left):
        table.clear()
    assert view.stats().rows == before


@every_query
def test_a_failed_transaction_leaves_no_trace(query: Query) -> None:
    for side in sides(query):
        with Play(query, side, (A, A)) as play:
            with pytest.raises(ZeroDivisionError), play.db.transaction():
                play.left.add(B)
                play.left.remove(A)
                play.right.add(A)
                raise ZeroDivisionError
            play.check()
            assert play.replica.deltas == 0
            play.singles([Add(B), Add(A)])


@every_query
def test_a_subscription_to_the_query_hears_what_one_to_the_view_hears(query: Query) -> None:
    db = Database()
    left, right = db.table(Item, name="left"), db.table(Item, name="right")
    relation = query.build(left, right)
    view = relation.materialize()
    heard: list[dict[object, int]] = []
    told: list[dict[object, int]] = []
    with (
        relation.subscribe(lambda delta: heard.append(dict(delta.items()))),
        view.subscribe(lambda delta: told.append(dict(delta.items()))),
    ):
        for history in HISTORIES:
            left.add_all(history.start)
            right.add_all(history.start)
            for event in history.events:
                event.do(left)
                event.do(right)
            left.clear()
            right.clear()
    assert heard == told


NEVER_THERE = Item("never", 0)
