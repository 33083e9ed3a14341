"""Uses: edges between the modules, classes and functions of many files.

    module or function  ->  its imports; a module, also its package
    definition          ->  its mentions: calls, and functions or classes that it passes
    class               ->  its methods: code that makes an object may call them
    class               ->  its bases

A mention is resolved through the scopes around it, imports, re-exports, `import *`, `self`, and
the bases of a class. The objects in variables are not known, so `x.method()` is not resolved.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from asv_benchmarks.recursion.scopes import Scope, scopes, statements

DEPTH = 20
"""Re-exports that are followed one after the other; they may form a cycle."""


class Uses:
    """The uses in the modules of these names."""

    def __init__(self, modules: Mapping[str, Scope]) -> None:
        self._modules = modules
        self._scopes = {s.node: s for module in modules.values() for s in scopes(module)}

    def edges(self) -> Iterator[tuple[str, str]]:
        """Every use, possibly more than once."""
        for node, scope in self._scopes.items():
            for used in self._used(scope):
                if used != node:
                    yield node, used

    def imports(self) -> Iterator[tuple[str, str]]:
        """Yield module -> module; imports inside functions and packages count."""
        for name, module in self._modules.items():
            for scope in scopes(module):
                for target in self._imported(scope):
                    if target != name:
                        yield name, target

    def _used(self, scope: Scope) -> Iterator[str]:
        yield from self._imported(scope)
        if isinstance(scope.body, ast.ClassDef):
            yield from (s.node for s in scope.inner if not isinstance(s.body, ast.ClassDef))
            yield from self._bases(scope)
        handled: set[ast.AST] = set()
        for node in statements(scope):
            if isinstance(node, ast.Name | ast.Attribute) and node not in handled:
                names = _dotted(node, handled)
                found = names and self._resolve(scope, names)
                if found:
                    yield found

    def _imported(self, scope: Scope) -> Iterator[str]:
        for target in [scope.node, *scope.imports] if scope.outer is None else scope.imports:
            parts = target.split(".")
            tops = (".".join(parts[:end]) for end in range(1, len(parts) + 1))
            yield from (module for module in tops if module in self._modules)

    def _bases(self, scope: Scope) -> Iterator[str]:
        assert isinstance(scope.body, ast.ClassDef) and scope.outer
        for base in scope.body.bases:
            names = _dotted(base, set())
            found = names and self._resolve(scope.outer, names)
            if found:
                yield found

    def _resolve(self, scope: Scope, names: list[str]) -> str | None:
        """Return the node that a mention in a scope refers to."""
        head, *rest = names
        if rest and head == _receiver(scope):
            owner = scope.outer
            assert owner
            return self._member(owner, rest[0], DEPTH)
        around: Scope | None = scope
        while around:
            if head in around.names and (around is scope or _is_seen_inside(around)):
                meaning = around.names[head]
                return self._follow(meaning, rest, DEPTH) if meaning else None
            if around.outer is None:
                return self._of_stars(around, head, rest, DEPTH)
            around = around.outer
        return None

    def _follow(self, meaning: str, rest: list[str], depth: int) -> str | None:
        """Return the node of a full name and of attributes of it."""
        parts = [*meaning.split("."), *rest]
        for end in range(len(parts), 0, -1):
            node = ".".join(parts[:end])
            scope = self._scopes.get(node)
            if scope:
                if end == len(parts) or not depth:
                    return node
                return self._member(scope, parts[end], depth, parts[end + 1 :]) or node
        return None

    def _member(
        self, scope: Scope, name: str, depth: int, rest: list[str] | None = None
    ) -> str | None:
        """Return the node of a name in a module or class."""
        meaning = scope.names.get(name)
        if meaning:
            direct = meaning if not rest and meaning in self._scopes else None
            return direct or self._follow(meaning, rest or [], depth - 1)
        if not depth:
            return None
        if scope.outer is None:
            return self._of_stars(scope, name, rest or [], depth)
        if isinstance(scope.body, ast.ClassDef):
            for base in self._bases(scope):
                above = self._scopes[base]
                if isinstance(above.body, ast.ClassDef) and above is not scope:
                    found = self._member(above, name, depth - 1, rest)
                    if found:
                        return found
        return None

    def _of_stars(self, scope: Scope, name: str, rest: list[str], depth: int) -> str | None:
        for star in scope.stars if depth else ():
            module = self._modules.get(star)
            found = module and self._member(module, name, depth - 1, rest)
            if found:
                return found
        return None


def _dotted(node: ast.AST, handled: set[ast.AST]) -> list[str] | None:
    """`a.b.c` as its names; None of anything else. Its parts are handled then."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        handled.add(node)
        node = node.value
    handled.add(node)
    if not isinstance(node, ast.Name):
        return None
    return [node.id, *reversed(names)]


def _receiver(scope: Scope) -> str | None:
    """Return the name of the object in a method: its first parameter."""
    body = scope.body
    if isinstance(body, ast.Module | ast.ClassDef):
        return None
    if scope.outer is None or not isinstance(scope.outer.body, ast.ClassDef):
        return None
    parameters = [*body.args.posonlyargs, *body.args.args]
    return parameters[0].arg if parameters else None


def _is_seen_inside(scope: Scope) -> bool:
    """Names of a class are not seen in its methods."""
    return not isinstance(scope.body, ast.ClassDef)
