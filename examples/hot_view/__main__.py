"""A view outgrows the process: `.venv/bin/python -m examples.hot_view`, in the repository's folder.

The input is a stream of orders: generated from a seed, with few customers who order much, and with
returns and corrections. A view has for each customer the number, the sum and the largest of the
orders; two more views, of the best ten customers and of the regions, read it.

What happens, on a screen that is drawn again and again, or line by line where there is no terminal:

    growing      all state is in the process; each commit updates all views
    moving       the view per customer has passed the threshold: its state moves to Spark in the
                 background, and orders keep arriving
    on Spark     the same views are read as before; reading brings them up to date, by a flush
    losing       the JVM is killed by SIGKILL in the middle of a flush; another one is started, and
                 continues from the state of the first
    compared     at the end all rows of all views are compared with those of the same queries over
                 the same stream, in a database without Spark

The threshold is in megabytes of operator state. Nothing in `shop.py`, where the tables and
queries are, knows about Spark: `Database(offload=SparkOffload(...))` is all.

Needs Java 17 or newer. Exit codes: 0 if all views are the same at the end, 1 if they are not or
Spark failed, 2 for wrong usage and where Java is missing, 130 if interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from rich.console import Console

from examples.arguments import positive
from examples.hot_view.compare import differences, in_process
from examples.hot_view.feeder import Feeder
from examples.hot_view.rows import Customer
from examples.hot_view.screen import board
from examples.hot_view.shop import Shop
from examples.hot_view.story import COMPARING, GROWN, TooSmall, tell
from examples.hot_view.stream import Batch, batches, customers
from examples.terminal import console, number
from reactive import Database, OffloadError
from spark_backend import SparkOffload

SAME, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
FLUSH_INTERVAL = 1.0
"""Seconds between automatic flushes."""
QUICK_START = {
    "spark.driver.extraJavaOptions": (
        "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
    )
}
"""A JVM that is there for minutes does better without its slower, more thorough compiler."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration; gives the exit code."""
    options = _parser().parse_args(arguments)
    errors = console(to_errors=True)
    try:
        offload = _offload(options.threshold)
    except OffloadError as error:
        errors.print(str(error), style="red", markup=False)
        return USAGE
    try:
        return _run(options, offload)
    except TooSmall:
        orders = f"the first {GROWN:.0%} of {number(options.orders, 'order')}"
        errors.print(
            f"{orders} did not fill {options.threshold} MB: nothing has moved\n"
            "  more --orders or --customers, or a lower --threshold"
        )
        return USAGE
    except OffloadError as error:
        errors.print(str(error), style="red", markup=False)
        return FAILED
    except KeyboardInterrupt:
        errors.print("interrupted")
        return INTERRUPTED


def _offload(threshold: int) -> SparkOffload:
    return SparkOffload(
        threshold_rows=None,
        threshold_bytes=threshold * 1_000_000,
        flush_interval=FLUSH_INTERVAL,
        config=QUICK_START,
    )


def _run(options: argparse.Namespace, offload: SparkOffload) -> int:
    def people() -> Iterator[Customer]:
        return customers(options.customers, options.seed)

    def stream() -> Iterator[Batch]:
        return batches(options.orders, options.customers, options.seed)

    out = console()
    with Database(offload=offload) as db:
        shop = Shop(db, people())
        feeder = Feeder(shop, stream(), options.orders)
        try:
            with board(out, shop, feeder) as shown:
                tell(shop, feeder, shown)
                shown.phase(COMPARING)
                different = differences(shop, in_process(people(), stream()))
        finally:
            feeder.stop()
        return _told(shop, different, out)


def _told(shop: Shop, different: list[str], out: Console) -> int:
    if different:
        out.print(f"NOT the same as in process: {', '.join(different)}", style="red")
        return FAILED
    counts = ", ".join(f"{view.name} {number(len(view), 'row')}" for view in shop.views)
    out.print(f"the same as in process, all rows of all views: {counts}", style="green")
    return SAME


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=".venv/bin/python -m examples.hot_view",
        description="A live view outgrows the process, moves to Spark, and loses its JVM there.",
        epilog="Run it in the folder of the repository. It needs Java 17 or newer.",
    )
    add = parser.add_argument
    add("--orders", type=positive, default=100_000, metavar="N", help="default: 100,000")
    add("--customers", type=positive, default=30_000, metavar="N", help="default: 30,000")
    add(
        "--threshold",
        type=positive,
        default=10,
        metavar="N",
        help="megabytes that an operator may hold in the process; default: 10",
    )
    add("--seed", type=int, default=0, metavar="N", help="of the stream; default: 0")
    return parser


if __name__ == "__main__":
    sys.exit(main())
