"""The test that a row has as many items as names are given to them.

for key, value in pairs             where unpacks(row)
"""

from __future__ import annotations

from typing import Any

from optimizer.record import record


@record
class Unpacks:
    """Whether a row has as many items as are asked for; another raises as it does in Python."""

    count: int

    def __call__(self, row: Any) -> bool:
        if isinstance(row, tuple | str | bytes) and len(row) == self.count:
            return True
        if not isinstance(row, tuple | str | bytes):
            raise TypeError(f"cannot unpack {type(row).__name__} object {row!r:.60}")
        raise ValueError(f"cannot unpack {row!r:.60}: {self.count} values are needed")
