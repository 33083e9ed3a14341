"""The shape of the code: which way imports point, and that every public name is documented."""

from __future__ import annotations

import ast
import doctest
import importlib
import json
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pytest

import reactive

ROOT = Path(__file__).parent.parent
BELOW = {"optimizer": [], "reactive": ["optimizer"], "spark_backend": ["reactive", "optimizer"]}
LIBRARIES = {
    "optimizer": set(),
    "reactive": {
        *("sortedcontainers", "typing_extensions", "rich", "sqlglot", "watchfiles"),
        *("pyarrow", "narwhals", "numpy", "pandas", "polars"),
        *("sqlalchemy", "django", "psycopg2", "mypy", "hypothesis"),
    },
    "spark_backend": {"numpy", "pandas", "py4j", "pyarrow", "pyspark", "rich", "xxhash"},
}
ROOMS = {
    "optimizer": (
        *("kinds", "callables", "expressions", "lifting", "plans", "subqueries"),
        "comprehensions",
        *("rules", "rewriting"),
    ),
    "reactive": (
        *("engine.runtime", "engine.collections", "engine.codegen", "engine.storage"),
        *("engine.operators", "engine.reference", "engine.dataflow", "engine.remote"),
        *("engine.compiler", "engine.transactions", "engine.provenance"),
        *("api.subscriptions", "api"),
        *("borders.durable", "borders.sinks", "borders.frames", "borders.sources"),
        *("borders.two_commits", "borders.mirrors", "borders.objects", "borders.offload"),
        *("languages.sql", "languages.datalog"),
    ),
    "spark_backend": (
        *("cluster", "codec", "columnar", "sinks", "state", "direct", "tables", "streams", "steps"),
        *("aggregates", "fragments", "bucketed", "recursion", "parts"),
    ),
}
"""The rooms of each package, the lowest first: a room imports those before it. Those of `reactive`
are in four wings, engine <- api <- borders, languages."""
WINGS = ("engine", "api", "borders", "languages")
TYPES_ABOVE = {
    "reactive.api.borders": {"reactive.borders.frames", "reactive.borders.sinks"},
    "reactive.api.framed": {"reactive.borders.durable", "reactive.borders.frames"},
    "reactive.api.view": {"reactive.borders.sinks"},
}
"""Methods whose types name an object of a border, which they import by name (`optional`)."""
ROOT_MODULES = {
    "optimizer": {
        "__init__",
        "earlier_names",
        "errors",
        "expr",
        "lazy",
        "plan",
        "record",
        "traverse",
    },
    "reactive": {
        "__init__",
        "database",
        "datalog",
        "errors",
        "lattices",
        "mypy",
        "parts",
        "rings",
        "sql",
        "testing",
    },
    "spark_backend": {"__init__", "offload"},
}
BELOW_ROOMS = ("earlier_names", "errors", "lazy", "record")
"""Modules of a root that all rooms may import."""
OF_ROOT = {"expr": "expressions", "plan": "plans", "traverse": "plans"}
"""The room that a module of the root of `optimizer` would be in."""
ACROSS = {
    *(
        "benchmarks",
        "comprehensions",
        "nests",
        "docs",
        "errors",
        "examples",
        "faults",
        "golden",
        "growth",
        "kills",
    ),
    *(
        "notebook",
        "old_files",
        "postgres",
        "properties",
        "random_queries",
        "scenarios",
        "soak",
        "spark",
        "types",
    ),
}
"""Folders of tests for no single room of `reactive`. Those of `optimizer` are in one."""
LONGEST, SHORTEST_MEDIAN, MOST_IMPORTED = 400, 130, 0.10
"""Limits: lines of code of a file, their median over all files but rules, share of imports."""
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
CONTENTS = {
    *("README.md", "LICENSE", "Makefile", "CHANGELOG.md", "pyproject.toml"),
    *("CONTRIBUTING.md", "SECURITY.md"),
}


