"""The cost of a piece of work on Spark: seconds, CPU seconds, jobs and tasks.

Seconds mean little on a shared machine; counts do not depend on the load. CPU seconds are those of
this process, of the JVM (with its compiler and garbage collector) and of Python workers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any, TypeVar

from asv_benchmarks.offload.cpu import Watch

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Taken:
    """The cost of a piece of work."""

    seconds: float
    processor: float
    executions: float
    jobs: float
    stages: float
    tasks: float


class Meter:
    """Measure work of a JVM that this process has started.

    Parameters
    ----------
    spark: a session of it.
    """

    def __init__(self, spark: Any) -> None:
        self._context: Any = spark.sparkContext
        self._queries = spark._jsparkSession.sharedState().statusStore()
        self.found: dict[str, list[Taken]] = {}
        """The costs of each kind of work, one per run."""

    def measure(self, name: str, work: Callable[[], R]) -> R:
        """Do a piece of work of a kind."""
        before = self._counts()
        with Watch() as watch:
            began = perf_counter()
            done = work()
            seconds = perf_counter() - began
        counts = [b - a for a, b in zip(before, self._counts(), strict=True)]
        self.found.setdefault(name, []).append(Taken(seconds, watch.spent, *counts))
        return done

    def median(self, name: str) -> Taken:
        """Return the median of a kind of work; of more than three runs, without the first third."""
        found = self.found[name]
        return middle(found[len(found) // 3 :] if len(found) > 3 else found)

    def _counts(self) -> tuple[float, ...]:
        self._context._jsc.sc().listenerBus().waitUntilEmpty()
        jobs = self._context._jsc.sc().statusStore().jobsList(None)
        each = [jobs.apply(place) for place in range(jobs.size())]
        return (
            self._queries.executionsCount(),
            max((job.jobId() + 1 for job in each), default=0),
            sum(job.numCompletedStages() for job in each),
            sum(job.numCompletedTasks() for job in each),
        )


def middle(found: Sequence[Taken]) -> Taken:
    """Return the median of each figure."""
    names = ("seconds", "processor", "executions", "jobs", "stages", "tasks")
    return Taken(*(median(getattr(one, name) for one in found) for name in names))
