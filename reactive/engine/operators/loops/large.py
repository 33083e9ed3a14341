"""What is computed in another way of large loads, and made ready at the first one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reactive.engine.collections.zset import Batch

MANY = 10_000
"""From so many rows on other ways are tried."""


def when_large(
    make: Callable[[], Callable[..., Any] | None], *, needs_fields: bool = True
) -> Callable[..., Any]:
    """What is made at the first load that is large, of this and other such; None of other deltas.

    needs_fields: whether the classes of fields are to be known.

    >>> when_large(lambda: len)([("a", 1)])
    """
    made: list[Callable[..., Any] | None] = []

    def of(delta: Sequence[Any], *state: Any) -> Any:
        if delta.__class__ is not Batch or len(delta) < MANY:
            return None
        if needs_fields and delta.fields is None:
            return None
        if not made:
            made.append(make())
        return None if made[0] is None else made[0](delta, *state)

    return of


def first_that_fits(*ways: Callable[..., Any]) -> Callable[..., Any]:
    """What the first way gives that gives anything.

    >>> first_that_fits(lambda n: None, lambda n: n + 1)(1)
    2
    """

    def of(*given: Any) -> Any:
        return next((out for way in ways if (out := way(*given)) is not None), None)

    return of
