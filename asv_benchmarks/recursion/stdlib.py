"""The import and call graph of the standard library of the interpreter that runs this.

python -m asv_benchmarks.recursion.stdlib          # prints it as JSON

It is read in a process of its own, so that reading takes no memory of the measuring
process. Tests and installed packages are left out.
"""

from __future__ import annotations

import ast
import gc
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from asv_benchmarks.recursion.scopes import Scope, scope_of
from asv_benchmarks.recursion.uses import Uses

LEFT_OUT = {"site-packages", "test", "tests", "idle_test", "lib2to3", "__pycache__"}
SHARED = "STDLIB_GRAPH"
"""The variable of the environment that tells a file with the graph."""
ROOT = Path(__file__).resolve().parent.parent.parent


class Graph(NamedTuple):
    """Pairs of nodes, without duplicates, in order."""

    uses: list[tuple[str, str]]
    imports: list[tuple[str, str]]
    """Imports between modules only."""
    programs: list[str]
    """The modules that can be run as `python -m`."""


@lru_cache(maxsize=1)
def stdlib() -> Graph:
    """Return the graph; read the first time, unless `shared` has."""
    if SHARED in os.environ:
        return decoded(Path(os.environ[SHARED]).read_text())
    command = [sys.executable, "-m", "asv_benchmarks.recursion.stdlib"]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return decoded(done.stdout)


@contextmanager
def shared() -> Iterator[None]:
    """Share the graph that was read with processes that are started in the block."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "graph.json"
        file.write_text(encoded(stdlib()))
        os.environ[SHARED] = str(file)
        try:
            yield
        finally:
            del os.environ[SHARED]


def read(folder: Path) -> Graph:
    """Return the graph of all files below a folder that can be read."""
    modules = dict(_modules(folder))
    uses = Uses(modules)
    return Graph(
        sorted(set(uses.edges())),
        sorted(set(uses.imports())),
        sorted(name for name, scope in modules.items() if _is_program(scope)),
    )


def encoded(graph: Graph) -> str:
    """Return the graph as JSON: the names, and everything else by their numbers."""
    names = sorted({name for pair in (*graph.uses, *graph.imports) for name in pair})
    names += [name for name in graph.programs if name not in set(names)]
    number = {name: n for n, name in enumerate(names)}
    uses, imports = ([(number[a], number[b]) for a, b in pairs] for pairs in graph[:2])
    return json.dumps([names, uses, imports, [number[name] for name in graph.programs]])


def decoded(text: str) -> Graph:
    """Decode a graph from JSON. Equal names are one string."""
    names, uses, imports, programs = json.loads(text)
    return Graph(
        [(names[a], names[b]) for a, b in uses],
        [(names[a], names[b]) for a, b in imports],
        [names[n] for n in programs],
    )


def _modules(folder: Path) -> Iterator[tuple[str, Scope]]:
    for path in sorted(folder.rglob("*.py")):
        *packages, file = path.relative_to(folder).with_suffix("").parts
        if LEFT_OUT & {*packages}:
            continue
        is_package = file == "__init__"
        name = ".".join(packages if is_package else [*packages, file])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(path.read_bytes())
        except SyntaxError:
            continue
        yield name, scope_of(name, tree, is_package=is_package)


def _is_program(module: Scope) -> bool:
    """Return True if the module is named `__main__`, or tests that it is."""
    if module.node.rpartition(".")[2] == "__main__":
        return True
    tests = [node.test for node in module.body.body if isinstance(node, ast.If)]
    return any("'__name__'" in ast.dump(test) for test in tests)


if __name__ == "__main__":
    gc.disable()  # millions of syntax nodes, and none is garbage until the end
    print(encoded(read(Path(sysconfig.get_paths()["stdlib"]))))