def files(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


class Facts(NamedTuple):
    """Facts of a file that tests ask for.

    Parameters
    ----------
    length: the lines of the code without docstrings, as Python writes it; 0 in a short file.
    lines: the lines with code, and how many of these are of imports.
    """

    docstring: str | None
    length: int
    lines: tuple[int, int]
    imports: tuple[str, ...]
    imports_at_run_time: tuple[str, ...]


@cache
def facts(path: Path) -> Facts:
    """Return the facts of a file, which is parsed once."""
    text = path.read_text()
    tree = ast.parse(text)
    docstring, lines = ast.get_docstring(tree), _lines_of_code(text, tree)
    every = (tuple(_imports(tree, at_run_time=asked)) for asked in (False, True))
    found = Facts(docstring, 0, lines, *every)
    if text.count("\n") <= LONGEST:
        return found
    return found._replace(length=ast.unparse(_without_docstrings(tree)).count("\n"))


def imports(path: Path, *, at_run_time: bool) -> tuple[str, ...]:
    """Return the modules that a file imports; if `at_run_time`, except those for type checkers."""
    found = facts(path)
    return found.imports_at_run_time if at_run_time else found.imports


def _imports(tree: ast.Module, *, at_run_time: bool) -> Iterator[str]:
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if at_run_time and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            skipped.update(child for part in node.body for child in ast.walk(part))
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            submodules = [name for name in names if _is_module(name)]
            yield from submodules or [node.module]


def _is_module(name: str) -> bool:
    return (ROOT / name.replace(".", "/")).with_suffix(".py").exists()


@pytest.mark.long
@pytest.mark.parametrize("package", BELOW)
def test_imports_point_down(package: str) -> None:
    allowed = {package, *BELOW[package], *LIBRARIES[package]}
    for path in files(package):
        for name in imports(path, at_run_time=False):
            top = name.partition(".")[0]
            assert top in allowed or top in sys.stdlib_module_names, f"{path}: {name}"


@pytest.mark.long
def test_modules_do_not_import_each_other_in_a_circle() -> None:
    modules = {_module(path): path for package in BELOW for path in files(package)}
    edges = {
        name: {target for target in imports(path, at_run_time=True) if target in modules} - {name}
        for name, path in modules.items()
    }
    while edges:
        free = {name for name, targets in edges.items() if not targets & edges.keys()}
        assert free, f"a circle among {sorted(edges)}"
        edges = {name: targets for name, targets in edges.items() if name not in free}


@pytest.mark.parametrize("package", ROOMS)
def test_rooms_import_one_way(package: str) -> None:
    """Imports of types count too, except those of `TYPES_ABOVE`."""
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in files(package)
        for name in imports(path, at_run_time=False)
        if name.startswith(f"{package}.") and _floor(name) > _floor(_module(path))
        if _room(package, name) not in TYPES_ABOVE.get(_module(path), ())
        or name in imports(path, at_run_time=True)
    ]
    assert wrong == []


def test_borders_and_languages_do_not_import_each_other() -> None:
    for one, other in (("borders", "languages"), ("languages", "borders")):
        for path in files(f"reactive/{one}"):
            found = [
                name for name in imports(path, at_run_time=False) if f"reactive.{other}" in name
            ]
            assert not found, f"{path} imports {found}"


@pytest.mark.parametrize("package", ROOMS)
def test_every_module_is_in_a_room_which_says_what_lives_there(package: str) -> None:
    inside = ROOT / package
    assert {path.stem for path in inside.glob("*.py")} == ROOT_MODULES[package]
    found = _folders(inside)
    if package == "reactive":
        assert found == set(WINGS)
        wings = {f"{wing}.{room}" for wing in WINGS for room in _folders(inside / wing)}
        found = wings | {"api"}
    assert found == set(ROOMS[package])
    for room in {*ROOMS[package], *(WINGS if package == "reactive" else ())}:
        text = importlib.import_module(f"{package}.{room}").__doc__ or ""
        for heading in ("Lives here:", "Comes in:", "Goes out:", "May import:"):
            assert heading in text, f"{package}.{room} does not say {heading}"


def test_tests_are_in_the_rooms_that_they_test() -> None:
    tests = ROOT / "tests"
    assert _folders(tests) <= {*WINGS, *ACROSS, "optimizer"}
    for wing in WINGS:
        rooms = {
            room.partition(".")[2] for room in ROOMS["reactive"] if room.startswith(f"{wing}.")
        }
        assert _folders(tests / wing) == rooms
    assert _folders(tests / "optimizer") == {*ROOMS["optimizer"]}
    for room in ("operators", "compiler"):
        inside = _folders(ROOT / "reactive" / "engine" / room)
        own = _folders(tests / "engine" / room)
        assert own <= inside, f"tests/engine/{room} has folders of its own"


def _folders(path: Path) -> set[str]:
    return {each.name for each in path.iterdir() if (each / "__init__.py").exists()}


def _floor(module: str) -> int:
    package, _, rest = module.partition(".")
    rooms, room = ROOMS[package], _room(package, module).partition(".")[2]
    if room in rooms:
        return rooms.index(room)
    return -1 if rest in BELOW_ROOMS else len(rooms)


def _room(package: str, module: str) -> str:
    """The room that a module is in, or the module itself if it is in none."""
    parts = module.split(".")[1:]
    if package == "optimizer" and parts:
        parts[0] = OF_ROOT.get(parts[0], parts[0])
    found = [room for count in (2, 1) if (room := ".".join(parts[:count])) in ROOMS[package]]
    return f"{package}.{found[0] if found else '.'.join(parts)}"


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.long
@pytest.mark.parametrize("package", BELOW)
def test_files_are_short_and_say_what_they_are(package: str) -> None:
    for path in files(package):
        assert facts(path).docstring, f"{path} has no docstring"
        assert facts(path).length <= LONGEST, f"{path} has {facts(path).length} lines of code"


