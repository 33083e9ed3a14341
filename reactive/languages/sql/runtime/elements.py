"""The elements of arrays, as rows."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import Any


def elements(offset: bool, *arrays: Iterable[Any] | None) -> list[Any]:
    """The elements of an array, or of several side by side; none of NULL.

    >>> elements(False, (1, 2)), elements(True, (1,), (3, 4))
    ([1, 2], [(1, 3, 1), (None, 4, 2)])
    """
    given = [array or () for array in arrays]
    if len(given) == 1 and not offset:
        return list(given[0])
    rows = zip_longest(*given)
    return [(*row, n) for n, row in enumerate(rows, 1)] if offset else list(rows)


def elements_or_none(offset: bool, *arrays: Iterable[Any] | None) -> list[Any]:
    """The same, and NULL where there are none."""
    found = elements(offset, *arrays)
    width = len(arrays) + offset
    return found or [None if width == 1 else (None,) * width]
