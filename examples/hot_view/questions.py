"""Repeated questions to the shop's views; each has its answer in a line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from examples.hot_view.rows import Spender
from examples.hot_view.shop import Shop
from examples.terminal import number


def _customer(shop: Shop) -> str:
    somebody = shop.best.read(stale_ok=True)[-1]
    count, total, largest = shop.spending[somebody.number]
    return f"{somebody.name}: {number(count, 'order')}, {total:,.2f} in all, {largest:,.2f} at most"


def _best(shop: Shop) -> str:
    return _leads(shop.best[0])


def _regions(shop: Shop) -> str:
    totals = sorted(((total, name) for name, _, total in shop.regions), reverse=True)
    return ", ".join(f"{name} {total:,.0f}" for total, name in totals[:3])


def _late(shop: Shop) -> str:
    return _leads(shop.best.read(stale_ok=True)[0])


def _leads(first: Spender) -> str:
    return f"{first.name} ({first.region}) first, with {first.total:,.2f}"


QUESTIONS: Mapping[str, Callable[[Shop], str]] = MappingProxyType(
    {
        "one customer": _customer,
        "best ten": _best,
        "regions": _regions,
        "best ten as of the last flush": _late,
    }
)
