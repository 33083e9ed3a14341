"""The peers beside this library, in one table; none of them is needed by it.

pip install duckdb polars pathway pyarrow
python -m asv_benchmarks.peers [--sizes 10000 100000 1000000] [--changes 20] [--write]

Each figure is of a process of its own: seconds of the load, and the median of changes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter
from typing import Any

from asv_benchmarks.measure import SEED
from asv_benchmarks.peers.sides import GROUP, JOIN, PEERS, Peer
from asv_benchmarks.peers.streaming import Pathway
from asv_benchmarks.rows import Order
from asv_benchmarks.table import machine, markdown, put
from asv_benchmarks.workloads import join_sum

ROOT = Path(__file__).resolve().parent.parent.parent
STREAMING = "Pathway"
NAMES = (*PEERS, STREAMING)
BEGIN, END = "<!-- peers: begin -->", "<!-- peers: end -->"
INCREMENTAL = ("reactive", STREAMING)
LONG, SHORT = 100, 3
"""Changes to warm up incremental peers, and the others."""
TITLES = {GROUP: "filter, map, group sum", JOIN: "join, filter, group sum"}


def figures(name: str, query: str, size: int, changes: int) -> dict[str, float]:
    """Seconds of a load, and of a change; checked against plain Python."""
    orders, customers = join_sum.rows(size, Random(SEED))
    buyers = [customer.id for customer in customers if customer.active]
    warm_up = LONG if name in INCREMENTAL else SHORT
    new = [Order(-n, buyers[n % len(buyers)], n % 1_000, 2, 3) for n in range(warm_up + changes)]
    peer: Peer = Pathway(query) if name == STREAMING else PEERS[name](query)
    start = perf_counter()
    peer.load(orders, customers)
    load, times = perf_counter() - start, []
    for order in new:
        start = perf_counter()
        peer.add(order)
        times.append(perf_counter() - start)
    plain = PEERS["Python, again"](query)
    plain.load([*orders, *new], customers)
    if peer.result() != plain.result():
        raise AssertionError(f"{name} gives another result")
    return {"load": load, "change": median(times[warm_up:])}


def in_process(*arguments: object) -> dict[str, Any] | None:
    """Return the figures of a process of its own; None if the peer is not installed."""
    command = [sys.executable, "-m", "asv_benchmarks.peers", "--one", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        return None
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def table(sizes: list[int], changes: int) -> list[str]:
    """All peers, both queries, all sizes."""
    lines = []
    for query, title in TITLES.items():
        for size in sizes:
            ours = in_process("reactive", query, size, changes)
            assert ours is not None
            for name in NAMES:
                found = ours if name == "reactive" else in_process(name, query, size, changes)
                print(name, query, size, found, file=sys.stderr, flush=True)
                lines.append([name, title, f"{size:,}", *_shown(found, ours)])
    header = ["", "query", "rows", "load, s", "times ours", "one change, ms", "times ours"]
    return markdown(header, lines)


def _shown(found: dict[str, float] | None, ours: dict[str, float]) -> list[str]:
    if found is None:
        return ["not installed, or failed", "", "", ""]
    ratios = {name: found[name] / ours[name] for name in found}
    return [
        f"{found['load']:.3f}",
        f"{ratios['load']:.2f}",
        f"{found['change'] * 1e3:.4f}",
        f"{ratios['change']:,.0f}",
    ]


def main() -> None:
    """Measure and print, and with --write put the table into the docs."""
    parser = argparse.ArgumentParser(prog="asv_benchmarks.peers", description="Beside others.")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--changes", type=int, default=20)
    parser.add_argument("--write", action="store_true", help="put the table into the docs")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        name, query, size, changes = options.one
        print(json.dumps(figures(name, query, int(size), int(changes))))
        return
    text = "\n".join([*table(options.sizes, options.changes), "", machine()])
    print(text)
    if options.write:
        put(text, ROOT / "asv_benchmarks" / "figures.md", BEGIN, END)


if __name__ == "__main__":
    main()
