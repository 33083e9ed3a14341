"""A summary of a replay: the median and the longest change, and how time grows with the facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import correlation, linear_regression, median

from examples.findbugs.replay.steps import Step


@dataclass(frozen=True, slots=True)
class Fit:
    """seconds = constant + per_fact * facts, by least squares."""

    constant: float
    per_fact: float
    r_squared: float
    """The share of the variance of the times that the line explains."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Seconds of the transactions. The first revision is apart: it is no change."""

    first: float
    whole: float
    """All of them, with the first one."""
    median: float | None
    """The median seconds of the changes; None if there are none."""
    longest: Step | None
    fit: Fit | None
    """The fit of time over the facts that some analysis reads; None for fewer than three sizes.
    Changes without such facts are left out: no subscriber is notified of them."""
    scratch: float | None
    """The median of plain evaluation, where it was measured."""


def summary(steps: Sequence[Step]) -> Summary:
    """Return the summary of a replay of at least one revision."""
    first, *changes = steps
    scratch = [step.scratch for step in changes if step.scratch is not None]
    return Summary(
        first.updating,
        sum(step.updating for step in steps),
        median(step.updating for step in changes) if changes else None,
        max(changes, key=lambda step: step.updating, default=None),
        fit([(step.facts_read, step.updating) for step in changes if step.facts_read]),
        median(scratch) if scratch else None,
    )


def fit(points: Sequence[tuple[int, float]]) -> Fit | None:
    """Return the line through facts and seconds; None of fewer than three numbers of facts.

    >>> fit([(0, 1.0), (10, 2.0), (20, 3.0)])
    Fit(constant=1.0, per_fact=0.1, r_squared=1.0)
    """
    if len({facts for facts, _ in points}) < 3:
        return None
    facts, seconds = [x for x, _ in points], [y for _, y in points]
    per_fact, constant = linear_regression(facts, seconds)
    spread = len(set(seconds)) > 1
    return Fit(constant, per_fact, correlation(facts, seconds) ** 2 if spread else 1.0)
