"""Views that compare the same field with constants get the rows of their values, and no others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Count, Database, Relation, StaleCaptureError, StaleCaptureWarning, Table, View
from reactive.engine.dataflow.discrimination import WORTHWHILE


class Event(NamedTuple):
    kind: Any
    number: int


KINDS: list[Any] = ["sale", "gift", "loan", "other", 1, True, 1.0, None, float("nan")]


def of_kind(events: Table[Event], kind: str) -> Relation[Event]:
    return events.where(lambda e: e.kind == kind)


def views_of(events: Any) -> list[View[Any]]:
    return [
        events.where(lambda e: e.kind == "sale").materialize(),
        events.where(lambda e: e.kind in ("gift", "sale")).materialize(),
        events.where(lambda e: e.kind == "gift" and 6 // e.number > 2).materialize(),
        events.where(lambda e: e.kind == 1).materialize(),
        events.where(lambda e: e.number == 2).materialize(),
        events.where(lambda e: e.number > 2).materialize(),
        events.join(
            events.where(lambda e: e.kind == "loan"), on=lambda e, f: e.number == f.number
        ).materialize(),
        events.anti_join(
            events.where(lambda e: e.kind == "loan" and e.number != 2),
            on=lambda e, f: e.number == f.number,
        ).materialize(),
        events.where(lambda e: e.kind == "loan")
        .group_by(lambda e: e.number)
        .aggregate(Count())
        .materialize(),
    ]


rows = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(1, 3)), max_size=5)


@given(st.lists(st.tuples(rows, rows), max_size=6), st.booleans())
def test_they_are_right_after_every_commit(
    history: list[tuple[list[Any], list[Any]]], together: bool
) -> None:
    db = Database()
    events = db.table(Event, name="events")
    views = views_of(events)
    for added, removed in history:
        gone = [Event(*row) for row in removed]
        if together:
            with db.transaction():
                events.add_all(Event(*row) for row in added)
                for event in gone:
                    events.discard(event)
        else:
            for row in added:
                events.add(Event(*row))
            for event in gone:
                events.discard(event)
        for view in views:
            view.verify()


def test_a_reader_looks_at_the_rows_of_its_values_only() -> None:
    events = Database().table(Event, name="events")
    views = [
        events.where(lambda e: e.kind == "sale").materialize(),
        events.where(lambda e: e.kind == "gift").materialize(),
        events.where(lambda e: e.kind == "loan" and e.number > 1).materialize(),
    ]
    others = [of_kind(events, f"kind {n}").materialize() for n in range(WORTHWHILE)]
    events.add_all([Event("other", n) for n in range(100)])
    assert [view.stats().touched for view in (*views, *others)] == [0] * (3 + WORTHWHILE)
    events.add_all([Event("loan", 1), Event("loan", 2), Event("sale", 1)])
    assert [len(view) for view in views] == [1, 0, 1]
    assert sum(view.stats().touched for view in views) < 10


@dataclass(frozen=True)
class Loose:
    number: int
    kind: Any = field(hash=False)


def test_a_value_without_a_hash_is_left_to_the_readers() -> None:
    loose = Database().table(Loose, name="loose")
    views = [
        loose.where(lambda r: r.kind == "a").materialize(),
        loose.where(lambda r: r.kind == "b").materialize(),
        loose.where(lambda r: r.kind == "c").materialize(),
    ]
    loose.add_all([Loose(1, "a"), Loose(2, ["a"]), Loose(3, "b")])
    assert [len(view) for view in views] == [1, 1, 0]


def test_a_closed_view_is_no_reader_any_more() -> None:
    events = Database().table(Event, name="events")
    views = [of_kind(events, k).materialize() for k in "abcd"]
    events.add(Event("a", 1))
    for view in views[1:]:
        view.close()
    events.add_all([Event("a", 2), Event("b", 2)])
    assert len(views[0]) == 2
    views.append(events.where(lambda e: e.kind == "b").materialize())
    events.add(Event("b", 3))
    assert len(views[-1]) == 2


def test_many_rows_leave_as_they_came() -> None:
    events = Database().table(Event, name="events")
    views = [of_kind(events, k).materialize() for k in "abc"]
    rows = [Event("ab"[n % 2], n) for n in range(6)]
    events.add_all(rows)
    events.remove_all(rows[1:])
    assert [len(view) for view in views] == [1, 0, 0]


def test_the_thousandth_commit_asks_no_more_than_the_first() -> None:
    events = Database().table(Event, name="events")
    views = [of_kind(events, f"kind {n}").materialize() for n in range(WORTHWHILE)]
    for number in range(1000):
        events.add(Event("other", number))
    assert [view.stats().touched for view in views] == [0] * WORTHWHILE


def test_an_error_in_a_reader_leaves_all_as_they_were() -> None:
    events = Database().table(Event, name="events")
    views = [of_kind(events, k).materialize() for k in "abc"]
    bad = events.where(lambda e: e.kind == "d" and 1 // e.number > 0).materialize()
    with pytest.raises(ZeroDivisionError):
        events.add_all([Event("a", 1), Event("d", 0)])
    events.add_all([Event("a", 0), Event("d", 1)])
    assert [len(view) for view in [*views, bad]] == [1, 0, 0, 1]


class Name(str):
    """Equal whatever the case."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self.lower() == other.lower()

    def __hash__(self) -> int:
        return hash(self.lower())


