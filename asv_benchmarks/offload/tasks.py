"""What tasks of Spark took, one by one: a stage lasts as long as the longest of its tasks.

On a machine with few cores tasks wait for each other, and seconds say little of how the work is
spread. So the longest task of each stage is looked for, and the one with the most rows: with as
many cores as tasks, the first ones together are what the jobs take.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

FIRST_TRY = 0
MOST_TASKS = 100_000
MILLISECONDS = 1_000


@dataclass(frozen=True, slots=True)
class Task:
    """What one task took, and the rows that it read or wrote, whichever are more."""

    seconds: float
    rows: int


@dataclass(frozen=True, slots=True)
class Spread:
    """How the work of some jobs is spread.

    `longest` are the seconds of the longest task of each stage, together. Of the stage in which a
    task has the most rows, `most` are these, and `middle` those of the median task.
    """

    longest: float
    most: int
    middle: float


class Tasks:
    """Looks at the tasks of a JVM that this process has started.

    Parameters
    ----------
    spark: a session of it.
    """

    def __init__(self, spark: Any) -> None:
        self._context: Any = spark.sparkContext._jsc.sc()
        self._seen = set[int]()
        self.spread()

    def spread(self) -> Spread:
        """How the work of the jobs is spread that have ended since this was asked last."""
        stages = [tasks for tasks in self._new_stages() if tasks]
        longest = sum(max(task.seconds for task in tasks) for tasks in stages)
        counts = [[task.rows for task in tasks] for tasks in stages]
        heaviest = max(counts, key=max, default=[0])
        return Spread(longest, max(heaviest), median(heaviest))

    def _new_stages(self) -> Iterator[Sequence[Task]]:
        self._context.listenerBus().waitUntilEmpty()
        store = self._context.statusStore()
        for job in _each(store.jobsList(None)):
            for stage in _each(job.stageIds()):
                if stage not in self._seen:
                    self._seen.add(stage)
                    yield [_task(t) for t in _each(store.taskList(stage, FIRST_TRY, MOST_TASKS))]


def _each(found: Any) -> Iterator[Any]:
    """What is in a sequence of Scala."""
    return (found.apply(place) for place in range(found.size()))


def _task(found: Any) -> Task:
    metrics = found.taskMetrics().get()
    rows = (
        metrics.inputMetrics().recordsRead(),
        metrics.shuffleReadMetrics().recordsRead(),
        metrics.shuffleWriteMetrics().recordsWritten(),
        metrics.outputMetrics().recordsWritten(),
    )
    return Task(metrics.executorRunTime() / MILLISECONDS, max(rows))
