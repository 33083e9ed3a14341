"""The cost of inserting and deleting a value, of several sides in turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median
from time import process_time
from typing import Any

Change = Callable[[int, int], object]
"""Function that inserts (1) or deletes (-1) a value."""


def coming_and_going(
    sides: Mapping[str, tuple[Change, Any]], size: int, *, changes: int, repeats: int
) -> dict[str, float]:
    """Return the microseconds of CPU of a change by side, the median of some turns.

    Values are beyond the `size` existing ones. A change before them splits the loaded container.
    """
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for change, _ in sides.values():
        change(-1, 1)
    for _ in range(repeats):
        for name, (change, _) in sides.items():
            before = process_time()
            for weight in (1, -1):
                for value in range(size, size + changes):
                    change(value, weight)
            taken[name].append((process_time() - before) / (2 * changes) * 1e6)
    return {name: median(times) for name, times in taken.items()}
