"""How much a run tries: little by default, so many times as much with `RECURSION_EXAMPLES=20`."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

FACTOR = int(os.environ.get("RECURSION_EXAMPLES", "1"))


def examples(count: int) -> settings:
    """Settings of a test with so many examples, times the factor of the environment."""
    return settings(
        max_examples=count * FACTOR, deadline=None, suppress_health_check=list(HealthCheck)
    )


def some(count: int, every: int) -> range:
    """Numbers from 1 to a count: every so many-th by default, and all in a larger run."""
    return range(1, count + 1, every if FACTOR == 1 else 1)
