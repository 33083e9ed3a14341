"""Edits as people make them, one file at a time, for measuring and for tests.

Each kind of edit is a function from a syntax tree and its lines to the lines after the edit, or
None where there is nothing that it could change.
"""

from __future__ import annotations

import ast
import random
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

T = TypeVar("T", bound=ast.AST)
Lines: TypeAlias = list[str]
Kind: TypeAlias = Callable[[ast.Module, Lines, random.Random], Lines | None]
FUNCTIONS = (ast.FunctionDef,)
IMPORTS: tuple[type[ast.stmt], ...] = (ast.Import, ast.ImportFrom)
SIMPLE: tuple[type[ast.stmt], ...] = (ast.Expr, ast.Assign, ast.Return)


@dataclass(frozen=True, slots=True)
class Edit:
    """The new contents of a file, and a description of the edit."""

    file: str
    what: str
    source: bytes


def edits(sources: Mapping[str, bytes], seed: int = 0) -> Iterator[Edit]:
    """Edits without end, each on top of those before; the same for the same seed.

    Files that Python cannot read are not edited, until the edit that broke them is undone.
    """
    rng = random.Random(seed)
    first, now, files = dict(sources), dict(sources), sorted(sources)
    while True:
        file, kind = rng.choice(files), rng.choice(KINDS)
        source = first[file] if kind is take_back else _edited(now[file], kind, rng)
        if source is not None and source != now[file]:
            now[file] = source
            yield Edit(file, kind.__name__.replace("_", " "), source)


def can_edit(sources: Mapping[str, bytes]) -> bool:
    """Return True if Python can read some file; otherwise `edits` would search for ever."""
    return any(_edited(source, add_import, random.Random(0)) for source in sources.values())


def drop_import(tree: ast.Module, lines: Lines, rng: random.Random) -> Lines | None:
    """Delete an import."""
    return _without(_one(tree, IMPORTS, rng), lines)


def add_import(tree: ast.Module, lines: Lines, rng: random.Random) -> Lines | None:
    """Import a module that there is, or that there is not."""
    module = rng.choice(["json", "os.path", "nowhere", "nowhere.at.all"])
    return [*lines, f"import {module}\n"]


def rename_function(tree: ast.Module, lines: Lines, rng: random.Random) -> Lines | None:
    """Give a function another name where it is defined, not where it is used."""
    node = _one(tree, FUNCTIONS, rng)
    if node is None:
        return None
    return _replaced(lines, node.lineno, rf"def {node.name}\b", f"def {node.name}_new")


def rename_class(tree: ast.Module, lines: Lines, rng: random.Random) -> Lines | None:
    """Give a class another name where it is defined, not where it is used."""
    node = _one(tree, (ast.ClassDef,), rng)
    if node is None:
        return None
    return _replaced(lines, node.lineno, rf"class {node.name}\b", f"class {node.name}New")


def delete_method(tree: ast.Module, lines: Lines, rng: random.Random) -> Lines | None:
    """Delete a method of some class."""
    node = _one(tree, (ast.ClassDef,), rng)
    return None if node is None else _without(_one(node, FUNCTIONS, rng), lines)


def delete_function(tree: ast.Module, lines: Lines, rng: random.Random) -> Lines | None:
    """Delete a function of the module."""
    found = [node for node in tree.body if isinstance(node, FUNCTIONS)]
    return _without(rng.choice(found), lines) if found else None


def delete_statement(tree: ast.Module, lines: Lines, rng: random.Random) -> Lines | None:
    """Delete a simple statement, and with it uses of names."""
    return _without(_one(tree, SIMPLE, rng), lines)


def copy_function(tree: ast.Module, lines: Lines, rng: random.Random) -> Lines | None:
    """Repeat a function under itself."""
    node = _one(tree, FUNCTIONS, rng)
    if node is None:
        return None
    last = node.end_lineno or node.lineno
    return lines[:last] + lines[_first(node) - 1 : last] + lines[last:]


def add_parameter(tree: ast.Module, lines: Lines, rng: random.Random) -> Lines | None:
    """Give a function one more parameter."""
    node = _one(tree, FUNCTIONS, rng)
    if node is None:
        return None
    comma = ", " if node.args.args else ""
    return _replaced(lines, node.lineno, r"\):\s*$", f"{comma}added=[]):\n")


def break_syntax(tree: ast.Module, lines: Lines, rng: random.Random) -> Lines | None:
    """Leave a bracket open, as while typing."""
    return [*lines, "call(\n"]


def take_back(tree: ast.Module, lines: Lines, rng: random.Random) -> Lines | None:
    """Undo all edits of a file; this is known to `edits`, which has the first contents."""
    raise AssertionError("edits() takes back by itself")


KINDS: tuple[Kind, ...] = (
    drop_import,
    add_import,
    rename_function,
    rename_class,
    delete_method,
    delete_function,
    delete_statement,
    copy_function,
    add_parameter,
    break_syntax,
    take_back,
)


def _edited(source: bytes, kind: Kind, rng: random.Random) -> bytes | None:
    try:
        text = source.decode("utf-8")
        tree = _parsed(text)
        lines = kind(tree, text.splitlines(keepends=True), rng)
        if lines is None:
            return None
        edited = "".join(lines)
        if kind is not break_syntax:
            _parsed(edited)
        return edited.encode("utf-8")
    except (SyntaxError, ValueError, RecursionError):
        return None


def _parsed(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def _one(node: ast.AST, kinds: tuple[type[T], ...], rng: random.Random) -> T | None:
    """Return some node of these kinds, somewhere below."""
    found = [n for n in ast.walk(node) if n is not node and isinstance(n, kinds)]
    return rng.choice(found) if found else None


def _first(node: ast.stmt) -> int:
    """Return the first line of a statement with its decorators."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _without(node: ast.stmt | None, lines: Lines) -> Lines | None:
    """Return the lines without a statement; `pass` holds its place."""
    if node is None:
        return None
    indent = " " * node.col_offset
    return [*lines[: _first(node) - 1], f"{indent}pass\n", *lines[node.end_lineno :]]


def _replaced(lines: Lines, number: int, pattern: str, text: str) -> Lines | None:
    line = re.sub(pattern, text, lines[number - 1], count=1)
    return [*lines[: number - 1], line, *lines[number:]]
