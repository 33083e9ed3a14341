"""Effort of a run: a sample by default, all of it with `EXAMPLES=1`, five times it with 5.

`make test` takes samples, other ones in each run unless `CI` is set; `make soak` takes all.
`SEED=7` repeats the values that a test has drawn with `drawing`, and the cases that are `sampled`:
a test that draws prints its seed, which pytest shows on failure.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from random import Random
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings

T = TypeVar("T")
SEED = int(
    os.environ.setdefault("SEED", "1" if os.environ.get("CI") else str(time.time_ns() % 10**9))
)
"""All processes of a run have the same."""
TIMES = int(os.environ.get("EXAMPLES", "0"))
SHARE = 40
"""The part of all examples that a sample is."""
APART = 8
"""Number of cases per sampled case, if the sample has each value of each parameter."""
LEAST = 4
"""The examples of the smallest sample."""


def examples(count: int, share: int = SHARE) -> settings:
    """Return the settings of a test of `count` examples."""
    number = count * TIMES or max(count // share, LEAST)
    return settings(max_examples=number, deadline=None, suppress_health_check=list(HealthCheck))


def seeds(count: int, share: int = SHARE) -> range:
    """Return the seeds of a test of `count` seeds; a sample has other seeds in each run."""
    if TIMES:
        return range(count * TIMES)
    number = max(count // share, 1)
    first = (SEED - 1) % (count // number) * number
    return range(first, first + number)


def cases(*values: T) -> tuple[T, ...]:
    """The cases of a test that takes long: all of them, or the first."""
    return values if TIMES else values[:1]


def stride(every: int, share: int = SHARE) -> int:
    """Return the distance of tried moments, or calls: `every` if all of them are tried."""
    return every if TIMES else every * share


def drawing() -> Random:
    """Return a generator with another seed in each run, unless `SEED` or `CI` is set.

    The seed is printed; pytest shows it for a failing test.
    """
    print(f"SEED={SEED} draws the same again")
    return Random(SEED)


def share_of(values: Sequence[T], name: str, share: int = APART) -> Sequence[T]:
    """Return a sample of values that many tests share, another one for each test and run."""
    if TIMES:
        return values
    return Random(f"{SEED} {name}").sample(values, max(len(values) // share, 1))


sampled = pytest.mark.sampled
"""Mark of a test with several parameters: a sample has each value of each at least once."""


def some_of(cases: Sequence[pytest.Function]) -> list[pytest.Function]:
    """The cases of a test that a sample has."""
    places: dict[str, dict[int, int]] = {}
    of: list[set[tuple[str, int]]] = []
    for case in cases:
        values = {name: id(value) for name, value in case.callspec.params.items()}
        known = {name: places.setdefault(name, {}) for name in values}
        of.append(
            {(name, known[name].setdefault(n, len(known[name]))) for name, n in values.items()}
        )
    kept = {n for n, found in enumerate(of) if (sum(at for _, at in found) + SEED) % APART == 0}
    seen = set[tuple[str, int]]().union(*(of[n] for n in kept))
    for n, found in enumerate(of):
        if not found <= seen:
            kept.add(n)
            seen |= found
    return [case for n, case in enumerate(cases) if n in kept]
