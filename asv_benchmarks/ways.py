"""The gain of each special way of running a query: the same query with it and without.

python -m asv_benchmarks.ways [--runs 40] [--only "generated loops" ...]

A way is switched off by replacing one name of its module while the query is made and run. The query
with the way and the one without run in two processes, since plans and generated functions stay in
caches of a process, where the other query would find them. The two processes take turns with the
same changes; the gain is the median, over the turns, of the time without by the time with.

A way whose best query gains less than `LEAST` should be deleted: the command then ends with 1.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import subprocess
import sys
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
GOES = "**goes**"
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
    """A query over full tables: the changing table, its changed rows, and the views to compare."""

    table: Any
    rows: Sequence[Any]
    views: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Way:
    """A special way.

    Parameters
    ----------
    off: the names that are replaced to switch it off, each with its replacement.
    files: the files that could be deleted with it, whose lines are counted.
    plain: True if it is switched off by running plain operators.
    pays: another purpose than single changes, for which it is kept.
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


def join_largest(db: Database) -> Running:
    """join, group_by, Max; a customer changes"""
    orders, customers = db.table(Order), db.table(Customer)
    view = (
        orders.join(customers, on=lambda o, c: o.customer == c.id)
        .group_by(lambda o, c: c.region)
        .aggregate(Max(lambda o, c: o.price), Count())
        .materialize()
    )
    customers.add_all(_customers(SMALL))
    orders.add_all(_orders(LARGE, customers=2 * SMALL))
    return Running(customers, [Customer(SMALL + n, 1) for n in range(CHANGES)], [view])


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


def left_join_groups(db: Database) -> Running:
    """left_join, group_by; a customer changes"""
    orders, customers = db.table(Order), db.table(Customer)
    view = (
        orders.left_join(customers, on=lambda o, c: o.customer == c.id)
        .group_by(lambda o, c: c and c.region)
        .aggregate(Sum(lambda o, c: o.price), Count())
        .materialize()
    )
    customers.add_all(_customers(SMALL))
    orders.add_all(_orders(LARGE, customers=2 * SMALL))
    return Running(customers, [Customer(SMALL + n, 1) for n in range(CHANGES)], [view])


def left_join_sum_of_both(db: Database) -> Running:
    """left_join, group_by; a sum over both sides"""
    orders, customers = db.table(Order), db.table(Customer)
    view = (
        orders.left_join(customers, on=lambda o, c: o.customer == c.id)
        .group_by(lambda o, c: c and c.region)
        .aggregate(Sum(lambda o, c: 0 if c is None else max(o.price, c.region)), Count())
        .materialize()
    )
    customers.add_all(_customers(SMALL))
    orders.add_all(_orders(LARGE, customers=2 * SMALL))
    return Running(customers, [Customer(SMALL + n, 1) for n in range(CHANGES)], [view])


def full_join_rows(db: Database) -> Running:
    """full_join, select"""
    orders, customers = db.table(Order), db.table(Customer)
    view = (
        orders.full_join(customers, on=lambda o, c: o.customer == c.id)
        .select(lambda o, c: (o and o.price, c and c.region))  # type: ignore[misc]
        .materialize()
    )
    customers.add_all(_customers(SMALL))
    orders.add_all(_orders(LARGE, customers=2 * SMALL))
    return Running(orders, _orders(CHANGES, customers=2 * SMALL, first=NEVER), [view])


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


def chain(db: Database) -> Running:
    """two joins in a chain, each row with one partner"""
    return _chain(db, partners=1)


def wide_chain(db: Database) -> Running:
    """two joins in a chain, each row with ten partners"""
    return _chain(db, partners=10)


def chain_missed(db: Database) -> Running:
    """two joins in a chain; a change without partners"""
    return _chain(db, partners=1, customer=NEVER)


