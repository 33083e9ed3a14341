"""The scenarios, on every operator: as single events, as one batch, and built late."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product

import pytest

from reactive import TableError
from tests.budget import share_of
from tests.scenarios.histories import HISTORIES, Add, Event, History
from tests.scenarios.play import ONE, SIDES, Play, Side, Stage
from tests.scenarios.queries import QUERIES, Query, different
from tests.scenarios.rows import A, B, Item

every_query = pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)


def stages(sides: Sequence[Side]) -> pytest.MarkDecorator:
    """Every query on each of these sides; a query of one table on its only one."""
    cases = [(q, side) for q in QUERIES for side in (sides if q.binary else (ONE,))]
    params = [pytest.param(case, id=f"{case[0].name}-{case[1].name}") for case in cases]
    return pytest.mark.parametrize("stage", params, indirect=True)


NEVER_THERE = Item("never", 0)


@pytest.fixture
def stage(request: pytest.FixtureRequest) -> Stage:
    return Stage(*request.param)


@contextmanager
def during(history: History) -> Iterator[None]:
    """Add the name of the history to an error."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"in history {history.name!r}")
        raise


@pytest.mark.long
@stages(SIDES)
def test_single_events_and_one_batch_agree(stage: Stage) -> None:
    for history in share_of(HISTORIES, stage.name):
        with during(history):
            with Play(stage, history.start) as singles:
                singles.singles(history.events)
                rows = dict(singles.view.zset().items())
            with Play(stage, history.start) as batch:
                batch.batch(history.events)
                assert dict(batch.view.zset().items()) == rows
            assert batch.replica.net() == singles.replica.net()
            assert batch.replica.deltas <= 1


@pytest.mark.long
@stages(SIDES[::2])
def test_a_batch_from_nothing_gives_what_a_view_made_late_gives(stage: Stage) -> None:
    for history in share_of(HISTORIES, stage.name):
        events: list[Event] = [*map(Add, history.start), *history.events]
        with during(history):
            with Play(stage, ()) as play:
                play.batch(events)
                with different(stage.relation).materialize() as above:
                    assert set(above) == set(play.view)
            with stage.relation.materialize() as late:
                assert Counter(late) == Counter(play.wanted())


@stages(SIDES[::2])
def test_removing_from_an_empty_table_is_refused_and_changes_nothing(stage: Stage) -> None:
    with Play(stage, ()) as play:
        for n in play.moving:
            with pytest.raises(TableError):
                play.tables()[n].remove(NEVER_THERE)
        play.check()
        assert play.replica.deltas == 0


@stages(SIDES[::2])
def test_updating_in_an_empty_table_is_refused_and_changes_nothing(stage: Stage) -> None:
    with Play(stage, ()) as play:
        with pytest.raises(TableError):
            stage.left.update(NEVER_THERE, A)
        with pytest.raises(TableError), play.db.transaction():
            stage.left.add(B)
            stage.right.update(NEVER_THERE, A)
        play.check()
        assert play.replica.deltas == 0


@pytest.mark.long
@stages(SIDES[::2])
def test_a_failed_transaction_leaves_no_trace(stage: Stage) -> None:
    with Play(stage, (A, A)) as play:
        with pytest.raises(ZeroDivisionError), play.db.transaction():
            stage.left.add(B)
            stage.left.remove(A)
            stage.right.add(A)
            raise ZeroDivisionError
        play.check()
        assert play.replica.deltas == 0
        play.singles([Add(B), Add(A)])


class Boom:
    """Raise while armed: all earlier steps of the commit must be undone."""

    armed = False

    def __call__(self, *row: object) -> int:
        if self.armed:
            raise ZeroDivisionError
        return 0


@pytest.mark.long
@stages(SIDES[::2])
def test_a_failure_above_an_operator_is_undone_in_it(stage: Stage) -> None:
    boom = Boom()
    above = stage.relation.select(boom)
    for history in share_of(HISTORIES, stage.name):
        with during(history), Play(stage, history.start) as play, above.materialize() as view:
            rows = play.view.stats().rows
            boom.armed = True
            try:
                with play.db.transaction():
                    for event, n in product(history.events, play.moving):
                        event.do(play.tables()[n])
            except ZeroDivisionError:
                boom.armed = False
                assert play.replica.deltas == 0
                there = sum(map(len, play.tables()))  # which an index may have been made of
                assert rows <= play.view.stats().rows <= rows + 2 * there
                play.check()
                play.batch(history.events)
            else:  # it was not called, since the operators below emitted nothing
                boom.armed = False
                for event, n in product(history.events, play.moving):
                    event.model(play.model[n])
                play.check()
            assert len(view) == len(play.view)


@every_query
def test_removing_everything_returns_all_state_to_zero(query: Query) -> None:
    stage = Stage(query, SIDES[0])
    view = stage.relation.materialize()
    before = view.stats().rows
    for table in (stage.left, stage.right):
        table.add_all([A, A, B])
    for table in (stage.right, stage.left):
        table.clear()
    assert view.stats().rows == before


@pytest.mark.long
@every_query
def test_a_subscription_to_the_query_hears_what_one_to_the_view_hears(query: Query) -> None:
    stage = Stage(query, SIDES[0])
    view = stage.relation.materialize()
    heard: list[dict[object, int]] = []
    told: list[dict[object, int]] = []
    with (
        stage.relation.subscribe(lambda delta: heard.append(dict(delta.items()))),
        view.subscribe(lambda delta: told.append(dict(delta.items()))),
    ):
        for history in HISTORIES:
            stage.left.add_all(history.start)
            stage.right.add_all(history.start)
            for event in history.events:
                event.do(stage.left)
                event.do(stage.right)
            stage.left.clear()
            stage.right.clear()
    assert heard == told
