"""How many examples a run tries: few by default, more with `RECURSION_EXAMPLES=20`."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

FACTOR = int(os.environ.get("RECURSION_EXAMPLES", "1"))


def examples(count: int) -> settings:
    """Settings of a test with so many examples, times the factor of the environment."""
    return settings(
        max_examples=count * FACTOR, deadline=None, suppress_health_check=list(HealthCheck)
    )
