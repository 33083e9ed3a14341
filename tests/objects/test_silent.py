"""What changed unseen is found, wherever it is; what changed seen is not."""

from __future__ import annotations

from typing import Any

import pytest

from reactive import Database, TableError
from tests.objects.kinds import KINDS, Checked, Plain, behind


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


def test_without_such_tables_there_is_nothing_silent() -> None:
    assert Database().check_silent() == []
