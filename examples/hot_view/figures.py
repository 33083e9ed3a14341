"""The current figures, in words."""

from __future__ import annotations

from examples.hot_view import processes
from examples.hot_view.feeder import Feeder
from examples.hot_view.shop import Shop
from examples.terminal import duration, number
from reactive import OffloadStatus

Figures = list[tuple[str, str]]
"""The label of each figure, and the figure."""


def figures(shop: Shop, feeder: Feeder, memory_before: int) -> Figures:
    """All that changes by itself; `memory_before` is the most that there has been, in bytes."""
    parts = shop.db.offload_status()
    return [
        ("orders", f"{feeder.orders:,} came, {feeder.went:,} of them went again"),
        ("in the process", _here(shop, parts)),
        ("on Spark", _there(parts)),
        ("flushes", _flushes(parts)),
        ("memory", memory(memory_before)),
    ]


def memory(most: int) -> str:
    """Return the memory of this process, and of the JVM."""
    java = processes.jvm()
    of_java = "none" if java is None else megabytes(java.memory)
    return f"{megabytes(processes.this_one().memory)} now, {megabytes(most)} at most; JVM {of_java}"


def held(shop: Shop) -> int:
    """Return the bytes of the orders and views in the process: of all containers, without rows."""
    operators = {each for view in shop.views for each in view.stats().operators}
    return shop.orders.stats().bytes + sum(each.bytes for each in operators)


def kept(before: int, now: int) -> str:
    """Return the memory that the move released, from two measurements of `held`.

    >>> kept(30_000_000, 6_000_000)
    'orders and views took 30.0 MB in the process before they moved, and take 6.0 MB now: 80% less'
    >>> kept(2_000_000, 3_000_000)
    'orders and views took 2.0 MB in the process before they moved, and take 3.0 MB now: 50% more'
    """
    change = (now - before) / before
    more = f"{abs(change):.0%} {'more' if change > 0 else 'less'}"
    sizes = f"took {megabytes(before)} in the process before they moved, and take {megabytes(now)}"
    return f"orders and views {sizes} now: {more}"


def megabytes(size: int) -> str:
    """Write a size in bytes.

    >>> megabytes(12_345_678)
    '12.3 MB'
    """
    return f"{size / 1e6:,.1f} MB"


def _here(shop: Shop, parts: OffloadStatus) -> str:
    is_gone = any(part.flushes for part in parts)
    waiting = number(sum(part.lag for part in parts), "change")
    return f"{waiting} waiting for a flush" if is_gone else number(len(shop.orders), "order")


def _there(parts: OffloadStatus) -> str:
    if not any(part.flushes for part in parts):
        return "on its way" if parts else "nothing"
    rows, size = sum(part.rows for part in parts), sum(part.bytes for part in parts)
    return f"{number(rows, 'row')}, {megabytes(size)}"


def _flushes(parts: OffloadStatus) -> str:
    done = max((part.flushes for part in parts), default=0)
    last = max((part.seconds for part in parts), default=0.0)
    return f"{done:,}, the last one took {duration(last)}" if done else "none"
