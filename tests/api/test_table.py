"""Tables: every method, in and out of transactions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reactive import Count, Database, PlanError, Sum, Table, TableError


@dataclass(frozen=True, slots=True)
class Order:
    id: int
    customer: str
    price: float = 1.0


@pytest.fixture
def orders() -> Table[Order]:
    return Database().table(Order, name="orders", key="id")


@pytest.fixture
def words() -> Table[str]:
    return Database().table(str, name="words")


def test_a_multiset_counts_copies(words: Table[str]) -> None:
    words.add("a", 2)
    words.add("a")
    assert (len(words), words.count("a"), list(words), words.items()) == (
        3,
        3,
        ["a"] * 3,
        [("a", 3)],
    )
    words.remove("a", 2)
    assert list(words) == ["a"]


def test_statements_of_many_rows_are_all_or_nothing(words: Table[str]) -> None:
    words.add_all(["a", "b"])
    with pytest.raises(TableError):
        words.remove_all(["a", "absent"])
    with pytest.raises(TableError):
        words.add_all(["c", 1])  # type: ignore[list-item]
    assert sorted(words) == ["a", "b"]
    assert words._engine.version == 1


def test_an_iterable_that_raises_changes_nothing(words: Table[str]) -> None:
    def rows() -> Any:
        yield "a"
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        words.add_all(rows())
    assert len(words) == 0


def test_discard_removes_only_what_is_there(words: Table[str]) -> None:
    words.add("a")
    words.discard("a")
    words.discard("a")
    assert len(words) == 0
    assert words._engine.version == 2


def test_update_replaces_one_copy(words: Table[str]) -> None:
    words.add("a", 2)
    words.update("a", "b")
    assert sorted(words) == ["a", "b"]


def test_an_update_to_itself_is_no_commit(words: Table[str]) -> None:
    words.add("a")
    seen: list[Any] = []
    with words.subscribe(seen.append):
        words.update("a", "a")
    assert seen == []


def test_update_of_an_absent_row_changes_nothing(words: Table[str]) -> None:
    with pytest.raises(TableError):
        words.update("a", "b")
    assert len(words) == 0


def test_replace_all_applies_the_difference(words: Table[str]) -> None:
    words.add_all(["a", "b", "b"])
    seen: list[Any] = []
    with words.subscribe(seen.append):
        words.replace_all(["b", "c"])
    assert sorted(words) == ["b", "c"]
    assert dict(seen[0].items()) == {"a": -1, "b": -1, "c": 1}


def test_clear_removes_all(words: Table[str]) -> None:
    words.add_all(["a", "a"])
    words.clear()
    assert list(words) == []


def test_plus_and_minus_assign_one_row(words: Table[str]) -> None:
    words += "ab"
    assert list(words) == ["ab"]
    words -= "ab"
    assert list(words) == []


def test_a_keyed_table_reads_as_a_mapping(orders: Table[Order]) -> None:
    orders.add(Order(7, "ann"))
    assert orders[7].customer == "ann"
    assert orders.get(8) is None
    keys: Any = orders
    assert 7 in keys
    assert 8 not in keys
    assert orders.count(Order(7, "ann")) == 1
    with pytest.raises(TableError):
        orders[8]


def test_upsert_replaces_the_row_of_its_key(orders: Table[Order]) -> None:
    orders.upsert(Order(7, "ann"))
    orders.upsert(Order(7, "bob"))
    assert list(orders) == [Order(7, "bob")]
    orders.delete(7)
    assert len(orders) == 0


def test_an_upsert_arrives_as_one_update(orders: Table[Order]) -> None:
    orders.add(Order(7, "ann"))
    seen: list[Any] = []
    with orders.where(lambda o: o.id > 0).subscribe(seen.append):
        orders.upsert(Order(7, "bob"))
        orders.upsert(Order(7, "bob"))
    assert [d.updated for d in seen] == [((Order(7, "ann"), Order(7, "bob")),)]
    assert (seen[0].added, seen[0].removed) == ((), ())


def test_replace_all_of_a_keyed_table_moves_keys(orders: Table[Order]) -> None:
    orders.add_all([Order(1, "a"), Order(2, "b")])
    orders.replace_all([Order(2, "a"), Order(1, "b")])
    assert sorted(o.customer + str(o.id) for o in orders) == ["a2", "b1"]


def test_removing_another_row_of_the_key_is_refused(orders: Table[Order]) -> None:
    orders.add(Order(7, "ann"))
    with pytest.raises(TableError):
        orders.remove(Order(7, "bob"))


def test_nan_rows_are_found_again() -> None:
    prices = Database().table(Order, name="prices")
    prices.add(Order(1, "a", float("nan")))
    prices.remove(Order(1, "a", float("nan")))
    assert len(prices) == 0


def test_a_nan_is_no_key() -> None:
    table = Database().table(float, name="t", key=lambda x: x)
    with pytest.raises(TableError, match="NaN"):
        table.add(math.nan)


def test_an_equal_row_that_comes_back_in_a_transaction_is_the_same_row() -> None:
    db = Database()
    left, right = db.table(tuple, name="left"), db.table(tuple, name="right")
    pairs = left.join(right, left_key=lambda r: r[0], right_key=lambda r: r[0]).materialize()
    right.add((1, "r"))
    left.add((1, "l"))
    with db.transaction():
        left.remove((1, "l"))
        left.add(tuple(["l"] and [1, "l"]))  # equal, but another object
    assert len(pairs) == 1
    left.remove((1, "l"))
    assert len(pairs) == 0
    assert pairs.stats().rows == 1


def test_a_rolled_back_transaction_restores_the_very_rows() -> None:
    db = Database()
    left = db.table(tuple, name="left")
    counts = left.group_by(lambda r: r[0]).aggregate(Count()).materialize()
    first = (1, "l")
    left.add(first)
    with pytest.raises(ZeroDivisionError), db.transaction():
        left.remove((1, "l"))
        left.add(tuple(["l"] and [1, "l"]))
        left.add((2, "m"))
        raise ZeroDivisionError
    assert next(iter(left)) is first
    assert dict(counts) == {1: 1}


def test_an_unstored_table_feeds_its_views() -> None:
    db = Database()
    clicks = db.table(int, name="clicks", stored=False)
    total = clicks.aggregate(Sum(lambda c: c), Count()).materialize()
    clicks.add_all([1, 2])
    clicks.remove(2)
    assert total.value == (1, 1)
    assert clicks._held() == 0


def test_an_unstored_table_can_still_be_subscribed_to_late() -> None:
    clicks = Database().table(int, name="clicks", stored=False)
    clicks.add(1)
    seen: list[Any] = []
    with clicks.where(lambda c: c > 1).subscribe(seen.append):
        clicks.add(2)
    assert [d.added for d in seen] == [(2,)]


def test_default_names_do_not_collide() -> None:
    db = Database()
    assert [db.table(int).name for _ in range(3)] == ["int", "int_2", "int_3"]


def test_rows_of_subclasses_and_generic_aliases_are_taken() -> None:
    db = Database()
    pairs = db.table(tuple[int, str], name="pairs")
    pairs.add((1, "a"))
    anything = db.table(object, name="anything")
    anything.add_all([1, "a", None, (1,)])
    assert len(anything) == 4


def test_rows_that_a_view_is_owed_are_not_there() -> None:
    """The net weight equals the number of distinct rows, so that each was once read as one copy."""
    flowing = Database().table(int, name="flowing", stored=False)
    view = flowing.where(lambda n: n > 0).materialize()
    flowing.remove(3)
    assert (len(view), list(view), view.items(), 3 in view) == (0, [], [(3, -1)], False)
    flowing.add(4, 2)
    flowing.add(5, 2)
    assert (len(view), list(view), view.snapshot()) == (4, [4, 4, 5, 5], [4, 4, 5, 5])
    assert view.count(3) == -1
    flowing.add(3, 2)
    assert sorted(view) == [3, 4, 4, 5, 5]


def test_what_is_no_row_is_not_there_though_it_equals_one() -> None:
    db = Database()
    numbers = db.table(int)
    numbers.add(1)
    assert (1 in numbers, numbers.count(1)) == (True, 1)
    for _ in range(2):
        assert (1.0 in numbers, numbers.count(1.0)) == (False, 0)
    with db.transaction():
        assert (1.0 in numbers, numbers.count(1.0)) == (False, 0)


def test_a_key_is_asked_for_once_per_statement() -> None:
    asked: list[Any] = []

    def key(row: tuple[int, int]) -> tuple[int, int]:
        asked.append(row)
        return row

    pairs = Database().table(tuple, name="pairs", key=key)
    pairs.add((1, 2))
    pairs.remove((1, 2))
    assert asked == [(1, 2), (1, 2)]


def test_a_row_in_its_own_place_is_no_change() -> None:
    db = Database()
    words = db.table(str, name="words")
    heard: list[object] = []
    with words.subscribe(heard.append):
        words.add("be")
        version = db._engine.version
        for _ in range(2):
            words.update("be", "be")
        with pytest.raises(TableError, match="it is not there"):
            words.update("to", "to")
        with pytest.raises(TableError):
            words.update([], [])  # type: ignore[call-overload]
    assert db._engine.version == version and len(heard) == 1 and list(words) == ["be"]


def test_a_table_is_found_by_its_name() -> None:
    db = Database()
    words = db.table(str, name="words")
    db.execute("create table Orders (id int primary key, total int default 0)")
    assert db.table("words") is words
    orders = db.table("orders")
    orders.add((1, 5))
    assert orders is db.table("Orders") and orders[1].total == 5
    with pytest.raises(PlanError, match="there is no table 'word'; there are words, Orders\n"):
        db.table("word")
    with pytest.raises(PlanError, match=r"there is no table 'a'\n.* makes one with rows of class"):
        Database().table("a")
    wrong: Any = "words"
    with pytest.raises(PlanError, match="a table takes the class of its rows, not 'words'"):
        db.table(wrong, name="others")


def test_a_table_that_sql_defined_in_a_file_is_found_by_its_name(tmp_path: Path) -> None:
    with Database(tmp_path / "orders.db") as db:
        db.execute("create table orders (id int primary key, total int)")
        db.table("orders").add((1, 5))
    with Database(tmp_path / "orders.db") as db:
        assert list(db.table("orders")) == [(1, 5)]
