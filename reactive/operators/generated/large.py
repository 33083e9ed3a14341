"""What is computed in another way of large loads, and made ready at the first one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reactive.collections.zset import Batch

MANY = 10_000
"""From so many rows on columns are tried."""


def when_large(make: Callable[[], Callable[..., Any] | None]) -> Callable[..., Any]:
    """What is made at the first load that is large, of this and other such; None of other deltas.

    >>> when_large(lambda: len)([("a", 1)])
    """
    made: list[Callable[..., Any] | None] = []

    def of(delta: Sequence[Any], *state: Any) -> Any:
        if delta.__class__ is not Batch or len(delta) < MANY or delta.fields is None:
            return None
        if not made:
            made.append(make())
        return None if made[0] is None else made[0](delta, *state)

    return of