@pytest.mark.long
def test_files_are_of_a_size_to_read_and_import_little(
    record_property: Callable[[str, object], None],
) -> None:
    every = [path for package in BELOW for path in files(package)]
    sizes = {path: facts(path).lines for path in every}
    inside = [
        code
        for path, (code, _) in sizes.items()
        if path.name != "__init__.py" and path.parent != ROOT / "optimizer" / "rules"
    ]
    code, imported = map(sum, zip(*sizes.values(), strict=True))
    for name, value in (("files", len(every)), ("median", median(inside)), ("lines", code)):
        record_property(name, value)
    told = f"{len(every)} files, median {median(inside)}, {imported} of {code} lines import"
    assert median(inside) >= SHORTEST_MEDIAN and imported < MOST_IMPORTED * code, told


def _lines_of_code(text: str, tree: ast.Module) -> tuple[int, int]:
    """The lines with code on them, and how many of these are of imports."""
    stripped = enumerate(map(str.strip, text.splitlines()), 1)
    lines = {number for number, line in stripped if line and not line.startswith("#")}
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            lines -= {*range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)}
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return len(lines), sum((n.end_lineno or n.lineno) - n.lineno + 1 for n in imports)


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def test_public_names_are_sorted_and_documented() -> None:
    assert reactive.__all__ == sorted(reactive.__all__)
    for name in reactive.__all__:
        thing = getattr(reactive, name)
        assert thing.__doc__, name
        for method, value in vars(thing).items():
            if not method.startswith("_") and callable(value):
                assert value.__doc__ or _inherits(thing, method), f"{name}.{method}"


def _inherits(owner: type, method: str) -> bool:
    return any(getattr(vars(base).get(method), "__doc__", None) for base in owner.__mro__[1:]) or (
        owner is reactive.Observer
    )


@pytest.mark.parametrize("name", reactive.__all__)
def test_public_names_have_a_runnable_example(name: str) -> None:
    thing = getattr(reactive, name)
    if isinstance(thing, type) and issubclass(thing, BaseException):
        return
    examples = [e for test in doctest.DocTestFinder().find(thing, name) for e in test.examples]
    assert examples


def modules() -> list[str]:
    names = [
        name
        for package in BELOW
        for _, name, _ in pkgutil.walk_packages([str(ROOT / package)], f"{package}.")
    ]
    return [*BELOW, *names]


@pytest.mark.long
def test_examples_in_docstrings_run() -> None:
    """Run them in a process of their own: doctest searches all loaded modules for each name."""
    command = [sys.executable, "-m", "tests.doctests", *modules()]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    assert found.keys() == set(modules())
    assert "\n".join(filter(None, found.values())) == ""


def test_the_top_level_has_what_belongs_there() -> None:
    assert {path.name for path in ROOT.iterdir() if path.is_file()} >= CONTENTS
    for package in BELOW:
        assert (ROOT / package / "py.typed").exists()


def test_contributors_are_told_of_commands_that_are_there() -> None:
    told = re.findall(r"^make ([\w-]+)", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert told and set(told) <= set(targets)


READERS = {
    "optimizer/kinds/kind.py": "the one reader of annotations",
    "optimizer/kinds/fields.py": "the annotations of a class, for the one reader",
    "optimizer/record.py": "a class of records is made of its own annotations, as a dataclass is",
    "optimizer/plans/fingerprint.py": "two annotations are one text if they are written alike",
    "reactive/borders/durable/rows/values.py": "files have annotations as they are written: "
    "`Euro`, not "
    "the `Decimal` that a `NewType` stands for",
    "reactive/borders/sources/postgres/rows.py": "writes the annotations of a class as text",
    "reactive/borders/mirrors/kinds.py": "`Mapped` is a wrapper of SQLAlchemy, which kinds do "
    "not know",
    "spark_backend/codec/result_types.py": "functions may return iterators, which "
    "are no kind of value",
}
"""The modules that may read annotations themselves, and why; all others ask `optimizer/kinds`."""


def _reads_annotations(path: Path) -> bool:
    text = path.read_text()
    if not re.search(r"__annotations__|get_type_hints|get_origin|get_args", text):
        return False
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module in ("typing", "typing_extensions"):
            if {each.name for each in node.names} & {"get_type_hints", "get_origin", "get_args"}:
                return True
        elif (isinstance(node, ast.Constant) and node.value == "__annotations__") or (
            isinstance(node, ast.Attribute)
            and (node.attr in ("__annotations__", "get_type_hints", "get_origin", "get_args"))
        ):
            return True
    return False


def test_annotations_are_read_in_few_modules() -> None:
    found = {
        str(path.relative_to(ROOT))
        for package in BELOW
        for path in (ROOT / package).rglob("*.py")
        if _reads_annotations(path)
    }
    assert found == READERS.keys()
