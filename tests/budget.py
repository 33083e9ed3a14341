"""How much a run tries: a sample by default, all of it with `EXAMPLES=1`, five times it with 5.

`make test` takes samples, other ones in each run unless `CI` is set; `make soak` takes all.
"""

from __future__ import annotations

import os
from typing import TypeVar

from hypothesis import HealthCheck, settings

T = TypeVar("T")
TIMES = int(os.environ.get("EXAMPLES", "0"))
SHARE = 4
"""The part of all examples that a sample is."""


def examples(count: int, share: int = SHARE) -> settings:
    """Settings of a test of so many examples."""
    number = count * TIMES or max(count // share, SHARE)
    return settings(max_examples=number, deadline=None, suppress_health_check=list(HealthCheck))


def seeds(count: int, share: int = SHARE) -> range:
    """The seeds of a test of so many."""
    return range(count * TIMES or max(count // share, 1))


def cases(*values: T) -> tuple[T, ...]:
    """The cases of a test that takes long: all of them, or the first."""
    return values if TIMES else values[:1]


def stride(every: int, share: int = SHARE) -> int:
    """How far apart the moments, or calls, are that are tried: `every` where all of them are."""
    return every if TIMES else every * share
