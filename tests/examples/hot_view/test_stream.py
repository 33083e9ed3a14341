"""The stream: the same again from a seed, few customers with much, and orders that go back."""

from __future__ import annotations

from collections import Counter
from itertools import islice

from examples.hot_view import figures
from examples.hot_view.compare import differences, in_process
from examples.hot_view.rows import Order
from examples.hot_view.stream import batches, customers
from reactive import Database
from tests.doctests import tried

ORDERS, CUSTOMERS = 20_000, 1_000


def test_a_seed_gives_the_same_stream_and_another_gives_another() -> None:
    first, again, other = (list(batches(ORDERS, CUSTOMERS, seed)) for seed in (0, 0, 1))
    assert first == again != other
    assert list(customers(CUSTOMERS, 0)) == list(customers(CUSTOMERS, 0))


def test_there_are_as_many_new_orders_as_asked_for() -> None:
    assert sum(len(batch.new) for batch in batches(1_234, CUSTOMERS, 0)) == 1_234


def test_only_orders_that_are_there_go() -> None:
    there: set[Order] = set()
    for batch in batches(ORDERS, CUSTOMERS, 0):
        assert len(set(batch.went)) == len(batch.went)
        assert there.issuperset(batch.went)
        assert there.isdisjoint(batch.came)
        there = (there - set(batch.went)) | set(batch.came)


def test_a_fifth_of_the_customers_gives_more_than_half_of_the_orders() -> None:
    orders = Counter(o.customer for b in batches(ORDERS, CUSTOMERS, 0) for o in b.new)
    most = orders.most_common(CUSTOMERS // 5)
    assert sum(count for _, count in most) > ORDERS / 2


def test_eight_in_a_hundred_orders_go_and_two_of_them_are_corrected() -> None:
    all_of_it = list(batches(ORDERS, CUSTOMERS, 0))
    assert 0.07 < sum(len(b.went) for b in all_of_it) / ORDERS < 0.09
    assert 0.015 < sum(len(b.corrected) for b in all_of_it) / ORDERS < 0.025


def test_a_view_that_lacks_an_order_is_found() -> None:
    people = list(customers(CUSTOMERS, 0))
    stream = list(batches(2_000, CUSTOMERS, 0))
    one, other = in_process(people, stream), in_process(people, stream)
    assert differences(one, other) == []
    other.orders.remove(next(iter(islice(other.orders, 1))))
    assert "spending: 2 rows" in differences(one, other)


def test_the_examples_in_docstrings_are_right() -> None:
    assert tried(figures).failed == 0


def test_nothing_of_the_shop_needs_spark() -> None:
    shop = in_process(customers(10, 0), batches(500, 10, 0))
    assert type(shop.db) is Database
    assert sum(count for _, count, _, _ in shop.spending) == len(shop.orders)
    for view in shop.views:
        view.verify()
