"""The facts of the names, attributes, strings and assignments of a file."""

from __future__ import annotations

import ast
import re

from examples.live_lint import shapes
from examples.live_lint.facts import Export, InitCall
from examples.live_lint.walk import Handlers, Walker

WORD = re.compile(r"[^\W\d]\w*")


def annotation(walker: Walker, node: ast.expr | None) -> None:
    """Walk an annotation: the strings in it are code."""
    if node is not None:
        walker.annotating += 1
        walker.walk(node)
        walker.annotating -= 1


def export(walker: Walker, value: ast.expr | None) -> None:
    """Take in the strings of a list as entries of `__all__`."""
    for line, name in shapes.strings(value):
        walker.facts.add(Export(walker.file, line, walker.module, name))


def _name(walker: Walker, node: ast.Name) -> None:
    if type(node.ctx) is ast.Store:
        walker.bind(node.id)
    else:
        walker.read(node.id)


def _attribute(walker: Walker, node: ast.Attribute) -> None:
    parts: list[str] = []
    inner: ast.expr = node
    while type(inner) is ast.Attribute:
        parts.append(inner.attr)
        inner = inner.value
    for part in parts:
        walker.mention(part)
    owner_class = walker.scope.owner_class
    if owner_class is not None and "__init__" in parts:
        walker.facts.add(InitCall(owner_class))
    if type(inner) is ast.Name:
        parts.reverse()
        walker.chains.add((inner.id, ".".join(parts)))
    walker.walk(inner)


def _constant(walker: Walker, node: ast.Constant) -> None:
    value = node.value
    if type(value) is not str:
        return
    if walker.annotating:
        for word in WORD.findall(value):
            walker.read(word)
    elif value.startswith("_") and value.isidentifier():
        walker.mention(value)


def _global(walker: Walker, node: ast.Global) -> None:
    walker.scope.globals.update(node.names)


def _assign(walker: Walker, node: ast.Assign) -> None:
    if any(_is_all(walker, target) for target in node.targets):
        export(walker, node.value)
    walker.below(node)


def _augmented_assign(walker: Walker, node: ast.AugAssign) -> None:
    if isinstance(node.target, ast.Name):
        walker.read(node.target.id)
        if _is_all(walker, node.target):
            export(walker, node.value)
    walker.below(node)


def _annotated_assign(walker: Walker, node: ast.AnnAssign) -> None:
    if _is_all(walker, node.target):
        export(walker, node.value)
    annotation(walker, node.annotation)
    walker.walk_all([node.target, node.value])


def _capture(walker: Walker, node: ast.MatchAs | ast.MatchStar) -> None:
    if node.name is not None:
        walker.bind(node.name)
    walker.below(node)


def _is_all(walker: Walker, target: ast.expr) -> bool:
    is_name = isinstance(target, ast.Name) and target.id == "__all__"
    return is_name and walker.scope.kind == "module"


HANDLERS: Handlers = {
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Constant: _constant,
    ast.Global: _global,
    ast.Assign: _assign,
    ast.AugAssign: _augmented_assign,
    ast.AnnAssign: _annotated_assign,
    ast.MatchAs: _capture,
    ast.MatchStar: _capture,
}
