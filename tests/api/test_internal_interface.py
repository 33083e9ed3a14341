"""One file has all that other rooms ask of tables, views and databases."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
INTERFACE = ROOT / "reactive" / "api" / "internal_interface.py"
OUTSIDE = ("reactive/borders", "reactive/languages", "spark_backend")


def _rooms() -> Iterator[Path]:
    for wing in OUTSIDE:
        yield from (path for path in sorted((ROOT / wing).iterdir()) if path.is_dir())


def _nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text()))


def _defined(node: ast.AST) -> str | None:
    """Return the name that a node gives to an attribute of its class, if any."""
    match node:
        case ast.FunctionDef(name=name):
            return name
        case ast.AnnAssign(target=ast.Name(name)):
            return name
        case ast.Attribute(ast.Name("self"), name, ast.Store()):
            return name
    return None


def _read(node: ast.AST) -> str | None:
    """Return the name of an attribute that a node reads of an object other than `self`."""
    match node:
        case ast.Attribute(ast.Name("self" | "cls"), _):
            return None
        case ast.Attribute(_, name) if name.startswith("_"):
            return name
    return None


def test_other_rooms_read_private_names_through_the_interface() -> None:
    """A room may read a private name that its own classes define."""
    names = {name for node in _nodes(INTERFACE) if (name := _read(node)) is not None}
    assert {"_engine", "_keyed"} <= names
    found, told = [], re.compile(rf"\b({'|'.join(names)})\b")
    for room in _rooms():
        files = [path for path in sorted(room.rglob("*.py")) if told.search(path.read_text())]
        own = {_defined(node) for path in files for node in _nodes(path)}
        found += [
            f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)} reads {_read(node)}"
            for path in files
            for node in _nodes(path)
            if _read(node) in names - own
        ]
    assert found == []
