"""Batches in a transaction: one delta is made at its end, and equal rows stay one object."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database, Sum, Table, TableError
from reactive.engine.storage.store import MANY
from reactive.engine.transactions.pending import Pending
from tests.budget import examples
from tests.counted_calls import calls_of


class Sold(NamedTuple):
    id: Any
    key: Any
    amount: Any


def sold(number: int, amount: Any = 0) -> Sold:
    return Sold(number, number % 3, amount)


NUMBERS = st.integers(0, 5)
SOME = st.lists(st.tuples(NUMBERS, st.sampled_from([0, 1, 1.0, None, "a"])), max_size=4)
STEPS = st.lists(
    st.tuples(st.sampled_from(["add_all", "remove_all", "add", "remove", "replace"]), SOME),
    max_size=8,
)


def apply(table: Table[Any, Any], verb: str, rows: list[Any]) -> None:
    match verb:
        case "add_all" | "remove_all":
            getattr(table, verb)(rows)
        case "replace":
            table.replace_where(lambda row: row[0] == 1, [row for row in rows if row[0] == 1])
        case _:
            for row in rows:
                getattr(table, verb)(row)


@pytest.mark.parametrize("key", [None, "id"])
@pytest.mark.parametrize("kind", [Sold, tuple])
@given(st.lists(STEPS, max_size=4), st.booleans(), st.booleans())
@examples(60)
def test_a_transaction_commits_the_net_change_with_the_objects_that_were_there(
    key: str | None, kind: Any, histories: Any, is_loaded: bool, reads: bool
) -> None:
    db = Database()
    key = key if kind is Sold else None
    table: Table[Any, Any] = db.table(kind, name="sold", key=key)
    view = table.group_by(lambda s: s[1]).aggregate(Sum(lambda s: s[0])).materialize()
    copy = table.materialize()
    if is_loaded:
        table.add_all([kind(sold(-n)) if kind is tuple else sold(-n) for n in range(1, MANY + 1)])
    for steps in histories:
        before = {id(row): row for row in table}
        there, told = Counter(table), Counter[Any]()
        with (
            table.subscribe(lambda delta: told.update(dict(delta.items()))),
            suppress(TableError),
            db.transaction(),
        ):
            for verb, values in steps:
                rows = [sold(*each) for each in values]
                apply(table, verb, [tuple(row) for row in rows] if kind is tuple else rows)
                if reads:
                    assert len(table) == len(list(table))
        after = Counter(table)
        difference = Counter(after)
        difference.subtract(there)
        assert {row: n for row, n in told.items() if n} == {
            r: n for r, n in difference.items() if n
        }
        equal = set(before.values())
        assert all(id(row) in before for row in table if row in equal)
        assert Counter(copy) == after
        view.verify()
        copy.verify()


def test_rows_of_another_class_are_found_after_rows_that_a_field_tells_apart() -> None:
    db = Database()
    table = db.table(tuple, name="rows")
    table.add_all([sold(n) for n in range(MANY)])
    one = next(row for row in table if row[0] == 7)
    with db.transaction():
        table.remove(one)
        table.add((7, 1, 0))
        table.remove_all([sold(8), sold(9)])
        table.add_all([(8, 2, 0), (10_000, 1, 1)])
    assert next(row for row in table if row[0] == 7) is one
    assert len(table) == MANY and type(next(row for row in table if row[0] == 8)) is Sold


@dataclass(frozen=True)
class SoldItem:
    id: Any
    key: Any
    amount: Any


def calls_of_a_batch(size: int, key: str | None, kind: Any) -> int:
    db = Database()
    table = db.table(kind, name="sold", key=key)
    rows = [kind(n, n % 3, 1) for n in range(size)]
    others = [kind(n, n % 3, 2) for n in range(size)]
    table.add_all(rows)

    def replace() -> None:
        with db.transaction():
            table.remove_all(rows)
            table.add_all(others)

    replace()
    rows, others = others, rows
    return calls_of(replace)


@pytest.mark.parametrize("kind", [Sold, SoldItem])
@pytest.mark.parametrize("key", [None, "id"])
def test_a_batch_of_other_rows_calls_no_function_per_row(key: str | None, kind: Any) -> None:
    assert calls_of_a_batch(2_000, key, kind) - calls_of_a_batch(1_000, key, kind) <= 30


@pytest.mark.parametrize("amount", [0, None, float("nan"), "a", (1, float("nan"))])
@pytest.mark.parametrize("kind", [Sold, SoldItem])
def test_a_row_equal_to_a_removed_one_is_found_among_many(kind: Any, amount: Any) -> None:
    db = Database()
    table: Table[Any, Any] = db.table(kind, name="sold")
    table.add_all([kind(n, n % 3, n) for n in range(2 * MANY)])
    table.add(kind(-1, 0, amount))
    before = {row.id: row for row in table}
    with db.transaction():
        table.remove_all(list(table))
        same = [kind(-1, 0, amount), kind(5, 2, 5)]
        table.add_all([*same, *[kind(n, n % 3, -n - 1) for n in range(6, 2 * MANY)]])
    after = {row.id: row for row in table}
    assert [number for number in after if after[number] is before[number]] == [-1, 5]


@pytest.mark.parametrize("key", [None, "id"])
def test_a_batch_with_a_row_that_is_not_there_removes_none(key: str | None) -> None:
    db = Database()
    table: Table[Any, Any] = db.table(SoldItem, name="sold", key=key)
    rows = [SoldItem(n, n % 3, 0) for n in range(2 * MANY)]
    table.add_all(rows)
    for odd in (SoldItem(-1, 0, 0), SoldItem(3, 0, 1), rows[0]):
        with pytest.raises(TableError):
            table.remove_all([*rows, odd])
        assert list(table) == rows


def test_a_row_removed_and_another_added_cost_few_calls() -> None:
    db = Database()
    table = db.table(Sold, name="sold")
    rows = [sold(n) for n in range(2 * MANY)]
    table.add_all(rows)

    def run(old: Any, new: Any) -> None:
        with db.transaction():
            table.remove(old)
            table.add(new)

    for _ in range(MANY + 6):  # the commit is generated by then
        run(rows[0], sold(0, 1))
        run(sold(0, 1), rows[0])
    assert calls_of(lambda: run(rows[1], sold(1, 1))) <= 115
    version = db.version
    assert calls_of(lambda: run(rows[2], sold(2))) <= 85
    assert db.version == version and len(table) == len(rows)


@pytest.mark.parametrize("verb", ["add", "remove"])
@pytest.mark.parametrize("key", [None, "id"])
def test_a_batch_of_one_row_is_as_one_row(verb: str, key: str | None) -> None:
    def side() -> Table[Any, Any]:
        table: Table[Any, Any] = Database().table(Sold, name="sold", key=key)
        table.add_all([sold(n) for n in range(MANY)])
        table.remove(sold(5))
        return table

    one, many = side(), side()
    values: list[Any] = [sold(5), sold(6), sold(6, 1), sold(-1), Sold(-2, 1, []), 7, None]
    for value in values:
        said = []
        for table, some in ((one, value), (many, [value])):
            try:
                getattr(table, verb if table is one else f"{verb}_all")(some)
                said.append("")
            except (TableError, TypeError) as error:
                said.append(f"{type(error).__name__}: {error}")
        assert said[0] == said[1]
        assert Counter(map(repr, one)) == Counter(map(repr, many))
        assert one._engine.version == many._engine.version
    row = sold(7, 1)
    for table in (one, many):
        table.remove(sold(7))
        table.add(row)
        table.remove(row)
    single, batch = calls_of(lambda: one.add(row)), calls_of(lambda: many.add_all([row]))
    assert batch <= single + 8
    single, batch = calls_of(lambda: one.remove(row)), calls_of(lambda: many.remove_all([row]))
    assert batch <= single + 8


def test_a_row_removed_and_another_added_in_a_transaction_need_no_dictionary(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    db = Database()
    table: Table[Any, Any] = db.table(Sold, name="sold")
    table.add_all([sold(number) for number in range(500)])
    made: list[Any] = []
    monkeypatch.setattr(Pending, "_lost_of", lambda pending, of: made.append(of))
    for number in range(20):
        with db.transaction():
            table.remove(sold(number))
            table.add(sold(number, 1))
    assert not made and len(table) == 500


def test_an_equal_row_that_returns_is_the_removed_object() -> None:
    db = Database()
    table: Table[Any, Any] = db.table(Sold, name="sold")
    rows = [sold(number) for number in range(100)]
    table.add_all(rows)
    deltas: list[Any] = []
    with table.materialize() as view, view.subscribe(deltas.append):
        with db.transaction():
            table.remove(sold(7))
            table.add(sold(7))
        assert not deltas and next(row for row in table if row.id == 7) is rows[7]
        with db.transaction():
            table.remove(sold(7))
            table.add(sold(7))
            table.remove(sold(7))
            table.add(sold(7, 1.0))
        view.verify()
    assert [sorted(delta.items()) for delta in deltas] == [[(sold(7), -1), (sold(7, 1.0), 1)]]
