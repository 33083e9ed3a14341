"""The points-to analysis: its results in small programs, and those of a plain solver."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from examples.graphs.points_to.extract import extract
from examples.graphs.points_to.program import Program, facts_of
from examples.live_lint.edits import edits
from examples.live_lint.folder import Folder, folder_at

from .solver import Solver

EXAMPLES = Path(__file__).parents[3] / "examples"
PROJECT = {
    "shop.py": """
from store import Store, make
class Cart:
    def __init__(self, store):
        self.store = store
        self.items = []
    def put(self, item):
        self.items.append(item)
        return self
class Gift(Cart):
    def put(self, item):
        self.paper = {}
        return super().put(item)
cart = Gift(make())
same = cart.put(Store())
first = cart.items[0]
""",
    "store.py": """
class Store:
    def open(self):
        self.goods = {}
        return self.goods
def make():
    store = Store()
    store.open()
    return store
""",
}


def edit(program: Program, sources: dict[str, str]) -> None:
    """Replace files."""
    program.put({file: extract(Path(file).stem, text.encode()) for file, text in sources.items()})


def program_of(sources: dict[str, str]) -> Program:
    program = Program()
    edit(program, sources)
    return program


def types(program: Program, variable: str) -> list[str]:
    """Return the types of the objects that a variable may hold."""
    return sorted({site.type for site in program.sites(variable)})


def check(program: Program) -> None:
    """Check that the views equal the plain solver."""
    points, holds, calls = Solver(program.facts()).solve()
    assert set(program.points) == points
    assert set(program.holds) == holds
    assert set(program.calls) == calls


@pytest.fixture(scope="module")
def program() -> Program:
    return Program()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = []", ["list"]),
        ("y = {}\nx = y", ["dict"]),
        ("x = [()][0]", ["tuple"]),
        ("x, y = [set(), 1]", ["set"]),
        ("def f(): return []\nx = f()", ["list"]),
        ("def f(a, b): return b\nx = f([], {})", ["dict"]),
        ("def f(a, *, b): return b\nx = f([], b={})", ["dict"]),
        ("def f(a): return a()\ndef g(): return []\nx = f(g)", ["list"]),
        ("f = lambda a: [a]\nx = f({})[0]", ["dict"]),
        ("class C: pass\nx = C()", ["m.C"]),
        ("class C:\n def f(self): return self\nx = C().f()", ["m.C"]),
        ("class C:\n @staticmethod\n def f(a): return a\nx = C().f([])", ["list"]),
        ("class B:\n def f(self): return []\nclass C(B): pass\nx = C().f()", ["list"]),
        (
            "class B:\n def f(self): return []\n"
            "class C(B):\n def f(self): return {}\nx = C().f()\ny = B().f()",
            ["dict"],
        ),
        (
            "class B:\n def __init__(self, a): self.a = a\n"
            "class C(B):\n def __init__(self): super().__init__([])\nx = C().a",
            ["list"],
        ),
        ("class C:\n def __init__(self, f): self.f = f\nx = C(lambda: {}).f()", ["dict"]),
        ("class C(C): pass\nclass D(E): pass\nclass E(D): pass\nx = E()", ["m.E"]),
        ("def f():\n def g(): return y\n y = []\n return g\nx = f()()", []),
        ("def f():\n def g(): return y\n y = []\n return g()\nx = f()", ["list"]),
        ("def f():\n global x\n x = []", ["list"]),
        ("def f():\n yield []\nfor x in f(): pass", ["list"]),
        ("def f():\n yield from [{}]\nx = list(f())[0]", ["dict"]),
        ("x = [{} for a in b][0]", ["dict"]),
        ("y = {1: []}\nx = y.get(1)", ["list"]),
        ("y = []\ny += [{}]\nx = y.pop()", ["dict"]),
        ("with open(a) as y: x = y or []", ["list"]),
        ("x = 1 if a else {}", ["dict"]),
        ("(x := [])", ["list"]),
        ("async def f(): return []\nasync def g():\n global x\n x = await f()", ["list"]),
        ("a, *y = [()]\nx = y[0]", ["tuple"]),
        ("x = 1 + 2\ny = 'text'", []),
    ],
)
def test_what_a_variable_may_hold(source: str, expected: list[str], program: Program) -> None:
    """Test a file that had another content before."""
    edit(program, {"m.py": source})
    assert types(program, "m:x") == expected
    check(program)


def test_objects_flow_through_fields_calls_and_files() -> None:
    program = program_of(PROJECT)
    assert types(program, "shop:first") == ["store.Store"]
    assert types(program, "shop:same") == ["shop.Cart", "shop.Gift"]
    assert types(program, "shop.Cart.__init__:store") == ["store.Store"]
    held = {(h.field, h.target.type) for h in program.holds if h.site.type == "shop.Gift"}
    assert held == {("items", "list"), ("store", "store.Store"), ("paper", "dict")}
    check(program)
    for view in (program.points, program.holds, program.calls):
        view.verify()


def test_an_edit_of_one_file_changes_what_others_hold() -> None:
    program = program_of(PROJECT)
    edit(program, {"store.py": PROJECT["store.py"].replace("return store", "return [store]")})
    assert types(program, "shop.Cart.__init__:store") == ["list"]
    check(program)
    edit(program, {"store.py": ""})
    assert types(program, "shop:first") == types(program, "shop.Cart.__init__:store") == []
    check(program)
    edit(program, PROJECT)
    assert types(program, "shop:first") == ["store.Store"]
    check(program)


def test_without_files_nothing_is_held() -> None:
    program = program_of(PROJECT)
    edit(program, dict.fromkeys(PROJECT, ""))
    assert not program.points and not program.holds and not program.calls
    assert program.points.stats().rows == 0


def test_lines_that_move_change_nothing() -> None:
    program = program_of(PROJECT)
    version = program.db.version
    edit(program, {file: f"import os\n\n{text}" for file, text in PROJECT.items()})
    assert program.db.version == version


def test_relative_imports_and_modules_of_packages() -> None:
    program = Program()
    sources = {
        "p": (b"from .a import make\nfrom . import a\nx = a.make()\ny = make()\n", True),
        "p.a": (
            b"import p.b\nimport p.b as c\nz = p.b.T()\nw = c.T()\ndef make(): return z\n",
            False,
        ),
        "p.b": (b"class T: pass\n", False),
    }
    program.put({m: extract(m, text, is_package=package) for m, (text, package) in sources.items()})
    for variable in ("p:x", "p:y", "p.a:z", "p.a:w"):
        assert types(program, variable) == ["p.b.T"], variable
    check(program)


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_after_edits_of_real_code_the_views_are_what_the_plain_solver_finds(seed: int) -> None:
    folder = folder_at(EXAMPLES / "live_lint")
    sources = folder.sources()
    program = Program()
    program.put({file: facts_of(folder, file, source) for file, source in sources.items()})
    check(program)
    assert len(program.points) > 1000
    for change in islice(edits(sources, seed), 12):
        program.put({change.file: facts_of(folder, change.file, change.source)})
        check(program)


def test_a_fresh_program_finds_the_same() -> None:
    folder = Folder(EXAMPLES)
    sources = folder_at(EXAMPLES / "graphs").sources()
    facts = {file: facts_of(folder, file, source) for file, source in sources.items()}
    grown, fresh = Program(), Program()
    for file, found in facts.items():
        grown.put({file: found})
    fresh.put(facts)
    assert set(grown.points) == set(fresh.points)
    assert set(grown.holds) == set(fresh.holds)
    assert set(grown.calls) == set(fresh.calls)
