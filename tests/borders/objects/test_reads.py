"""Attributes that no query reads are assigned without a commit; later readers see them."""

from __future__ import annotations

from typing import Any

import pytest

from reactive import Count, Database, Max, Sum
from tests.borders.objects.kinds import Plain

ALL = None
QUERIES: list[tuple[Any, set[str] | None]] = [
    (lambda t: t.where(lambda o: o.total > 3).select(lambda o: o.id), {"id", "total"}),
    (lambda t: t.where(lambda o: o.total > 3), ALL),
    (lambda t: t.select(lambda o: (o.customer, o.total + 1)), {"customer", "total"}),
    (lambda t: t.select(lambda o: o.with_tax()), ALL),
    (lambda t: t.select(lambda o: o.is_large), ALL),
    (lambda t: t.select(str), ALL),
    (lambda t: t.select(lambda o: (o, 1)), ALL),
    (lambda t: t.group_by(lambda o: o.customer).aggregate(Count()), {"customer"}),
    (lambda t: t.aggregate(Sum(lambda o: o.total), Max(lambda o: o.id)), {"id", "total"}),
    (lambda t: t.select(lambda o: o.id).distinct(), {"id"}),
    (lambda t: t.distinct(), ALL),
    (
        lambda t: t.join(t, on=lambda a, b: a.customer == b.customer).select(lambda a, b: a.id),
        {"id", "customer"},
    ),
    (lambda t: t.semi_join(t, on=lambda a, b: a.total < b.total), ALL),
    (lambda t: t.order_by(lambda o: o.total), ALL),
]


@pytest.mark.parametrize(("query", "names"), QUERIES)
def test_an_attribute_that_no_query_reads_is_no_commit(query: Any, names: set[str] | None) -> None:
    db = Database()
    table = db.table(Plain, key="id")
    view = query(table).materialize()
    one = Plain(1, 5.0, "ann")
    table.add(one)
    for name, value in (("note", "x"), ("customer", "bob"), ("total", 9.0), ("id", 2)):
        version = db.version
        setattr(one, name, value)
        is_read = names is ALL or name in names or name == "id"
        assert (db.version > version) is is_read, name
        assert db.check_silent() == []
        view.verify()
    told = table.explain().splitlines()[-1]
    unread = [n for n in ("total", "customer", "note") if names is not ALL and n not in names]
    assert told.endswith(f"; an assignment to {', '.join(unread)} is no commit") is bool(unread)
    assert ("all, or nobody knows" in told) is (names is ALL)
    row = table[2]
    assert (row.note, row.customer, row.total) == ("x", "bob", 9.0)


def test_rows_are_brought_up_to_date_for_a_query_that_comes() -> None:
    db = Database()
    table = db.table(Plain, key="id")
    totals = table.select(lambda o: o.total).materialize()
    one, two = Plain(1, 5.0), Plain(2, 6.0)
    table.add_all([one, two])
    one.note = "x"
    with db.transaction():
        two.note = "y"
    notes = table.select(lambda o: o.note).materialize()
    assert sorted(notes) == ["x", "y"]
    one.note = "z"
    assert sorted(notes) == ["y", "z"]
    with db.transaction():
        one.customer = "ann"
        customers = table.select(lambda o: o.customer).materialize()
    assert sorted(customers, key=str) == [None, "ann"]
    with pytest.raises(KeyError), db.transaction():
        two.id = 7
        raise KeyError
    assert (two.id, sorted(totals)) == (2, [5.0, 6.0])


def test_what_was_not_read_is_put_back_too() -> None:
    db = Database()
    table = db.table(Plain, key="id")
    one = Plain(1, 5.0)
    table.add(one)
    version = db.version
    with pytest.raises(KeyError), db.transaction():
        one.note = "x"
        raise KeyError
    assert (one.note, table[1].note, db.version) == ("", "", version)
