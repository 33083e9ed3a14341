"""All sides of the recursive cases are honest: equal results and equal reports after every edit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from asv_benchmarks.measure import AS_WRITTEN, ENGINE, SEED, TWIN
from asv_benchmarks.recursion import figures
from asv_benchmarks.recursion.case import Case, back
from asv_benchmarks.recursion.cases import CASES
from asv_benchmarks.recursion.figures import Measured
from asv_benchmarks.recursion.graphs import Edge
from asv_benchmarks.recursion.imported import Import
from asv_benchmarks.recursion.measure import edit_figures, initial_figures
from asv_benchmarks.recursion.reached import Use
from asv_benchmarks.recursion.repair import Road
from asv_benchmarks.recursion.report import recursion
from asv_benchmarks.recursion.sides import SCRATCH, doing, fill, names_of, side_of
from asv_benchmarks.recursion.stdlib import Graph, decoded, encoded, read
from asv_benchmarks.table import BEGIN, END, RECURSION, RECURSION_END, put
from asv_benchmarks.workload import Row, Rows, Side, TableDelta
from reactive import TableError
from tests.benchmarks.test_twins import Copy

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
SIZES = {"chain": 8, "digraph": 12, "tree": 15, "paths": 12, "generation": 15, "rank": 12}
NODES = 7
STEPS = 60
TINY: Rows = ([Use("app", "lib"), Use("lib", "app"), Use("lib", "os"), Use("re", "os")], ["app"])
"""Replacement of the standard library, which takes seconds to read."""


@pytest.fixture(autouse=True)
def small_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of the standard library are a few made up ones."""
    pairs = [tuple(use) for use in TINY[0]]
    for module in ("reached", "imported"):
        monkeypatch.setattr(
            f"asv_benchmarks.recursion.{module}.stdlib", lambda: Graph(pairs, pairs, TINY[1])
        )


def rows_of(case: Case) -> Rows:
    return case.rows(SIZES.get(case.name, 100), Random(SEED))


def all_sides(case: Case) -> tuple[dict[str, Side], dict[str, Copy]]:
    """Return all sides, and the copies kept by the sides that report changes."""
    copies = {name: Copy() for name in names_of(case)}
    sides = {name: side_of(case, name, copy) for name, copy in copies.items()}
    del copies[SCRATCH]
    return sides, copies


def assert_equal(sides: dict[str, Side], copies: dict[str, Copy]) -> None:
    wanted = sides[SCRATCH].result()
    for name, side in sides.items():
        assert side.result() == wanted, name
    for name, copy in copies.items():
        assert copy.rows() == wanted, name


def pool_of(row_type: type, random: Random) -> list[Row]:
    """Different rows over few nodes, so that there are cycles and many ways."""
    pick: Callable[[], int] = lambda: random.randrange(NODES)  # noqa: E731
    make: dict[type, Callable[[], Any]] = {
        Edge: lambda: Edge(pick(), pick()),
        Use: lambda: Use(str(pick()), str(pick())),
        Import: lambda: Import(str(pick()), str(pick())),
        Road: lambda: Road(pick(), pick(), random.randint(1, 9)),
        str: lambda: str(pick()),
        int: pick,
    }
    return sorted({make[row_type]() for _ in range(40)})