def _chain(db: Database, *, partners: int, customer: int = 0) -> Running:
    orders, customers, edges = db.table(Order), db.table(Customer), db.table(Edge)
    view = (
        orders.join(customers, on=lambda o, c: o.customer == c.id)
        .join(edges, on=lambda o, c, e: c.region == e.source)
        .select(lambda o, c, e: (o.id, c.id, e.target))
        .materialize()
    )
    edges.add_all(Edge(n, n) for n in range(50))
    customers.add_all(Customer(n // partners, n % 50) for n in range(SMALL))
    orders.add_all(_orders(LARGE // partners, customers=SMALL // partners))
    new = [Order(NEVER + n, customer + n % (SMALL // partners), n) for n in range(CHANGES)]
    return Running(orders, new, [view])


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
        ("reactive/engine/dataflow/schedule.py",),
        off=(
            ("reactive.engine.dataflow.schedule.OFTEN", NEVER),
            ("reactive.engine.dataflow.schedule.LATEST", NEVER),
        ),
    ),
    Way(
        "a group of one row",
        (group_sum, largest),
        ("reactive/engine/operators/loops/grouped.py",),
        off=(
            ("reactive.engine.operators.fuse.GroupingOfOne.fits", staticmethod(lambda *_: False)),
        ),
    ),
    Way(
        "one row of a join of sums",
        (join_sum, join_sum_right),
        ("reactive/engine/operators/loops/factored_aggregate.py",),
        off=(
            (
                "reactive.engine.operators.loops.factored_aggregate.make_single_side_runner",
                lambda *_, **__: None,
            ),
            ("reactive.engine.operators.join.SumsBy._take_one", _take_as_many),
            ("reactive.engine.operators.fuse.GroupingOfOne.fits", staticmethod(lambda *_: False)),
        ),
    ),
    Way(
        "outer joins, in the loop above",
        (left_join_rows, left_join_sum_of_both, full_join_rows),
        ("reactive/engine/operators/loops/outer_join_loops.py",),
        off=(("reactive.engine.compiler.chooser.Chooser.outer_join_of", lambda self, node: None),),
    ),
    Way(
        "sums in the place of rows",
        (join_sum, join_sum_right, join_largest, left_join_groups),
        (
            *("reactive/engine/operators/join.py", "reactive/engine/operators/loops/first_load.py"),
            *(
                "reactive/engine/operators/extremes_by.py",
                "reactive/engine/operators/loops/factored_aggregate.py",
                "reactive/engine/operators/loops/padded_sides.py",
                "reactive/engine/compiler/choices/sum_sides.py",
            ),
            "optimizer/plans/factorization.py",
        ),
        off=(("reactive.engine.compiler.chooser.factorization_of", lambda node: None),),
    ),
    Way(
        "joins of three at once",
        (triangles_listed, chain, wide_chain, chain_missed),
        (
            *(
                "reactive/engine/operators/loops/cyclic_count.py",
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
            *(
                "optimizer/plans/side_conditions.py",
                "reactive/engine/compiler/choices/join_intervals.py",
            ),
            *(
                "reactive/engine/collections/range_index.py",
                "reactive/engine/collections/range_index.py",
            ),
            "reactive/engine/collections/zset.py",
        ),
        off=(("optimizer.plans.side_conditions.ranges_of", lambda join: None),),
    ),
    Way(
        "cycles of which no row is read",
        (triangles,),
        (
            *(
                "reactive/engine/operators/loops/cyclic_count.py",
                "reactive/engine/codegen/cycle_rows.py",
            ),
            "reactive/engine/collections/neighbour_rows.py",
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
        ("reactive/engine/compiler/choices/look_up.py", "reactive/engine/operators/join.py"),
        off=(("reactive.engine.compiler.queries.MANY_READERS", NEVER),),
        pays="makes views cheaply",
    ),
    Way(
        "readers found by a value",
        (watchers,),
        ("reactive/engine/dataflow/discrimination.py", "optimizer/plans/field_values.py"),
        off=(
            ("reactive.engine.compiler.queries.MANY_READERS", NEVER),
            ("reactive.engine.dataflow.discrimination.WORTHWHILE", NEVER),
        ),
    ),
)


class Side:
    """A process that runs a query, with the way or without."""

    def __init__(self, way: Way, query: Callable[[Database], Running], *, is_on: bool) -> None:
        command = [sys.executable, "-m", "asv_benchmarks.ways", "--serve", way.name, query.__name__]
        command += ["on" if is_on else "off", str(LARGE)]
        self._name = " ".join(command)
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *of: object) -> None:
        self._process.communicate()

    def ask(self, text: str) -> str:
        """Return the answer of the process: a digest of its views, or microseconds."""
        given, answers = self._process.stdin, self._process.stdout
        assert given is not None and answers is not None
        print(text, file=given, flush=True)
        answer = answers.readline().strip()
        if not answer:
            raise RuntimeError(f"{self._name} has ended")
        return answer


def gain(way: Way, query: Callable[[Database], Running], runs: int = RUNS) -> tuple[float, float]:
    """Return the microseconds of one change with the way, and how many times that it is without.

    Each turn is two measurements right after each other; the first one is alternately with the way
    and without.
    """
    with Side(way, query, is_on=True) as on, Side(way, query, is_on=False) as off:
        if on.ask("digest") != off.ask("digest"):
            raise AssertionError(f"{way.name}: the view differs without it")
        ratios, times = [], []
        for turn in range(runs):
            sides = (on, off) if turn % 2 == 0 else (off, on)
            took = {side is on: float(side.ask("time")) for side in sides}
            times.append(took[True])
            ratios.append(took[False] / took[True])
        if on.ask("digest") != off.ask("digest"):
            raise AssertionError(f"{way.name}: the view differs without it after changes")
    return median(times), median(ratios)


def serve(way: Way, query: Callable[[Database], Running], *, is_on: bool, large: int) -> None:
    """Make the query, and answer the lines of standard input until that ends."""
    global SMALL, LARGE, CHANGES
    SMALL, LARGE, CHANGES = large // 10, large, max(large // 100, 10)
    with ExitStack() as stack:
        if not is_on:
            stack.enter_context(_without(way))
        running = query(Database() if is_on else _database(way))
        for _ in range(4):
            _microseconds(running)
        for line in sys.stdin:
            is_digest = line.strip() == "digest"
            print(_digest(running) if is_digest else _microseconds(running), flush=True)


def _digest(running: Running) -> str:
    """Return a digest of the rows of all views, equal in all processes."""
    found = hashlib.sha256()
    for view in running.views:
        found.update(repr(sorted(map(repr, view))).encode())
    return found.hexdigest()


def verdict(way: Way, ratios: Sequence[float]) -> str:
    """Return whether a way is worth its lines, by the query that gains most."""
    return way.pays or ("stays" if max(ratios) >= LEAST else GOES)


def table(ways: Sequence[Way], runs: int = RUNS) -> list[str]:
    """Return a line per way and query; the first has the lines of its files, and the verdict."""
    lines = []
    for way in ways:
        gains = [gain(way, query, runs) for query in way.queries]
        of_way = [f"{_lines_of(way):,}", verdict(way, [ratio for _, ratio in gains])]
        for query, (time, ratio) in zip(way.queries, gains, strict=True):
            lines.append([f"{way.name}: {query.__doc__}", f"{time:.2f}", f"{ratio:.2f}", *of_way])
            of_way = ["", ""]
    header = ["way: query", "one change, µs", "times without", "lines", f"at least {LEAST:g}"]
    return markdown(header, lines)


def report(runs: int = RUNS) -> str:
    """Return the section of the report."""
    lines = [
        "### Special ways",
        "",
        "One change with each special way, and how many times that it takes without; medians of",
        f"{runs} turns of two processes, in processor time. Lines are those of its own files.",
        machine(),
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
    """Return the microseconds of one change: each row is added, and removed again."""
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
    """Measure and print; end with 1 if a way is to go."""
    parser = argparse.ArgumentParser(prog="asv_benchmarks.ways", description="Special ways.")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--only", nargs="*", choices=[way.name for way in WAYS])
    parser.add_argument("--serve", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        name, called, mode, large = options.serve
        (way,) = (way for way in WAYS if way.name == name)
        (query,) = (query for query in way.queries if query.__name__ == called)
        serve(way, query, is_on=mode == "on", large=int(large))
        return
    chosen = [way for way in WAYS if not options.only or way.name in options.only]
    lines = table(chosen, options.runs)
    print("\n".join([*lines, "", machine()]))
    sys.exit(any(GOES in line for line in lines))


if __name__ == "__main__":
    main()
