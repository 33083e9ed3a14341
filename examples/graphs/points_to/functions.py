"""The facts of the functions of a file: their names, parameters and results."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from examples.graphs.points_to.facts import FUNCTION, SELF, Formal, Method, New, Return, Site
from examples.graphs.points_to.scopes import FunctionNode, Scope, bound, elsewhere, has_yield

LAMBDA = "lambda"


def function_scope(scope: Scope, node: FunctionNode) -> Scope:
    """Return the scope of a function's body, with what its definition states."""
    symbol = scope.define(node.name)
    names = {*parameters(node.args), *bound(node.body)}.difference(elsewhere(node.body))
    inner = scope.inside(symbol, names)
    if scope.is_class:
        scope.add(Method(scope.symbol, node.name, symbol))
        _add_self(scope, inner, node)
        _add_formals(inner, node.args, skipped=int(inner.self_name != ""))
    else:
        scope.add(New(scope.own(node.name), Site(symbol, FUNCTION)))
        inner.owner, inner.self_name = scope.owner, scope.self_name
        _add_formals(inner, node.args)
    if has_yield(node.body):
        inner.generated = inner.fresh()
        inner.add(New(inner.generated, Site(inner.generated, "generator")))
        inner.add(Return(symbol, inner.generated))
    return inner


def lambda_scope(scope: Scope, node: ast.Lambda) -> Scope:
    """Return the scope of the body of a lambda."""
    inner = scope.inside(scope.define(LAMBDA), {*parameters(node.args), *bound([node.body])})
    inner.owner, inner.self_name = scope.owner, scope.self_name
    _add_formals(inner, node.args)
    return inner


def parameters(args: ast.arguments) -> list[str]:
    """Return the parameters of a function, including starred ones."""
    stars = [a for a in (args.vararg, args.kwarg) if a is not None]
    return [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs, *stars)]


def _add_self(scope: Scope, inner: Scope, node: FunctionNode) -> None:
    """Add the first parameter of a method: an object of the class, for any caller."""
    decorators = {d.id for d in node.decorator_list if isinstance(d, ast.Name)}
    names = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
    if not names or "staticmethod" in decorators:
        return
    inner.owner, inner.self_name = scope.symbol, names[0]
    inner.add(Formal(inner.symbol, SELF, inner.own(names[0])))
    if "classmethod" not in decorators:
        inner.add(New(inner.own(names[0]), Site("", scope.symbol)))


def _add_formals(inner: Scope, args: ast.arguments, *, skipped: int = 0) -> None:
    own = [a.arg for a in (*args.posonlyargs, *args.args)][skipped:]
    slots = [(str(position), name) for position, name in enumerate(own)]
    slots += [(name, name) for name in _by_name(args, own)]
    for slot, name in slots:
        inner.add(Formal(inner.symbol, slot, inner.own(name)))


def _by_name(args: ast.arguments, own: Iterable[str]) -> list[str]:
    only = {a.arg for a in args.posonlyargs}
    return [*(name for name in own if name not in only), *(a.arg for a in args.kwonlyargs)]
