"""Proofs, suppositions and the journal, beside what they are measured by.

python -m asv_benchmarks.why [--folders json email ...]

    why         of findings of live_lint over folders of the standard library, and of paths in a
                graph; beside the making of the view
    suppose     a row is added, and a view read; beside adding and removing it
    journal     a commit with a journal beside one without; undo beside the commit

Asked: `why` of 95 in 100 findings below 10 ms, a commit with a journal at most 1.3 times as long,
an undo at most 1.2 times the commit.
"""

from __future__ import annotations

import argparse
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random
from time import process_time
from typing import Any

from examples.live_lint.extract import extract
from examples.live_lint.project import Project
from reactive import Count, Database, Sum, fixpoint

FOLDERS = ("json", "asyncio", "email", "logging", "importlib", "http", "unittest")
SHOWN = 25
"""Number of findings of each check that are asked for."""
NODES = 700


def seconds(act: Callable[[], object]) -> float:
    """Return the processor time of an action."""
    began = process_time()
    act()
    return process_time() - began


def told(name: str, found: Iterable[float]) -> str:
    """Return a line with the median, the 95th of 100 and the largest of some times."""
    times = sorted(found)
    shown = (times[len(times) // 2], times[int(len(times) * 0.95)], times[-1])
    milliseconds = ", ".join(f"{1000 * each:.2f}" for each in shown)
    return f"{name:<44} median, 95 of 100, largest: {milliseconds} ms ({len(times)})"


def of_findings(folders: Iterable[str]) -> None:
    """Ask why of the findings of live_lint."""
    library = Path(sysconfig.get_paths()["stdlib"])
    facts = {}
    for path in (path for folder in folders for path in sorted((library / folder).rglob("*.py"))):
        name = str(path.relative_to(library))
        module = name[:-3].replace("/", ".").removesuffix(".__init__")
        facts[name] = frozenset(extract(name, module, path.read_bytes()))
    project = Project()
    project.put(facts)
    later: list[float] = []
    first: list[float] = []
    for view in project.views.values():
        for number, row in enumerate(list(view)[:SHOWN]):
            (later if number else first).append(seconds(lambda v=view, r=row: v.why(r)))  # type: ignore[misc]
    print(told("why of findings, the first of each check", first))
    print(told("why of findings", later))


def closure(edges: Any) -> Any:
    """Return the paths of a graph."""
    return fixpoint(
        lambda reach: edges.union(
            reach.join(edges, on=lambda p, e: p[1] == e[0]).select(lambda p, e: (p[0], e[1]))
        )
    )


def of_paths() -> None:
    """Ask why of paths in a graph with cycles."""
    random = Random(1)
    db = Database()
    edges = db.table(tuple[int, int], name="edges")
    rows = [(n, n + 1 + random.randrange(3)) for n in range(NODES)]
    edges.add_all(rows + [(random.randrange(NODES), random.randrange(NODES)) for _ in range(60)])
    made: list[Any] = []
    load = seconds(lambda: made.append(closure(edges).materialize()))
    (reach,) = made
    asked = random.sample(list(reach), 40)
    first = seconds(lambda: reach.why(asked[0]))
    print(f"{len(reach)} paths are made in {load:.2f} s; the first why takes {1000 * first:.0f} ms")
    print(told("why of paths", [seconds(lambda r=row: reach.why(r)) for row in asked]))  # type: ignore[misc]


def world(keep: int) -> tuple[Database, Any, Any]:
    """Return a database with a table and a view of groups of it."""
    db = Database(keep=keep) if keep else Database()
    table = db.table(tuple[int, int], name="rows")
    view = table.group_by(lambda r: r[0]).aggregate(Count(), Sum(lambda r: r[1])).materialize()
    table.add_all([(n % 100, n) for n in range(10_000)])
    return db, table, view


def per_call(act: Callable[[int], object], calls: int) -> float:
    """Return the microseconds of a call, the best of seven runs."""
    runs = [seconds(lambda: [act(n) for n in range(calls)]) for _ in range(7)]
    return 1e6 * min(runs) / calls


def adder(table: Any, numbers: Iterator[int]) -> Callable[[int], object]:
    """Return the action that adds another row."""
    return lambda n: table.add((n % 100, next(numbers)))


def of_commits() -> None:
    """Measure commits with and without a journal, their undoing, and suppositions."""
    found = []
    for keep in (0, 100_000):
        _, table, _ = world(keep)
        numbers = iter(range(20_000, 10**9))
        found.append(per_call(adder(table, numbers), 4_000))
    print(f"commit {found[0]:.2f} us, with a journal {found[1]:.2f}: {found[1] / found[0]:.2f}")
    db, table, view = world(100)
    rows = [(n % 100, 10**8 + n) for n in range(1_000)]
    commit = min(seconds(lambda: table.add_all(rows)) + 0 * bool(db.undo()) for _ in range(5))
    undos = []
    for _ in range(5):
        table.add_all(rows)
        undos.append(seconds(db.undo))
    print(f"1,000 rows {1000 * commit:.2f} ms, undone {1000 * min(undos):.2f} ms")

    def suppose(number: int) -> None:
        with db.suppose():
            table.add((7, 10**9 + number))
            len(view)

    def twice(number: int) -> None:
        table.add((7, 10**9 + number))
        table.remove((7, 10**9 + number))

    print(f"suppose {per_call(suppose, 500):.1f} us, add and remove {per_call(twice, 500):.1f} us")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folders", nargs="*", default=FOLDERS)
    of_findings(parser.parse_args().folders)
    of_paths()
    of_commits()


if __name__ == "__main__":
    main()
