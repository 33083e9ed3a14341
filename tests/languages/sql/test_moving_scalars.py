"""Comparisons with the only row of a query: that row is the one side of a join by ranges."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database
from tests.budget import examples
from tests.engine.operators.test_moved_bounds import MANY, touched_by
from tests.thresholds import thresholds

START = datetime(2024, 1, 1)


@dataclass(frozen=True)
class Event:
    id: int
    at: datetime | None
    price: float | None


@dataclass(frozen=True)
class Now:
    value: datetime | None
    limit: float | None


QUERIES = {
    "age": "(select value from now) - at < interval '2' hour",
    "age, other way": "interval '2' hour > (select value from now) - at",
    "one more condition": "(select value from now) - at >= interval '2' hour and id <> 3",
    "a limit": 'price > (select "limit" from now)',
    "the greatest": 'price > (select max("limit") from now)',
}
TIMES = [None, *[START + timedelta(hours=n) for n in (0, 1, 2, 2.5, 24, 26)]]
ODD_TIMES = [*TIMES, START.replace(tzinfo=UTC), (START + timedelta(hours=3)).replace(tzinfo=UTC)]
NUMBERS = [None, 0.1, 0.2, 0.1 + 0.2, 0.3, 1.0, float("nan"), float("inf")]


def made(name: str) -> tuple[Database, Any, Any, Any]:
    db = Database()
    events, now = db.table(Event, name="events", key="id"), db.table(Now, name="now")
    view = db.sql(f"select id from events where {QUERIES[name]}").materialize()
    return db, events, now, view


@pytest.mark.parametrize("name", QUERIES)
@examples(25)
@given(st.data())
def test_a_view_is_as_from_scratch(name: str, data: st.DataObject) -> None:
    """The row of `now` moves, is missing, or has NULL."""
    moments, numbers = st.sampled_from(ODD_TIMES), st.sampled_from(NUMBERS)
    event = st.builds(Event, st.integers(0, 9), moments, numbers)
    edit = event | event | st.none() | st.builds(Now, moments, numbers)
    with thresholds({MANY: 1}):
        db, events, now, view = made(name)
        for commit in data.draw(st.lists(st.lists(edit, max_size=5), min_size=2, max_size=8)):
            with db.transaction():
                for row in commit:
                    if isinstance(row, Event):
                        events.discard(row) if row in events else events.upsert(row)
                        continue
                    now.clear()
                    if row is not None:
                        now.add(row)
            view.verify()


@pytest.mark.parametrize("name", QUERIES)
def test_a_row_that_moves_touches_the_rows_between(name: str) -> None:
    touched = []
    for count in (600, 6_000):
        _, events, now, view = made(name)
        events.add_all(Event(n, START + timedelta(minutes=n), n + 0.5) for n in range(count))
        rows = [Now(START + timedelta(minutes=240 + n), 240.0 + n) for n in (0, 3, 1)]
        now.add(rows[0])
        now.update(rows[0], rows[1])  # rows of a key get an order
        touched.append(touched_by(view, partial(now.update, rows[1], rows[2])))
        view.verify()
    assert max(touched) < 60, touched
