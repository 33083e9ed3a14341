"""The facts of the calls of a file, and of its blocks that do not always run."""

from __future__ import annotations

import ast
from typing import Any

from examples.live_lint import shapes
from examples.live_lint.facts import Dynamic, Handler
from examples.live_lint.names import export
from examples.live_lint.walk import Handlers, Walker

NAMESPACE_CALLS = frozenset({"globals", "exec", "eval"})
FRAME_CALLS = frozenset({"locals", "vars", "dir", "exec", "eval"})


def _call(walker: Walker, node: ast.Call) -> None:
    chain = shapes.dotted(node.func)
    if chain is not None:
        head, rest = chain
        _named_call(walker, node, head, rest)
        if not rest:
            _call_of_name(walker, head)
    walker.below(node)


def _named_call(walker: Walker, node: ast.Call, head: str, rest: str) -> None:
    if head == "__all__" and walker.scope.kind == "module":
        export(walker, ast.Tuple([*node.args, *shapes.elements(node.args)]))
    if not walker.guarded and not shapes.has_stars(node):
        counts = len(node.args), len(node.keywords)
        walker.calls.append((node.lineno, head, rest, *counts))


def _call_of_name(walker: Walker, name: str) -> None:
    if name in NAMESPACE_CALLS:
        walker.facts.add(Dynamic(walker.module))
    if name in FRAME_CALLS:
        for parameter, function in walker.scope.visible.items():
            walker.use(function, parameter)


def _block(walker: Walker, node: ast.AST) -> None:
    walker.scope.conditions += 1
    walker.below(node)
    walker.scope.conditions -= 1


def _if(walker: Walker, node: ast.If) -> None:
    unloaded = int(shapes.is_type_checking(node.test) or shapes.is_main(node.test))
    walker.scope.conditions += 1
    walker.walk(node.test)
    walker.unloaded += unloaded
    walker.walk_all(node.body)
    walker.unloaded -= unloaded
    walker.walk_all(node.orelse)
    walker.scope.conditions -= 1


def _try(walker: Walker, node: Any) -> None:
    optional = int(shapes.expects_import_error(node.handlers))
    guarded = int(shapes.expects_type_error(node.handlers))
    walker.scope.conditions += 1
    walker.optional += optional
    walker.guarded += guarded
    walker.walk_all(node.body)
    walker.guarded -= guarded
    walker.walk_all([*node.handlers, *node.orelse, *node.finalbody])
    walker.optional -= optional
    walker.scope.conditions -= 1


def _with(walker: Walker, node: ast.With | ast.AsyncWith) -> None:
    optional = int(shapes.mentions(node.items, shapes.IMPORT_ERRORS))
    guarded = int(shapes.mentions(node.items, shapes.ARGUMENT_ERRORS))
    walker.optional += optional
    walker.guarded += guarded
    _block(walker, node)
    walker.guarded -= guarded
    walker.optional -= optional


def _handler(walker: Walker, node: ast.ExceptHandler) -> None:
    caught, hides = shapes.caught(node), shapes.hides(node.body)
    walker.facts.add(Handler(walker.file, node.lineno, caught, hides))
    if node.name is not None:
        walker.bind(node.name)
    walker.below(node)


HANDLERS: Handlers = {
    ast.Call: _call,
    ast.If: _if,
    ast.For: _block,
    ast.AsyncFor: _block,
    ast.While: _block,
    ast.Match: _block,
    ast.Try: _try,
    getattr(ast, "TryStar", ast.Try): _try,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.ExceptHandler: _handler,
}
