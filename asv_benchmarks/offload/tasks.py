"""The cost of each task of Spark: a stage lasts as long as its longest task.

On a machine with few cores tasks wait for each other, and seconds say little about the spread of
the work. So the longest task of each stage is recorded, and the task with the most rows: with as
many cores as tasks, the longest tasks together are the time of the jobs.
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
    """The seconds of one task, and the rows that it read or wrote, whichever are more."""

    seconds: float
    rows: int


@dataclass(frozen=True, slots=True)
class Spread:
    """The spread of the work of some jobs.

    `longest` is the sum of the seconds of the longest tasks of the stages. `most` is the largest
    number of rows of a task, and `middle` that of the median task of its stage.
    """

    longest: float
    most: int
    middle: float


class Tasks:
    """Read the tasks of a JVM that this process has started.

    Parameters
    ----------
    spark: a session of it.
    """

    def __init__(self, spark: Any) -> None:
        self._context: Any = spark.sparkContext._jsc.sc()
        self._seen = set[int]()
        self.spread()

    def spread(self) -> Spread:
        """Return the spread of the jobs that have ended since the last call."""
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
    """Yield the elements of a sequence of Scala."""
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
