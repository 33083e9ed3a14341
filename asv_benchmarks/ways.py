"""What each special way of running something is worth: the same query with it and without.

python -m asv_benchmarks.ways [--runs 40] [--only "generated loops" ...]

A way is switched off by replacing one name of its module while the query is made and run. Both
sides get the same changes in turns, in one process; the gain is the median, over the turns, of the
time without by the time with. One that gains less than `LEAST` is to go.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median
from time import thread_time
from typing import Any
from unittest.mock import patch

from asv_benchmarks.table import machine, markdown
from reactive import Count, Database, Max, Sum
from reactive.engine.operators import cycles

LEAST = 1.2
RUNS = 40
CHANGES = 200
SMALL, LARGE = 2_000, 20_000
ROOT = Path(__file__).resolve().parent.parent
NEVER = 10**9
_CYCLES = "reactive.engine.compiler.choices.join_cycles.cycles"


@dataclass(frozen=True, slots=True)
class Order:
    id: int
    customer: int
    price: int


@dataclass(frozen=True, slots=True)
class Customer:
    id: int
    region: int


@dataclass(frozen=True, slots=True)
class Edge:
    source: int
    target: int


@dataclass(frozen=True, slots=True)
class Running:
    """A query over tables that are full: what changes, by which rows, and the views to compare."""

    table: Any
    rows: Sequence[Any]
    views: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Way:
    """A special way.

    Parameters
    ----------
    off: names that are replaced to switch it off, each with what stands there then.
    files: what could be deleted with it; of these the lines are counted.
    plain: whether it is switched off by running plain operators.
    pays: what else it is for than single changes; then it stays for that.
    """

    name: str
    queries: Sequence[Callable[[Database], Running]]
    files: Sequence[str]
    off: Sequence[tuple[str, object]] = ()
    plain: bool = False
    pays: str = ""


class _Without:
    """The module of joins in cycles, one of whose functions finds nothing."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return _nothing if name == self._name else getattr(cycles, name)


def _nothing(*given: object, **named: object) -> None:
    return None


def group_sum(db: Database) -> Running:
    """where, group_by"""
    orders = db.table(Order)
    view = (
        orders.where(lambda o: o.price > 3)
        .group_by(lambda o: o.customer)
        .aggregate(Sum(lambda o: o.price), Count())
        .materialize()
    )
    orders.add_all(_orders(LARGE, customers=1_000))
    return Running(orders, _orders(CHANGES, customers=1_000, first=NEVER), [view])


def join_sum(db: Database) -> Running:
    """join, group_by; an order changes"""
    return _join_sum(db, is_left=True)


def join_sum_right(db: Database) -> Running:
    """join, group_by; a customer changes"""
    return _join_sum(db, is_left=False)


def _join_sum(db: Database, *, is_left: bool) -> Running:
    orders, customers = db.table(Order), db.table(Customer)
    view = (
        orders.join(customers, on=lambda o, c: o.customer == c.id)
        .where(lambda o, c: o.price > 3)
        .group_by(lambda o, c: c.region)
        .aggregate(Sum(lambda o, c: o.price), Count())
        .materialize()
    )
    customers.add_all(_customers(SMALL))
    orders.add_all(_orders(LARGE, customers=SMALL))
    if is_left:
        return Running(orders, _orders(CHANGES, customers=SMALL, first=NEVER), [view])
    return Running(customers, [Customer(n, 50 + n % 50) for n in range(CHANGES)], [view])


def join_rows(db: Database) -> Running:
    """join, where, select"""
    orders, customers = db.table(Order), db.table(Customer)
    view = (
        orders.join(customers, on=lambda o, c: o.customer == c.id)
        .where(lambda o, c: o.price > 3)
        .select(lambda o, c: (c.region, o.price))
        .materialize()
    )
    customers.add_all(_customers(SMALL))
    orders.add_all(_orders(LARGE, customers=SMALL))
    return Running(orders, _orders(CHANGES, customers=SMALL, first=NEVER), [view])


def left_join_rows(db: Database) -> Running:
    """left_join, select"""
    orders, customers = db.table(Order), db.table(Customer)
    view = (
        orders.left_join(customers, on=lambda o, c: o.customer == c.id)
        .select(lambda o, c: (o.price, c and c.region))
        .materialize()
    )
    customers.add_all(_customers(SMALL))
    orders.add_all(_orders(LARGE, customers=2 * SMALL))
    return Running(orders, _orders(CHANGES, customers=2 * SMALL, first=NEVER), [view])


def anti_join_rows(db: Database) -> Running:
    """anti_join, select; rows of the right change"""
    orders, customers = db.table(Order), db.table(Customer)
    view = (
        orders.anti_join(customers, on=lambda o, c: o.customer == c.id)
        .select(lambda o: (o.customer, o.price))
        .materialize()
    )
    customers.add_all(_customers(SMALL))
    orders.add_all(_orders(LARGE, customers=2 * SMALL))
    return Running(customers, [Customer(SMALL + n, 1) for n in range(CHANGES)], [view])


def triangles(db: Database) -> Running:
    """triangles, counted"""
    edges = db.table(Edge)
    return _over_edges(edges, _triangles(edges).aggregate(Count()))