class History:
    """Random inserts and deletes, a few rows or many per step. Tables are as sets."""

    def __init__(self, case: Case, seed: int) -> None:
        self.random = Random(seed)
        self.pools = [pool_of(table.row_type, self.random) for table in case.tables]
        self.held: list[set[Row]] = [set() for _ in case.tables]

    def start(self) -> tuple[TableDelta, ...]:
        return tuple(self._of(n, pool[: len(pool) // 2]) for n, pool in enumerate(self.pools))

    def one(self) -> tuple[TableDelta, ...]:
        table = self.random.randrange(len(self.pools))
        chosen = self._of(table, [self.random.choice(self.pools[table])])
        return tuple(chosen if n == table else TableDelta() for n in range(len(self.pools)))

    def many(self) -> tuple[TableDelta, ...]:
        return tuple(
            self._of(n, self.random.sample(pool, len(pool) // 3))
            for n, pool in enumerate(self.pools)
        )

    def _of(self, table: int, rows: list[Row]) -> TableDelta:
        """Delete the rows that are present, and insert the others."""
        held = self.held[table]
        delta = TableDelta([r for r in rows if r not in held], [r for r in rows if r in held])
        held.symmetric_difference_update(rows)
        return delta


@pytest.mark.long
@each_case
@pytest.mark.parametrize("seed", range(2))
def test_all_sides_are_equal_after_every_edit(case: Case, seed: int) -> None:
    sides, copies = all_sides(case)
    history = History(case, seed)
    start = history.start()
    for side in sides.values():
        side.batch(*start)
    assert_equal(sides, copies)
    for number in range(STEPS):
        edit = history.one() if number % 4 else history.many()
        for side in sides.values():
            doing(side, edit)()
        assert_equal(sides, copies)


@each_case
def test_all_sides_are_equal_after_every_kind_of_edit(case: Case) -> None:
    rows = rows_of(case)
    sides, copies = all_sides(case)
    for side in sides.values():
        fill(side, rows)
    for kind in case.kinds(rows, Random(SEED)):
        for edit in kind.edits[:5]:
            for step in (edit, back(edit)):
                for side in sides.values():
                    doing(side, step)()
                assert_equal(sides, copies)


@each_case
def test_every_kind_that_has_a_target_is_there(case: Case) -> None:
    kinds = case.kinds(rows_of(case), Random(SEED))
    assert {*case.gains, *case.judged} <= {kind.name for kind in kinds}
    assert all(kind.edits for kind in kinds)


@each_case
def test_all_refuse_the_removal_of_an_absent_row(case: Case) -> None:
    rows = rows_of(case)
    for side in all_sides(case)[0].values():
        fill(side, rows)
        for (_, remove), (row, *_) in zip(side.verbs(), rows, strict=True):
            remove(row)
            with pytest.raises((TableError, KeyError)):
                remove(row)


@pytest.mark.long
@each_case
def test_measuring_gives_figures_of_all_sides(case: Case) -> None:
    size = SIZES.get(case.name, 100)
    times = edit_figures(case, size, most=2)
    assert [*times] == [kind.name for kind in case.kinds(rows_of(case), Random(SEED))]
    for ways in times.values():
        for sides in ways.values():
            assert [*sides] == names_of(case)
            assert all(second > 0 for seconds in sides.values() for second in seconds)
    for name in names_of(case):
        loaded = initial_figures(case, name, size)
        assert loaded["given"] == len(rows_of(case)[0])
        assert loaded["seconds"] > 0


def of_seconds(case: Case, engine: float, scratch: float) -> Measured:
    """A case whose figures are made up."""
    seconds = {ENGINE: engine, AS_WRITTEN: 9.0, SCRATCH: scratch, TWIN: 1.0}
    loads = {
        s: {"seconds": t, "held": 1, "peak": 1, "given": 1, "rows": 1} for s, t in seconds.items()
    }
    kinds = {kind.name for kind in case.kinds(rows_of(case), Random(SEED))}
    ways = {way: {s: [t, t] for s, t in seconds.items()} for way in ("inserted", "deleted")}
    return Measured(case, [loads], [dict.fromkeys(kinds, ways)])


@each_case
def test_what_misses_its_target_is_marked(case: Case) -> None:
    missed = of_seconds(case, engine=3.0, scratch=1.0)
    met = of_seconds(case, engine=1.0, scratch=501.0)
    for section in (figures.initial, figures.edits):
        assert ("missed" in "\n".join(section([missed]))) == bool(case.judged)
        assert "missed" not in "\n".join(section([met]))
    close = "\n".join(figures.edits([of_seconds(case, engine=1.0, scratch=99.0)]))
    assert close.count("missed") == 2 * len(case.gains)


def test_the_report_has_a_section_for_recursion(tmp_path: Path) -> None:
    def in_process(*arguments: str) -> dict[str, Any]:
        case = next(c for c in CASES if c.name == arguments[1])
        if arguments[0] == "edits":
            return edit_figures(case, SIZES[case.name], most=1)
        loaded = initial_figures(case, arguments[2], SIZES[case.name])
        return {**loaded, "held": 1, "peak": 1}

    text = recursion([CASES[0], CASES[-1]], in_process, runs=1)
    titles = [line for line in text.splitlines() if line.startswith("##")]
    assert titles == [
        "## Recursion",
        "### First evaluation",
        "### Memory",
        "### One edit",
        "#### Closure of a chain",
        "#### PageRank of a random digraph",
    ]
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    for _ in range(2):
        put(text, page, RECURSION, RECURSION_END)
    section = f"{RECURSION}\n\n{text}\n\n{RECURSION_END}"
    assert page.read_text() == f"before\n{BEGIN}\nold\n{END}\n\n{section}\nafter\n"


FILES = {
    "app/__init__.py": "from .core import *\nfrom lib import helper as h",
    "app/core.py": """
import lib.sub

class Base:
    def run(self): return self.step()
    def step(self): ...
    def h(self): return h()

class Child(Base):
    def stop(self): return self.run() or lib.sub.deep()

def main(step=lambda: h):
    def inner(): return Child()
    return inner()

def h(): return h
""",
    "lib/__init__.py": "def helper(main): return main()",
    "lib/sub.py": "def deep(): import app; return app.main(), app.Child.step, app.h()",
    "lib/__main__.py": "from lib import helper\nhelper(print)",
    "lib/tests/ignored.py": "import app",
    "lib/broken.py": "def",
}
USES = """
app app.core          app lib               app lib.helper?
app.core app          app.core lib          app.core lib.sub      app.core app.core.h
app.core app.core.Base
app.core.Base app.core.Base.run             app.core.Base app.core.Base.step
app.core.Base.run app.core.Base.step        app.core.Base app.core.Base.h
app.core.Base.h app.core.h
app.core.Child app.core.Base                app.core.Child app.core.Child.stop
app.core.Child.stop app.core.Base.run       app.core.Child.stop lib.sub.deep
app.core.main app.core.main.inner           app.core.main.inner app.core.Child
lib.sub lib           lib.sub.deep app      lib.sub.deep app.core.main
lib.sub.deep app.core.Base.step             lib.sub.deep lib.helper
lib.__main__ lib      lib.__main__ lib.helper
"""


def test_the_graph_of_files_has_uses_imports_and_programs(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    graph = read(tmp_path)
    words = USES.split()
    wanted = {pair for pair in zip(words[::2], words[1::2], strict=True) if "?" not in pair[1]}
    assert set(graph.uses) == wanted
    assert graph.imports == [
        ("app", "app.core"),
        ("app", "lib"),
        ("app.core", "app"),
        ("app.core", "lib"),
        ("app.core", "lib.sub"),
        ("lib.__main__", "lib"),
        ("lib.sub", "app"),
        ("lib.sub", "lib"),
    ]
    assert graph.programs == ["lib.__main__"]
    assert decoded(encoded(graph)) == graph
