"""`view.changes_since(version)` against the rows of both versions."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from typing import Any

import polars as pl
import pytest

from reactive import Count, Database, PlanError, Sum
from tests.borders.frames.cases import Named


def check_log(seed: int, steps: int) -> None:
    """Check that old rows plus the changes since then are the current rows, at any moment.

    A version older than the history is refused.
    """
    chance = random.Random(seed)
    db = Database()
    table = db.table(Named, name="rows")
    views: list[Any] = [
        table.materialize(),
        table.group_by("town").aggregate(n=Count(), total=Sum("id")).materialize(),
        table.order_by("id").materialize(),
        table.where(lambda r: r.id % 2 == 0).select(lambda r: r.town).materialize(),
    ]
    kept = chance.choice([3, 1000])
    rows: list[dict[int, Any]] = [{} for _ in views]
    for view, known in zip(views, rows, strict=True):
        view.keep_changes(kept)
        known[db.version] = Counter(dict(view.zset().items()))
    for _ in range(steps):
        with db.transaction():
            for _ in range(chance.randrange(4)):
                if len(table) and chance.random() < 0.4:
                    table.remove(chance.choice(list(table)))
                else:
                    town = chance.choice(["Ulm", None])
                    table.add(Named(chance.randrange(9), town, chance.choice([None, float("nan")])))
        for view, known in zip(views, rows, strict=True):
            known[db.version] = Counter(dict(view.zset().items()))
            _check(view, known, chance.choice(list(known)), db.version)


def _check(view: Any, known: dict[int, Any], version: int, now: int) -> None:
    try:
        changes = view.changes_since(version)
    except PlanError as error:
        since = int(str(error).split("version ")[1].split()[0])  # noqa: RUF100
        assert version < since <= now
        return
    then = known[version].copy()
    for row, weight in changes:
        assert weight
        then[row] += weight
    assert {row: n for row, n in then.items() if n} == dict(known[now])
    frame = changes.to_polars()
    assert frame["weight"].to_list() == [weight for _, weight in changes]
    assert frame.drop("weight").schema == view.to_polars().schema
    assert changes.version == now


@pytest.mark.parametrize("seed", range(6))
def test_logs(seed: int) -> None:
    check_log(seed, 25)


def test_what_is_not_kept_is_told_with_the_remedy() -> None:
    db = Database()
    words = db.table(str, name="words")
    view = words.materialize("all")
    words.add("to")
    with pytest.raises(PlanError, match="'all' keeps its changes from version 1 on, not from 0"):
        view.changes_since(0)
    with pytest.raises(PlanError, match=r"no version 7 yet"):
        view.changes_since(7)
    with pytest.raises(PlanError, match="number of commits"):
        view.keep_changes(0)
    view.keep_changes(1)
    words.add_all(["be", "be"])
    assert list(view.changes_since(1)) == [("be", 2)]
    words.remove("be")
    assert list(view.changes_since(2)) == [("be", -1)]
    with pytest.raises(PlanError, match="from version 2 on, not from 1"):
        view.changes_since(1)


def test_a_view_that_nobody_asks_keeps_nothing() -> None:
    view = Database().table(str).materialize()
    assert not view._channel.subscribers
    assert view._history is None


def test_changes_are_there_before_they_are_delivered() -> None:
    """A slow subscriber in another thread delays the delivery of all later commits in the queue."""
    db = Database()
    words = db.table(str, name="words")
    view = words.materialize()
    began, goes_on = threading.Event(), threading.Event()

    def slow(delta: Any) -> None:
        if "to" in delta.added:
            began.set()
            goes_on.wait(10)

    subscription = view.subscribe(slow)
    view.keep_changes()
    writers = [threading.Thread(target=words.add, args=(word,)) for word in ("to", "be")]
    for version, writer in enumerate(writers, db.version + 1):
        writer.start()
        assert began.wait(10)
        while db.version < version:
            time.sleep(0.001)
    assert list(view.changes_since(0)) == [("to", 1), ("be", 1)]
    assert [writer.is_alive() for writer in writers] == [True, True]
    goes_on.set()
    for writer in writers:
        writer.join()
    assert list(view.changes_since(0)) == [("to", 1), ("be", 1)]
    assert list(view.changes_since(2)) == []
    subscription.close()


def test_deltas_are_frames() -> None:
    heard: list[Any] = []
    table = Database().table(Named, name="rows", key="id")
    with table.subscribe(heard.append):
        table.add(Named(1, "Ulm", None))
        table.upsert(Named(1, "Bonn", 2.5))
    assert pl.DataFrame(heard[1].to_arrow()).rows() == [(1, "Ulm", None, -1), (1, "Bonn", 2.5, 1)]


def test_a_column_that_is_called_weight_stays() -> None:
    db = Database()
    boxes = db.table_from([{"id": 1, "weight": 2.5}], key="id")
    view = boxes.materialize()
    known = view.changes_since(db.version)
    boxes.delete(1)
    (change,) = view.changes_since(known.version).to_arrow().to_pylist()
    assert change == {"id": 1, "weight": 2.5, "weight_": -1}
    assert (
        repr(view.changes_since(known.version)) == "NetChanges(1 to 2: {Row(id=1, weight=2.5): -1})"
    )
