"""The facts of the expressions of a file; each possible object gets a variable."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from examples.graphs.points_to.facts import (
    ELEMENTS,
    FUNCTION,
    SELF,
    Actual,
    Assign,
    Call,
    Invoke,
    Load,
    New,
    Return,
    Site,
    Store,
    SuperCall,
)
from examples.graphs.points_to.functions import lambda_scope
from examples.graphs.points_to.scopes import Scope

DISPLAYS: dict[type[ast.AST], str] = {
    ast.List: "list",
    ast.ListComp: "list",
    ast.Tuple: "tuple",
    ast.Set: "set",
    ast.SetComp: "set",
    ast.Dict: "dict",
    ast.DictComp: "dict",
    ast.GeneratorExp: "generator",
}
CONTAINERS = {name: name for name in ("list", "tuple", "set", "dict", "frozenset", "bytearray")}
CONTAINERS |= {"sorted": "list", "reversed": "list", "iter": "iterator", "object": "object"}
"""The containers that some builtin functions make from the elements of their argument."""
PUTS_LAST = frozenset({"append", "add", "insert", "appendleft", "setdefault"})
PUTS_ALL = frozenset({"extend", "update"})
GETS_ONE = frozenset({"pop", "get", "popleft", "setdefault", "popitem"})
GETS_ALL = frozenset({"values", "copy", "union"})


def value(scope: Scope, node: ast.AST | None) -> str | None:
    """Return the variable of an expression's object; None if it is not followed."""
    match node:
        case None | ast.Constant():
            return None
        case ast.Lambda():
            return _lambda(scope, node)
        case ast.Name(id=name):
            return scope.variable(name)
        case ast.Attribute():
            return _attribute(scope, node)
        case ast.Call():
            return _call(scope, node)
        case ast.Subscript(value=base, slice=index):
            value(scope, index)
            return element(scope, value(scope, base))
        case ast.NamedExpr(target=target, value=inner):
            found = value(scope, inner)
            bind(scope, target, found)
            return found
        case ast.Await(value=inner) | ast.Starred(value=inner):
            return value(scope, inner)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            value(scope, test)
            return _either(scope, [body, orelse])
        case ast.BoolOp(values=values):
            return _either(scope, values)
        case ast.Yield(value=inner):
            put(scope, scope.generated, value(scope, inner))
            return None
        case ast.YieldFrom(value=inner):
            put(scope, scope.generated, element(scope, value(scope, inner)))
            return None
        case _ if type(node) in DISPLAYS:
            return _display(scope, node, DISPLAYS[type(node)])
        case _:
            for child in ast.iter_child_nodes(node):
                value(scope, child)
            return None


def bind(scope: Scope, target: ast.expr, source: str | None) -> None:
    """Give a target what a variable holds."""
    match target:
        case ast.Name(id=name):
            assign(scope, scope.own(name), source)
        case ast.Attribute(value=base, attr=attr):
            module = _module_of(scope, base)
            if module:
                assign(scope, f"{module}:{attr}", source)
            put(scope, value(scope, base), source, attr)
        case ast.Subscript(value=base, slice=index):
            value(scope, index)
            put(scope, value(scope, base), source)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            part = element(scope, source)
            for each in parts:
                bind(scope, each, part)
        case ast.Starred(value=inner):
            rest = new(scope, "list")
            put(scope, rest, source)
            bind(scope, inner, rest)


def assign(scope: Scope, target: str, source: str | None) -> None:
    """Record that the target may hold what the source does."""
    if source is not None and source != target:
        scope.add(Assign(target, source))


def put(scope: Scope, base: str | None, source: str | None, field: str = ELEMENTS) -> None:
    """Record that a field of the base may hold what the source does."""
    if base and source is not None:
        scope.add(Store(base, field, source))


def element(scope: Scope, base: str | None) -> str | None:
    """Return the variable of an element of the objects in the base."""
    if base is None:
        return None
    target = scope.fresh()
    scope.add(Load(target, base, ELEMENTS))
    return target


def new(scope: Scope, kind: str) -> str:
    """Return a new object, made here."""
    target = scope.fresh()
    scope.add(New(target, Site(target, kind)))
    return target


def _attribute(scope: Scope, node: ast.Attribute) -> str:
    """Return a name of a module, where it is one for certain; else, or where it may be, a field."""
    module = _module_of(scope, node.value)
    if module and _is_module(scope, node.value):
        return f"{module}:{node.attr}"
    target = scope.fresh()
    base = value(scope, node.value)
    if base is not None:
        scope.add(Load(target, base, node.attr))
    assign(scope, target, f"{module}:{node.attr}" if module else None)
    return target


