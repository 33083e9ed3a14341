"""The first rows of an order whose other rows are elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database, OffloadError
from reactive.engine.remote import remote
from tests.borders.offload.elsewhere import Elsewhere
from tests.budget import examples
from tests.replica import Replica

ROWS = st.tuples(st.integers(-3, 3), st.sampled_from([0, 1, 2, None, "a"]))
HISTORIES = st.lists(st.lists(st.tuples(ROWS, st.integers(-3, 3)), max_size=6), max_size=8)


@examples(150)
@given(
    history=HISTORIES,
    descending=st.booleans(),
    limit=st.integers(0, 4),
    offset=st.integers(0, 3),
    reserve=st.integers(1, 3),
)
def test_the_first_rows_are_right_after_every_flush(
    history: Any, descending: bool, limit: int, offset: int, reserve: int
) -> None:
    with patch.object(remote, "RESERVE", reserve):
        db = Database(offload=Elsewhere())
        table: Any = db.table(tuple, name="rows")
        ordered = table.order_by(lambda row: row[0], descending=descending)
        view = ordered.limit(limit, offset).materialize()
        table.add_all([(n % 5, n) for n in range(12)])
        view.offload()
        for commit in history:
            with db.transaction():
                for row, weight in commit:
                    count = weight if weight > 0 else -min(-weight, table.count(row))
                    if count > 0:
                        table.add(row, count)
                    elif count < 0:
                        table.remove(row, -count)
            view.verify()


def test_few_rows_stay_in_the_process_and_the_rest_is_looked_through_when_they_run_out() -> None:
    offload = Elsewhere()
    db = Database(offload=offload)
    table: Any = db.table(int, name="numbers")
    view = table.order_by(lambda n: n).limit(3).materialize("first")
    table.add_all(range(10_000))
    view.offload()
    assert list(view) == [0, 1, 2]
    assert "the first 70 rows in the process" in db.offload_status()[0].where
    remote: Any = offload.begun[0]
    with patch.object(type(remote), "contents", side_effect=AssertionError):
        for n in range(60):
            table.remove(n)
            db.flush()
        assert list(view) == [60, 61, 62]
        table.add(5)
        assert list(view) == [5, 60, 61]
    table.remove_all(range(60, 80))
    assert list(view) == [5, 80, 81]
    assert view.stats().rows < 200


def test_an_order_without_a_limit_stays() -> None:
    db = Database(offload=Elsewhere())
    view = db.table(int).order_by(lambda n: n).materialize("ordered")
    with pytest.raises(OffloadError, match="one order"):
        view.offload()


@dataclass(frozen=True)
class Unordered:
    key: str


@pytest.mark.parametrize("limit", [None, 2])
def test_rows_that_no_order_tells_apart_keep_their_places_in_a_move(limit: int | None) -> None:
    db = Database(offload=Elsewhere())
    table: Any = db.table(Unordered)
    ordered = table.distinct().order_by(lambda r: 0)
    view = (ordered if limit is None else ordered.limit(limit)).materialize()
    replica = Replica(view)
    table.add_all(Unordered(str(n)) for n in (3, 1, 2, 0, 7, 5))
    for move in (view.offload, view.recall):
        move()
        replica.check()
        table.add(Unordered(f"new {len(table)}"))
        db.flush()
        replica.check()
        view.verify()
