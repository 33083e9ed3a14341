"""PageRank on Spark: links that change, beside Spark from scratch over all links.

first load      from the file of links until the ranks are ready
a flush         of n inserted and n deleted links
from scratch    DataFrames, joined and summed in each round, as users write it; checkpoints keep the
                plans short

Ranks sum to 1; the tolerance is a millionth of the mean rank. All in one run: seconds on the clock,
and of CPU.

python -m asv_benchmarks.offload.page_rank [--pages 100000] [--rounds 20] [--changes 50] [--runs 3]
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from asv_benchmarks.measure import SEED
from asv_benchmarks.offload.cpu import Took, took
from reactive import Count, Database, Sum, iterate
from spark_backend import SparkOffload

LINKS = 5
"""The links of a page."""
DAMPING = 0.85
OFTEN = 5
"""Rounds from scratch between two checkpoints."""


class Link(NamedTuple):
    src: int
    dst: int


class Share(NamedTuple):
    """A link, and among how many its page shares its rank."""

    src: int
    dst: int
    links: int


class Rank(NamedTuple):
    page: int
    rank: float


def page_rank(links: Any, pages: int, rounds: int) -> Any:
    """Return the rank of each page that has a link or is linked to."""
    there = links.select_many(lambda link: (link.src, link.dst)).distinct()
    counts = links.group_by(lambda link: link.src).aggregate(Count())
    shares = links.join(counts, on=lambda link, of: link.src == of[0]).select(
        lambda link, of: Share(link.src, link.dst, of[1])
    )
    least, start = (1 - DAMPING) / pages, 1.0 / pages
    nothing = there.select(lambda page: Rank(page, 0.0))

    def step(ranks: Any) -> Any:
        given = ranks.join(shares, on=lambda r, s: r.page == s.src).select(
            lambda r, s: Rank(s.dst, r.rank / s.links)
        )
        total = given.union_all(nothing).group_by(lambda r: r.page).aggregate(Sum(lambda r: r.rank))
        return total.select(lambda page, rank: Rank(page, least + DAMPING * rank))

    return iterate(
        step,
        there.select(lambda page: Rank(page, start)),
        times=rounds,
        tolerance=1e-6 / pages,
        of=lambda r: r.rank,
        by=lambda r: r.page,
        contraction=DAMPING,
        norm="sum",
    )


def from_scratch(spark: Any, file: str, pages: int, rounds: int) -> float:
    """Return the sum of all ranks, by Spark alone."""
    links = spark.read.parquet(file)
    shares = links.join(links.groupBy("src").count(), "src").cache()
    there = links.selectExpr("explode(array(src, dst)) page").distinct().cache()
    ranks = there.selectExpr("page", f"{1.0 / pages}d rank")
    for number in range(rounds):
        given = ranks.join(shares, ranks.page == shares.src).selectExpr(
            "dst page", "rank / count rank"
        )
        total = given.union(there.selectExpr("page", "0.0d rank")).groupBy("page").sum("rank")
        least = (1 - DAMPING) / pages
        ranks = total.selectExpr("page", f"{least}d + {DAMPING}d * `sum(rank)` rank")
        if number % OFTEN == OFTEN - 1:
            ranks = ranks.localCheckpoint()
    found: float = ranks.groupBy().sum("rank").first()[0]
    shares.unpersist()
    there.unpersist()
    return found


class Graph:
    """Random links; a change inserts some and deletes as many."""

    def __init__(self, pages: int) -> None:
        self._random, self._pages = Random(SEED), pages
        self.links = [
            Link(page, self._random.randrange(pages)) for page in range(pages) for _ in range(LINKS)
        ]

    def changed(self, count: int) -> tuple[list[Link], list[Link]]:
        """Return the inserted and the deleted links."""
        pick = self._random.randrange
        gone = [self.links.pop(pick(len(self.links))) for _ in range(count)]
        new = [Link(pick(self._pages), pick(self._pages)) for _ in range(count)]
        self.links += new
        return new, gone

    def write(self, file: Path) -> str:
        """All links, as a file."""
        src, dst = zip(*self.links, strict=True)
        pq.write_table(pa.table({"src": src, "dst": dst}), file)
        return str(file)


def measure(pages: int, rounds: int, changes: int, runs: int) -> Iterator[tuple[str, Took]]:
    """Yield the measurements, one after the other."""
    folder, graph = Path(tempfile.mkdtemp(prefix="reactive-ranks-")), Graph(pages)
    offload = SparkOffload(threshold_rows=None)
    db = Database(offload=offload)
    try:
        links: Any = db.spark_table(graph.write(folder / "links.parquet"), Link, name="links")
        views: list[Any] = []
        ranks = page_rank(links, pages, rounds)
        yield "first load", took(lambda: views.append(ranks.materialize("ranks")))
        for _ in range(runs):
            new, gone = graph.changed(changes)
            with db.transaction():
                links.remove_all(gone)
                links.add_all(new)
            yield f"flush of {2 * changes} links", took(db.flush)
        now, spark = graph.write(folder / "now.parquet"), offload.session.spark.newSession()
        spark.conf.set("spark.sql.adaptive.enabled", "true")
        spark.conf.set("spark.sql.shuffle.partitions", str(offload.session.tasks))
        sums: list[float] = []
        for _ in range(runs):
            again = took(lambda: sums.append(from_scratch(spark, now, pages, rounds)))
            yield "from scratch", again
        _check(sum(row.rank for row in views[0]), sums[-1])
    finally:
        db.close()
        shutil.rmtree(folder, ignore_errors=True)


def _check(live: float, again: float) -> None:
    """Raise if ranks do not sum to the same, within the tolerance of all of them."""
    if abs(live - again) > 1e-6:
        raise AssertionError(f"ranks sum to {live}, from scratch to {again}")


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(prog="asv_benchmarks.offload.page_rank")
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--changes", type=int, default=50, help="links that come, and that go")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    found: dict[str, list[Took]] = {}
    for name, each in measure(options.pages, options.rounds, options.changes, options.runs):
        print(f"{name:24} {each}", flush=True)
        found.setdefault(name, []).append(each)
    _, flushes, again = found.values()
    for of in ("seconds", "cpu"):
        live, scratch = (median(getattr(e, of) for e in each) for each in (flushes, again))
        print(f"from scratch takes {scratch / max(live, 0.01):.1f} times the {of} of a flush")


if __name__ == "__main__":
    main()
