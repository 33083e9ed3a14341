"""Rows of plain values are looked at by one loop, and found by a field that tells them apart."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database, TableError
from reactive.engine.storage.plain_rows import plain_fields, plain_test, telling_field
from reactive.engine.storage.store import MANY, Absent, BagStore
from tests.counted_calls import calls_of, without_garbage
from tests.moments import Moments


@dataclass(frozen=True, slots=True)
class Order:
    id: Any
    town: Any
    amount: Any = 0


@dataclass(frozen=True)
class Noted(Order):
    note: str = field(default="", compare=False)


class Named(NamedTuple):
    id: Any
    town: Any
    amount: Any = 0


class Quick(msgspec.Struct, frozen=True):
    id: Any
    town: Any
    amount: Any = 0


class Cased(Named):
    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple) and self.town.lower() == other[1].lower()

    def __hash__(self) -> int:
        return hash(self.town.lower())


@dataclass(frozen=True)
class Loose:
    id: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Loose) and self.id % 10 == other.id % 10

    def __hash__(self) -> int:
        return self.id % 10


@dataclass(frozen=True)
class Guessed:
    id: int
    town: str

    def __getattribute__(self, name: str) -> Any:
        return "Bonn" if name == "town" else object.__getattribute__(self, name)


KINDS: list[Callable[..., Any]] = [Order, Noted, Named, Quick, lambda *values: tuple(values)]


def first(kind: Callable[..., Any]) -> list[Any]:
    return [kind(n, "Bonn" if n % 2 else "Rome", n % 5) for n in range(MANY)]


def test_only_classes_that_are_equal_by_their_fields_are_plain() -> None:
    assert plain_fields(Order) == plain_fields(Noted) == ("id", "town", "amount")
    assert plain_fields(Named) == plain_fields(Quick) == ("id", "town", "amount")
    for kind in (Cased, Loose, Guessed, Decimal, object):
        assert plain_fields(kind) is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("value", "is_plain"),
    [
        *((7, True), ("", True), (None, True), (True, True), (b"", True), (0.5, True)),
        *((datetime.date(2026, 1, 1), True), (Decimal(1), True), (Decimal("sNaN"), False)),
        *((float("nan"), False), (Decimal("NaN"), False), ([], False), ((1,), False)),
    ],
)
def test_rows_are_plain_if_all_their_values_are(kind: Any, value: object, is_plain: bool) -> None:
    rows = [kind(n, value) for n in range(4)]
    test = plain_test(rows)
    assert (test is not None and test.are_plain(rows)) is is_plain
    mixed = [kind(0, "Bonn"), kind(0, value), kind(0, None), kind(0, 0.5)]
    test = plain_test(mixed)
    assert (test is not None and test.are_plain(mixed)) is is_plain


@pytest.mark.parametrize("kind", KINDS)
def test_times_are_plain_without_a_zone_among_times(kind: Any) -> None:
    time, utc = datetime.datetime(2026, 1, 1), datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    for times, are_plain in (([time] * 2, True), ([time, utc], False), ([time, None], False)):
        rows = [kind(n, each) for n, each in enumerate(times)]
        test = plain_test(rows)
        assert (test is not None and test.are_plain(rows)) is are_plain


def test_rows_that_a_test_was_not_made_of_are_asked_all_the_same() -> None:
    test = plain_test([Order(1, "Bonn", 0.5)])
    assert test is not None and test.are_plain([Order(2, "Rome", 1.5)])
    odd = [Order([], "Rome", 1.5), Order(2, "Rome", float("nan")), Order(2, "Rome", 1)]
    assert not any(
        test.are_plain([row]) for row in [*odd, Noted(2, "Rome", 1.5), Named(2, "Rome", 1.5), 7]
    )
    assert all(map(test.is_odd, [*odd, Noted(2, "Rome", 1.5), Named(2, "Rome", 1.5), 7]))
    assert not test.is_odd(Order(2, "Rome", 1.5))
    unset = object.__new__(Order)
    assert not test.are_plain([unset]) and test.is_odd(unset)


def test_the_field_is_one_that_tells_all_rows_apart() -> None:
    assert telling_field([Order(n % 3, str(n), n) for n in range(9)]).place(Order(1, "a", 5)) == 5  # type: ignore[union-attr]
    assert telling_field([Order(0.5, str(n)) for n in range(9)]).place(Order(0.5, "a")) == "a"  # type: ignore[union-attr]
    assert telling_field([Order(n % 3, "a", n % 4) for n in range(9)]) is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_load_of_plain_rows_calls_nothing_of_their_class(kind: Any) -> None:
    rows = [kind(n, "Bonn", 0.5) for n in range(4000)]

    def load(number: int) -> int:
        table = Database().table(object)
        return calls_of(lambda: table.add_all(rows[:number]))

    load(4000)
    assert load(4000) < load(1000) + 3_100 + 300  # one call for each of 3,000 more rows


@pytest.mark.parametrize("step", [1, 2])
def test_rows_that_no_field_tells_apart_are_hashed_once_each(step: int) -> None:
    """Test also a field that distinguishes only a sample of the rows."""
    rows = [Order(n // step, "Bonn", n % 7) for n in range(12_000)]
    rows += [Order(n, "Bonn", 7) for n in range(12_000, 24_000)]
    rows[-1] = Order(5, "Bonn", 7)

    def load(rows: list[Order]) -> int:
        store = BagStore()
        return calls_of(lambda: store.add_plain(rows))

    assert load(rows) < 2.2 * len(rows)  # the hash, and that of its fields


VALUES = st.sampled_from([0, 1, 2, 3, True, 1.0, 2.5, None, "Bonn", MANY, MANY + 1])
ROWS = st.tuples(st.sampled_from(range(len(KINDS))), VALUES, st.sampled_from(["Bonn", "Rome"]))
STEPS = st.lists(st.tuples(st.sampled_from(["add", "remove", "many", "count"]), ROWS), max_size=20)


@given(st.sampled_from(range(len(KINDS))), STEPS)
def test_a_store_by_a_field_holds_what_one_by_rows_does(number: int, steps: Any) -> None:
    kind = KINDS[number]
    store, by_row, held = BagStore(), BagStore(), dict[int, Any]()
    for row in store.add_plain(first(kind)):
        held[id(row)] = row
    by_row.add_rows(first(kind))
    for what, (of, value, town) in steps:
        row = KINDS[of](value, town, value if type(value) is int else 0)
        if what == "count":
            assert store.count(row) == by_row.count(row)
        elif what == "remove" and not by_row.count(row):
            with pytest.raises(Absent):
                store.remove(row, 1)
        elif what == "remove":
            by_row.remove(row, 1)
            assert id(store.remove(row, 1)[0]) in held
        else:
            rows = [row, row] if what == "many" else [row]
            by_row.add_rows(rows)
            for kept in store.add_rows(rows) if what == "many" else [store.add(row, 1)[0]]:
                held[id(kept)] = kept
        assert list(store.pairs()) == list(by_row.pairs())
        assert len(store) == len(by_row) and store.distinct() == by_row.distinct()
        assert {id(row) for row, _ in store.pairs()} <= held.keys()


@pytest.mark.parametrize("kind", KINDS)
def test_equal_rows_stay_one_object(kind: Any) -> None:
    table = Database().table(object)
    rows = first(kind)
    table.add_all(rows)
    heard: list[Any] = []
    with table.subscribe(lambda delta: heard.extend(delta.items())):
        table.add(kind(3, "Bonn", 3))
        table.remove(kind(3, "Bonn", 3), 2)
        table.add(kind(4, "Paris"))  # the field is taken by another row
        table.remove(kind(5, "Bonn", 0))
    assert [row for row, _ in heard if row in rows] == [rows[3], rows[3], rows[5]]
    assert all(row is rows[row[0] if isinstance(row, tuple) else row.id] for row, _ in heard[:2])
    assert Counter(table) == Counter([*rows, kind(4, "Paris")]) - Counter([rows[3], rows[5]])


def test_the_first_row_that_is_refused_is_told_as_by_itself() -> None:
    rows = [*first(Order), Order(MANY, [])]
    for odd in (rows, [*rows[:-1], "text"]):
        table = Database().table(Order, name="orders")
        with pytest.raises(TableError) as together:
            table.add_all(odd)
        with pytest.raises(TableError) as alone:
            table.add(odd[-1])
        assert str(together.value) == str(alone.value) and not len(table)


@pytest.mark.long
@pytest.mark.parametrize("first_load", [True, False])
@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.add(Order(1, "Paris"), 1),
        lambda store: store.add(Order(1, "Bonn", 1), 2),
        lambda store: store.add_plain([Order(n, "Oslo") for n in range(MANY, MANY + 70)]),
        lambda store: store.add_plain([Order(n, "Oslo") for n in range(70)]),
        lambda store: store.remove_rows([Order(1, "Bonn", 1), Order(2, "Rome", 2)]),
        lambda store: store.remove(Order(1, "Bonn", 1), 1),
    ],
)
def test_a_store_by_a_field_is_whole_whenever_it_is_interrupted(
    change: Callable[[BagStore], object], first_load: bool
) -> None:
    with without_garbage():  # an exception in a foreign finalizer would be lost
        _interrupt_at_each_moment(change, first_load=first_load)


def _interrupt_at_each_moment(change: Callable[[BagStore], object], *, first_load: bool) -> None:
    for moment in range(2000):
        store = BagStore()
        if not first_load:
            store.add_plain(first(Order))
        before = Counter(dict(store.pairs()))
        try:
            with Moments(moment):
                store.add_plain(first(Order)) if first_load else change(store)
        except KeyboardInterrupt:
            assert Counter(dict(store.pairs())) == before and len(store) == len(before)
            store.add_rows([Order(1, "Bonn", 1)])
            assert store.count(Order(1, "Bonn", 1)) == 1 + (not first_load)
        else:
            break
    else:
        raise AssertionError("it has no end")