def triangles_listed(db: Database) -> Running:
    """triangles, listed"""
    edges = db.table(Edge)
    found = _triangles(edges).select(lambda a, b, c: (a.source, b.source, c.source))
    return _over_edges(edges, found)


def _triangles(edges: Any) -> Any:
    return edges.join(edges, on=lambda a, b: a.target == b.source).join(
        edges, on=lambda a, b, c: b.target == c.source and c.target == a.source
    )


def _over_edges(edges: Any, query: Any) -> Running:
    view, random = query.materialize(), Random(1)
    edges.add_all({Edge(random.randrange(800), random.randrange(800)) for _ in range(8_000)})
    new = [Edge(random.randrange(800), 800 + n) for n in range(CHANGES)]
    return Running(edges, new, [view])


def within(db: Database) -> Running:
    """join by a range, with ten partners"""
    edges, orders = db.table(Edge), db.table(Order)
    view = (
        edges.join(orders, on=lambda e, o: e.source <= o.price < e.target)
        .select(lambda e, o: (e.source, o.id))
        .materialize()
    )
    edges.add_all(Edge(10 * n, 10 * n + 100) for n in range(SMALL))
    orders.add_all(Order(n, 0, 10 * n) for n in range(SMALL))
    return Running(orders, [Order(NEVER + n, 0, 77 * n) for n in range(CHANGES)], [view])


def largest(db: Database) -> Running:
    """group_by, Max"""
    orders = db.table(Order)
    view = orders.group_by(lambda o: o.customer).aggregate(Max(lambda o: o.price)).materialize()
    orders.add_all(_orders(LARGE, customers=1_000))
    return Running(orders, _orders(CHANGES, customers=1_000, first=NEVER), [view])


def watchers(db: Database) -> Running:
    """100 views of one value each"""
    return _watched(db, 100)


def many_watchers(db: Database) -> Running:
    """1,000 views of one value each"""
    return _watched(db, 1_000)


def _watched(db: Database, count: int) -> Running:
    orders = db.table(Order)
    orders.add_all(_orders(SMALL, customers=count))
    views = []
    for customer in range(count):
        own = orders.where(lambda o, customer=customer: o.customer == customer)  # type: ignore[misc]
        views.append(own.materialize())
    return Running(orders, _orders(CHANGES, customers=count, first=NEVER), views)


def _take_as_many(sums: Any, delta: Sequence[Any]) -> Sequence[Any]:
    """`SumsBy._take_one` as if it was one of many rows."""
    out = [change for change in sums._loop(delta).items() if any(change[1])]
    sums._take(out)
    return out


WAYS = (
    Way(
        "generated loops",
        (group_sum, join_rows, join_sum),
        (
            "reactive/engine/operators/loops",
            "reactive/engine/codegen",
            "reactive/engine/operators/fuse.py",
        ),
        plain=True,
    ),
    Way(
        "a commit as one function",
        (group_sum, join_rows),
        ("reactive/engine/dataflow/compiled_step.py",),
        off=(("reactive.engine.dataflow.schedule.OFTEN", NEVER),),
    ),
    Way(
        "a group of one row",
        (group_sum, largest),
        ("reactive/engine/operators/loops/single.py",),
        off=(
            ("reactive.engine.operators.fuse.GroupingOfOne.fits", staticmethod(lambda *_: False)),
        ),
    ),
    Way(
        "one row of a join of sums",
        (join_sum, join_sum_right),
        ("reactive/engine/operators/loops/alone.py",),
        off=(
            ("reactive.engine.operators.loops.alone.alone", lambda *_, **__: None),
            ("reactive.engine.operators.sums_by.SumsBy._take_one", _take_as_many),
            ("reactive.engine.operators.fuse.GroupingOfOne.fits", staticmethod(lambda *_: False)),
        ),
    ),
    Way(
        "joins that keep rows alone, in the loop above",
        (left_join_rows, anti_join_rows),
        ("reactive/engine/operators/loops/matched.py",),
        off=(("reactive.engine.compiler.chooser.Chooser.kept_of", lambda self, node: None),),
    ),
    Way(
        "sums in the place of rows",
        (join_sum, join_sum_right),
        (
            *("reactive/engine/operators/sums_by.py", "reactive/engine/operators/loops/summing.py"),
            *(
                "reactive/engine/operators/loops/factored.py",
                "reactive/engine/compiler/choices/sum_sides.py",
            ),
            "optimizer/plans/factorization.py",
        ),
        off=(("reactive.engine.compiler.chooser.factorization_of", lambda node: None),),
    ),
    Way(
        "joins of three at once",
        (triangles_listed,),
        (
            *(
                "reactive/engine/operators/loops/multiway.py",
                "reactive/engine/codegen/probe_order.py",
            ),
            *(
                "reactive/engine/compiler/choices/join_multiway.py",
                "reactive/engine/collections/trie.py",
            ),
            "optimizer/plans/multiway.py",
        ),
        off=(("optimizer.plans.multiway.multiway_of", lambda join: None),),
    ),
    Way(
        "joins by ranges",
        (within,),
        (
            *("optimizer/plans/ranges.py", "reactive/engine/compiler/choices/join_intervals.py"),
            *(
                "reactive/engine/collections/range_index.py",
                "reactive/engine/collections/interval_tree.py",
            ),
            "reactive/engine/collections/families.py",
        ),
        off=(("optimizer.plans.ranges.ranges_of", lambda join: None),),
    ),
    Way(
        "cycles of which no row is read",
        (triangles,),
        (
            *(
                "reactive/engine/operators/loops/cyclic_count.py",
                "reactive/engine/codegen/cycle_terms.py",
            ),
            "reactive/engine/collections/neighbours.py",
        ),
        off=((_CYCLES, _Without("cyclic_count")),),
    ),
    Way(
        "cycles of which rows are read",
        (triangles_listed,),
        (
            *(
                "reactive/engine/operators/loops/cyclic_join.py",
                "reactive/engine/codegen/cycle_rows.py",
            ),
            *(
                "reactive/engine/collections/neighbour_rows.py",
                "reactive/engine/operators/cycles.py",
            ),
        ),
        off=((_CYCLES, _Without("cycle_of")),),
    ),
    Way(
        "readers found by an index",
        (watchers, many_watchers),
        ("reactive/engine/compiler/choices/look_up.py", "reactive/engine/operators/at.py"),
        off=(("reactive.engine.compiler.compile.MANY_READERS", NEVER),),
        pays="makes views cheaply",
    ),
    Way(
        "readers found by a value",
        (watchers,),
        ("reactive/engine/dataflow/discrimination.py", "optimizer/plans/constant_tests.py"),
        off=(
            ("reactive.engine.compiler.compile.MANY_READERS", NEVER),
            ("reactive.engine.dataflow.discrimination.WORTHWHILE", NEVER),
        ),
    ),
)


