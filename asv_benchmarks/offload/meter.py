"""What a piece of work takes on Spark: seconds, seconds of the JVM's processors, jobs and tasks.

Seconds mean little on a machine that others use; what is counted does not depend on them. The
processors' seconds are those of the JVM alone (also of its compiler and garbage collector): what
runs in columns runs nowhere else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, TypeVar

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Taken:
    """What a piece of work took."""

    seconds: float
    processor: float
    executions: float
    jobs: float
    stages: float
    tasks: float


class Meter:
    """Measures work of a JVM that this process has started.

    Parameters
    ----------
    spark: a session of it.
    """

    def __init__(self, spark: Any) -> None:
        self._context: Any = spark.sparkContext
        self._queries = spark._jsparkSession.sharedState().statusStore()
        self.found: dict[str, list[Taken]] = {}
        """What each kind of work took, every time."""

    def measure(self, name: str, work: Callable[[], R]) -> R:
        """Do a piece of work of a kind."""
        before, processor, began = self._counts(), self._processor(), perf_counter()
        done = work()
        seconds, processor = perf_counter() - began, self._processor() - processor
        counts = [b - a for a, b in zip(before, self._counts(), strict=True)]
        self.found.setdefault(name, []).append(Taken(seconds, processor, *counts))
        return done

    def median(self, name: str) -> Taken:
        """Of a kind of work; of what was done more than three times, without the first third."""
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

    def _processor(self) -> float:
        pid = self._context._gateway.proc.pid
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def middle(found: Sequence[Taken]) -> Taken:
    """The median of each figure."""
    names = ("seconds", "processor", "executions", "jobs", "stages", "tasks")
    return Taken(*(median(getattr(one, name) for one in found) for name in names))
