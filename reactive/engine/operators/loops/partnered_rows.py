"""Rows of one side of a join that have a partner, or have none.

Cost: O(rows) look-ups, and the pairs of equal keys if a condition is tested on them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reactive.engine.collections.index import NO_MATCH

Row = Any
Fits = Callable[[Row, Row], object]
Keyed = tuple[list[Any], list[Row]]
"""The keys of rows, and the rows; rows that some test of their side leaves out are missing."""


def matched_rows(
    rows: list[Row], keyed: Keyed, others: dict[Any, Any], fits: Fits | None
) -> list[Row]:
    """Return the rows with a partner of the same key; the pair passes `fits`, if it is given."""
    matching = {key: others[key] for key in set(keyed[0]) if key in others and key is not NO_MATCH}
    return [
        row
        for key, row in zip(*keyed, strict=True)
        if key in matching and (fits is None or any(fits(row, other) for other in matching[key]))
    ]


def alone_rows(
    rows: list[Row], keyed: Keyed, others: dict[Any, Any], fits: Fits | None
) -> list[Row]:
    """Return the rows without such a partner."""
    matched = matched_rows(rows, keyed, others, fits)
    if len(matched) == len(rows):
        return []
    some = set(matched)
    return [row for row in rows if row not in some]
