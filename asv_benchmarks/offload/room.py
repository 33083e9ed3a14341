"""The memory that the process needs: to move an operator, and to load many rows on Spark.

move    a table of the process and a view over it, which take two thirds of the allowed memory: the
        additional memory during the move of the view, as a share of its state
load    a view over a table on Spark, over a stream, or over rows that are committed here and
        spilled, with growing numbers of rows: the most memory of this process, and of the JVM,
        whose heap is bounded. Only the mark of a row committed here stays in memory.

Bytes are resident ones, as Linux counts them; each figure is from its own process. The JVM is
another process: its memory depends on the size of its heap, not on the number of rows.

python -m asv_benchmarks.offload.room move [group join rows ...] --rows 1000000
python -m asv_benchmarks.offload.room load [table stream commits] --rows 1000000 4000000 16000000
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from asv_benchmarks.memory import measured
from asv_benchmarks.offload.cases import Client, Order
from asv_benchmarks.offload.handover import trimmed
from asv_benchmarks.table import machine
from reactive import Count, Database, Sum
from spark_backend import SparkOffload

CHUNK = 50_000
"""Rows of one commit while a table is filled."""
BATCHES = 8
"""The files of a stream; each is a batch."""
GROUPS = 1_000
MIB = 1 << 20
SLACK = 24 * MIB
"""The memory of any move in addition to a share of the state: pieces, and queries."""

Query = Callable[[Any, Any], Any]
QUERIES: dict[str, Query] = {
    "group": lambda o, c: o.group_by(lambda o: o.customer).aggregate(
        Count(), Sum(lambda o: o.amount)
    ),
    "join": lambda o, c: (
        o.join(c, on=lambda o, c: o.customer == c.id)
        .group_by(lambda o, c: c.region)
        .aggregate(Count(), Sum(lambda o, c: o.amount))
    ),
    "rows": lambda o, c: o.select(lambda o: (o.customer, frozenset([o.id]))).distinct(),
    "first": lambda o, c: o.group_by(lambda o: o.customer).top(1, by=lambda o: (o.amount, o.id)),
}
"""Queries of one bucketed operator, a fragment, pickled rows, and a fragment of one operator."""
SOURCES = ("table", "stream", "commits")


def move(query: str, rows: int) -> dict[str, Any]:
    """Return the bytes of the process, and the additional bytes while the view moves.

    `state` is the growth of the process since it was empty, with Spark already started.
    """
    with _spark() as offload:
        db = Database(offload=offload)
        orders, clients = db.table(Order, name="orders"), db.table(Client, name="clients")
        view = QUERIES[query](orders, clients).materialize("view")
        empty = trimmed()
        _fill(orders, clients, rows)
        full = trimmed()
        size = len(view)
        load = measured(view.offload)
        left = trimmed()
        assert len(view) == size
        where = db.offload_status()[0].where.partition(";")[0]
        db.close()
    found = {"state": full - empty, "full": full, "peak": load.peak, "left": left}
    return {**found, "seconds": load.seconds, "where": where}


def _fill(orders: Any, clients: Any, rows: int) -> None:
    count = max(rows // 10, 1)
    for start in range(0, rows, CHUNK):
        some = range(start, min(start + CHUNK, rows))
        orders.add_all(Order(n, n * 7919 % count, n % 1000 / 8) for n in some)
    clients.add_all(Client(n, n % GROUPS) for n in range(count))


def load(source: str, rows: int) -> dict[str, Any]:
    """Return the most bytes of this process and of the JVM while `rows` rows are loaded."""
    folder = Path(tempfile.mkdtemp(prefix="room"))
    try:
        with _spark() as offload:
            db = Database(offload=offload)
            if source != "commits":
                _write(offload.session.spark, folder, rows)
            before = trimmed()
            taken = measured(lambda: _loaded(db, source, str(folder), rows))
            found = {"before": before, "peak": before + taken.peak, "jvm": _most_of_jvm()}
            db.close()
        return {**found, "seconds": taken.seconds}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _loaded(db: Database, source: str, folder: str, rows: int) -> None:
    orders = _orders(db, source, folder)
    grouped = orders.group_by(lambda o: o.customer)
    view = grouped.aggregate(Count(), Sum(lambda o: o.amount)).materialize("view")
    if source == "stream":
        orders.source.wait(token=BATCHES - 1, timeout=None)
    if source == "commits":
        view.offload()
        for start in range(0, rows, CHUNK):
            some = range(start, min(start + CHUNK, rows))
            orders.add_all(Order(n, n % GROUPS, n % 1000 / 8) for n in some)
    db.flush()
    counted = sum(count for _, count, _ in view)
    assert counted == rows, (counted, rows)


def _write(spark: Any, folder: Path, rows: int) -> None:
    each = -(-rows // BATCHES)
    for batch in range(BATCHES):
        first, last = batch * each, min((batch + 1) * each, rows)
        columns = f"id, id % {GROUPS} as customer, cast(id % 1000 as double) / 8 as amount"
        some = spark.range(first, last, numPartitions=1).selectExpr(*columns.split(", "))
        some.write.mode("append").parquet(str(folder))


def _orders(db: Database, source: str, folder: str) -> Any:
    if source == "commits":
        return db.table(Order, name="orders")
    if source == "table":
        return db.spark_table(folder, Order, name="orders")

    def read(spark: Any) -> Any:
        schema = spark.read.parquet(folder).schema
        return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)

    return db.spark_stream(read, Order, name="orders", trigger=0.1)


@contextmanager
def _spark() -> Iterator[SparkOffload]:
    """Spark that has run a query, as the first one takes memory of its own."""
    config = {"spark.driver.memory": "2g"}
    offload = SparkOffload(master="local[2]", threshold_rows=None, config=config)
    keeper = Database(offload=offload)
    table: Any = keeper.table(int, name="numbers")
    small = table.group_by(lambda n: n % 3).aggregate(Count()).materialize("small")
    table.add_all(range(10))
    small.offload()
    try:
        yield offload
    finally:
        keeper.close()


def _most_of_jvm() -> int:
    """Return the most bytes that the JVM below this process took; 0 where that is not known."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            command = (folder / "cmdline").read_bytes()
            status = (folder / "status").read_text()
        except OSError:
            continue
        if parent == os.getpid() and b"SparkSubmit" in command:
            line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
            return int(line.split()[1]) * 1024
    return 0


