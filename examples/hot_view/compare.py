"""Run the queries of the hot view over its stream in a database that offloads nothing."""

from __future__ import annotations

from collections.abc import Iterable

from examples.hot_view.rows import Customer
from examples.hot_view.shop import Shop
from examples.hot_view.stream import Batch
from examples.terminal import number
from reactive import Database


def in_process(customers: Iterable[Customer], stream: Iterable[Batch]) -> Shop:
    """Return a shop that stays in the process, after all of the stream; made by one commit."""
    shop = Shop(Database(), customers)
    with shop.db.transaction():
        for batch in stream:
            shop.take(batch)
    return shop


def differences(one: Shop, other: Shop) -> list[str]:
    """Return the names of the views that are not the same, each with how many rows differ."""
    found = []
    for view, twin in zip(one.views, other.views, strict=True):
        differ = set(view.zset().items()) ^ set(twin.zset().items())
        if differ:
            found.append(f"{view.name}: {number(len(differ), 'row')}")
    return found