def test_a_value_with_an_equality_of_its_own_is_left_to_the_readers() -> None:
    events = Database().table(Event, name="events")
    views = [of_kind(events, k).materialize() for k in ("Gc", "b", "c")]
    events.add(Event(Name("gc"), 1))
    assert [len(view) for view in views] == [1, 0, 0]


WANTED = "a"


def test_a_captured_value_that_changes_is_noticed_though_no_row_has_the_old_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    db = Database(strict=True)
    events = db.table(Event, name="events")
    views = [of_kind(events, k).materialize() for k in "bcd"]
    views.append(events.where(lambda e: e.kind == WANTED).materialize())
    monkeypatch.setitem(globals(), "WANTED", "new")
    with pytest.raises(StaleCaptureError, match="WANTED"):
        events.add(Event("new", 1))
    assert not any(map(len, views))


def test_a_captured_set_or_list_and_a_text_of_constants_are_constants() -> None:
    events = Database().table(Event, name="events")
    views: list[Any] = []
    for number in range(WORTHWHILE // 3 + 1):
        kinds, listed = {f"k{number}", "all"}, ["listed", f"k{number}"]
        views += [
            events.where(lambda e, kinds=kinds: e.kind in kinds).materialize(),  # type: ignore[misc]
            events.where(lambda e, listed=listed: e.kind in listed).materialize(),  # type: ignore[misc]
            events.where(lambda e, n=number: e.kind == f"k{n}").materialize(),  # type: ignore[misc]
        ]
    events.add_all([Event("other", n) for n in range(50)])
    assert sum(view.stats().touched for view in views) == 0
    events.add_all([Event("k3", 1), Event("all", 1), Event("listed", 1)])
    assert sum(map(len, views)) == 3 + 2 * len(views) // 3
    for view in views:
        view.verify()


def test_a_set_that_the_condition_itself_changes_stays_a_set() -> None:
    events = Database().table(Event, name="events")
    seen = {0}
    view = events.where(
        lambda e: e.number not in seen and not seen.add(e.number)  # type: ignore[func-returns-value]
    ).materialize()
    events.add_all([Event("a", 1), Event("b", 1), Event("c", 2)])
    assert sorted(view) == [Event("a", 1), Event("c", 2)]


ALLOWED = {"a"}


def is_allowed(kind: str) -> bool:
    return kind in ALLOWED


def test_a_set_of_a_called_function_is_read_as_it_is_now() -> None:
    events = Database().table(Event, name="events")
    view = events.where(lambda e: is_allowed(e.kind)).materialize()
    events.add(Event("b", 1))
    ALLOWED.add("b")
    try:
        with pytest.warns(StaleCaptureWarning):
            events.add(Event("b", 2))
        assert list(view) == [Event("b", 2)]
    finally:
        ALLOWED.discard("b")
