"""The time of each batch, as bars that grow with the seconds."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from examples.pipeline.worker import Told
from examples.terminal import duration

WIDTH = 28
"""Characters of the longest bar of a line."""
PER_SECOND = 4
FULL, MORE = "█", "…"


def headline() -> str:
    """Return the names of the columns of `line`."""
    return f"{'batch':>5}  {'orders':>11}  {'live':>8} {'':{WIDTH}}  Spark from scratch"


def line(told: Told, orders: int) -> str:
    """Return a batch, with the orders that there are by then.

    >>> line(Told(3, 0.75, 1.5, 0), 40_000).split()
    ['3', '40,000', '750.0', 'ms', '███', '1.5', 's', '██████']
    """
    live = f"{duration(told.seconds):>8} {bar(told.seconds):{WIDTH}}"
    return f"{told.batch:>5}  {orders:>11,}  {live}  {duration(told.again):>8} {bar(told.again)}"


def bar(seconds: float) -> str:
    """So many seconds.

    >>> bar(1.0), bar(0.01)
    ('████', '')
    """
    length = round(seconds * PER_SECOND)
    return FULL * length if length <= WIDTH else FULL * (WIDTH - 1) + MORE


def growth(seconds: Sequence[float]) -> float:
    """Return the median of the last third as a multiple of that of the first.

    >>> growth([1.0, 1.0, 2.0, 2.0, 3.0, 3.0])
    3.0
    """
    third = max(len(seconds) // 3, 1)
    return median(seconds[-third:]) / median(seconds[:third])
