"""The rows of views as DataFrames, and tables that are DataFrames."""

from __future__ import annotations

from collections import Counter as Bag
from dataclasses import dataclass
from typing import Any

import pytest

from reactive import Count, Database, Max, OffloadError, Sum
from spark_backend import SparkOffload

pytestmark = pytest.mark.usefixtures("either_way")


@dataclass(frozen=True, slots=True)
class Order:
    customer: int
    amount: float


ORDERS = [Order(n % 7, n / 4) for n in range(40)]


@pytest.fixture
def db(offload: SparkOffload, session: Any) -> Any:
    with Database(offload=offload) as made:
        yield made


def values(frame: Any) -> Bag[Any]:
    return Bag(tuple(row) for row in frame.collect())


def test_a_view_is_a_dataframe_wherever_its_rows_are(db: Any) -> None:
    orders = db.table(Order, name="orders")
    orders.add_all(ORDERS)
    per_customer = orders.group_by(lambda o: o.customer)
    summed = per_customer.aggregate(Count(), Sum(lambda o: o.amount)).materialize("summed")
    largest = per_customer.aggregate(Max(lambda o: o.amount)).materialize("largest")
    for amount, view in enumerate((summed, largest)):
        here = values(view.to_spark())
        assert here == Bag(view)
        view.offload()
        orders.add(Order(8, float(amount)))
        assert values(view.to_spark()) == Bag(view) != here


def test_rows_that_fit_no_columns_are_told(db: Any) -> None:
    table = db.table(object, name="things")
    view = table.distinct().materialize("mixed")
    table.add_all([1, "one"])
    with pytest.raises(OffloadError, match="int or str"):
        view.to_spark()
    with pytest.raises(OffloadError, match="'one'"):
        view.to_spark(int).collect()


def test_a_table_on_spark_feeds_views_without_coming_by(db: Any, spark: Any) -> None:
    frame = spark.createDataFrame(
        [(o.customer, o.amount) for o in ORDERS], "customer int, amount double"
    )
    orders = db.spark_table(frame, Order, name="orders")
    names = db.table(tuple, name="names")
    names.add_all([(n, f"c{n}") for n in range(7)])
    summed = orders.where(lambda o: o.amount > 1).group_by(lambda o: o.customer)
    views = [
        summed.aggregate(Sum(lambda o: o.amount)).materialize("summed"),
        summed.aggregate(Max(lambda o: o.amount)).materialize("largest"),
        orders.join(names, on=lambda o, n: o.customer == n[0]).materialize("named"),
        orders.where(lambda o: o.amount > 8).materialize("large"),
        orders.order_by(lambda o: -o.amount).limit(3).materialize("first"),
        orders.aggregate(Count()).materialize("count"),
    ]
    for view in views:
        view.verify()
    assert views[-1].value == 40
    with db.transaction():
        orders.add(Order(3, 99.0))
        orders.remove(ORDERS[5])
        names.remove((1, "c1"))
    orders.add_frame(frame.limit(0))
    orders.remove_frame(frame.filter("customer = 2"))
    for view in views:
        view.verify()
    assert "Spark columns" in views[3].explain()
    assert values(views[3].to_spark()) == Bag((o.customer, o.amount) for o in views[3])
    assert values(orders.to_spark()) == Bag((o.customer, o.amount) for o in orders)


@pytest.mark.quick
def test_a_table_on_spark_belongs_to_one_database_and_is_gone_with_it(
    offload: SparkOffload, spark: Any
) -> None:
    frame = spark.createDataFrame([(1, 0.5), (2, 0.25)], "customer int, amount double")
    for _ in range(2):
        with Database(offload=offload) as one, Database(offload=offload) as other:
            tables = [db.spark_table(frame, Order, name="orders") for db in (one, other)]
            tables[0].add(Order(3, 1.0))
            assert [len(table) for table in tables] == [3, 2]


def test_a_row_in_the_place_of_another_of_its_group_changes_the_sums(db: Any, spark: Any) -> None:
    frame = spark.createDataFrame([(1, 0.5), (2, 0.25)], "customer int, amount double")
    orders = db.spark_table(frame, Order, name="orders", key="customer")
    view = orders.group_by(lambda o: 0).aggregate(Count(), Sum(lambda o: o.amount)).materialize()
    orders.upsert_frame(spark.createDataFrame([(1, 7.5)], "customer int, amount double"))
    assert view[0] == (2, 7.75)
    view.verify()
