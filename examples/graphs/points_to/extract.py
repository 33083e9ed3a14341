"""From the text of one file to its facts: one pass over the statements of its syntax tree.

Taken without regard to order (flow-insensitive) and to who calls (context-insensitive). Not
followed: classes passed on as values, bound methods, properties, what classes themselves hold,
decorators, `*` and `**`, and what code does behind Python's back (`setattr`, `exec`).
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable

from examples.graphs.points_to.facts import Base, Define, Fact, Return
from examples.graphs.points_to.functions import function_scope
from examples.graphs.points_to.scopes import MAYBE, FunctionNode, Scope, bound
from examples.graphs.points_to.values import assign, bind, element, put, value


def extract(module: str, source: bytes, *, is_package: bool = False) -> frozenset[Fact]:
    """All facts of a file; none, if Python cannot read it.

    Parameters
    ----------
    module: its name in imports.
    source: its bytes.
    is_package: True for an `__init__.py`, which relative imports depend on.

    >>> facts = extract("m", b"x = []\\ny = x\\n")
    >>> for fact in sorted(map(str, facts)):
    ...     print(fact)
    Assign(target='m:x', source='m:1')
    Assign(target='m:y', source='m:x')
    New(variable='m:1', site=Site(at='m:1', type='list'))
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
        scope = Scope(module, module, set(), frozenset(bound(tree.body)))
        _Reader(is_package).block(scope, tree.body)
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    return frozenset(scope.facts)


class _Reader:
    """Read the statements of a file, and those of the functions and classes in it."""

    def __init__(self, is_package: bool) -> None:
        self._is_package = is_package

    def block(self, scope: Scope, statements: Iterable[ast.AST]) -> None:
        """Take in statements of a scope."""
        for node in statements:
            self._statement(scope, node)

    def _statement(self, scope: Scope, node: ast.AST) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._function(scope, node)
            case ast.ClassDef():
                self._class(scope, node)
            case ast.Import(names=names):
                for alias in names:
                    head = alias.name.partition(".")[0]
                    scope.imported[alias.asname or head] = alias.name if alias.asname else head
            case ast.ImportFrom():
                self._import_from(scope, node)
            case ast.Return(value=inner):
                _returned(scope, value(scope, inner))
            case ast.Assign(targets=targets, value=inner):
                found = value(scope, inner)
                for target in targets:
                    bind(scope, target, found)
            case ast.AnnAssign(target=target, value=inner) if inner is not None:
                bind(scope, target, value(scope, inner))
            case ast.AugAssign(target=target, value=inner):
                put(scope, value(scope, target), element(scope, value(scope, inner)))
            case ast.For(target=target, iter=iterable) | ast.AsyncFor(target=target, iter=iterable):
                bind(scope, target, element(scope, value(scope, iterable)))
                self.block(scope, [*node.body, *node.orelse])
            case ast.withitem(context_expr=manager, optional_vars=target):
                found = value(scope, manager)
                if target is not None:
                    bind(scope, target, found)
            case ast.expr():
                value(scope, node)
            case _:
                self.block(scope, ast.iter_child_nodes(node))

    def _import_from(self, scope: Scope, node: ast.ImportFrom) -> None:
        target = self._absolute(scope.module, node)
        for alias in node.names:
            name = alias.asname or alias.name
            scope.imported[name] = f"{MAYBE}{target}.{alias.name}"
            assign(scope, scope.own(name), f"{target}:{alias.name}")

    def _absolute(self, module: str, node: ast.ImportFrom) -> str:
        parts = module.split(".")
        kept = parts[: len(parts) - node.level + int(self._is_package)] if node.level else []
        return ".".join([*kept, *filter(None, [node.module])])

    def _class(self, scope: Scope, node: ast.ClassDef) -> None:
        self.block(scope, [*node.decorator_list, *node.keywords])
        symbol = scope.define(node.name)
        scope.add(Define(scope.own(node.name), symbol))
        for base in node.bases:
            found = value(scope, base)
            if found is not None:
                scope.add(Base(symbol, found))
        inner = scope.inside(symbol, bound(node.body), is_class=True)
        inner.owner = symbol
        self.block(inner, node.body)

    def _function(self, scope: Scope, node: FunctionNode) -> None:
        args = node.args
        self.block(scope, [*node.decorator_list, *args.defaults, *filter(None, args.kw_defaults)])
        self.block(function_scope(scope, node), node.body)


def _returned(scope: Scope, found: str | None) -> None:
    if found is not None:
        scope.add(Return(scope.symbol, found))
