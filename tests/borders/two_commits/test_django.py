"""`commit_with` of Django: the block is an `atomic()` of its connection."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from reactive import PlanError, TransactionError
from tests.borders.two_commits.shop import Order, Shop

django = pytest.importorskip("django")
pytest.importorskip("django.db")
ALIAS = "two commits"
INSERT = "insert into orders values (%s, %s, %s)"


class Refused(Exception): ...


@pytest.fixture
def connection(shop: Shop) -> Iterator[Any]:
    settings = import_module("django.conf").settings
    connections = import_module("django.db").connections

    if not settings.configured:
        settings.configure(DATABASES={})
    django.setup()
    connections.databases[ALIAS] = {
        **connections.databases["default"],
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(shop.file),
    }
    yield connections[ALIAS]
    connections[ALIAS].close()
    del connections[ALIAS], connections.databases[ALIAS]


def put(shop: Shop, connection: Any, order: Order) -> None:
    with connection.cursor() as cursor:
        cursor.execute(INSERT, (order.id, order.customer, order.total))
    shop.orders.add(order)


def given(connection: Any, how: str) -> Any:
    transaction = import_module("django.db.transaction")
    proxy = import_module("django.utils.connection").ConnectionProxy
    match how:
        case "alias":
            return ALIAS
        case "proxy":
            return proxy(django.db.connections, ALIAS)
        case "atomic":
            return transaction.atomic(using=ALIAS)
    return connection


@pytest.mark.parametrize("how", ["alias", "connection", "proxy", "atomic"])
def test_both_commit_or_neither_does(shop: Shop, connection: Any, how: str) -> None:
    with shop.db.transaction(commit_with=given(connection, how)):
        put(shop, connection, Order(2, "bob", 6))
    shop.check()
    for order, kind in [(Order(3, "cy", 0), ZeroDivisionError), (Order(3, "cy", 7), Refused)]:
        with pytest.raises(kind), shop.db.transaction(commit_with=given(connection, how)):
            put(shop, connection, order)
            if order.total:
                raise Refused
        shop.check()
    with (
        pytest.raises(django.db.IntegrityError),
        shop.db.transaction(commit_with=given(connection, how)),
    ):
        shop.orders.add(Order(4, "dan", 7))
        with connection.cursor() as cursor:
            cursor.execute(INSERT, (2, "bob", 6))
    assert len(shop.orders) == 2 and connection.get_autocommit()
    shop.check()


def test_it_is_the_outermost_atomic(shop: Shop, connection: Any) -> None:
    transaction = import_module("django.db.transaction")

    with (
        transaction.atomic(using=ALIAS),
        pytest.raises(TransactionError, match=r"inside an atomic\(\)"),
        shop.db.transaction(commit_with=ALIAS),
    ):
        raise AssertionError
    with shop.db.transaction(commit_with=ALIAS), transaction.atomic(using=ALIAS):
        put(shop, connection, Order(2, "bob", 6))
    shop.check()


def test_what_was_marked_for_rollback_is_refused(shop: Shop, connection: Any) -> None:
    transaction = import_module("django.db.transaction")

    with (
        pytest.raises(TransactionError, match="marked it for rollback"),
        shop.db.transaction(commit_with=ALIAS),
    ):
        put(shop, connection, Order(2, "bob", 6))
        transaction.set_rollback(True, using=ALIAS)
    assert len(shop.orders) == 1
    shop.check()


def test_hooks_run_when_it_has_committed_and_what_they_raise_comes_after_both(
    shop: Shop, connection: Any
) -> None:
    transaction = import_module("django.db.transaction")

    seen: list[int] = []

    def hook() -> None:
        seen.append(len(shop.read()))
        raise Refused

    with pytest.raises(Refused), shop.db.transaction(commit_with=ALIAS):
        put(shop, connection, Order(2, "bob", 6))
        transaction.on_commit(hook, using=ALIAS)
    assert seen == [2] and len(shop.orders) == 2
    shop.check()


def test_there_is_no_such_connection(shop: Shop, connection: Any) -> None:
    for wrong in ("nowhere", django.db.models.F("x")):
        with pytest.raises(PlanError):
            shop.db.transaction(commit_with=wrong)
