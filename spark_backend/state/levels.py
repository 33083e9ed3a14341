"""Which segments of a state table are put together, so that they stay few after any flushes.

    base 1,000,000 | 48,000 | 9,000 | 700 | 16 | 1 | 1 | 1        rows of each, the oldest first

A run of the youngest is put together as soon as there are too many; it reaches as far back as the
rows before it are not many more than those in it. Sizes fall by a factor then, and a row is written
anew some log(rows) times. A new base is made when what came later is a share of it.

Cost:   segments <= `most` + 1; rows written anew O(rows log rows).
Source: log-structured merge trees, tiered.
"""

from __future__ import annotations

from collections.abc import Sequence

FACTOR = 2
"""What is before a run is left if it has more than this many times its rows."""


def due(rows: Sequence[int], *, has_base: bool, most: int, share: float, least: int) -> int | None:
    """The place of the first segment of those that are to be put together; None for none.

    Parameters
    ----------
    rows: of each segment, the oldest first, which `has_base` says is the base.
    most: how many later ones there may be.
    share, least: a new base is made, which is place 0, when what came later has more rows than
        this share of the base, or of `least` rows.
    """
    base = rows[0] if has_base else 0
    if sum(rows) - base > share * max(base, least):
        return 0
    if len(rows) - has_base <= most:
        return None
    first = has_base + most // 2
    while first > has_base and rows[first - 1] <= FACTOR * sum(rows[first:]):
        first -= 1
    return first