def gain(way: Way, query: Callable[[Database], Running], runs: int = RUNS) -> tuple[float, float]:
    """Microseconds of one change with the way, and how many times that it is without."""
    with_it = query(Database())
    with _without(way):
        without = query(_database(way))
        for _ in range(2):
            _microseconds(without)
    for _ in range(2):
        _microseconds(with_it)
    ratios, times = [], []
    for turn in range(runs):
        took = {}
        for is_on in (turn % 2 == 0, turn % 2 != 0):
            if is_on:
                took[True] = _microseconds(with_it)
            else:
                with _without(way):
                    took[False] = _microseconds(without)
        times.append(took[True])
        ratios.append(took[False] / took[True])
    for one, other in zip(with_it.views, without.views, strict=True):
        if one != other.snapshot():
            raise AssertionError(f"{way.name}: the view differs without it")
    return median(times), median(ratios)


def table(ways: Sequence[Way], runs: int = RUNS) -> list[str]:
    """A line per way and query."""
    lines = []
    for way in ways:
        size = f"{_lines_of(way):,}" if way.files else ""
        for query in way.queries:
            time, ratio = gain(way, query, runs)
            verdict = way.pays or ("stays" if ratio >= LEAST else "**goes**")
            what = f"{way.name}: {query.__doc__}"
            lines.append([what, f"{time:.2f}", f"{ratio:.2f}", size, verdict])
            size = ""
    header = ["way: query", "one change, µs", "times without", "lines", f"at least {LEAST:g}"]
    return markdown(header, lines)


def report(runs: int = RUNS) -> str:
    """The section of the report."""
    lines = [
        "### Special ways",
        "",
        "One change with each special way, and how many times that it takes without; medians of",
        f"{runs} turns, in processor time. Lines are those of its own files. {machine()}",
        "",
        *table(WAYS, runs),
    ]
    return "\n".join(lines)


def _database(way: Way) -> Database:
    db = Database()
    db._engine.queries.generates = not way.plain
    return db


@contextmanager
def _without(way: Way) -> Iterator[None]:
    with ExitStack() as stack:
        for name, value in way.off:
            stack.enter_context(patch(name, value))
        yield


def _microseconds(running: Running) -> float:
    """Of one change: each row is added, and removed again."""
    add, remove = running.table.add, running.table.remove
    gc.collect(0)
    gc.disable()
    start = thread_time()
    for row in running.rows:
        add(row)
    for row in running.rows:
        remove(row)
    took = thread_time() - start
    gc.enable()
    return took / (2 * len(running.rows)) * 1e6


def _lines_of(way: Way) -> int:
    paths = [ROOT / name for name in way.files]
    files = [file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path])]
    return sum(len(file.read_text().splitlines()) for file in files)


def _orders(count: int, *, customers: int, first: int = 0) -> list[Order]:
    return [Order(first + n, n % customers, 4 + n % 97) for n in range(count)]


def _customers(count: int) -> list[Customer]:
    return [Customer(n, n % 50) for n in range(count)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="asv_benchmarks.ways", description="Special ways.")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--only", nargs="*", choices=[way.name for way in WAYS])
    options = parser.parse_args()
    chosen = [way for way in WAYS if not options.only or way.name in options.only]
    print("\n".join([*table(chosen, options.runs), "", machine()]))


if __name__ == "__main__":
    main()
