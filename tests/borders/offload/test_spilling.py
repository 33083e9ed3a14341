"""Tables whose rows leave the process with the part that alone reads them."""

from __future__ import annotations

from typing import Any

import pytest

from reactive import Count, Database, Sum, TableError
from reactive.engine.transactions.transaction import Transaction
from tests.borders.offload.elsewhere import Apart, Elsewhere


def orders(offload: Elsewhere) -> Any:
    db = Database(offload=offload)
    table: Any = db.table(tuple, name="orders")
    totals = table.where(lambda o: o[1] > 0).group_by(lambda o: o[0]).aggregate(Count())
    view = totals.materialize("totals")
    table.add_all([("ann", 5), ("bob", 20), ("bob", 20)])
    return db, table, view


def test_a_table_goes_with_the_part_that_alone_reads_it_and_still_checks_what_is_removed() -> None:
    _, table, view = orders(Elsewhere())
    view.offload()
    assert isinstance(table._store, Apart)
    table.add(("cyd", 1))
    table.remove(("bob", 20))
    with pytest.raises(TableError):
        table.remove(("dan", 1))
    assert sorted(table) == [("ann", 5), ("bob", 20), ("cyd", 1)]
    assert dict(view) == {"ann": 1, "bob": 1, "cyd": 1}
    view.verify()


def test_a_table_that_somebody_else_reads_stays() -> None:
    _, table, view = orders(Elsewhere())
    other = table.distinct().materialize()
    view.offload()
    assert not isinstance(table._store, Apart) and len(other) == 2


def test_it_comes_back_before_something_in_the_process_reads_it() -> None:
    _, table, view = orders(Elsewhere())
    view.offload()
    table.add(("cyd", 1))
    right = table.select(lambda o: o[0]).materialize()
    joined = table.join(table, on=lambda a, b: a[0] == b[0]).materialize()
    assert not isinstance(table._store, Apart)
    table.remove(("bob", 20))
    for each in (view, right, joined):
        each.verify()
    assert len(joined) == 3


def test_another_part_elsewhere_leaves_it_where_it_is_and_a_recall_brings_it_back() -> None:
    _, table, view = orders(Elsewhere())
    view.offload()
    again = view.relation.where(lambda customer, n: n > 1).materialize()
    assert isinstance(table._store, Apart)
    assert list(again) == [("bob", 2)]
    view.recall()
    assert not isinstance(table._store, Apart)
    table.add(("ann", 7))
    for each in (view, again):
        each.verify()


def test_a_transaction_over_a_spilled_table_is_all_or_nothing() -> None:
    _, table, view = orders(Elsewhere())
    view.offload()
    with pytest.raises(ZeroDivisionError), Transaction(table._engine):
        table.add(("cyd", 1))
        table.remove(("ann", 5))
        raise ZeroDivisionError
    view.verify()
    assert len(table) == 3


def test_when_nobody_can_be_reached_the_rows_are_still_there() -> None:
    offload = Elsewhere()
    _, table, view = orders(offload)
    view.offload()
    offload.gone = True
    table.add(("cyd", 1))
    view.recall()
    assert dict(view) == {"ann": 1, "bob": 2, "cyd": 1}


def test_a_sum_over_a_spilled_table_follows_updates() -> None:
    db = Database(offload=Elsewhere())
    table: Any = db.table(tuple, name="orders")
    view = table.group_by(lambda o: o[0] % 3).aggregate(Sum(lambda o: o[1])).materialize()
    table.add_all([(n, n) for n in range(30)])
    view.offload()
    for n in range(30):
        table.update((n, n), (n, n + 1))
    view.verify()
    table.clear()
    assert not len(table) and not len(view)


def test_a_spilled_table_can_be_dropped() -> None:
    db, table, view = orders(Elsewhere())
    names = db.table(str, name="names")
    view.offload()
    table.add(("cyd", 1))
    db.drop(table, views=True)
    assert view.closed
    assert db._engine.offloading.spilling.stores == {}
    with pytest.raises(TableError, match="table 'orders' was dropped"):
        table.add(("dan", 1))
    new = db.table(tuple, name="orders")
    counted = new.group_by(lambda o: o[0]).aggregate(Count()).materialize()
    new.add(("eve", 1))
    names.add("eve")
    counted.offload()
    assert dict(counted) == {"eve": 1}
    db.flush()
    counted.verify()


def test_a_table_with_views_elsewhere_can_be_replaced() -> None:
    db, table, view = orders(Elsewhere())
    kept = table.distinct().materialize()
    view.offload()
    new = db.table(tuple, name="orders", replace=True)
    assert view.closed and kept.closed
    assert list(new) == []
    assert db._engine.graph.nodes() == [] and db._engine.graph.remotes == ()
