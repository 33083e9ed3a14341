"""The rows of a table: many added or removed in one statement are as each by itself."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database
from reactive.engine.storage.store import Absent, BagStore
from tests.budget import examples

ROWS = st.lists(st.sampled_from([(1, "a"), (1, "b"), (2, "a"), 3, 4, "x"]), max_size=8)
STEPS = st.lists(st.tuples(st.booleans(), st.booleans(), ROWS), max_size=8)


class Shy:
    """A row that can be hashed `left` times, and counts the calls."""

    def __init__(self, number: int, left: int = 1_000) -> None:
        self.number = number
        self.left = left
        self.hashed = 0

    def __hash__(self) -> int:
        self.hashed += 1
        if not self.left:
            raise ZeroDivisionError
        self.left -= 1
        return hash(self.number)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shy) and other.number == self.number


def another(row: Any) -> Any:
    """An equal row that is another object, if there may be one."""
    return (row[0], *row[1:]) if type(row) is tuple else row


def contents(store: BagStore) -> Counter[Any]:
    assert len(store) == sum(count for _, count in store.pairs())
    return Counter(dict(store.pairs()))


@given(STEPS)
@examples(400)
def test_many_rows_are_added_and_removed_as_one_by_one(
    steps: list[tuple[bool, bool, list[Any]]],
) -> None:
    store, expected, objects = BagStore(), Counter[Any](), dict[Any, Any]()
    for comes, is_new, rows in steps:
        given = [another(row) if is_new else row for row in rows]
        if comes:
            kept = store.add_rows(given)
            expected.update(rows)
            for row in kept:
                assert objects.setdefault(row, row) is row, "equal rows are one object"
        elif not Counter(rows) - expected:
            assert list(store.remove_rows(given)) == rows
            expected.subtract(rows)
        else:
            with pytest.raises(Absent):
                store.remove_rows(given)
        expected = +expected
        objects = {row: kept for row, kept in objects.items() if row in expected}
        assert contents(store) == expected


@pytest.mark.parametrize("left", range(8))
def test_rows_that_raise_when_they_are_added_leave_the_store_as_it_was(left: int) -> None:
    store = BagStore()
    store.add_rows([Shy(1), Shy(2), Shy(2)])
    before = contents(store)
    rows = [Shy(1), Shy(3), Shy(3), Shy(1), Shy(4, left), Shy(2)]
    if left > 3:
        assert store.add_rows(rows)[0].number == 1
        assert contents(store) == Counter({Shy(1): 3, Shy(2): 3, Shy(3): 2, Shy(4): 1})
        return
    with_raising = [*rows, rows[4], rows[4]]
    with pytest.raises(ZeroDivisionError):
        store.add_rows(with_raising)
    assert contents(store) == before


def test_rows_of_a_batch_in_a_transaction_are_hashed_twice_at_most() -> None:
    db = Database()
    shy = db.table(Shy, identity=True)
    view = shy.where(lambda row: row.number > 10).materialize()
    old = [Shy(number) for number in range(50)]
    shy.add_all(old)
    new = [Shy(number) for number in range(100, 150)]
    for row in old:
        row.hashed = 0
    with db.transaction():
        shy.remove_all(old)
        shy.add_all(new)
        assert {row.hashed for row in (*old, *new)} == {2}  # once by the table, once by the removal
    assert sorted(row.number for row in view) == list(range(100, 150))


def test_a_row_that_goes_and_comes_in_a_transaction_is_the_same_object_and_no_change() -> None:
    db = Database()
    words = db.table(tuple)
    told: list[Any] = []
    asked: list[Any] = []

    def is_wanted(word: tuple[str, int]) -> bool:
        asked.append(word)
        return True

    view = words.where(is_wanted).materialize()
    subscription = view.subscribe(lambda delta: told.append(list(delta.items())))
    first = ("a", 1)
    words.add_all([first, ("b", 2)])
    told.clear()
    asked.clear()
    with db.transaction():
        words.remove_all([("a", 1), ("b", 2)])
        words.add_all([another(first), ("c", 3)])
        words.remove(("c", 3))
        words.add(("d", 4))
    assert sorted(asked) == [("b", 2), ("d", 4)]
    assert sorted(told[0]) == [(("b", 2), -1), (("d", 4), 1)]
    subscription.close()
    assert next(row for row in words if row == first) is first
