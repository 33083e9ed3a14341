"""A pipeline on Spark, killed in the middle and continued.

    .venv/bin/python -m examples.pipeline

Files of orders and of links appear in folders, batch by batch; some orders are cancelled, some
links removed. Two live queries follow them: the revenue of each region, by a join and an aggregate,
and PageRank. Both are written to tables, each change once. `pipeline.py` is all of it.

At each batch Spark alone also evaluates the queries from all files, for comparison. In the middle
the process is killed by SIGKILL, with its JVM, during a batch; another one continues from the
files. At the end both tables are compared with plain Python.

Needs Java 17 or newer. Exit codes: 0 if both tables are right, 1 if they are not or the process
has failed, 2 for wrong usage and where Java is missing, 130 if interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import perf_counter

from rich.console import Console

from examples.arguments import positive
from examples.pipeline import chart, picture
from examples.pipeline.compare import differences
from examples.pipeline.feed import Totals, batches, customers, write
from examples.pipeline.running import Running, WorkerEnded
from examples.pipeline.worker import Told
from examples.terminal import console, duration, number
from reactive import OffloadError
from spark_backend.cluster.session import check_spark

SAME, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the pipeline; gives the exit code."""
    options = _parser().parse_args(arguments)
    errors = console(to_errors=True)
    try:
        check_spark()
    except OffloadError as error:
        errors.print(str(error), style="red", markup=False)
        return USAGE
    try:
        with TemporaryDirectory() as folder:
            return _run(options, Path(folder), console())
    except WorkerEnded as error:
        errors.print(f"the process of the pipeline has ended\n{error}", style="red", markup=False)
        return FAILED
    except KeyboardInterrupt:
        errors.print("interrupted")
        return INTERRUPTED


def _run(options: argparse.Namespace, folder: Path, out: Console) -> int:
    totals, told, orders = Totals(Counter(), Counter()), list[Told](), list[int]()
    killed_at = options.batches // 2
    stream = enumerate(batches(options.batches, options.orders, options.customers, options.seed))
    out.print(chart.headline())
    with _worker(folder, options.customers) as workers:
        for batch, rows in stream:
            write(folder, batch, rows)
            totals.take(rows)
            if not workers:
                workers.append(Running(folder, options.customers))
            if batch == killed_at and told:
                _kill(workers, folder, options, told, out)
            told.append(workers[-1].take(batch))
            orders.append(len(totals.orders))
            out.print(chart.line(told[-1], orders[-1]), markup=False)
        workers[-1].end()
    # The first one has the start of the JVM in it, and of another most was done when it was killed.
    counted = [n for n in range(1, len(told)) if n != killed_at]
    if options.picture and counted:
        picture.write(options.picture, [told[n] for n in counted], [orders[n] for n in counted])
    return _end(told, differences(folder, totals, customers(options.customers)), out)


@contextmanager
def _worker(folder: Path, people: int) -> Iterator[list[Running]]:
    """Yield a list for the running processes, and kill all of them at the end."""
    workers = list[Running]()
    try:
        yield workers
    finally:
        for worker in workers:
            worker.kill()


def _kill(
    workers: list[Running],
    folder: Path,
    options: argparse.Namespace,
    told: Sequence[Told],
    out: Console,
) -> None:
    """Kill the process while it takes a batch, and begin another one."""
    after = Random(options.seed).random() * told[-1].seconds
    workers[-1].die_at(told[-1].batch + 1, after)
    began = perf_counter()
    workers.append(Running(folder, options.customers))
    workers[-1].take(told[-1].batch)
    out.print(
        f"       killed {duration(after)} into the batch; another process is there after"
        f" {duration(perf_counter() - began)}"
    )


def _end(told: Sequence[Told], different: list[str], out: Console) -> int:
    live = chart.growth([each.seconds for each in told[1:]] or [1.0])
    again = chart.growth([each.again for each in told[1:]] or [1.0])
    out.print(f"the last batches took {live:.1f} times the first; from scratch {again:.1f} times")
    if different:
        out.print(f"NOT the same as by plain Python: {', '.join(different)}", style="red")
        return FAILED
    count = number(len(told), "batch", "batches")
    out.print(f"both tables are the same as by plain Python, after {count}", style="green")
    return SAME


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=".venv/bin/python -m examples.pipeline",
        description="A pipeline on Spark, killed in the middle and gone on with.",
        epilog="Run it in the folder of the repository. It needs Java 17 or newer.",
    )
    add = parser.add_argument
    add("--batches", type=positive, default=12, metavar="N", help="default: 12")
    add("--orders", type=positive, default=50_000, metavar="N", help="per batch; default: 50,000")
    add("--customers", type=positive, default=5_000, metavar="N", help="default: 5,000")
    add("--picture", type=Path, metavar="FILE", help="draw what batches took, as SVG")
    add("--seed", type=int, default=0, metavar="N", help="of the stream; default: 0")
    return parser


if __name__ == "__main__":
    sys.exit(main())
