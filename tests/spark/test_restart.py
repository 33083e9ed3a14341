"""A process after a restart: the state that it continues, and the state that it refuses."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from reactive import Database, Max, OffloadError, Sum
from reactive.engine.remote.remote_operator import RemoteOperator
from spark_backend import SparkOffload

pytestmark = pytest.mark.usefixtures("either_way")


@dataclass(frozen=True, slots=True)
class Order:
    customer: int
    amount: float


@dataclass(frozen=True, slots=True)
class Customer:
    id: int
    town: str


CUSTOMERS = [Customer(n, "abc"[n % 3]) for n in range(6)]
ORDERS = [Order(n % 6, n / 4) for n in range(20)]


@dataclass
class Process:
    """One after the other, they have one checkpoint."""

    db: Database
    orders: Any
    customers: Any
    view: Any


@contextmanager
def process(
    spark: Any,
    folder: Path,
    *,
    least: float = 1.0,
    orders: list[Order] = ORDERS,
    key: Any = None,
    **options: Any,
) -> Iterator[Process]:
    offload = SparkOffload(session=spark, checkpoint=folder, threshold_rows=None, **options)
    with Database(offload=offload) as db:
        table: Any = db.table(Order, name="orders")
        customers: Any = db.table(Customer, name="customers", key=key)
        table.add_all(orders)
        customers.add_all(CUSTOMERS if orders else [])
        large = table.where(lambda o: o.amount >= least)
        joined = large.join(customers, on=lambda o, c: o.customer == c.id)
        towns = joined.group_by(lambda o, c: c.town).aggregate(Sum(lambda o, c: o.amount))
        yield Process(db, table, customers, towns.materialize("per town"))


def expected(orders: list[Order], least: float = 1.0) -> dict[str, float]:
    found: Counter[str] = Counter()
    for order in orders:
        if order.amount >= least:
            found["abc"[order.customer % 3]] += order.amount  # type: ignore[assignment]
    return dict(found)


def test_it_goes_on_where_the_tables_are_the_same(spark: Any, tmp_path: Path) -> None:
    with process(spark, tmp_path) as first:
        first.view.offload()
        first.orders.add(Order(1, 100.0))
        assert dict(first.view) == expected([*ORDERS, Order(1, 100.0)])
    with process(spark, tmp_path, orders=[Order(1, 100.0), *ORDERS[::-1]]) as second:
        second.view.offload()
        (line,) = second.db.offload_status()
        assert line.note == ""
        assert dict(second.view) == expected([*ORDERS, Order(1, 100.0)])


def test_levels_of_a_nest_go_on_and_put_the_rows_of_tables_back_once(
    spark: Any, tmp_path: Path
) -> None:
    """Two parts have the rows of one table."""
    more = Order(2, 7.0)
    for rows, adopt in ((ORDERS, None), ([more, *ORDERS[::-1]], None), ([], "state")):
        with process(spark, tmp_path, orders=rows) as now:
            nest = now.customers.nest(
                orders=lambda c, now=now: now.orders.where(lambda o: o.customer == c.id).nest(
                    same=lambda o: now.orders.where(lambda other: other.amount == o.amount)
                )
            )
            view = nest.materialize("nest")
            view.offload(adopt=adopt)
            assert not any(line.note for line in now.db.offload_status())
            if rows == ORDERS:
                now.orders.add(more)
            assert Counter(now.orders) == Counter([*ORDERS, more])
            assert len(view[CUSTOMERS[2]].orders) == 4
            view.verify()


@pytest.mark.parametrize("key", [None, "id"])
def test_tables_that_differ_are_refused_until_somebody_says_whose_rows_count(
    key: Any, spark: Any, tmp_path: Path
) -> None:
    with process(spark, tmp_path, key=key) as first:
        first.view.offload()
    with process(spark, tmp_path, orders=[], key=key) as second:
        with pytest.raises(OffloadError, match=r"'orders', 'customers' do not hold .* 0 rows are"):
            second.view.offload()
        assert list(second.view) == []
        second.view.offload(adopt="state")
        assert dict(second.view) == expected(ORDERS)
        assert sorted(second.orders, key=repr) == sorted(
            (o for o in ORDERS if o.amount >= 1), key=repr
        )
        assert set(second.customers) == set(CUSTOMERS)
        second.orders.add(Order(2, 7.0))
        second.customers.discard(CUSTOMERS[0])
        kept = [o for o in [*ORDERS, Order(2, 7.0)] if o.customer != 0]
        assert dict(second.view) == expected(kept)
        second.view.verify()
    with process(spark, tmp_path, orders=ORDERS[:9], key=key, adopt="process") as third:
        third.view.offload()
        assert dict(third.view) == expected(ORDERS[:9])
        third.view.verify()


def test_what_is_committed_while_rows_are_put_back_counts_once(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with process(spark, tmp_path) as first:
        first.view.offload()
    with process(spark, tmp_path, orders=ORDERS[5:], adopt="state") as second:
        more, differs = [Order(3, 50.0), Order(4, 60.0)], RemoteOperator.differs
        left = more.copy()

        def differs_meanwhile(self: RemoteOperator) -> Any:
            found = differs(self)
            if left:
                second.orders.add(left.pop())
            return found

        monkeypatch.setattr(RemoteOperator, "differs", differs_meanwhile)
        second.view.offload()
        assert dict(second.view) == expected([*ORDERS, *more])
        second.view.verify()
        assert not left


def test_a_view_whose_query_has_changed_begins_anew_and_says_so(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with process(spark, tmp_path) as first:
        first.view.offload()
    with (
        process(spark, tmp_path, least=3.0) as second,
        caplog.at_level(logging.WARNING, logger="reactive"),
    ):
        second.view.offload()
        assert dict(second.view) == expected(ORDERS, 3.0)
        (line,) = second.db.offload_status()
        assert line.note == "begun anew: the query of 'per town' is another than was kept"
        assert line.note in caplog.text
    caplog.clear()
    with process(spark, tmp_path, least=3.0) as third:
        third.view.offload()
        assert dict(third.view) == expected(ORDERS, 3.0)
        assert third.db.offload_status()[0].note == ""
    assert not caplog.text


def test_pickled_rows_of_another_process_are_read_only_if_they_are_trusted(
    spark: Any, tmp_path: Path
) -> None:
    def total(**options: Any) -> list[Any]:
        offload = SparkOffload(session=spark, checkpoint=tmp_path, **options)
        with Database(offload=offload) as db:
            table = db.table(tuple, name="rows")
            table.add_all([(1, frozenset("a")), (1, frozenset("b"))])
            view = table.group_by(lambda r: r[0]).aggregate(Max(lambda r: len(r[1])))
            shown = view.materialize("largest")
            shown.offload()
            return list(shown)

    assert total() == [(1, 1)]
    with pytest.raises(OffloadError, match=r"holds pickled rows .*\n.*trust=True"):
        total()
    assert total(trust=True) == [(1, 1)]


@pytest.mark.quick
def test_a_manifest_that_somebody_changed_stops_the_move_and_leaves_the_view(
    spark: Any, tmp_path: Path
) -> None:
    with process(spark, tmp_path) as first:
        first.view.offload()
    (path,) = tmp_path.rglob("manifest/*.json")
    found = json.loads(path.read_text())
    path.write_text(json.dumps({**found, "number": 5}))
    with process(spark, tmp_path) as second:
        with pytest.raises(OffloadError, match="its checksum is another"):
            second.view.offload()
        assert dict(second.view) == expected(ORDERS)


def test_rows_of_a_table_on_spark_are_taken_in_once(spark: Any, tmp_path: Path) -> None:
    rows = spark.createDataFrame([(1, 1.0), (2, 2.0), (2, 4.0)], "customer bigint, amount double")
    for _ in range(2):
        with Database(offload=SparkOffload(session=spark, checkpoint=tmp_path)) as db:
            table = db.spark_table(rows, Order, name="orders")
            totals = table.group_by(lambda o: o.customer).aggregate(Sum(lambda o: o.amount))
            assert sorted(totals.materialize("totals")) == [(1, 1.0), (2, 6.0)]


def test_sums_by_group_go_on_where_the_sums_are_those_of_the_tables(
    spark: Any, tmp_path: Path
) -> None:
    """The checkpoint of a single aggregate has sums and no rows."""

    def total(orders: list[Order], adopt: Any = None) -> dict[int, float]:
        offload = SparkOffload(session=spark, checkpoint=tmp_path, threshold_rows=None, trust=True)
        with Database(offload=offload) as db:
            table: Any = db.table(Order, name="orders")
            table.add_all(orders)
            groups = table.group_by(lambda o: o.customer).aggregate(Sum(lambda o: o.amount))
            view = groups.materialize("per customer")
            view.offload(adopt=adopt)
            assert not any(line.note for line in db.offload_status())
            table.add(Order(1, 100.0))
            view.verify()
            table.remove(Order(1, 100.0))
            return dict(view)

    expected = total(ORDERS)
    assert total(ORDERS[::-1]) == expected
    for rows in (ORDERS[3:], []):
        with pytest.raises(OffloadError, match=r"'orders' does not hold .* sums of \d groups"):
            total(rows)
    assert total(ORDERS[3:], "process") == {**expected, 0: 9.0, 1: 9.75, 2: 5.5}
    assert total(ORDERS[3:]) == {**expected, 0: 9.0, 1: 9.75, 2: 5.5}
