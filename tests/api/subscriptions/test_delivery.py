"""Subscribers: when they run, their rights, and the end of a subscription without references."""

from __future__ import annotations

import gc
import logging
from typing import Any

import pytest

from reactive import Count, Database, Delta, Sum, Table, TransactionError, tracked
from reactive.engine.dataflow import delivery_queue


@tracked
class Counter:
    id: int
    total: int = 0


@pytest.fixture
def db() -> Database:
    return Database()


@pytest.fixture
def words(db: Database) -> Table[str]:
    return db.table(str, name="words")


class Log:
    """An observer that records its calls."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []

    def added(self, row: Any) -> None:
        self.events.append(("+", row))

    def removed(self, row: Any) -> None:
        self.events.append(("-", row))

    def updated(self, old: Any, new: Any) -> None:
        self.events.append(("*", old, new))


def test_an_aggregates_change_arrives_as_one_update(words: Table[str]) -> None:
    log = Log()
    with words.group_by(len).aggregate(Count()).observe(log):
        words.add_all(["a", "to"])
        words.add("be")
        words.remove("a")
    assert log.events == [("+", (1, 1)), ("+", (2, 1)), ("*", (2, 1), (2, 2)), ("-", (1, 1))]


def test_an_ungrouped_aggregate_only_ever_updates(words: Table[str]) -> None:
    log = Log()
    with words.aggregate(Count()).observe(log):
        words.add("a")
        words.clear()
    assert log.events == [("*", 0, 1), ("*", 1, 0)]


def test_without_updated_an_update_is_a_removal_and_an_addition(words: Table[str]) -> None:
    class Half:
        events: list[Any] = []

        def removed(self, row: Any) -> None:
            self.events.append(row)

    with words.aggregate(Count()).observe(Half()):
        words.add("a")
    assert Half.events == [0]


def test_copies_are_told_one_by_one(words: Table[str]) -> None:
    log = Log()
    with words.observe(log):
        words.add("a", 3)
        words.remove("a", 2)
    assert log.events == [("+", "a")] * 3 + [("-", "a")] * 2


def test_an_empty_or_cancelling_commit_is_none(db: Database, words: Table[str]) -> None:
    heard: list[Any] = []
    with words.subscribe(heard.append):
        with db.transaction():
            pass
        with db.transaction():
            words.add("a")
            words.remove("a")
    assert (heard, db.version) == ([], 0)


def test_all_subscribers_hear_each_commit_before_the_next(words: Table[str]) -> None:
    heard: list[tuple[str, int]] = []
    first = words.subscribe(lambda d: heard.append(("first", d.version)))
    second = words.subscribe(lambda d: heard.append(("second", d.version)))
    words.add("a")
    words.add("b")
    assert heard == [("first", 1), ("second", 1), ("first", 2), ("second", 2)]
    first.close()
    second.close()


def test_what_a_callback_writes_is_the_next_transaction(db: Database, words: Table[str]) -> None:
    echo = db.table(str, name="echo")
    versions: list[tuple[str, int]] = []

    def reply(delta: Delta[str]) -> None:
        versions.append(("words", delta.version))
        echo.add_all(row + "!" for row in delta.added)
        assert list(echo)

    with words.subscribe(reply), echo.subscribe(lambda d: versions.append(("echo", d.version))):
        words.add("a")
        assert list(echo) == ["a!"]
        with db.transaction():
            words.add("b")
            assert list(echo) == ["a!"]
    assert versions == [("words", 1), ("echo", 2), ("words", 3), ("echo", 4)]


@pytest.mark.parametrize("way", ["table", "transaction", "object"])
def test_a_subscriber_that_writes_what_it_hears_of_ends(
    way: str, db: Database, words: Table[str], monkeypatch: Any, caplog: Any
) -> None:
    monkeypatch.setattr(delivery_queue, "MOST_ROUNDS", 50)
    counters = db.table(Counter, key="id")
    counter, heard = Counter(1), Log()
    counters.add(counter)
    totals = counters.select(lambda c: c.total).materialize()

    def write(delta: Delta[Any]) -> None:
        if way == "table":
            words.add(str(delta.version))
        elif way == "object":
            counter.total += 1
        else:
            with db.transaction():
                words.add("to")
                words.add("be")

    watched = totals if way == "object" else words
    endless, other = watched.subscribe(write), watched.observe(heard)
    words.add("or")
    counter.total += 1
    assert endless.closed and not other.closed
    assert isinstance(endless.error, TransactionError)
    assert "50 times in a row" in caplog.text
    assert (other.error, len(caplog.records)) == (None, 1)
    assert list(totals) == [52 if way == "object" else 1]
    assert len(heard.events) == {"table": 52, "transaction": 103, "object": 52}[way]


def test_a_subscriber_that_is_done_one_day_ends_by_itself(
    db: Database, words: Table[str], monkeypatch: Any
) -> None:
    monkeypatch.setattr(delivery_queue, "MOST_ROUNDS", 50)
    log = db.table(str, name="log")
    keeping = words.subscribe(lambda delta: log.add("a") if "be" in delta.added else None)
    taking = words.subscribe(lambda delta: words.remove("to") if "to" in words else None)
    for _ in range(3):
        words.add("to", 40)
    for _ in range(200):
        words.add("be")
    assert (len(words), len(log)) == (200, 200)
    assert (taking.closed, keeping.closed) == (False, False)


def test_a_failing_subscriber_harms_nobody(
    words: Table[str], caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Any] = []

    def fail(delta: Delta[str]) -> None:
        raise ValueError("mine")

    with words.subscribe(fail) as failing, words.subscribe(heard.append):
        with caplog.at_level(logging.ERROR, "reactive"):
            words.add("a")
            words.add("b")
        assert len(heard) == 2
        assert isinstance(failing.error, ValueError)
    assert "mine" in caplog.text
    assert sorted(words) == ["a", "b"]


def test_a_closed_subscription_hears_no_more(words: Table[str]) -> None:
    heard: list[Any] = []
    subscription = words.subscribe(heard.append)
    subscription.close()
    subscription.close()
    words.add("a")
    assert heard == []


def test_a_callback_may_close_itself_and_others(words: Table[str]) -> None:
    heard: list[str] = []
    held: list[Any] = []

    def once(delta: Delta[str]) -> None:
        heard.append("once")
        for subscription in held:
            subscription.close()

    held += [words.subscribe(once), words.subscribe(lambda d: heard.append("other"))]
    words.add("a")
    words.add("b")
    assert heard == ["once"]


def test_a_snapshot_comes_first(words: Table[str]) -> None:
    words.add_all(["a", "a", "b"])
    heard: list[Delta[str]] = []
    with words.subscribe(heard.append, snapshot=True):
        words.add("c")
    assert [(d.is_snapshot, d.version, dict(d.items())) for d in heard] == [
        (True, 1, {"a": 2, "b": 1}),
        (False, 2, {"c": 1}),
    ]


def test_a_snapshot_taken_in_a_transaction_is_of_the_last_commit(
    db: Database, words: Table[str]
) -> None:
    words.add("a")
    heard: list[Delta[str]] = []
    with db.transaction():
        words.add("b")
        held = words.subscribe(heard.append, snapshot=True)
        assert heard == []
    assert [d.added for d in heard] == [("a",), ("b",)]
    held.close()


def test_a_view_made_in_a_transaction_follows_its_commit(db: Database, words: Table[str]) -> None:
    words.add("a")
    with db.transaction():
        words.add("b")
        words.remove("a")
        view = words.materialize()
        assert list(view) == ["a"]
    assert list(view) == ["b"]
    view.verify()


def test_a_subscription_that_nobody_holds_ends_and_says_so(words: Table[str]) -> None:
    with pytest.warns(RuntimeWarning, match="nobody holds it"):
        words.subscribe(print)
        gc.collect()
    words.add("a")
    assert words._node.consumers == []


def test_a_subscription_holds_its_view(db: Database, words: Table[str]) -> None:
    heard: list[Any] = []
    held = words.distinct().materialize("once").subscribe(heard.append)
    gc.collect()
    words.add("a")
    assert len(heard) == 1
    assert [view.name for view in db.views()] == ["once"]
    held.close()
    assert db.views() == []


def test_a_dropped_view_costs_nothing(db: Database, words: Table[str]) -> None:
    view = words.distinct().materialize()
    assert len(db._engine.graph._nodes) == 1
    del view
    gc.collect()
    assert db._engine.graph._nodes == {}


def test_a_view_dropped_in_a_transaction_goes_at_once(db: Database, words: Table[str]) -> None:
    view = words.distinct().materialize()
    with db.transaction():
        words.add("a")
        del view
        gc.collect()
        assert db._engine.graph._nodes == {}
    assert list(words) == ["a"]


def test_equal_queries_share_their_operators(db: Database, words: Table[str]) -> None:
    def lengths() -> Any:
        return words.group_by(len).aggregate(Sum(lambda w: len(w)))

    first, second = lengths().materialize(), lengths().materialize()
    assert len(db._engine.graph._nodes) == 1
    words.add("a")
    assert dict(first) == dict(second) == {1: 1}


def test_callables_with_other_captured_values_are_not_shared(
    db: Database, words: Table[str]
) -> None:
    def longer(than: Any) -> Any:
        return words.where(lambda w: len(w) > than).materialize()

    views = [longer(than) for than in (1, 1, True, 1.0, 2)]
    assert len(db._engine.graph._nodes) == 4
    words.add("to")
    assert [len(view) for view in views] == [1, 1, 1, 1, 0]


def test_joins_on_the_same_key_share_an_index(db: Database, words: Table[str]) -> None:
    other = db.table(str, name="other")
    size = len
    joins = [
        getattr(words, name)(other, left_key=size, right_key=size).materialize()
        for name in ("join", "left_join", "full_join")
    ]
    indexes = [
        n for n in db._engine.graph._nodes.values() if type(n.operator).__name__ == "IndexBy"
    ]
    assert len(indexes) == 2
    assert len(joins) == 3


def test_a_callable_of_a_query_may_not_write(words: Table[str]) -> None:
    class Writer:
        def __call__(self, row: str) -> bool:
            words.add(row + "!")
            return True

    view = words.where(Writer()).materialize()
    with pytest.raises(TransactionError):
        words.add("a")
    assert (list(words), list(view)) == ([], [])
