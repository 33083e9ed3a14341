"""The process that runs the pipeline, and is killed.

    python -m examples.pipeline.worker FOLDER CUSTOMERS

It reads the number of each batch from a line of its input. When the batch is in the tables, it
writes its time to a line of its output, as JSON. It ends at the end of the input.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

from examples.hot_view import processes
from examples.hot_view.__main__ import QUICK_START
from examples.pipeline import again
from examples.pipeline.feed import customers
from examples.pipeline.pipeline import Pipeline
from reactive import Database
from spark_backend import SparkOffload


@dataclass(frozen=True, slots=True)
class Told:
    """The answer after a batch: its seconds, those of Spark from scratch, and memory in bytes."""

    batch: int
    seconds: float
    again: float
    memory: int


def main(arguments: Sequence[str]) -> None:
    """Process batches until the end of the input."""
    folder, people = Path(arguments[0]), customers(int(arguments[1]))
    offload = SparkOffload(checkpoint=str(folder / "checkpoint"), config=QUICK_START)
    with Database(offload=offload) as db:
        pipeline = Pipeline(db, folder, people)
        for line in sys.stdin:
            told = _take(pipeline, folder, int(line))
            print(json.dumps(asdict(told)), flush=True)


def _take(pipeline: Pipeline, folder: Path, number: int) -> Told:
    began = perf_counter()
    pipeline.take(number)
    seconds = perf_counter() - began
    spark = pipeline.revenue.to_spark().sparkSession
    began = perf_counter()
    again.evaluate(spark, folder, list(pipeline.customers))
    return Told(number, seconds, perf_counter() - began, processes.this_one().memory)


if __name__ == "__main__":
    main(sys.argv[1:])