def _module_of(scope: Scope, node: ast.expr) -> str:
    """Return the module that `a` or `a.b` may stand for, by the imports; "" if none."""
    match node:
        case ast.Name(id=name):
            return scope.import_of(name)
        case ast.Attribute(value=base, attr=attr):
            around = _module_of(scope, base)
            return f"{around}.{attr}" if around else ""
        case _:
            return ""


def _is_module(scope: Scope, node: ast.expr) -> bool:
    """Return True if that is certain: `import a` makes `a` a module; `a.b` may be one or not."""
    return isinstance(node, ast.Name) and scope.is_module(node.id)


def _display(scope: Scope, node: ast.AST, kind: str) -> str:
    """Return a list, dict, set or tuple that is written down, or a comprehension."""
    target = new(scope, kind)
    match node:
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            _put_each(scope, target, parts)
        case ast.Dict(keys=keys, values=values):
            for key in keys:
                value(scope, key)
            _put_each(scope, target, values)
        case ast.DictComp(value=part, generators=generators):
            _generate(scope, generators)
            put(scope, target, value(scope, part))
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
            _generate(scope, node.generators)
            put(scope, target, value(scope, node.elt))
    return target


def _put_each(scope: Scope, target: str, parts: Iterable[ast.expr]) -> None:
    for part in parts:
        found = value(scope, part)
        put(scope, target, element(scope, found) if isinstance(part, ast.Starred) else found)


def _generate(scope: Scope, generators: list[ast.comprehension]) -> None:
    for each in generators:
        bind(scope, each.target, element(scope, value(scope, each.iter)))
        for test in each.ifs:
            value(scope, test)


def _lambda(scope: Scope, node: ast.Lambda) -> str:
    inner = lambda_scope(scope, node)
    found = value(inner, node.body)
    if found is not None:
        inner.add(Return(inner.symbol, found))
    target = scope.fresh()
    scope.add(New(target, Site(inner.symbol, FUNCTION)))
    return target


def _either(scope: Scope, nodes: Iterable[ast.expr]) -> str:
    target = scope.fresh()
    for node in nodes:
        assign(scope, target, value(scope, node))
    return target


def _call(scope: Scope, node: ast.Call) -> str:
    """Return the variable of the result, which is the call's own name."""
    call = scope.fresh()
    match node.func:
        case ast.Attribute(value=ast.Call(func=ast.Name("super"), args=[]), attr=method):
            scope.add(SuperCall(call, scope.owner, method))
            scope.add(Actual(call, SELF, scope.variable(scope.self_name)))
        case ast.Attribute(value=base, attr=method):
            _method_call(scope, node, call, base, method)
        case ast.Name(id=name) if name in CONTAINERS and scope.home(name) is None:
            scope.add(New(call, Site(call, CONTAINERS[name])))
            for argument in node.args:
                put(scope, call, element(scope, value(scope, argument)))
        case ast.Name(id=name):
            scope.add(Call(call, scope.variable(name)))
        case other:
            value(scope, other)
    _pass(scope, node, call)
    return call


def _method_call(scope: Scope, node: ast.Call, call: str, base: ast.expr, method: str) -> None:
    module = _module_of(scope, base)
    if module:
        scope.add(Call(call, f"{module}:{method}"))
    if module and _is_module(scope, base):
        return
    receiver = value(scope, base)
    if receiver is None:
        return
    scope.add(Invoke(call, receiver, method))
    if method in PUTS_LAST and node.args:
        put(scope, receiver, value(scope, node.args[-1]))
    if method in PUTS_ALL and node.args:
        put(scope, receiver, element(scope, value(scope, node.args[0])))
    if method in GETS_ONE:
        scope.add(Load(call, receiver, ELEMENTS))
    if method in GETS_ALL:
        scope.add(Assign(call, receiver))


def _pass(scope: Scope, node: ast.Call, call: str) -> None:
    """Add the arguments of a call; arguments after a star have no known position."""
    starred = False
    for position, argument in enumerate(node.args):
        found = value(scope, argument)
        starred = starred or isinstance(argument, ast.Starred)
        if found is not None and not starred:
            scope.add(Actual(call, str(position), found))
    for keyword in node.keywords:
        found = value(scope, keyword.value)
        if found is not None and keyword.arg is not None:
            scope.add(Actual(call, keyword.arg, found))
