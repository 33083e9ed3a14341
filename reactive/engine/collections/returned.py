"""What a callable gives where it is asked for rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def rows_returned(found: Any, method: str) -> Iterable[Any]:
    """What was returned, as rows.

    Raises
    ------
    TypeError: it is one value, or a text, whose characters are hardly meant.

    >>> list(rows_returned(range(2), "reduce"))
    [0, 1]
    """
    if isinstance(found, str | bytes) or not hasattr(type(found), "__iter__"):
        what = "nothing (does it have a return?)" if found is None else f"{found!r:.60}"
        raise TypeError(
            f"{method} takes a callable that returns rows, and this one returned {what}\n"
            "  return a list of rows: [row], or [] for none"
        )
    rows: Iterable[Any] = found
    return rows