def apart(what: str, name: str, rows: int) -> dict[str, Any]:
    """Return the figures of one, measured in a process of its own."""
    command = [sys.executable, "-m", "asv_benchmarks.offload.room", what, name]
    done = subprocess.run(
        [*command, "--rows", str(rows), "--json"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _moved(names: list[str], rows: list[int]) -> list[str]:
    lines = ["| move | rows | state, MiB | extra, MiB | of the state | left, MiB | s |"]
    lines.append("|---|" + "---:|" * 6)
    for name in names:
        for count in rows:
            f = apart("move", name, count)
            share = (
                f"{f['state'] / MIB:,.0f} | {f['peak'] / MIB:,.0f} | {f['peak'] / f['state']:.0%}"
            )
            left = f"{f['left'] / MIB:,.0f} | {f['seconds']:.0f}"
            lines.append(f"| {name}: {f['where']} | {count:,} | {share} | {left} |")
    return lines


def _loads(names: list[str], rows: list[int]) -> list[str]:
    lines = ["| load | rows | before, MiB | most, MiB | most of the JVM, MiB | s |"]
    lines.append("|---|" + "---:|" * 5)
    for name in names:
        for count in rows:
            f = apart("load", name, count)
            sizes = " | ".join(f"{f[n] / MIB:,.0f}" for n in ("before", "peak", "jvm"))
            lines.append(f"| {name} | {count:,} | {sizes} | {f['seconds']:.0f} |")
    return lines


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(prog="asv_benchmarks.offload.room", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("what", choices=("move", "load"))
    parser.add_argument("names", nargs="*", help="all by default")
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000])
    parser.add_argument("--json", action="store_true", help="one of them, here, as one line")
    given = parser.parse_args()
    if given.json:
        act = move if given.what == "move" else load
        print(json.dumps(act(given.names[0], given.rows[0])))
        return
    names = given.names or list(QUERIES if given.what == "move" else SOURCES)
    show = _moved if given.what == "move" else _loads
    print("\n".join([*show(names, given.rows), "", machine()]))


if __name__ == "__main__":
    main()
