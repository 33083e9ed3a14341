"""The meanings of the names of a module: its scopes, and the bindings of names in them.

A scope is the body of a module, class or function. Its `node` is the full dotted name of that
module, class or function, and a node of the graph. No flow is followed: a name of a scope means
one thing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Block = Definition | ast.Module


@dataclass(slots=True)
class Scope:
    """One body. Names that it binds to nothing known have None, and hide those around them."""

    node: str
    body: Block
    outer: Scope | None
    names: dict[str, str | None] = field(default_factory=dict)
    """Name -> full dotted name of a definition here or elsewhere, or of a module."""
    imports: list[str] = field(default_factory=list)
    """Modules, or names in them, that the body imports."""
    stars: list[str] = field(default_factory=list)
    inner: list[Scope] = field(default_factory=list)


def scope_of(name: str, tree: ast.Module, *, is_package: bool) -> Scope:
    """Return the scope of a module, with those inside it."""
    scope = Scope(name, tree, None)
    _fill(scope, name if is_package else name.rpartition(".")[0])
    return scope


def scopes(scope: Scope) -> Iterator[Scope]:
    """Yield the scope and all inside it."""
    yield scope
    for inner in scope.inner:
        yield from scopes(inner)


def statements(scope: Scope) -> Iterator[ast.AST]:
    """Yield the nodes of the body, without the bodies of inner definitions.

    For an inner definition yield the parts that run at its making: decorators, bases and defaults.
    """
    todo: list[ast.AST] = list(reversed(scope.body.body))
    while todo:
        node = todo.pop()
        yield node
        match node:
            case ast.ClassDef():
                todo += [*node.decorator_list, *node.bases, *(k.value for k in node.keywords)]
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
                todo += [*node.decorator_list, *defaults]
            case _:
                todo += reversed(list(ast.iter_child_nodes(node)))


def _fill(scope: Scope, package: str) -> None:
    for node in statements(scope):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                inner = Scope(f"{scope.node}.{node.name}", node, scope)
                scope.names[node.name] = inner.node
                scope.inner.append(inner)
                _fill(inner, package)
            case ast.Import():
                _import(scope, node)
            case ast.ImportFrom():
                _import_from(scope, node, package)
            case ast.Name(ctx=ast.Store()):
                scope.names.setdefault(node.id, None)
    if not isinstance(scope.body, ast.Module | ast.ClassDef):
        arguments = scope.body.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        for argument in [*every, arguments.vararg, arguments.kwarg]:
            if argument:
                scope.names.setdefault(argument.arg, None)


def _import(scope: Scope, node: ast.Import) -> None:
    for alias in node.names:
        scope.imports.append(alias.name)
        head = alias.name.partition(".")[0]
        _bind(scope, alias.asname or head, alias.name if alias.asname else head)


def _import_from(scope: Scope, node: ast.ImportFrom, package: str) -> None:
    parts = package.split(".")
    above = parts[: len(parts) - node.level + 1] if node.level else []
    target = ".".join([*above, *([node.module] if node.module else [])])
    for alias in node.names:
        if alias.name == "*":
            scope.imports.append(target)
            scope.stars.append(target)
        else:
            scope.imports.append(f"{target}.{alias.name}")
            _bind(scope, alias.asname or alias.name, f"{target}.{alias.name}")


def _bind(scope: Scope, name: str, meaning: str) -> None:
    """Bind a name; an import gives way to a definition, and to an earlier import."""
    if scope.names.get(name) is None:
        scope.names[name] = meaning
