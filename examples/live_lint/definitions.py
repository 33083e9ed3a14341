"""The facts of the functions and classes of a file."""

from __future__ import annotations

import ast
from typing import Literal

from examples.live_lint import shapes
from examples.live_lint.facts import (
    Base,
    Class,
    Default,
    Dynamic,
    Function,
    Internal,
    Parameter,
)
from examples.live_lint.names import annotation
from examples.live_lint.walk import Handlers, Scope, Walker

Kind = Literal["function", "method", "nested"]
KINDS: dict[str, Kind] = {"module": "function", "class": "method", "function": "nested"}


def _function(walker: Walker, node: shapes.FunctionNode) -> None:
    walker.walk_all(node.decorator_list)
    walker.walk_all(getattr(node, "type_params", ()))
    annotation(walker, node.returns)
    _arguments(walker, node.name, node.args)
    symbol = _define(walker, node.name)
    _add_function(walker, node, symbol)
    inner = _function_scope(walker, node, symbol)
    own = (name for name, function in inner.visible.items() if function == symbol)
    walker.facts.update(Parameter(symbol, name) for name in own)
    if node.name == "__getattr__" and walker.scope.kind == "module":
        walker.facts.add(Dynamic(walker.module))
    walker.within(inner, node.body)


def _add_function(walker: Walker, node: shapes.FunctionNode, symbol: str) -> None:
    scope, kind = walker.scope, KINDS[walker.scope.kind]
    bound = kind == "method" and not shapes.is_static(node)
    signature = shapes.signature(node, skip_first=bound)
    walker.facts.add(
        Function(
            file=walker.file,
            line=node.lineno,
            module=walker.module,
            owner=scope.symbol,
            name=node.name,
            symbol=symbol,
            kind=kind,
            required=signature.required,
            positional=signature.positional,
            open=signature.open,
            plain=shapes.is_plain(node.decorator_list),
            stub=shapes.is_stub(node.body),
            conditional=scope.conditions > 0,
            reads=walker.reads[node.name],
        )
    )


def _function_scope(walker: Walker, node: shapes.FunctionNode, symbol: str) -> Scope:
    """Return the scope of the body. Its parameters hide those of outer functions."""
    outer = walker.scope
    names = {a.arg for a in shapes.parameters(node.args)}
    walker.local_names |= names
    is_method = outer.kind == "class"
    own = [a.arg for a in shapes.named_parameters(node.args)]
    skipped = int(is_method and not shapes.is_static(node))
    visible = _visible(outer, names) | {n: symbol for n in own[skipped:] if is_counted(n)}
    owner_class = outer.symbol if is_method else outer.owner_class
    needs = _needs(walker, node, symbol, plain=shapes.is_plain(node.decorator_list))
    return Scope(symbol, "function", owner_class, visible, runs=needs, needs=needs)


def _needs(
    walker: Walker, node: shapes.FunctionNode | ast.ClassDef, symbol: str, *, plain: bool
) -> str:
    """Return the definition whose use makes this one's functions run: itself if internal."""
    if not plain or not shapes.is_internal(node.name):
        return walker.scope.needs
    walker.facts.add(Internal(walker.file, node.lineno, walker.module, node.name, symbol))
    return symbol


def _visible(outer: Scope, names: set[str]) -> dict[str, str]:
    """Return the parameters visible in a function: its own, and those of outer functions."""
    around = {n: f for n, f in outer.visible.items() if n not in outer.globals}
    return around | dict.fromkeys(names, "")


def is_counted(parameter: str) -> bool:
    """Return True if a parameter is one that a function should use."""
    return not parameter.startswith("_") and parameter not in ("self", "cls")


def _lambda(walker: Walker, node: ast.Lambda) -> None:
    _arguments(walker, "lambda", node.args)
    outer, names = walker.scope, {a.arg for a in shapes.parameters(node.args)}
    walker.local_names |= names
    inner = Scope(
        outer.symbol,
        "function",
        outer.owner_class,
        _visible(outer, names),
        runs=outer.runs,
        needs=outer.needs,
    )
    walker.within(inner, [node.body])


def _class(walker: Walker, node: ast.ClassDef) -> None:
    walker.walk_all([*node.decorator_list, *node.bases, *node.keywords])
    walker.walk_all(getattr(node, "type_params", ()))
    scope, symbol = walker.scope, _define(walker, node.name)
    walker.facts.add(
        Class(
            file=walker.file,
            line=node.lineno,
            owner=scope.symbol,
            name=node.name,
            kind=KINDS[scope.kind],
            plain=not node.decorator_list,
            conditional=scope.conditions > 0,
            reads=walker.reads[node.name],
        )
    )
    if any(shapes.last_name(d) == "global_enum" for d in node.decorator_list):
        walker.facts.add(Dynamic(walker.module))
    if scope.kind == "module":
        chains = filter(None, map(shapes.dotted, node.bases))
        walker.facts.update(Base(symbol, walker.module, head, rest) for head, rest in chains)
    needs = _needs(walker, node, symbol, plain=not node.decorator_list)
    inner = Scope(symbol, "class", symbol, scope.visible, runs=scope.runs, needs=needs)
    walker.within(inner, node.body)


def _define(walker: Walker, name: str) -> str:
    """Return the symbol of a definition; the second of one name in one scope gets a number."""
    walker.bind(name)
    symbol = f"{walker.scope.symbol}.{name}"
    walker.symbols[symbol] += 1
    count = walker.symbols[symbol]
    return symbol if count == 1 else f"{symbol}#{count}"


def _arguments(walker: Walker, function: str, args: ast.arguments) -> None:
    """Annotations and defaults, which belong to the scope around."""
    for parameter in shapes.parameters(args):
        annotation(walker, parameter.annotation)
    for name, value in shapes.defaults(args):
        walker.walk(value)
        if shapes.is_mutable(value):
            text = ast.unparse(value)
            walker.facts.add(Default(walker.file, value.lineno, function, name, text))


HANDLERS: Handlers = {
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.Lambda: _lambda,
    ast.ClassDef: _class,
}
