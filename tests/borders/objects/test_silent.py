"""An unseen change is found anywhere; a seen change is not found again."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from reactive import Database, TableError
from reactive.borders.objects.changes import EVERY
from reactive.borders.objects.containers.tracked_list import TrackedList
from tests.borders.objects.containers.orders import Line, Order
from tests.borders.objects.kinds import KINDS, Checked, Plain, behind


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_behind_the_back_is_named_until_it_is_told(kind: Any) -> None:
    db = Database()
    orders = db.table(kind, name="orders", key="id")
    totals = orders.select(lambda o: o.total).materialize()
    objects = [kind(id=number, total=1.0) for number in range(3)]
    orders.add_all(objects)
    assert db.check_silent() == []
    behind(objects[1], "total", 2.0)
    (found,) = db.check_silent()
    assert found.object is objects[1]
    assert (found.table, found.attributes) == ("orders", ("total",))
    objects[1].note = "x"
    assert [s.attributes for s in db.check_silent()] == [("total",)]
    db.touch(objects[1])
    assert (db.check_silent(), sorted(totals)) == ([], [1.0, 1.0, 2.0])
    behind(objects[2], "total", float("nan") if kind is not Checked else 3.0)
    with db.transaction():
        db.touch(orders[2])
    assert db.check_silent() == []


def test_strict_databases_look_at_some_objects_at_each_commit() -> None:
    db = Database(strict=True)
    orders = db.table(Plain, name="orders", key="id")
    totals = orders.select(lambda o: o.total).materialize()
    one, two = Plain(1, 5.0), Plain(2, 6.0)
    orders.add_all([one, two])
    behind(two, "total", 7.0)
    with pytest.raises(TableError, match=r"was changed without notice: total") as raised:
        for number in range(1000):
            one.total = float(number)
    assert "check_silent" in str(raised.value)
    assert (one.total in totals, len(totals)) == (True, 2)
    db.touch(two)
    for number in range(200):
        one.total = float(number)


def test_strict_databases_look_at_each_object_in_one_round() -> None:
    db = Database(strict=True)
    orders = db.table(Plain, name="orders", key="id")
    totals = orders.select(lambda o: o.total).materialize()
    every = [Plain(number, 5.0) for number in range(40)]
    orders.add_all(every)
    commits = len(every) * EVERY
    for number in range(commits):
        every[0].total = float(number)
    for one in every[1::13]:
        behind(one, "note", "x")
        with pytest.raises(TableError, match="was changed without notice: note"):
            for number in range(2 * commits):
                every[0].total = float(number)
        db.touch(one)
    assert len(totals) == len(every)


def test_a_round_goes_over_all_tables_of_a_strict_database() -> None:
    db = Database(strict=True)
    tables = [db.table(Plain, name=name, key="id") for name in ("few", "many", "none")]
    totals = [table.select(lambda o: o.total).materialize() for table in tables]
    few, many = [Plain(1, 5.0)], [Plain(number, 5.0) for number in range(20)]
    tables[0].add_all(few)
    tables[1].add_all(many)
    for one in (*few, *many[3::7]):
        behind(one, "note", "x")
        with pytest.raises(TableError, match="was changed without notice: note"):
            for number in range(2 * EVERY * 21 + EVERY):
                many[0].total = float(number)
        db.touch(one)
    assert [len(view) for view in totals] == [1, 20, 0]


@pytest.mark.parametrize("length", [1, 5_000])
def test_strict_databases_look_less_often_at_long_lists(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = Counter[int]()
    anew = TrackedList.anew

    def counted(container: Any, leaf: Any) -> Any:
        looked[len(container)] += 1
        return anew(container, leaf)

    db = Database(strict=True)
    orders = db.table(Order, key="id")
    towns = orders.select(lambda o: o.town).materialize()
    order = Order(1, "Bonn", [Line("a", 1)] * length, [], {}, set(), [])
    orders.add(order)
    monkeypatch.setattr(TrackedList, "anew", counted)
    for number in range(2_000):
        order.town = str(number)
    looks = 2_000 // EVERY
    assert looked[length] in (range(looks - 3, looks + 1) if length == 1 else (1,))
    assert list(towns) == ["1999"]


def test_without_such_tables_there_is_nothing_silent() -> None:
    assert Database().check_silent() == []
