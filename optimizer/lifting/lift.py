"""Lift: read a callable as an expression over its parameters, or leave it whole, with the reason.

    lambda s: s.age > limit     ->     s.age > 30
    s.first_name.startswith     ->     opaque: ...

The syntax tree is the callable's own (`syntax.py` proves it). Names mean what they meant when the
relation was made: parameters, captured variables, globals, built-ins. A function may have several
statements as long as it only names values, chooses and returns. Expressions without a node of
their own (comprehensions, nested lambdas, starred arguments) become functions of the parameters
that they read, and are called.

Small functions that a callable calls are lifted in its place if they return one expression.

Sound:  an expression evaluates what the callable does, in its order. A value that is named and used
        more than once is written out as often, if that makes no difference (`is_value`).
Source: [i3ql] language integration; "lift" is our word, not that of the DBSP papers.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from operator import attrgetter, itemgetter, methodcaller
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from optimizer.callables.loads import unread_parameters
from optimizer.callables.opaque import Opaque
from optimizer.expr import (
    NONE,
    And,
    Apply,
    Attribute,
    Call,
    Conditional,
    Constant,
    Display,
    Expr,
    First,
    Formatted,
    Item,
    Lifted,
    Operation,
    Or,
    Parameter,
    Text,
    constant,
    row_names,
    surely,
    walk,
)
from optimizer.expressions.evaluated import evaluated_attribute
from optimizer.expressions.knowledge import Shapes, is_value, total
from optimizer.lifting.part import UNSET, part_of, resolve
from optimizer.lifting.syntax import NoSyntax, shared_syntax_of
from optimizer.record import record

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.BitAnd: "&",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Not: "not",
    ast.USub: "-",
    ast.UAdd: "+",
    ast.Invert: "~",
}
DISPLAYS = {ast.Tuple: "tuple", ast.List: "list", ast.Set: "set"}
BINDING = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
LARGEST = 400
"""Nodes that an expression may have; `if` statements can double it."""
LONGEST = 60
"""Nodes of a function that is read in the place of its call."""
DEEPEST = 5
VALUES = (int, float, complex, str, bytes, tuple, frozenset)
"""Constants that are equal if their values are."""
TOO_LONG = "it is too long"
HINT = ("write it as one expression, or as names, choices and returns",)


class Unreadable(Exception):
    """The callable stays whole; the arguments are the reason, and what to do about it."""


def lift(function: Opaque, shapes: Shapes = ()) -> Lifted:
    """The callable as an expression; one that is a call of it, if it cannot be read."""
    arguments = tuple(Parameter(index) for index in range(function.parameters))
    try:
        body, names = _read(function.function, _Origin(function, shapes), arguments)
        _check_length(body)
    except Unreadable as unreadable:
        reason = "\n".join((*unreadable.args, *HINT)[:2])
        body, names = Apply(function, _read_by(function), reason), ()
    except RecursionError:
        body, names = Apply(function, _read_by(function), "it is nested too deeply"), ()
    names = names or row_names(function.parameters)
    return Lifted(body, names, (function,), function.parameters, function)


@record
class _Origin:
    """The callable that is being read, what is known of its arguments, and how deep in calls."""

    function: Opaque
    shapes: Shapes
    depth: int = 0


def _read_by(function: Opaque) -> tuple[Expr, ...]:
    """The arguments of a callable that is kept whole; None for arguments that it does not read."""
    unread = unread_parameters(function.function)
    return tuple(NONE if i in unread else Parameter(i) for i in range(function.parameters))


def _read(
    function: Callable[..., Any], origin: _Origin, arguments: tuple[Expr, ...]
) -> tuple[Expr, tuple[str, ...]]:
    """The expression of a call with these arguments, and the names of the parameters."""
    match function:
        case FunctionType():
            tree = _tree(function)
            bound = _bound(function, tree, arguments, {})
            names = tuple(a.arg for a in [*tree.args.posonlyargs, *tree.args.args])
            free = [n for n in names if bound.get(n) in arguments]
            return _Reader(function, origin, bound).body(tree), tuple(free)[: len(arguments)]
        case MethodType():
            owner = constant(function.__self__, "self")
            inner, names = _read(function.__func__, origin, (owner, *arguments))
            return inner, names[1:] if len(names) > len(arguments) else names
        case functools.partial():
            if not isinstance(function.func, FunctionType):
                raise Unreadable(
                    "it is a partial of what is no Python function", "write a lambda instead"
                )
            given = tuple(map(constant, function.args))
            keywords = {name: constant(value) for name, value in function.keywords.items()}
            tree = _tree(function.func)
            bound = _bound(function.func, tree, (*given, *arguments), keywords)
            return _Reader(function.func, origin, bound).body(tree), ()
        case attrgetter() | itemgetter() | methodcaller():
            return _getter(function, arguments[0]), ()
        case BuiltinFunctionType() | type():
            return Call(constant(function), arguments), ()
        case _:
            call = getattr(type(function), "__call__", None)  # noqa: B004
            if isinstance(call, FunctionType):
                return _read(MethodType(call, function), origin, arguments)
            if type(function).__name__ in ("method_descriptor", "wrapper_descriptor"):
                return Call(constant(function), arguments), ()
            raise Unreadable(
                f"a {type(function).__name__} has no Python code to read",
                "pass a lambda that calls it",
            )


def _tree(function: FunctionType) -> ast.Lambda | ast.FunctionDef:
    tree = shared_syntax_of(function.__code__, function.__globals__)
    if isinstance(tree, NoSyntax):
        raise Unreadable(tree.reason, tree.remedy)
    if not isinstance(tree, ast.Lambda | ast.FunctionDef):
        raise Unreadable("it is no plain function")
    own = tree.body if isinstance(tree, ast.FunctionDef) else [tree.body]
    if any(isinstance(node, BINDING) for statement in own for node in ast.walk(statement)):
        raise Unreadable("':=', 'await' or 'yield' in it", "write it without")
    return tree


def _bound(
    function: FunctionType,
    tree: ast.Lambda | ast.FunctionDef,
    arguments: tuple[Expr, ...],
    keywords: Mapping[str, Expr],
) -> dict[str, Expr]:
    """The parameters with what they are given, or their defaults."""
    declared = tree.args
    if declared.vararg or declared.kwarg:
        raise Unreadable("it takes any number of arguments", "name its parameters")
    positional = [a.arg for a in [*declared.posonlyargs, *declared.args]]
    if len(arguments) > len(positional) or any(a.arg in keywords for a in declared.posonlyargs):
        raise Unreadable("it does not take these arguments")
    defaults = dict(
        zip(reversed(positional), reversed(function.__defaults__ or ()), strict=False)
    ) | (function.__kwdefaults__ or {})
    given = dict(zip(positional, arguments, strict=False))
    names = [*positional, *(a.arg for a in declared.kwonlyargs)]
    if given.keys() & keywords.keys() or not keywords.keys() <= set(names):
        raise Unreadable("it does not take these arguments")
    given |= keywords
    for name in names:
        if name not in given:
            if name not in defaults:
                raise Unreadable("it does not take these arguments")
            given[name] = constant(defaults[name], name)
    return given


def _getter(function: Any, row: Expr) -> Expr:
    """What the objects of module `operator` compute."""
    kind, given = function.__reduce__()[:2]
    if isinstance(kind, functools.partial):  # a methodcaller with keywords
        raise Unreadable("it is a methodcaller with keywords")
    if isinstance(function, methodcaller):
        return Call(Attribute(row, given[0]), tuple(map(constant, given[1:])))
    found = [
        functools.reduce(Attribute, name.split("."), row)
        if isinstance(function, attrgetter)
        else Item(row, constant(name))
        for name in given
    ]
    return found[0] if len(found) == 1 else Display("tuple", tuple(found))


class _Reader:
    """Reads the body of one function."""

    def __init__(self, function: FunctionType, origin: _Origin, bound: dict[str, Expr]) -> None:
        self._function = function
        self._origin = origin
        self._bound = bound
        self._choices = 0

    def body(self, tree: ast.Lambda | ast.FunctionDef) -> Expr:
        if isinstance(tree, ast.Lambda):
            return self._expr(tree.body)
        return self._block(tree.body)

    def _block(self, statements: Sequence[ast.stmt]) -> Expr:
        """What a function returns that goes on with these statements."""
        if not statements:
            return NONE
        first, rest = statements[0], statements[1:]
        match first:
            case ast.Return(value):
                return NONE if value is None else self._expr(value)
            case ast.If(test, body, orelse):
                chosen = self._expr(test)
                self._choices += 1
                if self._choices > LARGEST:
                    raise Unreadable(TOO_LONG)
                outer = dict(self._bound)
                then = self._block([*body, *rest])
                self._bound = dict(outer)
                otherwise = self._block([*orelse, *rest])
                self._bound = outer
                return Conditional(chosen, then, otherwise)
            case (
                ast.Assign([ast.Name(name)], value)
                | ast.AnnAssign(target=ast.Name(name), value=ast.expr() as value)
            ):
                self._bound[name] = found = self._expr(value)
                _check_length(found)
                then = self._block(rest)
                return _with(found, then, then, self._origin.shapes)
            case ast.Expr(ast.Constant()) | ast.Pass():
                return self._block(rest)
            case _:
                raise Unreadable(f"{_statement(first)} at line {first.lineno}")

    def _expr(self, node: ast.expr) -> Expr:
        match node:
            case ast.Constant(value):
                return constant(value)
            case ast.Name(name):
                return self._name(node, name)
            case ast.Attribute(of, name):
                return evaluated_attribute(self._expr(of), name)
            case ast.Subscript(of, key):
                return Item(self._expr(of), self._expr(key))
            case ast.Slice(lower, upper, step):
                ends = (NONE if e is None else self._expr(e) for e in (lower, upper, step))
                return Display("slice", tuple(ends))
            case ast.BoolOp(operator, values):
                make = And if isinstance(operator, ast.And) else Or
                return make(tuple(map(self._expr, values)))
            case ast.UnaryOp(operator, operand):
                return Operation(OPERATORS[type(operator)], (self._expr(operand),))
            case ast.BinOp(left, operator, right):
                return Operation(OPERATORS[type(operator)], (self._expr(left), self._expr(right)))
            case ast.Compare(left, operators, rights):
                return self._comparison(node, [left, *rights], operators)
            case ast.IfExp(test, then, otherwise):
                return Conditional(self._expr(test), self._expr(then), self._expr(otherwise))
            case ast.Tuple(items) | ast.List(items) | ast.Set(items):
                if any(isinstance(item, ast.Starred) for item in items):
                    return self._kept(node)
                return Display(DISPLAYS[type(node)], tuple(map(self._expr, items)))  # type: ignore[arg-type]
            case ast.Dict(keys, values) if all(keys):
                pairs = zip(keys, values, strict=True)
                return Display("dict", tuple(self._expr(e) for kv in pairs for e in kv if e))
            case ast.Call():
                return self._call(node)
            case ast.JoinedStr(values):
                return Text(tuple(map(self._expr, values)))
            case ast.FormattedValue(value, conversion, spec):
                mark = "" if conversion < 0 else f"!{chr(conversion)}"
                return Formatted(
                    self._expr(value), mark, None if spec is None else self._expr(spec)
                )
            case _:
                return self._kept(node)

    def _name(self, node: ast.Name, name: str) -> Expr:
        if name in self._bound:
            return self._bound[name]
        if (
            name in self._function.__code__.co_varnames
            or name in self._function.__code__.co_cellvars
        ):
            raise Unreadable(f"{name!r} may have no value when it is read")
        value = resolve(self._function, name)
        return self._kept(node) if value is UNSET else constant(value, name)

    def _comparison(
        self, whole: ast.Compare, operands: list[ast.expr], operators: list[ast.cmpop]
    ) -> Expr:
        read = list(map(self._expr, operands))
        if any(isinstance(e, Call | Apply) for middle in read[1:-1] for e in walk(middle)):
            return self._kept(whole)  # each is called once
        if any(map(_by_identity, operators, read, read[1:])):
            return self._kept(whole)
        pairs = zip(read, operators, read[1:], strict=False)
        links = tuple(Operation(OPERATORS[type(op)], (a, b)) for a, op, b in pairs)
        return links[0] if len(links) == 1 else And(links)

    def _call(self, node: ast.Call) -> Expr:
        starred = any(isinstance(a, ast.Starred) for a in node.args)
        lazy = any(isinstance(a, ast.GeneratorExp) for a in node.args)
        if starred or lazy or any(k.arg is None for k in node.keywords):
            return self._kept(node)
        function = self._expr(node.func)
        arguments = tuple(map(self._expr, node.args))
        keywords = tuple((str(k.arg), self._expr(k.value)) for k in node.keywords)
        return self._inlined(function, arguments, keywords) or Call(function, arguments, keywords)

    def _inlined(
        self, function: Expr, arguments: tuple[Expr, ...], keywords: tuple[tuple[str, Expr], ...]
    ) -> Expr | None:
        """What a small function returns; None of another."""
        called = function.value if isinstance(function, Constant) else None
        if not isinstance(called, FunctionType) or self._origin.depth >= DEEPEST:
            return None
        inner = replace(self._origin, depth=self._origin.depth + 1)
        try:
            tree = _tree(called)
            if not _returns_one_expression(tree):
                return None
            bound = _bound(called, tree, arguments, dict(keywords))
            body = _Reader(called, inner, bound).body(tree)
            if sum(1 for _ in walk(body)) > LONGEST:
                return None
            result = body
            for argument in reversed([*arguments, *(value for _, value in keywords)]):
                result = _with(argument, body, result, self._origin.shapes)
            return result
        except (Unreadable, RecursionError):
            return None

    def _kept(self, node: ast.expr) -> Expr:
        """A part that has no node, as a function of what it reads."""
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        needed = [name for name in self._bound if name in names]
        made = part_of(node, needed, self._function, self._origin.function)
        if made is None:
            raise Unreadable(f"{ast.unparse(node)!r:.60} in it")
        reason = f"{_kind(node)} at line {node.lineno}"
        return Apply(made, tuple(self._bound[name] for name in needed), reason)


def _by_identity(operator: ast.cmpop, left: Expr, right: Expr) -> bool:
    """Whether `is` asks for the very object of a constant, of which expressions know the value."""
    if not isinstance(operator, ast.Is | ast.IsNot):
        return False
    values = [side.value for side in (left, right) if isinstance(side, Constant)]
    return any(isinstance(v, VALUES) and not isinstance(v, bool) for v in values)


def _check_length(expr: Expr) -> None:
    if sum(1 for _ in islice(walk(expr), LARGEST + 1)) > LARGEST:
        raise Unreadable(TOO_LONG)


def _with(value: Expr, body: Expr, result: Expr, shapes: Shapes) -> Expr:
    """`result`, in which the value was named before `body` used it, any number of times."""
    if total(value, shapes) and is_value(value, shapes):
        return result
    if is_value(value, shapes):
        return First((value,), result)
    if sum(e is value for e in walk(body)) == 1 and any(e is value for e in surely(body)):
        return result
    raise Unreadable(
        "it uses a value twice that may be an iterator, or not always",
        "call it where it is used, or give the rows a class that declares its fields",
    )


def _returns_one_expression(tree: ast.Lambda | ast.FunctionDef) -> bool:
    if isinstance(tree, ast.Lambda):
        return True
    documented = isinstance(tree.body[0], ast.Expr) and isinstance(tree.body[0].value, ast.Constant)
    rest = tree.body[1:] if documented else tree.body
    return len(rest) == 1 and isinstance(rest[0], ast.Return) and rest[0].value is not None


def _statement(node: ast.stmt) -> str:
    known = {
        ast.Assign: "an assignment to more than a name",
        ast.AugAssign: "an augmented assignment",
        ast.FunctionDef: "a nested function",
        ast.ClassDef: "a nested class",
        ast.Assert: "an 'assert'",
        ast.Expr: "an expression whose value is not used",
    }
    name = type(node).__name__.lower()
    return known.get(type(node), f"a {name!r} statement")


def _kind(node: ast.expr) -> str:
    known = {
        ast.GeneratorExp: "generator expression",
        ast.ListComp: "list comprehension",
        ast.SetComp: "set comprehension",
        ast.DictComp: "dict comprehension",
        ast.Lambda: "nested lambda",
        ast.Name: "a name without a value yet",
    }
    if isinstance(node, ast.Call):
        return "call with a generator or starred arguments"
    return known.get(type(node), type(node).__name__)
